"""The tables as a load writes them: merged by primary key, in batches, by way of the names that they already hold.

A row that comes twice becomes one: what a later one leaves null stays, what it knows replaces. A `weak` row only fills
what is null, for sources that guess, or write names in lower case.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Column, Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.schema import ScalarElementColumnDefault

from services.kg.domains.finance.company_names import company_names
from services.kg.domains.finance.tables import company
from services.kg.domains.movie.tables import movie, movie_person
from services.kg.domains.music.tables import artist, artist_work, billboard, work
from services.kg.domains.sports.tables import team
from services.kg.load.identity import movie_id, slug, team_id, work_id
from services.kg.store.names import normalise

BATCH_ROWS = 1_000
# A place in the credits that is not stated: after all that are.
UNPLACED = 9_999

Key = tuple[Any, ...]


class Graph:
    """Writes to the tables of one open transaction. Not for several threads.

    Args:
        connection: an open transaction; whoever opened it commits.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.written = 0
        # The last moment that the source knows of, a domain: what it says of days to come does not count.
        self.as_of: dict[str, str] = {}
        self._pending: dict[tuple[Table, bool], dict[Key, dict[str, Any]]] = defaultdict(dict)
        self._insert: Callable[[Table], Any] = (
            postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        )
        # The spelling of each film's title, among those that were put or looked up.
        self.titles: dict[str, str] = {}
        self._films: dict[str, dict[str, str | None]] | None = None
        self._people: dict[str, list[str]] | None = None
        self._artists: dict[str, list[str]] | None = None
        self._companies: dict[str, dict[str, float]] | None = None
        self._spellings: dict[tuple[str, str], str] = {}
        self._spelled: set[str] = set()
        self._tickers: set[str] = set()

    def put(self, table: Table, *, weak: bool = False, **values: Any) -> None:
        """Merge one row. Columns left out stay as they are, or get their default."""
        key = tuple(values[column.name] for column in table.primary_key)
        rows = self._pending[table, weak]
        known = rows.get(key)
        if known is None:
            rows[key] = values
        elif weak:
            rows[key] = values | {name: value for name, value in known.items() if value is not None}
        else:
            known.update({name: value for name, value in values.items() if value is not None})
        self.written += 1
        if len(rows) >= BATCH_ROWS:
            self.flush()

    def seen(self, domain: str, moment: str | None) -> None:
        """The source knows of this moment."""
        if moment:
            self.as_of[domain] = max(moment, self.as_of.get(domain, ""))

    def flush(self) -> None:
        """Send what is pending."""
        for (table, weak), rows in sorted(self._pending.items(), key=lambda item: item[0][1]):
            if rows:
                self._upsert(table, list(rows.values()), weak=weak)
        self._pending.clear()

    def _upsert(self, table: Table, rows: list[dict[str, Any]], *, weak: bool) -> None:
        names = [column.name for column in table.columns]
        used = [name for name in names if any(name in row for row in rows)]
        defaults = {column.name: _default(column) for column in table.columns}
        for column in table.columns:
            # A column that may not be null takes its default from the statement, for the driver sends null.
            if not column.nullable and column.name not in used:
                used.append(column.name)
        complete = [{name: defaults[name] if row.get(name) is None else row[name] for name in used} for row in rows]
        statement = self._insert(table)
        keys = [column.name for column in table.primary_key]
        merged = {
            name: func.coalesce(*_order(statement.excluded[name], table.c[name], weak=weak))
            for name in used
            if name not in keys and any(row.get(name) is not None for row in rows)
        }
        if merged:
            statement = statement.on_conflict_do_update(index_elements=keys, set_=merged)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=keys)
        self.connection.execute(statement, complete)

    # -- who is who ---------------------------------------------------------------------------------------------------

    def film(self, title: str, *, release_date: str | None = None, year: int | None = None) -> str | None:
        """The film of that title: of that day, of that year or a year beside it, or whichever there is; or none.

        Without a date the one that was released last among several is taken: remakes are asked for more.
        """
        films = self._film_index().get(slug(title), {})
        if release_date:
            if release_date in films.values():
                return next(key for key, value in films.items() if value == release_date)
            return next((key for key, value in films.items() if value is None), None)
        if year is not None:
            near = {key: abs(int(value[:4]) - year) for key, value in films.items() if value}
            best = min(near, key=lambda key: (near[key], key), default=None)
            if best is not None and near[best] <= 1:
                return best
            return next((key for key, value in films.items() if value is None), None)
        return max(films, key=lambda key: (films[key] or "", key), default=None)

    def films(self, title: str) -> dict[str, str | None]:
        """All films of that title: identifiers with their dates."""
        return self._film_index().get(slug(title), {})

    def know_film(self, identifier: str, title: str, release_date: str | None) -> None:
        """Tell of a film that was put."""
        films = self._film_index().setdefault(slug(title), {})
        films[identifier] = release_date or films.get(identifier)
        if not title.islower() or identifier not in self.titles:
            self.titles[identifier] = title

    def make_film(self, title: str, *, release_date: str | None = None, weak: bool = False) -> str:
        """The film of that title and date, put if there is none."""
        found = self.film(title, release_date=release_date)
        identifier = found or movie_id(title, release_date)
        self.put(movie, weak=weak or found is not None, movie_id=identifier, title=title, release_date=release_date)
        self.know_film(identifier, title, release_date)
        return identifier

    def make_person(self, name: str, *, weak: bool = False) -> str:
        """A person of the films of that name, put if there is none. Of several the first."""
        if self._people is None:
            self.flush()
            self._people = self._index(movie_person)
        return self._make(self._people, movie_person, name, weak=weak)

    def make_artist(self, name: str, *, weak: bool = False) -> str:
        """The artist of that name, put if there is none. Of several the first."""
        return self._make(self._artist_index(), artist, name, weak=weak)

    def knows_artist(self, name: str) -> bool:
        """Whether some artist has that name."""
        return slug(name) in self._artist_index() or slug(name) in self._spelled

    def know_spelling(self, name: str) -> None:
        """A source names this artist on its own somewhere, so the name in a list is an artist's too."""
        self._spelled.add(slug(name))

    def know(self, table: Table, identifier: str, name: str) -> None:
        """Tell of a person or an artist that was put under a source's identifier."""
        known = self._people if table is movie_person else self._artists
        if known is not None and identifier not in known.setdefault(slug(name), []):
            known[slug(name)].append(identifier)

    def _make(self, known: dict[str, list[str]], table: Table, name: str, *, weak: bool) -> str:
        key = slug(name)
        found = known.get(key)
        if not found:
            known[key] = found = [key]
        id_column = next(iter(table.primary_key)).name
        self.put(table, weak=weak, **{id_column: found[0], "name": self.spelling(table, found[0], name)})
        return found[0]

    def spelling(self, table: Table, identifier: str, name: str) -> str:
        """The better of the spellings of a name that are known so far: with capitals, with accents, the first."""
        best = self._spellings.setdefault((table.name, identifier), name)
        if (best.islower() and not name.islower()) or (best.isascii() and not name.isascii() and not name.islower()):
            self._spellings[table.name, identifier] = best = name
        return best

    def make_work(self, title: str, artist_name: str | None, *, artist_id: str | None = None, **values: Any) -> str:
        """A song or album, with its artist where there is one; `artist_id` tells artists of one name apart."""
        identifier = work_id(title, artist_id or artist_name)
        self.put(work, weak=title.islower(), work_id=identifier, title=title, **values)
        if artist_name:
            self.put(artist_work, artist_id=artist_id or self.make_artist(artist_name), work_id=identifier)
        return identifier

    def work(self, title: str) -> str | None:
        """A work of exactly that title; of several the first by identifier."""
        self.flush()
        return self.connection.scalar(
            select(work.c.work_id).where(work.c.title == title).order_by(work.c.work_id).limit(1)
        )

    def charted(self, date: str, rank: int | None) -> str | None:
        """Whose song has that place of the Hot 100, as far as is known."""
        pending = self._pending[billboard, False].get((date, rank))
        if pending:
            return str(pending["artist"])
        return self.connection.scalar(
            select(billboard.c.artist).where(billboard.c.date == date, billboard.c.rank == rank)
        )

    def make_team(self, sport: str, name: str, league: str | None = None) -> str:
        """The team of that name."""
        identifier = team_id(sport, name)
        self.put(team, weak=league is None, team_id=identifier, name=name, sport=sport, league=league)
        return identifier

    def ticker(self, name: str) -> str | None:
        """The ticker that a text is, or that the company of that name has; none where several fit or nothing does."""
        index = self._company_index()
        if name.upper() in self._tickers:
            return name.upper()
        found = index.get(normalise(name))
        if not found:
            return None
        # A company's common stock has the shortest ticker; its warrants, units and notes append to it.
        best = max(found.values())
        return min((ticker for ticker, weight in found.items() if weight == best), key=lambda key: (len(key), key))

    def know_company(self, ticker: str, name: str) -> None:
        """Tell of a company that was put."""
        self._add_company(self._company_index(), ticker, name)

    def _artist_index(self) -> dict[str, list[str]]:
        if self._artists is None:
            self.flush()
            self._artists = self._index(artist)
        return self._artists

    def _index(self, table: Table) -> dict[str, list[str]]:
        """Normal names with the identifiers that have them."""
        known: dict[str, list[str]] = {}
        key = next(iter(table.primary_key))
        for identifier, surface in self.connection.execute(select(key, table.c.name).order_by(key)):
            known.setdefault(slug(surface), []).append(identifier)
            self._spellings[table.name, identifier] = surface
        return known

    def _company_index(self) -> dict[str, dict[str, float]]:
        if self._companies is None:
            self.flush()
            self._companies = {}
            for ticker, name in self.connection.execute(select(company.c.ticker, company.c.name)):
                self._add_company(self._companies, ticker, name)
        return self._companies

    def _add_company(self, index: dict[str, dict[str, float]], ticker: str, name: str) -> None:
        self._tickers.add(ticker)
        for surface, weight in company_names(name, ticker):
            known = index.setdefault(normalise(surface), {})
            known[ticker] = max(weight, known.get(ticker, weight))

    def _film_index(self) -> dict[str, dict[str, str | None]]:
        if self._films is None:
            self.flush()
            self._films = {}
            rows = self.connection.execute(select(movie.c.movie_id, movie.c.title, movie.c.release_date))
            for identifier, title, release_date in rows:
                self._films.setdefault(slug(title), {})[identifier] = release_date
                self.titles[identifier] = title
        return self._films


def _default(column: Column[Any]) -> Any:
    return column.default.arg if isinstance(column.default, ScalarElementColumnDefault) else None


def _order(new: Any, old: Any, *, weak: bool) -> Iterable[Any]:
    return (old, new) if weak else (new, old)
