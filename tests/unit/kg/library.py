"""Domains of one's own, to be drafted from the CSV files of `library.yaml`."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

TABLES: Mapping[str, Mapping[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))


def write(folder: Path, name: str, rows: Sequence[Sequence[str]]) -> Path:
    """A CSV file of the rows."""
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_domain(folder: Path, name: str) -> list[Path]:
    """The CSV files of a domain."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{table}.csv": text for table, text in TABLES[name].items()}
    for path, text in paths.items():
        path.write_text(text, encoding="utf-8")
    return list(paths)
