"""A rolling restart of every service under load: each is replaced while questions are asked, one after the other.

    python -m tests.load.restart [SERVICE ...] [--seconds 4] [--users 4]

A small proxy in front of each service plays the cluster's part: it sends every connection to an instance in its list,
and takes one out of the list before it is told to stop, as endpoints and preStop do. Every other user keeps its
connection, and so stays with an instance until that one closes it. Fails when a question gets anything but an answer,
or an answer that had to do without one of the services. Where only services without a model are named (gateway,
generator), only those are started, and questions bring their evidence.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any

import httpx

from services.cli.services import Service, embedded
from services.gateway.calibration import STAGE
from services.kit.settings import MeshUrls
from tests.bench import common
from tests.load.demo import demo_pages
from tests.load.run import ROOT, launch, ports_of
from tests.ports import free_port

READY_S = 600.0
# What a pod waits between leaving the endpoints and SIGTERM; five seconds in a cluster.
PRE_STOP_S = 1.0
STOP_S = 45.0
# A service that is slow on a busy machine is not lost: only one that does not answer at all ends a stage.
PATIENT = {"CRAGMESH_GRACEFUL_SHUTDOWN_S": "30", "CRAGMESH_CLASSIFY_CAP_S": "20", "CRAGMESH_RERANK_CAP_S": "20"}
# Half a second an answer, so that every stop meets some in flight.
GENERATOR = ("--decode", "16")
# Through every service: pages are retrieved and reranked, the graph is asked beside them.
QUESTION = {"query": "How tall is the Eiffel Tower?", "search_results": demo_pages(), "strategy": "db3"}
# Through those that start within seconds.
LIGHT = frozenset({"gateway", "generator"})
LIGHT_QUESTION = {
    "query": "How tall is the lighthouse?",
    "evidence": ["The lighthouse is 43 metres tall."],
    "strategy": "naive-rag",
}
ANSWERED = "answered"


class Endpoints:
    """Connections go to one ready instance after the other."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._turn = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._turn += 1
        port = self.ports[self._turn % len(self.ports)]
        try:
            instance_reader, instance_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            # Nobody listens: the client hears it as it would without a proxy.
            writer.close()
            return
        with contextlib.suppress(ConnectionError, ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, instance_writer))
                group.create_task(_pump(instance_reader, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    finally:
        sink.close()


async def ready(url: str, *, within_s: float = READY_S, of: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until a GET is answered with 2xx, by that process if one is given.

    Raises:
        TimeoutError: it was not.
        RuntimeError: the process ended before.
    """
    async with asyncio.timeout(within_s), httpx.AsyncClient(trust_env=False) as http:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await http.get(url)).is_success:
                    return
            if of and of.poll() is not None:
                raise RuntimeError(f"what was to answer at {url} ended with {of.returncode} before it was ready")
            await asyncio.sleep(0.1)


@dataclass
class Instance:
    """A process of a service."""

    port: int
    process: asyncio.subprocess.Process

    async def stop(self) -> int:
        """SIGTERM, SIGKILL where that does not help, and the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), STOP_S)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        return self.process.returncode or 0


class Rollout:
    """A mesh whose services have an address that outlives their instances.

    Args:
        names: of the services that it has.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.services = {service.name: service for service in embedded(MeshUrls()) if service.name in names}
        self._endpoints = {name: Endpoints() for name in self.services}
        self._instances: dict[str, Instance] = {}
        self._urls: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """The gateway's address, once every service is ready."""
        # Those that are not started have an address where nobody listens.
        ports = ports_of([service.name for service in embedded(MeshUrls())])
        self._urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        async with contextlib.AsyncExitStack() as stack:
            for name, endpoints in self._endpoints.items():
                await stack.enter_async_context(await asyncio.start_server(endpoints.serve, "127.0.0.1", ports[name]))
            stack.push_async_callback(self._stop_all)
            # The gateway, which answers without the others as well, is last.
            for name in sorted(self.services, key=lambda name: name == "gateway"):
                self._instances[name] = await self._start(self.services[name])
                self._endpoints[name].ports = [self._instances[name].port]
                print(f"{name}: ready", flush=True)
            yield self._urls["gateway"]

    async def replace(self, name: str) -> int:
        """Put a new instance into a service's place; the exit code of the old."""
        old, new = self._instances[name], await self._start(self.services[name])
        self._instances[name] = new
        self._endpoints[name].ports = [new.port]
        await asyncio.sleep(PRE_STOP_S)
        return await old.stop()

    async def _start(self, service: Service) -> Instance:
        port = free_port()
        started = launch(service, port, self._urls, GENERATOR)
        process = await asyncio.create_subprocess_exec(
            *started.argv, cwd=ROOT, env=os.environ | started.env | PATIENT, stdout=asyncio.subprocess.DEVNULL
        )
        instance = Instance(port, process)
        try:
            await ready(f"http://127.0.0.1:{port}{service.ready_path}")
        except BaseException:
            await instance.stop()
            raise
        return instance

    async def _stop_all(self) -> None:
        for instance in reversed(self._instances.values()):
            await instance.stop()


def outcome(answer: dict[str, Any], absent: Collection[str] = ()) -> str:
    """`answered`, or the stages that an answer lacked; a stage that was skipped is not missed.

    Args:
        absent: services that were never there.
    """
    # Nothing is fitted for the fake generator, whatever is replaced.
    expected = {*absent, STAGE}
    missed = (item for item in answer["degraded"] if item["reason"] != "skipped" and item["stage"] not in expected)
    missing = sorted({f"{item['stage']} {item['reason']}" for item in missed})
    return f"without {', '.join(missing)}" if missing else ANSWERED


async def main() -> int:
    names = [service.name for service in embedded(MeshUrls())]
    parser = common.parser(__doc__)
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(names)}; all if none")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load before the first restart and after each")
    parser.add_argument("--users", type=int, default=4)
    args = parser.parse_args()
    if unknown := set(args.services) - set(names):
        parser.error(f"no such service: {', '.join(sorted(unknown))}")
    light = set(args.services or names) <= LIGHT
    rollout = Rollout(LIGHT if light else names)
    question, absent = LIGHT_QUESTION if light else QUESTION, set(names) - rollout.services.keys()
    outcomes, done = Counter[str](), asyncio.Event()

    async def ask(url: str, connections: int) -> None:
        """One question after the other, over so many connections that are kept, or each over its own."""
        limits = httpx.Limits(max_keepalive_connections=connections)
        async with httpx.AsyncClient(trust_env=False, timeout=40, limits=limits) as http:
            while not done.is_set():
                try:
                    reply = await http.post(f"{url}/answer", json=question)
                    outcomes[outcome(reply.json(), absent) if reply.is_success else f"HTTP {reply.status_code}"] += 1
                except httpx.HTTPError as error:
                    outcomes[type(error).__name__] += 1

    async with rollout.running() as url, asyncio.TaskGroup() as group:
        for number in range(args.users):
            group.create_task(ask(url, connections=(number + 1) % 2))
        await asyncio.sleep(args.seconds)
        for name in args.services or rollout.services:
            code = await rollout.replace(name)
            await asyncio.sleep(args.seconds)
            print(f"{name} replaced, the old one's exit code {code}: {dict(outcomes)}", flush=True)
        done.set()
    print(f"outcomes: {dict(outcomes)}")
    return 0 if set(outcomes) == {ANSWERED} else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
