"""What counts as a lost request in a rolling restart."""

import asyncio

import pytest

from tests.load.restart import ANSWERED, Endpoints, outcome

pytestmark = pytest.mark.anyio


def test_an_answer_that_had_to_do_without_a_service_is_not_one() -> None:
    assert outcome({"degraded": []}) == ANSWERED
    assert outcome({"degraded": [{"stage": "context", "reason": "skipped"}]}) == ANSWERED
    missing = [{"stage": "rerank", "reason": "unavailable"}, {"stage": "kg", "reason": "timeout"}]
    assert outcome({"degraded": missing}) == "without kg timeout, rerank unavailable"
    assert outcome({"degraded": missing}, {"kg"}) == "without rerank unavailable"


async def test_connections_go_to_the_instances_in_the_list_and_those_that_are_open_stay() -> None:
    before = asyncio.all_tasks()

    async def instance(name: bytes) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.readline():
                writer.write(name)
                await writer.drain()
            writer.close()

        return await asyncio.start_server(serve, "127.0.0.1", 0)

    def port(server: asyncio.Server) -> int:
        return int(server.sockets[0].getsockname()[1])

    endpoints = Endpoints()
    old, new = await instance(b"o"), await instance(b"n")
    async with old, new, await asyncio.start_server(endpoints.serve, "127.0.0.1", 0) as proxy:
        endpoints.ports = [port(old)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port(proxy))
        writer.write(b"?\n")
        assert await reader.read(1) == b"o"
        endpoints.ports = [port(new)]
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port(proxy))
        other_writer.write(b"?\n")
        assert await other_reader.read(1) == b"n"
        writer.write(b"?\n")
        assert await reader.read(1) == b"o"
        for stream in (writer, other_writer):
            stream.close()
            await stream.wait_closed()
        await asyncio.wait(asyncio.all_tasks() - before, timeout=5)
