"""OpenAI's batches, by OpenAI's own client, over the real mesh: kept in a database, answered while nobody else asks."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types import Batch
from sqlalchemy import create_engine

from services.gateway.batches.tables import SCHEMA
from tests.keys import write_keys
from tests.mesh.conftest import LIGHTHOUSE, Services

pytestmark = pytest.mark.anyio

MODEL = "cragmesh/naive-rag"
POSTGRES = os.environ.get("CRAGMESH_TEST_POSTGRES", "")


def requests(count: int, **body: Any) -> bytes:
    """An input file of so many lines; a field that is None is left out."""
    asked: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Who designed the lighthouse?"}]}
    asked |= {"search_results": [LIGHTHOUSE], "budget_s": 20} | body
    line = {"method": "POST", "url": "/v1/chat/completions", "body": asked}
    return "".join(json.dumps({"custom_id": f"q{number}"} | line) + "\n" for number in range(count)).encode()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'batches.sqlite'}"
    if not POSTGRES:
        pytest.skip("CRAGMESH_TEST_POSTGRES names no server")
    engine = create_engine(POSTGRES)
    SCHEMA.drop_all(engine)
    engine.dispose()
    return POSTGRES


class Door:
    """A gateway, and clients of it by key."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app, raise_app_exceptions=False), base_url="http://gateway/v1", timeout=60
        )

    def client(self, key: str = "sk-test") -> AsyncOpenAI:
        return AsyncOpenAI(api_key=key, base_url="http://gateway/v1", http_client=self.http, max_retries=0)


@pytest.fixture
async def door(services: Services, database: str) -> AsyncIterator[Door]:
    services.generator.reply = lambda _: "Marta Lindqvist"
    async with services.gateway_app(classify_cap_s=2, batches_database=database) as app:
        yield Door(app)


async def test_a_form_without_its_fields_names_them(door: Door) -> None:
    reply = await door.http.post("/files", headers={"authorization": "Bearer sk-test"})
    assert reply.status_code == 422
    assert "file: is missing; purpose: is missing" in reply.json()["error"]["message"]


async def begin(client: AsyncOpenAI, content: bytes) -> Batch:
    file = await client.files.create(file=("questions.jsonl", content), purpose="batch")
    assert (file.bytes, file.filename, file.purpose) == (len(content), "questions.jsonl", "batch")
    return await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"run": "7"}
    )


async def ended(client: AsyncOpenAI, batch: Batch) -> Batch:
    async with asyncio.timeout(60):
        while (batch := await client.batches.retrieve(batch.id)).status == "in_progress":
            await asyncio.sleep(0.05)
    return batch


async def lines(client: AsyncOpenAI, file: str | None) -> list[dict[str, Any]]:
    assert file
    return [json.loads(line) for line in (await client.files.content(file)).text.splitlines()]


async def test_a_batch_is_answered_as_single_questions_are(door: Door) -> None:
    client = door.client()
    content = requests(2) + requests(1, model="gpt-4").replace(b"q0", b"wrong model")
    batch = await ended(client, await begin(client, content + requests(1, budget_s=-1).replace(b"q0", b"wrong budget")))
    assert batch.status == "completed"
    assert batch.request_counts
    assert batch.request_counts.model_dump() == {"total": 4, "completed": 2, "failed": 2}
    assert batch.metadata == {"run": "7"}
    good = await lines(client, batch.output_file_id)
    assert [line["custom_id"] for line in good] == ["q0", "q1"]
    assert good[0]["response"]["status_code"] == 200
    assert good[0]["response"]["body"]["choices"][0]["message"]["content"] == "Marta Lindqvist"
    bad = {line["custom_id"]: line["response"] for line in await lines(client, batch.error_file_id)}
    assert {name: reply["status_code"] for name, reply in bad.items()} == {"wrong model": 404, "wrong budget": 422}
    assert bad["wrong budget"]["body"]["error"]["param"] == "budget_s"
    assert batch.output_file_id
    output = await client.files.retrieve(batch.output_file_id)
    assert output.purpose == "batch_output"
    assert output.bytes == len((await client.files.content(output.id)).content)


