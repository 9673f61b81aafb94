"""A rolling restart of the gateway under load: two of them behind one port, replaced one after the other.

    python -m tests.load.restart [--seconds 20]

A small proxy plays the cluster's part: it sends each connection to a gateway that is in its list, and takes one out of
the list before it is told to stop, as endpoints and preStop do. Fails when a question gets anything but an answer.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator

import httpx

from tests.load.run import ROOT, free_ports

READY_S = 60.0
# What a pod waits between leaving the endpoints and SIGTERM; five seconds in a cluster.
PRE_STOP_S = 1.0
ASKERS = 4
QUESTION = {
    "query": "How tall is the lighthouse?",
    "evidence": ["The lighthouse is 43 metres tall."],
    "strategy": "naive-rag",
}


class Endpoints:
    """Connections go to one ready gateway after the other."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._turn = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._turn += 1
        port = self.ports[self._turn % len(self.ports)]
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, there_writer))
                group.create_task(_pump(there_reader, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)
        await sink.drain()
    sink.close()


async def start(module: str, port: int, *arguments: str, **env: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", module, *arguments)
    return await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=os.environ | env, stdout=asyncio.subprocess.DEVNULL
    )


async def ready(url: str) -> None:
    async with asyncio.timeout(READY_S), httpx.AsyncClient(trust_env=False) as http:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await http.get(url)).is_success:
                    return
            await asyncio.sleep(0.1)


async def ask(url: str, done: asyncio.Event, outcomes: Counter[str]) -> None:
    while not done.is_set():
        # A connection a question, as from many clients.
        async with httpx.AsyncClient(trust_env=False, timeout=40) as http:
            try:
                outcomes[str((await http.post(f"{url}/answer", json=QUESTION)).status_code)] += 1
            except httpx.HTTPError as error:
                outcomes[type(error).__name__] += 1


@contextlib.asynccontextmanager
async def gateway(port: int, generator: int) -> AsyncIterator[asyncio.subprocess.Process]:
    nowhere = "http://127.0.0.1:9"
    urls = {f"CRAGMESH_{name}_URL": nowhere for name in ("RETRIEVER", "RERANKER", "CLASSIFIER", "KG")}
    urls["CRAGMESH_GENERATOR_URL"] = f"http://127.0.0.1:{generator}"
    process = await start(
        "services.gateway", port, **urls, CRAGMESH_GATEWAY_PORT=str(port), CRAGMESH_GRACEFUL_SHUTDOWN_S="30"
    )
    await ready(f"http://127.0.0.1:{port}/readyz")
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load, half of it before the first restart")
    args = parser.parse_args()
    ports = free_ports(["generator", "proxy", "a", "b", "c", "d"])
    endpoints, outcomes, done = Endpoints(), Counter[str](), asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        # Half a second an answer, so that every stop meets some in flight.
        engine = await start(
            "tests.load.fake_generator", ports["generator"], "--port", str(ports["generator"]), "--decode", "16"
        )
        stack.callback(engine.kill)
        await ready(f"http://127.0.0.1:{ports['generator']}/health")
        old = [await stack.enter_async_context(gateway(ports[name], ports["generator"])) for name in ("a", "b")]
        endpoints.ports = [ports["a"], ports["b"]]
        await stack.enter_async_context(await asyncio.start_server(endpoints.serve, "127.0.0.1", ports["proxy"]))
        async with asyncio.TaskGroup() as group:
            for _ in range(ASKERS):
                group.create_task(ask(f"http://127.0.0.1:{ports['proxy']}", done, outcomes))
            await asyncio.sleep(args.seconds / 2)
            for process, leaving, coming in zip(old, ("a", "b"), ("c", "d"), strict=True):
                await stack.enter_async_context(gateway(ports[coming], ports["generator"]))
                endpoints.ports = [port for port in endpoints.ports if port != ports[leaving]] + [ports[coming]]
                await asyncio.sleep(PRE_STOP_S)
                process.send_signal(signal.SIGTERM)
                code = await process.wait()
                print(f"gateway {leaving} replaced by {coming}, its exit code {code}: {dict(outcomes)}", flush=True)
            await asyncio.sleep(args.seconds / 2)
            done.set()
    print(f"outcomes: {dict(outcomes)}")
    return 0 if set(outcomes) == {"200"} else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
