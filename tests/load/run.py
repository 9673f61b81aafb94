"""A mesh with the fake generator on ports of its own, or any that runs, and locust scenarios against it in turn.

    python -m tests.load.run [SCENARIO ...] [--seconds 60] [--users 4] [--prefill 1500 --decode 25] [--out out/load]
        [--target URL] [--questions FILE] [--think 5 | --rate 2]

One user asks alone first, since several wait for each other and hide the mesh's own overhead. Leaves locust's CSV and
HTML, a report with pictures and each service's memory over the run as CSV in the folder, and fails on an answer after
its deadline, a 5xx, a median overhead of `--max-overhead-ms` or more of the user alone, and, where the run is long
enough to tell, on memory that grows. Of a mesh that runs (`--target`) neither memory nor overhead is looked at.
"""

import asyncio
import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lab.evaluator.data import Source
from lab.evaluator.errors import BadSource
from services.cli.services import Launch, Service, embedded
from services.cli.supervisor import Supervisor
from services.kit.settings import MeshUrls
from tests.bench import common
from tests.load import report
from tests.load.memory import MemoryLog, memory_mib, whole
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
# Longer than `cragmesh up` gives: a load run may share its machine with others.
START_S = 600.0
SCENARIOS = ("steady", "spike", "soak", "mixed", "big-pages", "hang-ups", "doors")
ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Load:
    """One run of locust; `name` is that of its files, `more` are further arguments."""

    name: str
    scenario: str
    seconds: int
    users: int
    more: tuple[str, ...]


def ports_of(names: list[str]) -> dict[str, int]:
    return dict(zip(names, free_ports(len(names)), strict=True))


def launch(service: Service, port: int, urls: dict[str, str], generator: tuple[str, ...]) -> Launch:
    """The launch of a service of this machine on a port, with the fake generator in the generator's place.

    Args:
        urls: where each service is for the others.
        generator: the fake generator's arguments.
    """
    if service.name == "generator":
        return Launch((sys.executable, "-m", "tests.load.fake_generator", "--port", str(port), *generator))
    assert service.launch is not None
    started = service.launch()
    env = {f"CRAGMESH_{name.upper()}_URL": url for name, url in urls.items()}
    return Launch(started.argv, {**started.env, **env, f"CRAGMESH_{service.name.upper()}_PORT": str(port)})


def mesh(generator: tuple[str, ...]) -> tuple[list[Service], dict[str, str]]:
    """The embedded services on free ports, and where they are."""
    services = embedded(MeshUrls())
    ports = ports_of([service.name for service in services])
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}

    def prepare(service: Service) -> Service:
        starter: Callable[[], Launch] = lambda: launch(service, ports[service.name], urls, generator)  # noqa: E731
        # The fake generator has no `/readyz`, like any engine but ours.
        path = "/v1/models" if service.name == "generator" else service.ready_path
        return replace(service, url=urls[service.name], launch=starter, start_timeout_s=START_S, ready_path=path)

    return [prepare(service) for service in services], urls


@contextlib.asynccontextmanager
async def running(services: list[Service], run_dir: Path) -> AsyncIterator[None]:
    """The services, up and ready while the context is open."""
    run_dir.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(
        services, run_dir, cwd=ROOT, on_change=lambda name, state: print(f"{name}: {state}", flush=True)
    )
    try:
        if services:
            await supervisor.up()
        yield
    finally:
        await supervisor.down()


def locust(scenario: str, host: str, seconds: int, users: int, files: Path, *more: str) -> tuple[str, ...]:
    """The command line of one run."""
    program = (sys.executable, "-m", "locust", "-f", "tests/load/locustfile.py", "--headless", "--only-summary")
    options = ("--host", host, "--scenario", scenario, "--seconds", str(seconds), "--asking", str(users))
    return (*program, *options, "--csv", str(files), "--html", f"{files}.html", *more)


