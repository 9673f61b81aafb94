"""Which files of a source are loaded, and how: each is recognised by what is in it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from services.kg.load.errors import BadMapping, BadRow
from services.kg.load.files import TABULAR, Line, header, lines, records, suffix
from services.kg.load.mapper import Action
from services.kg.load.reading import Record, Writer
from services.kg.load.rows import RowAction
from services.kg.load.schema import Described

LISTED = frozenset({".jsonl", ".ndjson"})
# A file may begin with bad records.
SAMPLE_RECORDS = 20
MAX_CHOICES = 10_000
# Of a file, stored, that is read once for all passes.
HELD_BYTES = 8 * 1024 * 1024

Bad = Callable[[int, BadRow, object], None]
Done = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Format:
    """What a file is, and what is done with its records. `described` are the mappings among the actions."""

    name: str
    actions: Sequence[Action | RowAction]
    described: Sequence[Described] = ()
    _choices: dict[tuple[object, ...], Action | RowAction | None] = field(default_factory=dict)
    # Records of later passes, where a file is small enough to read it once.
    _held: list[tuple[Line, Record, Action | RowAction]] = field(default_factory=list)

    @property
    def domains(self) -> frozenset[str]:
        return frozenset(domain for action in self.actions for domain in action.domains)

    @property
    def passes(self) -> list[int]:
        return sorted({action.order for action in self.actions})

    def load(self, path: Path, order: int, writer: Writer, bad: Bad, done: Done, domain: str | None) -> None:
        """One pass over a file, by the actions of that order.

        `bad` is told the line of a record that cannot be used, why, and the record, and in the first pass of those that
        no action takes; `done` the domain of each record that was put, and the bytes read so far.
        """
        writer.occurrences.clear()
        filters = [one.through(writer, lambda: _rows(path)) for one in self.described if one.through]
        for line, record, action in self._records(path, order, bad, bad if domain is None else _silent):
            if domain is not None and domain != action.domain_of(record):
                continue
            for through in filters:
                record = through(dict(record))
            try:
                action.apply(writer, record)
                done(action.domain_of(record), line.end)
            except BadRow as error:
                bad(line.number, error, record)

    def _records(
        self, path: Path, order: int, bad: Bad, unknown: Bad
    ) -> Iterator[tuple[Line, Record, Action | RowAction]]:
        """Records of a pass with their actions; in the first one, told are lines that are none, and those without."""
        first = order == self.passes[0]
        held = path.stat().st_size <= HELD_BYTES
        if held and not first:
            yield from (one for one in self._held if one[2].order == order)
            if order == self.passes[-1]:
                self._held.clear()
            return
        choose = self._chooser()
        for line, record in read(path, bad if first else _silent):
            action = choose(record)
            if action is None:
                if first:
                    unknown(line.number, BadRow("", "is no record that a mapping describes"), record)
            elif action.order == order:
                yield line, record, action
            elif held:
                self._held.append((line, record, action))

    def _chooser(self) -> Callable[[Record], Action | RowAction | None]:
        """The first action that fits a record; remembered by the values that decide."""
        reads = list({name: read for one in self.actions for name, read in one.deciding}.values())
        choices = self._choices

        def choose(record: Record) -> Action | RowAction | None:
            values = tuple([read(record) for read in reads])
            try:
                return choices[values]
            except KeyError:
                found = next((one for one in self.actions if one.fits(record)), None)
                if len(choices) < MAX_CHOICES:
                    choices[values] = found
                return found
            except TypeError:
                # A list or an object, which cannot be remembered.
                return next((one for one in self.actions if one.fits(record)), None)

        return choose


def _silent(line: int, error: BadRow, record: object) -> None:
    pass


def read(path: Path, bad: Bad) -> Iterator[tuple[Line, Record]]:
    """Records of a file: rows of a CSV by their header, objects of JSON lines. Told are those that are none."""
    if suffix(path) in TABULAR:
        yield from records(path)
        return
    for line in lines(path):
        try:
            record = json.loads(line.checked())
        except BadRow as error:
            bad(line.number, error, None)
        except (ValueError, RecursionError) as error:
            bad(line.number, BadRow("", f"is no JSON: {str(error)[:80]}"), line.text)
        else:
            if isinstance(record, dict):
                yield line, record
            else:
                bad(line.number, BadRow("", "is no JSON object"), record)


def format_of(path: Path, rows: RowAction, mappings: Sequence[Described], given: Described | None) -> Format | None:
    """What a file is; null for nothing that is known.

    Raises:
        BadMapping: the file's header lacks a field that the given mapping names.
    """
    kind = suffix(path)
    if kind in TABULAR:
        columns = header(path)
        if given is not None:
            missing = sorted(given.source.fields() - set(columns))
            if missing:
                raise BadMapping(f"{path} has no column {missing[0]!r}: {', '.join(columns)}")
            return Format(given.name, given.actions, [given])
        always = [one for one in mappings if not any(rule.when for rule in one.source.rules)]
        if fitting := [one for one in always if one.source.header() <= set(columns)]:
            best = max(fitting, key=lambda one: len(one.source.header()))
            return Format(best.name, best.actions, [best])
        table = path.name.split(".")[0]
        if rows.takes(table, columns):
            return Format("table", [RowAction(rows.tables, rows.domain_by_table, table)])
        return None
    if kind not in LISTED:
        return None
    if given is not None:
        return Format(given.name, given.actions, [given])
    sample = list(islice(_rows(path), SAMPLE_RECORDS))
    if not sample:
        return None
    taken = [one for one in mappings if not one.source.columns and any(_takes(one, record) for record in sample)]
    if any(rows.fits(record) for record in sample):
        return Format("rows", [rows, *(action for one in taken for action in one.actions)], taken)
    if not taken:
        return None
    # Other records of the file may be of other mappings that read the same kind of files.
    names = {one.name for one in taken}
    alike = [one for one in mappings if one.name in names]
    return Format(taken[0].name, [rows, *(action for one in alike for action in one.actions)], alike)


def _takes(one: Described, record: Record) -> bool:
    if one.source.tables:
        return all(field in record or field.split(".")[0] in record for field in one.source.fields())
    return any(action.fits(record) for action in one.actions)


def _rows(path: Path) -> Iterator[Record]:
    return (record for _, record in read(path, _silent))
