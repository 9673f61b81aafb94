"""The CRAG mock API's own files: JSON of films, SQLite of prices and NBA games, pickles of music and soccer, pages.

Layouts are those that the API's code reads (facebookresearch/CRAG, mock_api/cragapi). Big files are streamed; pickles
are read whole, for they are one value each.
"""

import codecs
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import update

from services.kg.domains.finance.tables import price_daily
from services.kg.load.errors import BadRow, LoadError
from services.kg.load.files import lines
from services.kg.load.graph import Graph
from services.kg.load.payloads import finance, movie, music, sports
from services.kg.load.payloads.awards import put_grammy
from services.kg.load.payloads.open import put_page
from services.kg.load.unpickle import Frame, read_pickle, read_pickle_file
from services.kg.load.values import needed, text, truth, whole

READ_CHARS = 1024 * 1024
MAX_MEMBER_CHARS = 64 * 1024 * 1024

Bad = Callable[[int, BadRow], None]
Done = Callable[[str, int], None]
Load = Callable[[Graph, Path, Bad, Done], None]


@dataclass(frozen=True, slots=True)
class MockFile:
    """One of the files. `recognises` goes by its name, and where several could have it, by what is inside."""

    name: str
    domain: str
    recognises: Callable[[Path], bool]
    load: Load


def members(path: Path) -> Iterator[tuple[str, Any, int]]:
    """Keys and values of the JSON object that a file is, one by one, with the bytes read so far.

    Raises:
        LoadError: it is no JSON object, or a value is beyond 64 MiB.
    """
    decoder = json.JSONDecoder()
    with path.open("rb") as raw:
        text_of = _decoded(raw)
        buffer = next(text_of, "").lstrip("\ufeff \t\r\n")
        if not buffer.startswith("{"):
            raise LoadError(f"{path} is no JSON object")
        place = 1
        while True:
            place = _skip(buffer, place, ", \t\r\n")
            if place < len(buffer) and buffer[place] == "}":
                return
            try:
                key, end = decoder.raw_decode(buffer, place)
                end = _skip(buffer, end, " \t\r\n")
                if buffer[end : end + 1] != ":":
                    raise ValueError("a key has no value")
                end = _skip(buffer, end + 1, " \t\r\n")
                value, end = decoder.raw_decode(buffer, end)
                # A number that ends the buffer may go on.
                if end >= len(buffer):
                    raise ValueError
            except (ValueError, RecursionError) as error:
                if isinstance(error, RecursionError) or len(buffer) - place > MAX_MEMBER_CHARS:
                    raise LoadError(f"{path}: a value is too deep or too long") from None
                more = next(text_of, "")
                if not more:
                    raise LoadError(f"{path} is cut short or no JSON: {str(error)[:80]}") from None
                buffer, place = buffer[place:] + more, 0
                continue
            place = end
            yield str(key), value, raw.tell()


def _decoded(raw: Any) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while chunk := raw.read(READ_CHARS):
        yield decoder.decode(chunk)


def _skip(buffer: str, place: int, signs: str) -> int:
    while place < len(buffer) and buffer[place] in signs:
        place += 1
    return place


def _each(path: Path, bad: Bad, done: Done, domain: str, put: Callable[[str, Any], object]) -> None:
    for number, (key, value, end) in enumerate(members(path), 1):
        try:
            if not isinstance(value, Mapping):
                raise BadRow("", "is no JSON object")
            put(key, value)
            done(domain, end)
        except BadRow as error:
            bad(number, error)


