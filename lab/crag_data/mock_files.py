"""The CRAG mock API's own files as records of its calls: JSON of films, SQLite of prices and games, pickles, pages.

A record is `{"call": "movie/get_movie_info", "args": {..}, "result": ..}`, as the API would answer. Layouts are those
that the API's code reads (facebookresearch/CRAG, mock_api/cragapi). JSON and pickles are read whole, for they are one
value each; rows of SQLite and pages one by one.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.crag_data.unpickle import read_pickle, read_pickle_file, read_table_file
from services.kg.live.fill import record as call_record
from services.kg.load.errors import LoadError
from services.kg.load.files import lines
from services.kg.load.files import records as rows_of_csv

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unusable:
    """A part of a file that cannot be used: its number or key, and why."""

    place: object
    reason: str


Reader = Callable[[Path], Iterator[Record | Unusable]]


def reader_of(path: Path) -> Reader | None:
    """The reader of a file by its name, or by its content if several files may have the name; else None."""
    if path.name in _BY_NAME:
        return _BY_NAME[path.name]
    if path.suffix.lower() in {".sqlite", ".db"} and "game" in _tables(path):
        return _nba
    if path.name.endswith((".jsonl", ".jsonl.bz2", ".jsonl.gz")) and _is_pages(path):
        return _pages
    return None


# -- JSON --------------------------------------------------------------------------------------------------------------


def members(path: Path) -> Iterator[tuple[str, Any]]:
    """Keys and values of the JSON object that a file is, which is read whole, as the API does.

    Raises:
        LoadError: it is no JSON object.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is cut short or no JSON: {str(error)[:80]}") from None
    if not isinstance(content, dict):
        raise LoadError(f"{path} is no JSON object")
    yield from content.items()


def _each_member(call: str) -> Reader:
    def read(path: Path) -> Iterator[Record | Unusable]:
        for key, value in members(path):
            yield call_record(call, value) if isinstance(value, dict) else Unusable(key, "is no JSON object")

    return read


def _is_pages(path: Path) -> bool:
    """Whether the lines are [title, {summary_text, ..}]."""
    first = next(lines(path), None)
    return first is not None and _page(first.text) is not None


def _page(line: str) -> list[Any] | None:
    try:
        page = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return page if isinstance(page, list) and len(page) == 2 and isinstance(page[1], dict) else None


def _pages(path: Path) -> Iterator[Record | Unusable]:
    for line in lines(path):
        page = _page(line.text)
        if page is None:
            yield Unusable(line.number, "is no title with its page")
            continue
        summary = {key: page[1].get(key) for key in ("summary_text", "summary_structured")}
        yield call_record("open/get_entity", summary, query=page[0])


# -- SQLite ------------------------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path.absolute()}?mode=ro&immutable=1", uri=True)