async def test_a_file_with_a_fault_fails_and_names_the_line(door: Door) -> None:
    client = door.client()
    batch = await begin(client, requests(1) + b"{\n" + requests(1) + requests(1).replace(b'"POST"', b'"GET"'))
    assert batch.status == "failed"
    assert batch.errors
    faults = [(fault.code, fault.line, fault.param) for fault in batch.errors.data or ()]
    assert faults == [("invalid_json_line", 2, None), ("duplicate_custom_id", 3, None), ("invalid_line", 4, "method")]
    assert (await begin(client, b"\n")).status == "failed"


async def test_batches_outlive_the_gateway(services: Services, database: str) -> None:
    reached = asyncio.Event()

    def away(_: object) -> str:
        reached.set()
        return "Marta Lindqvist"

    services.generator.reply = away
    async with services.gateway_app(classify_cap_s=2, batches_database=database) as app:
        client = Door(app).client()
        batch = await begin(client, requests(6))
        await asyncio.wait_for(reached.wait(), 60)
    async with services.gateway_app(classify_cap_s=2, batches_database=database) as app:
        client = Door(app).client()
        batch = await client.batches.retrieve(batch.id)
        assert batch.request_counts
        # What was under way is leased for a minute.
        async with asyncio.timeout(60):
            while (await client.batches.retrieve(batch.id)).request_counts.completed < 5:  # type: ignore[union-attr]
                await asyncio.sleep(0.05)
        batch = await client.batches.cancel(batch.id)
        assert len(await lines(client, batch.output_file_id)) >= 5


async def test_a_cancelled_batch_keeps_what_it_has(services: Services, door: Door) -> None:
    client = door.client()
    other = asyncio.Event()
    services.generator.reply = lambda _: other.set() or "Marta Lindqvist"  # type: ignore[func-returns-value]
    batch = await begin(client, requests(500))
    await asyncio.wait_for(other.wait(), 60)
    batch = await client.batches.cancel(batch.id)
    assert batch.status == "cancelled"
    bad = await lines(client, batch.error_file_id)
    assert bad[-1]["response"] is None
    assert bad[-1]["error"]["code"] == "batch_cancelled"
    assert batch.request_counts
    assert len(bad) == 500 - batch.request_counts.completed
    assert (await client.batches.cancel(batch.id)).cancelled_at == batch.cancelled_at


async def test_a_key_sees_its_own_alone_and_asks_as_it_may_now(
    services: Services, database: str, tmp_path: Path
) -> None:
    keys = write_keys(tmp_path / "keys", ("ann", "bob"))
    async with services.gateway_app(batches_database=database, api_keys_file=keys, batches_mib=1) as app:
        door = Door(app)
        hers, his = door.client("cm_ann"), door.client("cm_bob")
        batch = await begin(hers, requests(1))
        for attempt in (
            his.batches.retrieve(batch.id),
            his.batches.cancel(batch.id),
            his.files.retrieve(batch.input_file_id),
            his.files.content(batch.input_file_id),
            his.files.delete(batch.input_file_id),
            his.batches.create(
                input_file_id=batch.input_file_id, endpoint="/v1/chat/completions", completion_window="24h"
            ),
        ):
            with pytest.raises(openai.NotFoundError):
                await attempt
        assert [*(await his.batches.list()).data, *(await his.files.list()).data] == []
        assert [one.id for one in (await hers.batches.list()).data] == [batch.id]
        with pytest.raises(openai.APIStatusError, match="1 MiB") as refused:
            await begin(hers, b"x" * 2**20)
        assert refused.value.status_code == 413


async def test_a_list_has_pages_and_a_file_can_be_removed(door: Door) -> None:
    client = door.client()
    names = [(await client.files.create(file=(f"{n}.jsonl", b"{}"), purpose="batch")).id for n in range(3)]
    assert {file.id async for file in client.files.list(limit=2)} == set(names)
    await client.files.delete(names[0])
    with pytest.raises(openai.NotFoundError):
        await client.files.content(names[0])
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        await client.batches.create(input_file_id=names[1], endpoint="/v1/embeddings", completion_window="24h")
    assert refused.value.param == "endpoint"


async def test_a_gateway_without_a_database_says_so(services: Services) -> None:
    async with services.gateway_app() as app:
        with pytest.raises(openai.NotFoundError, match="CRAGMESH_BATCHES_DATABASE"):
            await Door(app).client().batches.list()
