"""How many lines of Python there are, by package, beside what they are to be.

    python -m tests.bench.size

Lines as they stand, with comments and docstrings; generated code and what git ignores do not count. The exit status is
1 where a goal is missed.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.table import Table

from tests.bench import common

ROOT = Path(__file__).parents[2]
GENERATED = ("proto/cragmesh/", "clients/python/cragmesh_client/contracts/")
MOST_A_MODULE = 400
# What is counted, which paths are of it, and how many lines it may have.
GOALS = (
    ("services without cli", ("services/",), ("services/cli/",), 24_000),
    ("all without tests", ("services/", "lab/", "proto/"), (), 38_000),
    ("tests", ("tests/",), (), 28_000),
)


def lines_of(root: Path) -> dict[str, int]:
    """Path to lines, of every Python file that git knows or would take."""
    listed = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"),  # noqa: S607 - git is where it is
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = sorted({name for name in listed.stdout.splitlines() if not name.startswith(GENERATED)})
    return {name: len((root / name).read_bytes().splitlines()) for name in paths if (root / name).is_file()}


def package_of(name: str) -> str:
    """The package that a path is counted with: `services/kit`, `lab/trainer`, `tests/unit`, `proto`."""
    parts = PurePosixPath(name).parent.parts
    return "/".join(parts[: 1 if parts[:1] == ("proto",) else 2])


def counted(lines: Mapping[str, int], within: tuple[str, ...], without: tuple[str, ...]) -> int:
    return sum(
        count for name, count in lines.items() if name.startswith(within) and not name.startswith(without or "\0")
    )


def too_long(lines: Mapping[str, int]) -> dict[str, int]:
    """Modules over the limit, the longest first; of tests there is no limit."""
    over = {name: count for name, count in lines.items() if count > MOST_A_MODULE and not name.startswith("tests/")}
    return dict(sorted(over.items(), key=lambda item: -item[1]))


def main() -> int:
    common.parser(__doc__).parse_args()
    lines = lines_of(ROOT)
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    packages: Counter[str] = Counter()
    for name, count in lines.items():
        packages[package_of(name)] += count
    table = Table("package", "lines")
    table.columns[1].justify = "right"
    for package, count in sorted(packages.items()):
        table.add_row(package, f"{count:,}")
    console.print(table)
    goals = Table("goal", "lines", "at most", "")
    missed = 0
    for what, within, without, most in GOALS:
        count = counted(lines, within, without)
        missed += count > most
        goals.add_row(what, f"{count:,}", f"{most:,}", "" if count <= most else f"{count - most:,} too many")
    long = too_long(lines)
    missed += bool(long)
    longest = max((count for name, count in lines.items() if not name.startswith("tests/")), default=0)
    goals.add_row("longest module", f"{longest:,}", f"{MOST_A_MODULE:,}", f"{len(long)} are longer" if long else "")
    console.print(goals)
    for name, count in long.items():
        console.print(f"{count:6,} {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
