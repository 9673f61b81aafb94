"""Grammys and charts, which a mapping cannot describe: performers and workers stand in free text."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from services.kg.definition.vocabulary import Vocabulary
from services.kg.domains import CATALOGUE
from services.kg.domains.credits import IN_BRACKETS, credited, performers, workers
from services.kg.load.errors import BadRow
from services.kg.load.graph import Row
from services.kg.load.identity import slug
from services.kg.load.mapper import Put
from services.kg.load.reading import Writer
from services.kg.load.registry import Mention
from services.kg.load.transforms import Transform
from services.kg.load.values import needed, text, truth, whole

CATEGORIES = CATALOGUE.domains["music"].folder.model("categories.yaml", Vocabulary)[0]
# Sources count by the year whose music is awarded: the 61st Grammys are of 2018, and were given in February 2019.
BEFORE_FIRST = 1957
# Awards whose nominee is a person or a band, not a song.
_FOR_PEOPLE = re.compile(r"new artist|producer of the year|remixer of the year|classical producer", re.IGNORECASE)
# A year with more rows a category on average lists its nominees, the winner first.
_NOMINEES_A_CATEGORY = 3.0


def grammy(writer: Writer, columns: Row) -> None:
    """Put an award, tied to everyone whom it names, each by exact name; with `fill` it sets only what is null.

    Raises:
        BadRow: it has no category, nominee or year.
    """
    year = whole(needed(columns, "year"), "year") or 0
    if not 1900 <= year <= 2200:
        raise BadRow("year", "is no year")
    category, nominee = needed(columns, "category"), text(columns.get("nominee"))
    if nominee is None:
        raise BadRow("nominee", "is missing")
    artist, others = text(columns.get("artist")), text(columns.get("workers"))
    key = CATEGORIES.code(category)
    identifier = f"{year}/{key}/{slug(nominee)}"
    for_people = _FOR_PEOPLE.search(category) is not None
    in_brackets = IN_BRACKETS.search(others or "")
    by = performers(artist or (in_brackets[1] if in_brackets else ""))
    winner = columns.get("winner")
    row = {
        "grammy_id": identifier,
        "year": year,
        "edition": year - BEFORE_FIRST,
        "category": category,
        "category_key": key,
        "nominee": nominee,
        "artist": artist,
        "workers": others,
        "winner": winner is None or truth(winner, "winner"),
        # Null leaves the work to a source that names a performer.
        "work_id": work(writer, nominee, by[0]) if by and not for_people else None,
    }
    writer.graph.put("grammy", row, fill=columns["fill"])
    names = credited(nominee) if for_people else []
    names += credited(artist) if artist else []
    names += [(name, " " not in name) for name in workers(others)] if others else []
    slugs: set[str] = set()
    for name, doubtful in names:
        if slug(name) in slugs or (doubtful and not writer.registry.knows("artist", name)):
            continue
        slugs.add(slug(name))
        person = writer.registry.make(Mention("artist", name, fill=True))
        writer.graph.put("grammy_artist", {"grammy_id": identifier, "artist_id": person})


def work(writer: Writer, title: str, artist: str) -> str:
    """The identifier of the work of that title by that artist, which is put."""
    identifier = writer.registry.make(Mention("song", title, of=artist))
    maker = writer.registry.make(Mention("artist", artist))
    writer.graph.put("artist_work", {"artist_id": maker, "work_id": identifier})
    return identifier


def winners(writer: Writer, read: Callable[[], Iterator[Mapping[str, Any]]]) -> Callable[[Row], Row]:
    """The filter of a table of Grammys: in a year that lists nominees, only the first of a category has won."""
    rows: dict[str, int] = {}
    categories: dict[str, set[str]] = {}
    for row in read():
        year = text(row.get("year")) or ""
        rows[year] = rows.get(year, 0) + 1
        categories.setdefault(year, set()).add(str(row.get("category")))
        if artist := text(row.get("artist")):
            writer.registry.mention("artist", artist)
    lists_nominees = {year for year, count in rows.items() if count > _NOMINEES_A_CATEGORY * len(categories[year])}
    decided: set[tuple[str, str]] = set()

    def decide(row: Row) -> Row:
        year, category = text(row.get("year")) or "", str(row.get("category"))
        if year not in lists_nominees:
            return row
        first = (year, category) not in decided
        decided.add((year, category))
        return row | {"winner": row.get("winner") if first else "false"}

    return decide


def _first_performer(value: object) -> str | None:
    plain = text(value)
    return (performers(plain) or [plain])[0] if plain else None


def _without_role(value: object) -> str | None:
    """ "A & B, Artists" names A and B."""
    plain = text(value)
    return re.sub(r",\s*(?:artists?|soloists?)$", "", plain, flags=re.IGNORECASE) if plain else None


def _place(value: object) -> int | None:
    """A place of a chart; "-" is none."""
    return None if text(value) == "-" else whole(value)


TRANSFORMS: dict[str, Transform] = {
    "first_performer": _first_performer,
    "without_role": _without_role,
    "place": _place,
    "edition": lambda year: number - BEFORE_FIRST if (number := whole(year)) else None,
}
RECORDS: dict[str, Put] = {"grammy": grammy}
FILTERS = {"winners": winners}
