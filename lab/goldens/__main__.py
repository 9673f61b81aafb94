"""Record the goldens, or check the code against them."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.goldens import evaluation
from lab.goldens.parts import PARTS
from lab.goldens.records import Records, differences, dump, load, plain
from lab.goldens.settings import GoldensSettings

RECORDED = Path(__file__).with_name("recorded")
EVALUATION = "evaluation"
# Differences of a part that are shown in full.
SHOWN = 12
Describe = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[str]]


def main() -> int:
    """The exit status: 0 where nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m lab.goldens", description=__doc__)
    parser.add_argument("command", choices=("record", "check"))
    names = ", ".join((*PARTS, EVALUATION))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all when none is named: {names}")
    parser.add_argument("--shown", type=int, default=SHOWN, help="differences of a part that are shown in full")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.parts) - {*PARTS, EVALUATION})
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {names}")
    settings = GoldensSettings()
    folder = settings.eval_data
    # The settings of a mesh of one's own must not matter.
    for name in [name for name in os.environ if name.startswith("CRAGMESH_")]:
        del os.environ[name]
    chosen = arguments.parts or (*PARTS, *([EVALUATION] if folder else []))
    differing = 0
    for name in chosen:
        started = time.monotonic()
        if name != EVALUATION:
            path, now = RECORDED / f"{name}.json", PARTS[name]()
        elif folder is None:
            parser.error("CRAGMESH_EVAL_DATA names no folder")
        else:
            path = settings.goldens_dir / f"{name}.json"
            now = evaluation.record(folder, settings.goldens_database)
        count = 0
        if arguments.command == "record":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dump(now), encoding="utf-8")
            words = f"{len(now)} records in {path.stat().st_size / 1024:,.0f} KiB"
        else:
            describe = evaluation.describe if name == EVALUATION else describe_first(arguments.shown)
            count = report(name, path, plain(now), describe)
            words = f"{count or 'none'} of {len(now)} records differ"
        print(f"{name}: {words}, {time.monotonic() - started:.1f} s", flush=True)
        differing += count
    return 1 if differing else 0


def report(name: str, path: Path, now: Records, describe: Describe) -> int:
    """Print how records differ from those of the file; returns the number of those that do."""
    try:
        recorded = load(path)
    except FileNotFoundError:
        print(f"{name}: nothing is recorded; `make goldens` records what the code does now")
        return len(now)
    if recorded == now:
        return 0
    for line in describe(recorded, now):
        print(f"{name}: {line}")
    return sum(recorded.get(one) != now.get(one) for one in recorded.keys() | now.keys())


def describe_first(shown: int) -> Describe:
    """What describes the first differences in full, and names those after them."""

    def describe(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
        differing = list(differences(recorded, now))
        yield from (f"{record}\n{lines}" for record, lines in differing[:shown])
        if rest := [record for record, _ in differing[shown:]]:
            yield f"{len(rest)} more: {', '.join(rest[:20])}{' ...' if rest[20:] else ''}"

    return describe


if __name__ == "__main__":
    sys.exit(main())
