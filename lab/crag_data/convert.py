"""Converts files of the CRAG mock API, and rows from its answers, to JSON lines that `cragmesh kg load` takes."""

import gzip
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from lab.crag_data.evaluation_rows import records as records_of_rows
from lab.crag_data.mock_files import Record, Unusable, reader_of
from services.kg.load import FileReport, LoadError, LoadReport, Problem, load
from services.kit import jsonl


@dataclass(slots=True)
class Converted:
    """The report of one file: the number of records, and what could not be used, with its place and reason."""

    name: str
    records: int = 0
    problems: list[str] = field(default_factory=list)


def convert(folder: Path, out: Path, *, compress: bool = True) -> list[Converted]:
    """Write `out/NAME.jsonl.gz` for each known file of a folder, in the order of their names.

    Raises:
        LoadError: a file is broken, or holds a pickle of more than plain data; it has no output.
    """
    out.mkdir(parents=True, exist_ok=True)
    reports: list[Converted] = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        records = _records(path) if path.is_file() else None
        if records is None:
            continue
        report = Converted(path.name)
        target, write = (out / f"{path.name}.jsonl.gz", gzip.open) if compress else (out / f"{path.name}.jsonl", open)
        try:
            with write(target, "wt", encoding="utf-8") as file:
                for record in records:
                    if isinstance(record, Unusable):
                        report.problems.append(f"{path.name}:{record.place}: {record.reason}")
                        continue
                    file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
                    report.records += 1
        except LoadError:
            target.unlink(missing_ok=True)
            raise
        reports.append(report)
    return reports


def load_folder(folder: Path, engine: Engine) -> LoadReport:
    """Convert a folder and load it.

    Raises:
        LoadError: nothing was loaded; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="cragmesh-crag-") as scratch:
        converted = convert(folder, Path(scratch) / folder.name, compress=False)
        report = load(Path(scratch) / folder.name, engine)
    for one in converted:
        if one.problems:
            problems = [Problem(0, "", text) for text in one.problems]
            report.files.append(FileReport(one.name, "converted", {}, len(problems), problems))
    return report


def _records(path: Path) -> Iterator[Record | Unusable] | None:
    """Records of a file; None if its format is unknown."""
    if reader := reader_of(path):
        return reader(path)
    if path.suffix == ".jsonl" and _is_rows(path):
        return records_of_rows(record for _, record in jsonl.objects(path))
    return None


def _is_rows(path: Path) -> bool:
    try:
        first = next((record for _, record in jsonl.objects(path)), {})
    except jsonl.BadLine:
        return False
    return {"domain", "kind", "entity", "attrs"} <= first.keys()
