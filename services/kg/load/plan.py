"""The formats of a source's files, each recognised by its content, and what loads their records."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from services.kg.load.errors import BadMapping, BadRow
from services.kg.load.files import TABULAR, UNREADABLE, Bad, Line, header, lines, records, suffix
from services.kg.load.mapper import Action
from services.kg.load.reading import Record, Writer
from services.kg.load.rows import RowAction
from services.kg.load.schema import MappingFile

LISTED = frozenset({".jsonl", ".ndjson"})
# A file may begin with bad records.
SAMPLE_RECORDS = 20
MAX_CHOICES = 10_000

Done = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A file's format: the actions for its records, and the mappings that some of them are of."""

    name: str
    actions: Sequence[Action | RowAction]
    mappings: Sequence[MappingFile] = ()

    @property
    def domains(self) -> frozenset[str]:
        return frozenset(domain for action in self.actions for domain in action.domains)

    @property
    def passes(self) -> list[int]:
        return sorted({action.order for action in self.actions})

    def load(self, path: Path, order: int, writer: Writer, bad: Bad, done: Done, domain: str | None) -> None:
        """One pass over a file, by the actions of that order.

        `bad` is called with the line of a record that cannot be used, the reason and the record, in the first pass also
        for records that no action takes; `done` with the domain of each record that was put, and the bytes read so far.
        """
        writer.begin()
        filters = [one.through(writer, lambda: _rows(path)) for one in self.mappings if one.through]
        choose, is_first = self._chooser(), order == self.passes[0]
        for line, record in read(path, bad if is_first else _silent):
            action = choose(record)
            if action is None and is_first and domain is None:
                bad(line.number, BadRow("", "is no record that a mapping describes"), record)
            if action is None or action.order != order or domain not in (None, action.domain_of(record)):
                continue
            for through in filters:
                record = through(dict(record))
            writer.line = line.number
            try:
                action.apply(writer, record)
                done(action.domain_of(record), line.end)
            except BadRow as error:
                bad(line.number, error, record)

    def _chooser(self) -> Callable[[Record], Action | RowAction | None]:
        """What finds the first action that fits a record, cached by the values that decide."""
        reads = list({name: read for one in self.actions for name, read in one.deciding}.values())
        choices: dict[tuple[object, ...], Action | RowAction | None] = {}

        def choose(record: Record) -> Action | RowAction | None:
            values = tuple([read(record) for read in reads])
            try:
                return choices[values]
            except KeyError:
                is_cached = len(choices) < MAX_CHOICES
            except TypeError:
                # A list or an object, which is no key.
                is_cached = False
            action = next((one for one in self.actions if one.fits(record)), None)
            if is_cached:
                choices[values] = action
            return action

        return choose


def _silent(line: int, error: BadRow, record: object) -> None:
    pass


def read(path: Path, bad: Bad) -> Iterator[tuple[Line, Record]]:
    """Records of a file: rows of a CSV by their header, objects of JSON lines. `bad` is called for other lines."""
    if suffix(path) in TABULAR:
        yield from records(path, bad)
        return
    for line in lines(path):
        if line.text == UNREADABLE:
            bad(line.number, BadRow("", "is no UTF-8, or longer than 64 MiB"), None)
            continue
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            bad(line.number, BadRow("", f"is no JSON: {str(error)[:80]}"), line.text)
        else:
            if isinstance(record, dict):
                yield line, record
            else:
                bad(line.number, BadRow("", "is no JSON object"), record)


def format_of(
    path: Path, rows: RowAction, mappings: Sequence[MappingFile], explicit: MappingFile | None
) -> Format | None:
    """A file's format: that of the explicit mapping, else of the one that fits its content; None if none does.

    Raises:
        BadMapping: the file's header lacks a field that the explicit mapping names.
    """
    kind = suffix(path)
    if kind in TABULAR:
        columns = header(path)
        if explicit is not None:
            if missing := sorted(explicit.source.fields() - set(columns)):
                raise BadMapping(f"{path} has no column {missing[0]!r}: {', '.join(columns)}")
            return Format(explicit.name, explicit.actions, [explicit])
        unconditional = [one for one in mappings if not any(rule.when for rule in one.source.rules)]
        if fitting := [one for one in unconditional if one.source.header() <= set(columns)]:
            best = _best(path, fitting)
            return Format(best.name, best.actions, [best])
        table = path.name.split(".")[0]
        if rows.takes(table, columns):
            return Format("table", [RowAction(rows.tables, rows.domain_by_table, table)])
        return None
    if kind not in LISTED:
        return None
    if explicit is not None:
        return Format(explicit.name, explicit.actions, [explicit])
    sample = list(islice(_rows(path), SAMPLE_RECORDS))
    fitting = [one for one in mappings if not one.source.columns and any(_takes(one, record) for record in sample)]
    if any(rows.fits(record) for record in sample):
        name = "rows"
    elif fitting:
        name = fitting[0].name
        # Other records of the file may be of other domains' mappings of the same name.
        names = {one.name for one in fitting}
        fitting = [one for one in mappings if one.name in names]
    else:
        return None
    return Format(name, [rows, *(action for one in fitting for action in one.actions)], fitting)


def _best(path: Path, fitting: Sequence[MappingFile]) -> MappingFile:
    """The mapping of the most columns; of several that of the file's name, then one of an added domain.

    Raises:
        BadMapping: several are left, which is no reason to load the file as any of them.
    """
    stem = path.name.partition(".")[0].casefold().replace(" ", "_").replace("-", "_")

    def rank(one: MappingFile) -> tuple[int, int, bool]:
        pairs = zip(stem, one.name.casefold(), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return len(one.source.header()), shared, not one.bundled

    best = max(fitting, key=rank)
    if len(equal := [one for one in fitting if rank(one) == rank(best)]) > 1 and not best.bundled:
        names = " and ".join(one.name for one in equal)
        raise BadMapping(f"{path} has the columns of the mappings {names}: call it as its table is called")
    return best


def _takes(one: MappingFile, record: Record) -> bool:
    if one.source.tables:
        return all(field in record or field.split(".")[0] in record for field in one.source.fields())
    return any(action.fits(record) for action in one.actions)


def _rows(path: Path) -> Iterator[Record]:
    return (record for _, record in read(path, _silent))
