"""Record the goldens, or check the code against them."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, SettingsConfigDict

from lab.goldens import evaluation, graph, judge, made_up, strategies
from lab.goldens.records import Records, differences, dump, load, plain

RECORDED = Path(__file__).with_name("recorded")
EVALUATION = "evaluation"
PARTS: Mapping[str, Callable[[], Records]] = {
    "strategies": strategies.record,
    "rules": graph.record_rules,
    "rows": graph.record_rows,
    "writers": graph.record_writers,
    "judge": judge.record,
    "model_judge": judge.record_model,
    "contracts": made_up.record_contracts,
    "made_up": made_up.record,
}
Describe = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[str]]


class GoldensSettings(BaseSettings):
    """The places of the evaluation's questions and of their records, neither of which is in git."""

    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # The folder of CONTRIBUTING's table; without it the part `evaluation` is left out.
    eval_data: Path | None = None
    # A graph with the evaluation's rows, as `make out/eval-kg.sqlite` loads it.
    goldens_database: str = "sqlite:///out/eval-kg.sqlite"
    # Outside of `out/`, which `make clean` removes.
    goldens_dir: Path = Path(".goldens")


def main() -> int:
    """The exit status: 0 where nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m lab.goldens", description=__doc__)
    parser.add_argument("command", choices=("record", "check"))
    names = ", ".join((*PARTS, EVALUATION))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all when none is named: {names}")
    parser.add_argument("--shown", type=int, default=12, help="differences of a part that are shown in full")
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
            describe: Describe = partial(describe_first, shown=arguments.shown)
            if name == EVALUATION:
                describe = evaluation.describe
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


def describe_first(recorded: Mapping[str, Any], now: Mapping[str, Any], *, shown: int) -> Iterator[str]:
    """The first differences in full, and the names of those after them."""
    differing = list(differences(recorded, now))
    yield from (f"{record}\n{lines}" for record, lines in differing[:shown])
    if rest := [record for record, _ in differing[shown:]]:
        yield f"{len(rest)} more: {', '.join(rest[:20])}{' ...' if rest[20:] else ''}"


if __name__ == "__main__":
    sys.exit(main())
