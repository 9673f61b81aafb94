"""Public tables: Oscars and Grammys by the year, and companies with their tickers, as CSV."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from services.kg.domains.finance.tables import company
from services.kg.load.errors import BadRow
from services.kg.load.files import records
from services.kg.load.graph import Graph
from services.kg.load.payloads.awards import put_grammy, put_oscar
from services.kg.load.values import needed, text, truth, whole

Row = Mapping[str, str]
Bad = Callable[[int, BadRow], None]
Done = Callable[[str, int], None]

_TICKER = re.compile(r"[A-Z0-9][A-Z0-9.^/=_-]{0,11}")
# Above so many rows a category on average, a year lists its nominees; the winner comes first.
_NOMINEES_A_CATEGORY = 3.0


def is_companies(columns: list[str]) -> bool:
    return {"Name", "Symbol"} <= set(columns)


def is_oscars(columns: list[str]) -> bool:
    return {"year_ceremony", "category", "name", "film", "winner"} <= set(columns)


def is_grammys(columns: list[str]) -> bool:
    return {"year", "category", "nominee", "artist", "workers"} <= set(columns)


def is_grammy_songs(columns: list[str]) -> bool:
    return {"GrammyAward", "GrammyYear", "Name", "Artist"} <= set(columns)


def load_companies(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    """Names with their tickers; the name as listed, "Apple Inc. Common Stock"."""
    for line, row in records(path):
        try:
            ticker = needed(row, "Symbol").upper()
            if not _TICKER.fullmatch(ticker):
                raise BadRow("Symbol", f"{ticker[:20]!r} is no ticker")
            name = needed(row, "Name")
            graph.put(company, ticker=ticker, name=name)
            graph.know_company(ticker, name)
            done("finance", line.end)
        except BadRow as error:
            bad(line.number, error)


def load_oscars(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    """Nominations since 1928. Two songs of one film by the same people are two rows alike, and two nominations."""
    seen: Counter[tuple[str, ...]] = Counter()
    for line, row in records(path):
        try:
            year = whole(row["year_ceremony"], "year_ceremony")
            if year is None:
                raise BadRow("year_ceremony", "is missing")
            alike = (row["year_ceremony"], row["category"], row["name"], row["film"])
            seen[alike] += 1
            put_oscar(
                graph,
                occurrence=seen[alike],
                year=year,
                ceremony=whole(row.get("ceremony"), "ceremony"),
                category=needed(row, "category"),
                nominee=text(row["name"]),
                film=text(row["film"]),
                winner=truth(row["winner"], "winner"),
                film_year=whole(row.get("year_film"), "year_film"),
            )
            graph.seen("movie", str(year))
            done("movie", line.end)
        except BadRow as error:
            bad(line.number, error)


def load_grammys(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    """Winners of all categories. Of a year that lists nominees as if they had won, the first of a category won."""
    rows: dict[int, int] = {}
    categories: dict[int, set[str]] = {}
    for _, row in records(path):
        if (text(row["year"]) or "").isdecimal():
            year = int(row["year"])
            rows[year] = rows.get(year, 0) + 1
            categories.setdefault(year, set()).add(row["category"])
            if artist := text(row["artist"]):
                graph.know_spelling(artist)
    lists_nominees = {year for year, count in rows.items() if count > _NOMINEES_A_CATEGORY * len(categories[year])}
    decided: set[tuple[int, str]] = set()
    for line, row in records(path):
        try:
            year_ = whole(row["year"], "year")
            if year_ is None:
                raise BadRow("year", "is missing")
            category, nominee = needed(row, "category"), needed(row, "nominee")
            winner = truth(row.get("winner", "true"), "winner")
            if year_ in lists_nominees:
                winner = winner and (year_, category) not in decided
                decided.add((year_, category))
            put_grammy(
                graph,
                year=year_,
                category=category,
                nominee=nominee,
                winner=winner,
                artist=text(row["artist"]),
                workers_text=text(row["workers"]),
            )
            graph.seen("music", str(year_))
            done("music", line.end)
        except BadRow as error:
            bad(line.number, error)


def load_grammy_songs(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    """Winners of the categories for songs and performances."""
    for line, row in records(path):
        try:
            year = whole(row["GrammyYear"], "GrammyYear")
            if year is None:
                raise BadRow("GrammyYear", "is missing")
            put_grammy(
                graph,
                year=year,
                category=needed(row, "GrammyAward"),
                nominee=needed(row, "Name"),
                winner=True,
                artist=_without_role(text(row["Artist"])),
                weak=True,
            )
            graph.seen("music", str(year))
            done("music", line.end)
        except BadRow as error:
            bad(line.number, error)


def _without_role(artist: str | None) -> str | None:
    """ "A & B, Artists" names A and B."""
    return re.sub(r",\s*(?:artists?|soloists?)$", "", artist, flags=re.IGNORECASE) if artist else None
