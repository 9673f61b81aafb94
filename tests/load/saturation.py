"""How many questions a second the mesh answers when more are asked, beside a Haystack pipeline on the same machine.

    python -m tests.load.saturation [--users 1 2 4 8] [--seconds 20] [--strategy naive-rag] [--min-ratio 3]
        [--out out/load/saturation]

Both do the same: five HTML pages that nobody has seen before, text, chunks, MiniLM, the five nearest chunks, a prompt,
one call of the same fake generator, which answers at once. They run side by side and are asked in turn, step by step,
so that whatever else the machine does falls on both. Leaves a CSV and a report, and locust's own beside them;
fails on a late answer or a 5xx of the mesh, and when it answers less than `--min-ratio` times as much as the peer. The
peer needs `.venv-bench` (`make bench` makes it); without it the mesh is measured alone, and that is said.
"""

import asyncio
import contextlib
import csv
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from lab.evaluator.report import markdown
from lab.evaluator.report.tables import Table
from tests.bench import common
from tests.load.restart import ready
from tests.load.run import ROOT, locust, mesh, running
from tests.ports import free_port
from tests.serving import process

PEER = ROOT / ".venv-bench" / "bin" / "python"
PEER_START_S = 300.0
THREADS = 2


@dataclass(frozen=True, slots=True)
class Step:
    """The result of so many users, all of whom ask again as soon as they are answered.

    Args:
        answers_a_second: answers by the seconds of the step.
        p50_s: of the answers; 0 where there were none.
    """

    peer: str
    users: int
    asked: int
    answered: int
    answers_a_second: float
    p50_s: float
    p95_s: float
    share_429: float
    share_5xx: float
    late: int

    @classmethod
    def read(cls, peer: str, users: int, seconds: int, summary: dict[str, float]) -> "Step":
        """A step from the summary that the locust run left."""
        answered = int(summary["answered"])
        return cls(
            peer,
            users,
            int(summary["asked"]),
            answered,
            round(answered / seconds, 3),
            round(summary["p50_s"], 3),
            round(summary["p95_s"], 3),
            summary["share_429"],
            summary["share_5xx"],
            round((1 - summary["share_in_budget"]) * answered),
        )


def saturation(steps: Sequence[Step], peer: str) -> float:
    """The most answers a second that any number of users got."""
    return max((step.answers_a_second for step in steps if step.peer == peer), default=0.0)


def verdict(steps: Sequence[Step]) -> str:
    """The comparison in a line."""
    ours, theirs = saturation(steps, "mesh"), saturation(steps, "haystack")
    result = f"the mesh saturates at {ours:g} answers a second"
    return f"{result}, the Haystack pipeline at {theirs:g}: {ours / theirs:.1f} times" if theirs else result


def broken(steps: Sequence[Step], min_ratio: float) -> list[str]:
    """The requirements that the mesh missed, in words.

    Args:
        min_ratio: answers a second to one of the peer's, at least; not asked for where the peer was not measured.
    """
    ours, theirs = saturation(steps, "mesh"), saturation(steps, "haystack")
    faults = {
        "the mesh answered nobody": not ours,
        "answers of the mesh came after the deadline": any(step.late for step in steps if step.peer == "mesh"),
        "the mesh replied with 5xx": any(step.share_5xx for step in steps if step.peer == "mesh"),
        f"the mesh answers less than {min_ratio:g} times as much as the Haystack pipeline": ours < min_ratio * theirs,
    }
    return [line for line, is_so in faults.items() if is_so]


def write(steps: Sequence[Step], out: Path) -> None:
    """`saturation.csv` and `saturation.md`."""
    names = tuple(field.name for field in fields(Step))
    rows = tuple(tuple(str(getattr(step, name)) for name in names) for step in steps)
    with (out / "saturation.csv").open("w", newline="") as opened:
        csv.writer(opened).writerows([names, *rows])
    text = markdown.write("Saturation", [("result", verdict(steps))], [Table("Steps", names, rows)], [])
    (out / "saturation.md").write_text(text, encoding="utf-8")


@contextlib.asynccontextmanager
async def serving_peer(
    name: str, port: int, generator: str, *more: str, threads: int = THREADS, within_s: float = PEER_START_S
) -> AsyncIterator[str]:
    """The root of a peer of `tests.bench.peer_server`, loaded and warm.

    Args:
        more: further arguments, as the collections that it indexes first.
    """
    python = str(PEER if PEER.exists() else sys.executable)
    command = (python, "-W", "ignore", "-m", "tests.bench.peer_server", "--peer", name, "--port", str(port))
    quiet = {"HAYSTACK_TELEMETRY_ENABLED": "False", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads)}
    options = ("--generator", generator, "--threads", str(threads), *more)
    with process(*command, *options, env=os.environ | quiet) as peer:
        await ready(f"http://127.0.0.1:{port}/readyz", within_s=within_s, of=peer)
        yield f"http://127.0.0.1:{port}"


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=int, default=20, help="of each step and peer")
    parser.add_argument("--strategy", default="naive-rag", help="of the mesh; naive-rag does what the peer does")
    parser.add_argument(
        "--min-ratio",
        type=float,
        default=3.0,
        help="times the peer's answers a second, at least; %(default)g, 0 for any",
    )
    parser.add_argument("--out", type=Path, default=Path("out/load/saturation"))
    args = parser.parse_args()
    out = args.out.absolute()
    services, urls = mesh(())
    steps: list[Step] = []
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(running(services, out / "mesh"))
        peers = {"mesh": urls["gateway"]}
        if PEER.exists():
            print("haystack: starting", flush=True)
            haystack = serving_peer("haystack", free_port(), urls["generator"])
            peers["haystack"] = await stack.enter_async_context(haystack)
        else:
            print("haystack: not measured, since there is no .venv-bench", flush=True)
        for users in args.users:
            for peer, root in peers.items():
                files = out / f"{peer}-{users}"
                more = ("--page-sets", "0", "--strategy", args.strategy)
                command = locust("steady", root, args.seconds, users, files, *more)
                await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, check=False)
                summary = json.loads(Path(f"{files}_summary.json").read_text())
                steps.append(Step.read(peer, users, args.seconds, summary))
                print(steps[-1], flush=True)
    write(steps, out)
    print(f"{verdict(steps)}\nfiles: {out}")
    if not saturation(steps, "haystack"):
        print("NOT JUDGED: how many times as much as the peer, which has answered nobody")
    return common.failed(broken(steps, args.min_ratio))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
