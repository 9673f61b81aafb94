"""The formats that are known, each recognised by what is in a file. Adding one means adding it to `FORMATS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.kg.load import rows, tables
from services.kg.load.errors import BadRow
from services.kg.load.files import header, lines, suffix
from services.kg.load.graph import Graph
from services.kg.load.mapping import Mapping
from services.kg.load.mock import MOCK_FILES, MockFile

DOMAINS = ("movie", "finance", "music", "sports", "open")


@dataclass(frozen=True, slots=True)
class Context:
    """What a loader works with.

    Args:
        graph: where rows go.
        rows: the loader of row files, which keeps what several files tell of one game.
        domain: the only domain to take, or all.
        bad: told the line of a row that cannot be used, and why.
        done: told the domain of each row that was put, and the bytes read so far.
    """

    graph: Graph
    rows: rows.RowLoader
    domain: str | None
    bad: Callable[[int, BadRow], None]
    done: Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file. `turns` are its places among all steps of a load."""

    name: str
    domains: tuple[str, ...]
    turns: tuple[int, ...]
    load: Callable[[Context, Path, int], None]


# Companies before what is told of them by name; films before awards; whole entities before single attributes.
COMPANIES_TURN, MOCK_TURN, ENTITIES_TURN, AWARDS_TURN, MAPPED_TURN, FACTS_TURN = 0, 10, 30, 40, 50, 60


def _rows(context: Context, path: Path, turn: int) -> None:
    rows.load_rows(
        context.rows,
        path,
        turn=0 if turn == ENTITIES_TURN else 1,
        domain=context.domain,
        bad=context.bad,
        done=context.done,
    )


def _table(load: Callable[[Graph, Path, tables.Bad, tables.Done], None]) -> Callable[[Context, Path, int], None]:
    return lambda context, path, _: load(context.graph, path, context.bad, context.done)


def _mock(file: MockFile) -> Callable[[Context, Path, int], None]:
    return lambda context, path, _: file.load(context.graph, path, context.bad, context.done)


ROWS = Format("rows", DOMAINS, (ENTITIES_TURN, FACTS_TURN), _rows)
_CSV: Sequence[tuple[Callable[[list[str]], bool], Format]] = (
    (tables.is_companies, Format("companies", ("finance",), (COMPANIES_TURN,), _table(tables.load_companies))),
    (tables.is_oscars, Format("oscars", ("movie",), (AWARDS_TURN,), _table(tables.load_oscars))),
    (tables.is_grammys, Format("grammys", ("music",), (AWARDS_TURN,), _table(tables.load_grammys))),
    (tables.is_grammy_songs, Format("grammy songs", ("music",), (AWARDS_TURN + 1,), _table(tables.load_grammy_songs))),
)
_MOCK: Sequence[tuple[MockFile, Format]] = tuple(
    (file, Format(f"mock {file.name}", (file.domain,), (MOCK_TURN + turn,), _mock(file)))
    for turn, file in enumerate(MOCK_FILES)
)


def format_of(path: Path, mapping: Mapping | None) -> Format | None:
    """What kind of file it is; null for none that is known. With a mapping, CSV and JSONL files are of that mapping."""
    kind = suffix(path)
    if mapping is not None and kind in {".csv", ".tsv", ".jsonl", ".ndjson"}:
        return Format(
            "mapped",
            (mapping.domain,),
            (MAPPED_TURN,),
            lambda context, path, _: mapping.load(context.graph, path, context.bad, context.done),
        )
    for file, known in _MOCK:
        if file.recognises(path):
            return known
    if kind in {".csv", ".dict"}:
        columns = header(path)
        return next((known for matches, known in _CSV if matches(columns)), None)
    if kind in {".jsonl", ".ndjson"} and _is_rows(path):
        return ROWS
    return None


def _is_rows(path: Path) -> bool:
    """Whether one of the first lines is a row; a file may begin with a bad one."""
    for line in lines(path):
        try:
            rows.parse(line)
        except BadRow:
            if line.number >= 20:
                return False
            continue
        return True
    return False