def _tables(path: Path) -> set[str]:
    """Names of the tables of a SQLite file; empty for another file."""
    try:
        with path.open("rb") as file:
            if file.read(15) != b"SQLite format 3":
                return set()
        with closing(_connect(path)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (OSError, sqlite3.Error):
        return set()


def _selected(path: Path, statement: str) -> Iterator[sqlite3.Row]:
    try:
        with closing(_connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            yield from connection.execute(statement)
    except sqlite3.Error as error:
        raise LoadError(f"{path}: {error}") from None


def _dictionary(call: str) -> Reader:
    """The reader of a SqliteDict: keys, and values as pickles."""

    def read(path: Path) -> Iterator[Record | Unusable]:
        for key, blob in _selected(path, "SELECT key, value FROM unnamed"):
            yield call_record(call, read_pickle(blob) if isinstance(blob, bytes) else blob, query=str(key))

    return read


def _by_column(row: Mapping[str, Any], key: str = "0") -> dict[str, dict[str, Any]]:
    return {name: {key: value} for name, value in row.items()}


def _nba(path: Path) -> Iterator[Record | Unusable]:
    tables = _tables(path)
    for row in _selected(path, "SELECT * FROM game"):
        yield call_record("sports/nba/get_games_on_date", _by_column(dict(row)))
    for row in _selected(path, "SELECT * FROM play_by_play") if "play_by_play" in tables else ():
        yield call_record("sports/nba/get_play_by_play_data_by_game_ids", _by_column(dict(row)))


# -- pickles -----------------------------------------------------------------------------------------------------------


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    entries = read_pickle_file(path)
    if not isinstance(entries, Mapping):
        raise LoadError(f"{path} is no dictionary")
    return ((str(key), value) for key, value in entries.items())


def _artists(path: Path) -> Iterator[Record | Unusable]:
    for name, artist in _entries(path):
        if not isinstance(artist, Mapping):
            yield Unusable(name, "is no dictionary")
            continue
        yield call_record("music/get_artist_birth_place", artist.get("country"), query=name)
        yield call_record("music/get_lifespan", [artist.get("birth_date"), artist.get("end_date")], query=name)
        if artist.get("members"):
            yield call_record("music/get_members", list(artist["members"]), query=name)


def _songs(path: Path) -> Iterator[Record | Unusable]:
    for title, song in _entries(path):
        usable = isinstance(song, Mapping)
        yield call_record("music/get_song", dict(song), query=title) if usable else Unusable(title, "is no dictionary")


def _works(path: Path) -> Iterator[Record | Unusable]:
    for name, titles in _entries(path):
        if isinstance(titles, (list, tuple, set)):
            yield call_record("music/get_artist_all_works", list(titles), query=name)
        else:
            yield Unusable(name, "is no list")


def _charts(path: Path) -> Iterator[Record | Unusable]:
    """All weeks of each rank, with the attributes of songs in the file beside it."""
    beside = path.with_name("song_dict_hot100.pickle")
    places: dict[tuple[str, str, str], Record] = {}
    for song, weeks in _entries(beside) if beside.exists() else ():
        for day, row in weeks.items() if isinstance(weeks, Mapping) else ():
            if isinstance(row, (list, tuple)) and len(row) >= 7:
                places[str(day), str(row[3]), song] = _attributes(row)
            else:
                yield Unusable(song, "is no row of a chart")
    for rank, weeks in _entries(path):
        for row in weeks if isinstance(weeks, (list, tuple)) else ():
            if isinstance(row, Mapping) and all(row.get(key) for key in ("Date", "Song", "Artist")):
                day, song = str(row["Date"]), str(row["Song"])
                record = call_record("music/get_billboard_rank_date", [[song], [row["Artist"]]], rank=rank, date=day)
                yield record | {"attributes": places.get((day, rank, song), {})}
            else:
                yield Unusable(rank, "is no week of a chart")


def _attributes(row: Any) -> Record:
    """Last week's rank, best rank and weeks of a chart row; of a new entry "-" stands at the end, before the others."""
    new = len(row) > 6 and row[6] == "-"
    last, top, weeks = (row[6], row[4], row[5]) if new else (row[4], row[5], row[6])
    return {"rank_last_week": last, "top_position": top, "weeks_in_chart": weeks}


def _grammys(path: Path) -> Iterator[Record | Unusable]:
    for row in read_table_file(path):
        attrs = {key: row.get(key) for key in ("year", "category", "winner", "artist", "workers")}
        yield {"domain": "music", "kind": "grammy", "entity": row.get("nominee"), "attrs": attrs}


def _soccer(path: Path) -> Iterator[Record | Unusable]:
    """A record for each team's side of a game; the API drops rows without a league too."""
    for row in read_table_file(path):
        if row.get("league") is not None:
            key = str(tuple(str(row.get(name)) for name in ("league", "season", "team")))
            yield call_record("sports/soccer/get_games_on_date", _by_column(row, key))


def _companies(path: Path) -> Iterator[Record | Unusable]:
    for _, row in rows_of_csv(path):
        yield call_record("finance/get_ticker_by_name", row.get("Symbol"), query=row.get("Name"))


def _nothing(path: Path) -> Iterator[Record | Unusable]:
    """No records: the file is read with another one."""
    return iter(())


_BY_NAME: dict[str, Reader] = {
    "movie_db.json": _each_member("movie/get_movie_info"),
    "person_db.json": _each_member("movie/get_person_info_by_id"),
    "year_db.json": _each_member("movie/get_year_info"),
    "company_name.dict": _companies,
    "finance_info.sqlite": _dictionary("finance/get_info"),
    "finance_marketcap.sqlite": _dictionary("finance/get_market_capitalization"),
    "finance_price.sqlite": _dictionary("finance/get_price_history"),
    "finance_detailed_price.sqlite": _dictionary("finance/get_detailed_price_history"),
    "finance_dividend.sqlite": _dictionary("finance/get_dividends_history"),
    "artist_dict_simplified.pickle": _artists,
    "song_dict_simplified.pickle": _songs,
    "artist_work_dict.pickle": _works,
    "grammy_df.pickle": _grammys,
    "rank_dict_hot100.pickle": _charts,
    "song_dict_hot100.pickle": _nothing,
    "soccer_team_match_stats.pkl": _soccer,
}