async def ask(command: tuple[str, ...], log: MemoryLog) -> int:
    """Run locust to its end, sampling memory beside it; its exit status."""
    follower = asyncio.create_task(log.follow())
    try:
        return (await asyncio.to_thread(subprocess.run, command, cwd=ROOT, check=False)).returncode
    finally:
        follower.cancel()
        await asyncio.wait({follower})


def no_question(file: str) -> str:
    """The reason why a file holds no question; empty where it holds one."""
    try:
        return "" if any(Source([Path(file)], judged=False).items()) else f"{file}: no line of it is JSON with a query"
    except BadSource as error:
        return str(error)


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; steady if none")
    parser.add_argument("--seconds", type=int, default=60, help="of each scenario; %(default)s")
    parser.add_argument("--users", type=int, default=4, help="asking at a time; %(default)s")
    parser.add_argument("--prefill", default="0", help="the generator's prompt tokens a second; 0 is at once")
    parser.add_argument("--decode", default="0", help="its answer tokens a second, each")
    parser.add_argument(
        "--alone", type=int, default=15, help="seconds of one user before the rest; %(default)s, 0 for none"
    )
    parser.add_argument(
        "--max-overhead-ms",
        type=float,
        default=10,
        help="median of that user from which on it fails; %(default)g, 0 for any",
    )
    parser.add_argument("--max-late", type=int, default=0, help="answers after the deadline that may be; %(default)s")
    parser.add_argument("--max-5xx", type=int, default=0, help="replies of 5xx, or none, that may be; %(default)s")
    parser.add_argument("--target", default="", help="the gateway of a mesh that runs; one is started when empty")
    parser.add_argument("--questions", default="", help="CRAG's records, or lines with a query; the demo's when empty")
    parser.add_argument("--think", default="0", help="seconds before a user asks again, on average")
    parser.add_argument("--rate", default="0", help="arrivals a second, in place of users who wait")
    parser.add_argument("--api-key", default="", help="of the target")
    parser.add_argument("--hour-price", type=float, default=0.0, help="of all machines, for the cost of a thousand")
    parser.add_argument("--out", type=Path, default=Path("out/load"))
    args = parser.parse_args()
    if unknown := set(args.scenarios) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    if args.questions and (problem := no_question(args.questions)):
        parser.error(problem)
    out = args.out.absolute()
    run_dir = out / "mesh"
    services: list[Service] = []
    urls = {"gateway": args.target.rstrip("/")}
    if args.target:
        args.alone = 0
    else:
        services, urls = mesh(("--prefill", args.prefill, "--decode", args.decode))
    limits = ("--max-late", str(args.max_late), "--max-5xx", str(args.max_5xx), "--api-key", args.api_key)
    more = (*limits, "--questions", args.questions, "--think", args.think, "--rate", args.rate)
    runs = [Load(name, name, args.seconds, args.users, more) for name in args.scenarios or ["steady"]]
    if args.alone:
        runs.insert(0, Load(ALONE, "steady", args.alone, 1, (*limits, "--max-overhead-ms", str(args.max_overhead_ms))))
    failed = 0
    async with running(services, run_dir):
        for load in runs:
            print(f"{load.name}: asking for {load.seconds} s", flush=True)
            log = MemoryLog(lambda: memory_mib(run_dir))
            command = locust(load.scenario, urls["gateway"], load.seconds, load.users, out / load.name, *load.more)
            failed = await ask(command, log) or failed
            record = json.loads((out / f"{load.name}_summary.json").read_text())
            typed = "python -m tests.load.run " + shlex.join(sys.argv[1:])
            print(report.write(load.name, record, out, command=typed, hour_price=args.hour_price))
            if not services:
                continue
            log.write(out / f"{load.name}_memory.csv")
            first, last = (whole(log.samples[index][1]) for index in (0, -1))
            print(f"memory before, MiB: {first}\nmemory after, MiB:  {last}\nfiles: {out / load.name}*")
            if growth := log.growth_mib():
                print(f"growth from the second quarter to the last, MiB: {whole(growth)}")
            if growing := log.growing():
                print(f"memory is not flat: {whole(growing)}")
                failed = failed or 1
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
