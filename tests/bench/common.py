"""Shared by benches: their command line, the evaluation data, files of JSON.

Imports the standard library alone, since some benches run in an environment of their own.
"""

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

OUT = Path("out")


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help shows the bench's docstring as it stands."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def names(text: str) -> list[str]:
    """The names of a list by commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def evaluation_data(bench: str, lack: str, *, status: int = 0) -> Path:
    """The folder that CRAGMESH_EVAL_DATA names; where it names none, the bench says so and ends.

    Args:
        lack: the reason why nothing is measured without it, as "there are no questions".
        status: the exit status then; an error's message goes to stderr.
    """
    if folder := os.environ.get("CRAGMESH_EVAL_DATA"):
        return Path(folder)
    message = f"{bench}: CRAGMESH_EVAL_DATA is not set, so {lack}; nothing was measured"
    print(message, file=sys.stderr if status else sys.stdout)
    sys.exit(status)


def read_rows(path: Path) -> Iterator[Any]:
    """The values of a file of JSON lines, unpacked where its name ends in `.gz`."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write a file of JSON lines, in its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def failed(faults: Iterable[str]) -> int:
    """Print what a run did not hold; returns its exit status."""
    lines = [f"FAILED: {fault}" for fault in faults]
    print("\n".join(lines), end="\n" if lines else "")
    return int(bool(lines))


def write_json(path: Path, content: Any) -> None:
    """Write a file of JSON, in its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