def _movies(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    _each(path, bad, done, "movie", lambda _, value: movie.put_movie(graph, value))


def _people(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    _each(path, bad, done, "movie", lambda _, value: movie.put_person(graph, value))


def _years(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    _each(path, bad, done, "movie", lambda _, value: movie.put_year(graph, value))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path.absolute()}?mode=ro&immutable=1", uri=True)


def _tables(path: Path) -> set[str]:
    """Names of the tables of a SQLite file; none if it is no such file."""
    try:
        with path.open("rb") as file:
            if file.read(15) != b"SQLite format 3":
                return set()
        with closing(_connect(path)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (OSError, sqlite3.Error):
        return set()


def _dictionary(put: Callable[[Graph, str, Any], object]) -> Load:
    """A loader of a SqliteDict: keys, and values as pickles."""

    def load(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
        try:
            with closing(_connect(path)) as connection:
                total = connection.execute("SELECT count(*) FROM unnamed").fetchone()[0] or 1
                size = path.stat().st_size
                for number, (key, blob) in enumerate(connection.execute("SELECT key, value FROM unnamed"), 1):
                    try:
                        put(graph, str(key), read_pickle(blob) if isinstance(blob, bytes) else blob)
                        done("finance", size * number // total)
                    except BadRow as error:
                        bad(number, error)
        except sqlite3.Error as error:
            raise LoadError(f"{path}: {error}") from None

    return load


def _prices(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    """Days of prices. The last day of all is the day on which they were taken, before it was over."""
    last = {"day": ""}

    def put(graph: Graph, ticker: str, stated: Any) -> None:
        last["day"] = max(last["day"], finance.put_prices(graph, ticker, _mapping(stated)) or "")

    _dictionary(put)(graph, path, bad, done)
    graph.flush()
    graph.connection.execute(update(price_daily).where(price_daily.c.date == last["day"]).values(is_partial=True))


def _mapping(value: Any) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise BadRow("", "is no dictionary")
    return value


def _market_cap(graph: Graph, ticker: str, value: Any) -> None:
    finance.put_fact(graph, ticker, "marketCap", value)


def _pickled(path: Path, bad: Bad, put: Callable[[str, Any], object], done: Callable[[int], None]) -> None:
    stated = read_pickle_file(path)
    if not isinstance(stated, Mapping):
        raise LoadError(f"{path} is no dictionary")
    size = path.stat().st_size
    for number, (key, value) in enumerate(stated.items(), 1):
        try:
            put(str(key), value)
            done(size * number // len(stated))
        except BadRow as error:
            bad(number, error)


def _music(put: Callable[[Graph, str, Any], object]) -> Load:
    def load(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
        _pickled(path, bad, lambda key, value: put(graph, key, value), lambda end: done("music", end))

    return load


def _artist(graph: Graph, name: str, stated: Any) -> None:
    music.put_artist(graph, name, _mapping(stated) or {})


def _song(graph: Graph, title: str, stated: Any) -> None:
    music.put_song(graph, title, _mapping(stated) or {})


def _works(graph: Graph, name: str, stated: Any) -> None:
    if not isinstance(stated, (list, tuple, set)):
        raise BadRow("", "is no list")
    music.put_works(graph, name, stated)


def _ranks(graph: Graph, rank: str, stated: Any) -> None:
    """All weeks of one rank."""
    if not isinstance(stated, (list, tuple)):
        raise BadRow("", "is no list")
    for row in stated:
        if isinstance(row, Mapping):
            music.put_charted(graph, needed(row, "Date"), rank, needed(row, "Song"), needed(row, "Artist"))


def _charted(graph: Graph, song: str, stated: Any) -> None:
    """All weeks of one song; whose song it is stands in the file of ranks, which comes first."""
    for date, row in (_mapping(stated) or {}).items():
        if not isinstance(row, (list, tuple)) or len(row) < 7:
            raise BadRow("", "is no row of a chart")
        attributes = music.chart_attributes(list(row))
        known = graph.charted(str(date), whole(attributes["rank"], "rank"))
        if known:
            music.put_charted(graph, str(date), attributes.pop("rank"), song, known, **attributes)


def _frame(path: Path) -> Iterator[dict[str, Any]]:
    stated = read_pickle_file(path)
    if not isinstance(stated, Frame):
        raise LoadError(f"{path} is no table of pandas")
    return stated.records()


def _grammys(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    for number, row in enumerate(_frame(path), 1):
        try:
            year = whole(row.get("year"), "year")
            if year is None:
                raise BadRow("year", "is missing")
            nominee = text(row.get("nominee"))
            if nominee is None:
                raise BadRow("nominee", "is missing")
            put_grammy(
                graph,
                year=year,
                category=needed(row, "category"),
                nominee=nominee,
                winner=truth(row.get("winner", True), "winner"),
                artist=text(row.get("artist")),
                workers_text=text(row.get("workers")),
            )
            graph.seen("music", str(year))
            done("music", 0)
        except BadRow as error:
            bad(number, error)


def _soccer(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    for number, row in enumerate(_frame(path), 1):
        try:
            # Rows of no league are no games; the API drops them too.
            if text(row.get("league")) is None:
                continue
            sports.put_soccer(graph, needed(row, "league"), needed(row, "season"), needed(row, "team"), row)
            done("sports", 0)
        except BadRow as error:
            bad(number, error)


def _nba(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    try:
        with closing(_connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            size = path.stat().st_size
            tables = _tables(path)
            for table, share in (("game", 0.1), ("play_by_play", 1.0)):
                if table not in tables:
                    continue
                total = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] or 1  # noqa: S608
                for number, stated in enumerate(connection.execute(f"SELECT * FROM {table}"), 1):  # noqa: S608
                    row = dict(stated)
                    try:
                        if table == "game":
                            sports.put_nba(graph, row)
                        else:
                            sports.put_plays(graph, [row])
                        done("sports", int(size * share * number / total))
                    except BadRow as error:
                        bad(number, error)
    except sqlite3.Error as error:
        raise LoadError(f"{path}: {error}") from None


def _pages(graph: Graph, path: Path, bad: Bad, done: Done) -> None:
    for line in lines(path):
        try:
            try:
                stated = json.loads(line.checked())
            except (ValueError, RecursionError) as error:
                if isinstance(error, BadRow):
                    raise
                raise BadRow("", "is no JSON") from None
            if not (isinstance(stated, list) and len(stated) == 2 and isinstance(stated[1], Mapping)):
                raise BadRow("", "is no title with its page")
            put_page(graph, needed({"title": stated[0]}, "title"), stated[1])
            done("open", line.end)
        except BadRow as error:
            bad(line.number, error)


def _named(*names: str) -> Callable[[Path], bool]:
    return lambda path: path.name in names


def _sqlite(stem: str) -> Callable[[Path], bool]:
    return lambda path: path.name == f"{stem}.sqlite" and "unnamed" in _tables(path)


def _is_nba(path: Path) -> bool:
    return path.suffix.lower() in {".sqlite", ".db"} and "game" in _tables(path)


def _is_pages(path: Path) -> bool:
    """Lines of [title, {summary_text, ..}]."""
    if not path.name.endswith((".jsonl", ".jsonl.bz2", ".jsonl.gz")):
        return False
    first = next(lines(path), None)
    if first is None or not first.text.startswith("["):
        return False
    try:
        stated = json.loads(first.text)
    except (ValueError, RecursionError):
        return False
    return isinstance(stated, list) and len(stated) == 2 and isinstance(stated[1], dict)


# In the order in which they are loaded.
MOCK_FILES: tuple[MockFile, ...] = (
    MockFile("films", "movie", _named("movie_db.json"), _movies),
    MockFile("people", "movie", _named("person_db.json"), _people),
    MockFile("years", "movie", _named("year_db.json"), _years),
    MockFile("company facts", "finance", _sqlite("finance_info"), _dictionary(finance.put_info)),
    MockFile("market caps", "finance", _sqlite("finance_marketcap"), _dictionary(_market_cap)),
    MockFile("prices", "finance", _sqlite("finance_price"), _prices),
    MockFile("minutes", "finance", _sqlite("finance_detailed_price"), _dictionary(finance.put_minutes)),
    MockFile("dividends", "finance", _sqlite("finance_dividend"), _dictionary(finance.put_dividends)),
    MockFile("artists", "music", _named("artist_dict_simplified.pickle"), _music(_artist)),
    MockFile("songs", "music", _named("song_dict_simplified.pickle"), _music(_song)),
    MockFile("works", "music", _named("artist_work_dict.pickle"), _music(_works)),
    MockFile("grammys", "music", _named("grammy_df.pickle"), _grammys),
    MockFile("chart ranks", "music", _named("rank_dict_hot100.pickle"), _music(_ranks)),
    MockFile("chart songs", "music", _named("song_dict_hot100.pickle"), _music(_charted)),
    MockFile("soccer", "sports", _named("soccer_team_match_stats.pkl"), _soccer),
    MockFile("NBA", "sports", _is_nba, _nba),
    MockFile("pages", "open", _is_pages, _pages),
)
