"""Leases, expiry and turns, by a clock of the test's own; who comes first, and what is tried again."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.gateway.access import ASKER, Scope, current_caller, current_scope
from services.gateway.batches import runner, wire
from services.gateway.batches.lane import IdleLane
from services.gateway.batches.runner import Runner
from services.gateway.batches.store import LEASE_S, RETRY_S, TRIES, Item, Store
from services.gateway.batches.wire import WINDOW_S, CreateBatch, read_lines
from services.gateway.openai.wire import ChatRequest
from services.kit.admission import Admission
from services.kit.errors import NotFound, Overloaded, Unavailable
from tests.unit.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'batches.sqlite'}", max_bytes=2**20, days=30, now=clock)
    yield store
    store.close()


def lines(count: int, name: str = "q") -> bytes:
    body = {"model": "cragmesh", "messages": [{"role": "user", "content": "Who?"}]}
    made = (
        {"custom_id": f"{name}{n}", "method": "POST", "url": "/v1/chat/completions", "body": body} for n in range(count)
    )
    return "\n".join(map(json.dumps, made)).encode()


def begin(store: Store, count: int, name: str = "q", owner: str = "ann") -> str:
    file = store.add_file(owner, "f.jsonl", lines(count, name))
    asked = CreateBatch(input_file_id=file["id"], endpoint="/v1/chat/completions", completion_window="24h")
    return str(store.add_batch(owner, asked)["id"])


def test_a_lease_ends_and_the_first_reply_stays(store: Store, clock: Clock) -> None:
    batch = begin(store, 1)
    first = store.take()
    assert first
    assert store.take() is None
    clock.now += LEASE_S
    second = store.take()
    assert second == first
    store.finish(first, "one", good=True)
    store.finish(second, "two", good=True)
    done = store.batch("ann", batch)
    assert (done["status"], done["request_counts"]["completed"]) == ("completed", 1)
    assert list(store.content("ann", done["output_file_id"])) == [b"one\n"]


def test_batches_take_turns(store: Store) -> None:
    begin(store, 3, "a")
    begin(store, 1, "b", owner="bob")
    taken = [item.custom_id for item in iter(store.take, None)]
    assert sorted(taken[:2]) == ["a0", "b0"]
    assert taken[2:] == ["a1", "a2"]


def test_a_batch_expires_after_a_day_and_is_removed_after_its_days(store: Store, clock: Clock) -> None:
    name = begin(store, 2)
    item = store.take()
    assert item
    store.finish(item, "one", good=True)
    clock.now += WINDOW_S
    assert store.take() is None
    store.sweep()
    batch = store.batch("ann", name)
    assert (batch["status"], batch["expired_at"]) == ("expired", clock.now)
    (unanswered,) = b"".join(store.content("ann", batch["error_file_id"])).splitlines()
    assert json.loads(unanswered)["error"]["code"] == "batch_expired"
    store.remove_file("ann", batch["output_file_id"])
    assert list(store.content("ann", batch["output_file_id"])) == []
    clock.now += 30 * 86_400 + 1
    store.sweep()
    with pytest.raises(NotFound):
        store.batch("ann", name)
    assert store.files("ann", None, 5)["data"] == []


def test_no_more_lines_than_a_batch_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_LINES", 3)
    assert read_lines(lines(3))[1] == []
    assert read_lines(lines(4))[1][0]["code"] == "too_many_requests"


def test_no_id_of_a_line_is_one_that_a_database_refuses() -> None:
    (fault,) = read_lines(lines(1, "a\0b"))[1]
    assert (fault["code"], fault["param"]) == ("invalid_line", "custom_id")


@asynccontextmanager
async def working(
    store: Store, admission: Admission, complete: Any, scope: Scope | None = ASKER
) -> AsyncIterator[Runner]:
    async def scope_of(_: str) -> Scope | None:
        return scope

    one = Runner(store, IdleLane(admission, 1), complete, scope_of)
    async with one.running():
        yield one


async def until(store: Store, batch: str, status: str = "completed") -> dict[str, Any]:
    async with asyncio.timeout(30):
        while store.batch("ann", batch)["status"] != status:  # noqa: ASYNC110 - as its owner asks
            await asyncio.sleep(0.01)
    return store.batch("ann", batch)


async def test_a_caller_comes_first_and_the_question_is_asked_again(store: Store) -> None:
    began, asked = asyncio.Event(), 0

    async def complete(_: ChatRequest) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        began.set()
        if asked == 1:
            await asyncio.Event().wait()
        assert (current_caller.get(), current_scope.get()) == ("ann", ASKER)
        return {"answer": asked}

    admission = Admission(1)
    batch = begin(store, 1)
    async with working(store, admission, complete):
        await asyncio.wait_for(began.wait(), 30)
        async with admission.place(0, asyncio.get_running_loop().create_future()):
            pass
        done = await until(store, batch)
    (line,) = b"".join(store.content("ann", done["output_file_id"])).splitlines()
    assert json.loads(line)["response"]["body"] == {"answer": 2}


async def test_a_batch_expires_while_callers_leave_no_room(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SWEEP_S", 0.01)
    admission = Admission(1)
    taken = admission.place(0, asyncio.get_running_loop().create_future())
    async with taken, working(store, admission, None):
        batch = begin(store, 1)
        clock.now += WINDOW_S
        await until(store, batch, "expired")


def test_a_fault_of_the_database_logs_no_question_and_no_answer(store: Store, tmp_path: Path) -> None:
    begin(store, 1)
    item = store.take()
    assert item
    with contextlib.closing(sqlite3.connect(tmp_path / "batches.sqlite")) as other:
        other.execute("DROP TABLE batch_requests")
    with capture_logs() as lines, pytest.raises(Unavailable):
        store.finish(item, "a secret answer", good=True)
    (line,) = lines
    assert "no such table" in str(line["exc_info"])
    assert "secret" not in str(line["exc_info"])


@pytest.mark.parametrize(
    ("stage", "tries"),
    [("generate", TRIES), ("confidence", 1), ("adapter:answer", 1), ("", 2)],
    ids=["it is given in the end", "it will not be back", "nor will this", "the engine was busy"],
)
async def test_what_passes_is_asked_again_later(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, stage: str, tries: int
) -> None:
    asked = 0
    give_back = store.give_back

    def and_wait(item: Item, *, failed: bool) -> None:
        give_back(item, failed=failed)
        assert failed
        assert store.take() is None
        clock.now += RETRY_S

    async def complete(_: ChatRequest) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked == 1 and not stage:
            raise Overloaded("3 questions are on their way")
        return {"cragmesh": {"degraded": [{"stage": stage, "reason": "unavailable"}] if stage else []}}

    monkeypatch.setattr(store, "give_back", and_wait)
    monkeypatch.setattr(runner, "POLL_S", 0.01)
    batch = begin(store, 1)
    async with working(store, Admission(1), complete):
        done = await until(store, batch)
    assert (asked, done["request_counts"]) == (tries, {"total": 1, "completed": 1, "failed": 0})


async def test_a_revoked_key_asks_no_more(store: Store) -> None:
    async def complete(_: ChatRequest) -> dict[str, Any]:
        raise AssertionError("nobody may ask")

    batch = begin(store, 1)
    async with working(store, Admission(1), complete, scope=None):
        done = await until(store, batch)
    (line,) = b"".join(store.content("ann", done["error_file_id"])).splitlines()
    assert json.loads(line)["response"]["status_code"] == 401


def test_room_is_free_again_once_files_are_removed(store: Store) -> None:
    size = len(lines(900))
    assert 3 * size < 2**20 < 12 * size
    for _ in range(6):
        name = begin(store, 900)
        batch = store.cancel("ann", name)
        for file in (batch["input_file_id"], batch["error_file_id"]):
            store.remove_file("ann", file)


async def test_a_runner_ends_though_it_is_woken_at_that_moment(store: Store) -> None:
    async with asyncio.timeout(20):
        for turns in range(20):
            async with working(store, Admission(1), None) as one:
                for _ in range(turns):
                    await asyncio.sleep(0.001)
                one.wake()
