"""A made-up world in the tables of the knowledge graph, as the domains' phrasebooks say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, text

from lab.trainer.errors import BadDataset
from lab.trainer.synthesise.drawing import Drawing, Thing
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrases import Phrasebook, Rows
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.sources import items
from services.kg.language.catalogue import Catalogue
from services.kg.load.surfaces import index_names
from services.kg.store.tables import METADATA
from services.kit.text.times.calendar import PACIFIC

# Days before the world's last one on which questions are asked.
MOMENTS = {0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0, 8: 1.0}
# The newest quote is of the morning in New York; later that morning in California it is known.
HOURS = (8, 17)


@dataclass(slots=True)
class World:
    """What one batch of questions is about.

    Args:
        catalogue: the domains whose tables it fills.
        last: the last day that it knows.
        drawings: domain -> what draws its values; its `rows` are the world's.
    """

    catalogue: Catalogue
    phrasing: Phrasing
    last: date
    drawings: dict[str, Drawing] = field(default_factory=dict)

    def moment(self, when: str) -> datetime:
        """When a question is asked; see `Pattern.moment`."""
        v = self.phrasing
        day = self.last
        if when != "last day":
            day -= timedelta(days=v.weighted(MOMENTS))
            while when == "weekday" and day.weekday() >= 5:
                day -= timedelta(days=1)
        hour = HOURS[0] if when == "last day" else v.between(*HOURS)
        return datetime(day.year, day.month, day.day, hour, v.between(0, 59), tzinfo=PACIFIC)

    def store(self, connection: Connection) -> None:
        """Write the rows into the graph's tables, and index its names.

        Beside each table with hidden columns stands one with all of them, an underscore before its name, for pools.
        """
        METADATA.create_all(connection)
        self.catalogue.create_tables(connection)
        for drawing in self.drawings.values():
            for table, rows in drawing.rows.items():
                if (own := _table(self.catalogue, table)) is not None and rows:
                    visible = [column for column in rows[0].values if not column.startswith("_")]
                    connection.execute(own.insert(), [{one: row.values[one] for one in visible} for row in rows])
                if rows and (table.startswith("_") or any(column.startswith("_") for column in rows[0].values)):
                    _write_hidden(connection, table, rows)
        index_names(connection, self.catalogue, self.drawings)


def invent(catalogue: Catalogue, books: Mapping[str, Phrasebook], phrasing: Phrasing, names: Names) -> World:
    """A new world.

    Raises:
        BadDataset: a phrasebook's rows cannot be made; the message names domain, table and reason.
    """
    last = date(2023, 3, 1) + timedelta(days=phrasing.between(0, 900))
    last += timedelta(days=max(0, 7 - last.weekday()) if last.weekday() >= 5 else 0)
    world = World(catalogue, phrasing, last)
    for domain, book in books.items():
        drawing = world.drawings[domain] = Drawing(book, phrasing, names, last)
        for spec in book.world:
            if not spec.table.startswith("_") and _table(catalogue, spec.table) is None:
                raise BadDataset(f"{domain}: world: the graph has no table {spec.table}")
            try:
                drawing.rows.setdefault(spec.table, []).extend(_rows(drawing, spec, _table(catalogue, spec.table)))
            except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
                raise BadDataset(f"{domain}: world: {spec.table}: {error}") from error
    return world


def _rows(drawing: Drawing, spec: Rows, table: Table | None) -> Iterator[Thing]:
    v = drawing.phrasing
    keys = [spec.distinct] if spec.distinct else []
    if table is not None:
        keys.append(tuple(column.name for column in table.primary_key))
    taken: set[tuple[Any, ...]] = set()
    for slots in _loops(drawing, list(spec.each.items()), {}):
        count = spec.rows if isinstance(spec.rows, int) else v.between(*spec.rows)
        for index in range(count):
            if spec.share < 1 and not v.chance(spec.share):
                continue
            filled = {**slots, "i": index, "last": drawing.last.isoformat()}
            for slot, recipe in spec.draw.items():
                filled[slot] = drawing.draw(recipe, filled)
            values: dict[str, Any] = {}
            for column, recipe in spec.columns.items():
                value = filled[column] = drawing.draw(recipe, filled)
                values[column] = str(value) if isinstance(value, Thing) else value
            marks = [(number, *(values.get(name) for name in key)) for number, key in enumerate(keys)]
            if not any(mark in taken for mark in marks):
                taken.update(marks)
                yield Thing(values)


def _table(catalogue: Catalogue, name: str) -> Table | None:
    """A table of a domain, or one that no single domain owns."""
    own = catalogue.tables.get(name)
    return METADATA.tables.get(name) if own is None else own


def _loops(drawing: Drawing, each: list[tuple[str, Any]], slots: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not each:
        yield slots
        return
    (slot, source), *rest = each
    for item in items(drawing, source, slots):
        yield from _loops(drawing, rest, {**slots, slot: item})


def _write_hidden(connection: Connection, table: str, rows: list[Thing]) -> None:
    columns = [column.removeprefix("_") for column in rows[0].values]
    name = table if table.startswith("_") else f"_{table}"
    connection.execute(text(f'CREATE TABLE "{name}" ({", ".join(f"{one!r}" for one in columns)})'))
    holes = ", ".join(f":c{number}" for number in range(len(columns)))
    connection.execute(
        text(f'INSERT INTO "{name}" VALUES ({holes})'),  # noqa: S608 - names of our own phrasebooks
        [{f"c{number}": value for number, value in enumerate(row.values.values())} for row in rows],
    )
