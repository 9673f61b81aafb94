"""A mesh with the fake generator on ports of its own, and locust scenarios against it, one after the other.

    python -m tests.load.run [SCENARIO ...] [--seconds 60] [--users 4] [--prefill 1500 --decode 25] [--out out/load]

Leaves locust's CSV and HTML and a summary in the folder, prints the summary and each service's memory before and after,
and fails on a late answer or a 5xx.
"""

import argparse
import asyncio
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from services.cli import processes
from services.cli.services import Launch, Service, embedded
from services.cli.supervisor import PidFile, Supervisor
from services.kit.settings import MeshUrls

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ("steady", "spike", "soak", "mixed", "big-pages", "hang-ups")


def free_ports(names: list[str]) -> dict[str, int]:
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: bound.getsockname()[1] for name, bound in sockets.items()}
    for bound in sockets.values():
        bound.close()
    return ports


def mesh(arguments: tuple[str, ...]) -> tuple[list[Service], dict[str, str]]:
    """The embedded services, and the fake generator in the generator's place."""
    names = [service.name for service in embedded(MeshUrls())]
    urls = {name: f"http://127.0.0.1:{port}" for name, port in free_ports(names).items()}
    env = {f"CRAGMESH_{name.upper()}_URL": url for name, url in urls.items()}

    def prepare(service: Service) -> Service:
        port = urls[service.name].rpartition(":")[2]

        def launch() -> Launch:
            if service.name == "generator":
                return Launch((sys.executable, "-m", "tests.load.fake_generator", "--port", port, *arguments))
            assert service.launch is not None
            started = service.launch()
            return Launch(started.argv, {**started.env, **env, f"CRAGMESH_{service.name.upper()}_PORT": port})

        return replace(service, url=urls[service.name], launch=launch)

    return [prepare(service) for service in embedded(MeshUrls())], urls


def memory_mib(run_dir: Path) -> dict[str, int]:
    """Resident memory of each service, workers included."""
    records = [PidFile.model_validate_json(path.read_bytes()) for path in sorted(run_dir.glob("*.json"))]
    return {
        record.service: sum(processes.memory_bytes(process.pid) for process in record.members()) // 2**20
        for record in records
    }


def locust(scenario: str, host: str, seconds: int, users: int, files: Path) -> tuple[str, ...]:
    """The command line of one run."""
    program = (sys.executable, "-m", "locust", "-f", "tests/load/locustfile.py", "--headless", "--only-summary")
    options = ("--host", host, "--scenario", scenario, "--seconds", str(seconds), "--asking", str(users))
    return (*program, *options, "--csv", str(files), "--html", f"{files}.html")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; steady if none")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--prefill", default="0", help="the generator's prompt tokens a second; 0 is at once")
    parser.add_argument("--decode", default="0", help="its answer tokens a second, each")
    parser.add_argument("--out", type=Path, default=Path("out/load"))
    args = parser.parse_args()
    if wrong := set(args.scenarios) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(wrong))}")
    services, urls = mesh(("--prefill", args.prefill, "--decode", args.decode))
    out = args.out.absolute()
    run_dir = out / "mesh"
    run_dir.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(
        services, run_dir, cwd=ROOT, on_change=lambda name, state: print(f"{name}: {state}", flush=True)
    )
    try:
        await supervisor.up()
        failed = 0
        for scenario in args.scenarios or ["steady"]:
            before = memory_mib(run_dir)
            print(f"{scenario}: asking for {args.seconds} s", flush=True)
            command = locust(scenario, urls["gateway"], args.seconds, args.users, out / scenario)
            finished = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, check=False)
            failed = failed or finished.returncode
            print(f"memory before, MiB: {before}\nmemory after, MiB:  {memory_mib(run_dir)}\nfiles: {out / scenario}*")
    finally:
        await supervisor.down()
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
