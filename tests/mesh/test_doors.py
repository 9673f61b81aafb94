"""The law of 30 seconds, hang-ups, refusals and faults at every door of the gateway, by a virtual clock."""

import asyncio
import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from lab.goldens import virtual
from lab.goldens.cases import load
from lab.goldens.strategies import NAMES, SERVICES
from proto.base import MAX_PAGE_CHARS
from services.gateway.access import RULES
from services.gateway.mcp.door import MAX_BODY
from tests.mesh.doors import (
    AGENT,
    ANSWER,
    ASKED,
    BUDGET_S,
    CALLING,
    CHAT,
    DOCUMENTS,
    DOORS,
    OWN,
    PAPERS,
    QUERY,
    QUESTIONS,
    TOOLS,
    Door,
    Reply,
    agent,
    chat,
    opened,
)


def virtually(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test under the virtual clock."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        with capture_logs():
            virtual.run(test(**fixtures))

    return run


def refusal(door: Door, reply: Reply) -> str:
    """What a refusal says, in the door's own form."""
    if door.path.startswith("/v1/"):
        assert set(reply.json) == {"error"}
        return str(reply.json["error"]["message"])
    if door.path == "/mcp":
        assert (reply.json["jsonrpc"], reply.json["id"]) == ("2.0", None)
        return str(reply.json["error"]["message"])
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    return str(reply.json["detail"])


@virtually
async def test_a_path_that_merely_begins_like_a_door_is_refused_in_no_form_of_its_own() -> None:
    own = {"/v1/x": "error", "/mcp/x": "jsonrpc", "/v1x": "title", "/mcpx": "title"}
    async with opened() as gateway:
        for path, name in own.items():
            reply = await gateway.ask(Door("POST", path, {}))
            assert (reply.status, name in reply.json) == (404, True), path


@virtually
async def test_a_question_is_answered_in_time_and_says_what_was_missing() -> None:
    """`test_faults.py` has more faults, in front of the real services."""
    broken = [*itertools.product(SERVICES, ("down", "hanging")), ("generator", "garbage"), ("generator", "429")]
    async with opened() as gateway:
        for (name, door), (service, fault) in itertools.product(QUESTIONS.items(), broken):
            gateway.services.faults = {service: fault}
            reply = await gateway.ask(door)
            told = f"{name}: {service} is {fault}"
            assert (reply.status, gateway.services.under_way) == (200, 0), told
            assert reply.seconds <= BUDGET_S, told
            said, missing = door.read(reply)
            assert service in missing, told
            assert (said == ANSWER) is (service != "generator"), told
        for fault in ("down", "hanging"):
            gateway.services.faults = dict.fromkeys(SERVICES, fault)
            for name, door in QUESTIONS.items():
                reply = await gateway.ask(door, {"x-deadline-ms": "500"})
                assert reply.seconds <= 0.5, name
                assert "i don't know" in door.read(reply)[0].lower(), name


@virtually
async def test_every_strategy_answers_from_what_is_left() -> None:
    reasons = {"down": "unavailable", "hanging": "timeout", "garbage": "bad_reply", "500": "error", "429": "overloaded"}
    question = load()[0].body
    # The reader would answer in the generator's place.
    async with opened(reader_threshold=1) as gateway:
        for strategy, service, fault in itertools.product(NAMES, SERVICES, reasons):
            gateway.services.faults = {service: fault}
            gateway.services.calls.clear()
            reply = await gateway.ask(Door("POST", "/answer", question | {"strategy": strategy}))
            told = f"{strategy}: {service} is {fault}"
            assert reply.seconds <= 30, told
            assert (reply.json["answer"] == ANSWER) is (service != "generator"), told
            missing = {(item["stage"], item["reason"]) for item in reply.json["degraded"]}
            asked = {call["service"] for call in gateway.services.calls}
            assert ((service, reasons[fault]) in missing) is (service in asked), (told, missing)


@virtually
async def test_papers_are_found_in_time_and_say_what_was_missing() -> None:
    async with opened() as gateway:
        for service, fault in itertools.product(("retriever", "reranker", "generator"), ("down", "hanging", "garbage")):
            gateway.services.faults = {service: fault}
            reply = await gateway.ask(PAPERS)
            assert reply.status == 200
            assert reply.seconds <= BUDGET_S
            assert reply.json["degraded"], (service, fault)
            assert bool(reply.json["papers"]) is (service != "retriever"), (service, fault)


@virtually
async def test_what_rests_on_one_service_says_in_time_that_it_failed() -> None:
    statuses = {"down": 503, "hanging": 504, "garbage": 503, "500": 503, "503": 503, "429": 429}
    async with opened() as gateway:
        for (name, door), fault in itertools.product((DOCUMENTS | TOOLS).items(), statuses):
            gateway.services.faults = {door.service: fault}
            reply = await gateway.ask(door, {"x-deadline-ms": "5000"})
            assert reply.seconds <= BUDGET_S, (name, fault)
            if name in TOOLS:
                result = reply.json["result"]
                assert (result["isError"], door.service in result["content"][0]["text"]) == (True, True), result
            # A deletion's reply says nothing.
            elif (fault, door.method) != ("garbage", "DELETE"):
                assert reply.status == statuses[fault], (name, fault)
                assert "retriever" in refusal(door, reply)
                assert ("retry-after" in reply.headers) is (fault == "429")


@virtually
async def test_who_hangs_up_stops_the_work() -> None:
    async with opened() as gateway:
        for name, door in CALLING.items():
            gateway.services.faults = {door.service: "hanging"}
            asking = asyncio.create_task(gateway.ask(door, leave_after_s=2.0))
            await asyncio.sleep(1.9)
            assert gateway.services.under_way == 1, name
            reply = await asking
            assert gateway.services.under_way == 0, name
            assert reply.seconds < 2.1, name
            assert reply.status == 0 or "stream" in reply.headers["content-type"], name
        metrics = (await gateway.ask(Door("GET", "/metrics"))).content.decode()
        assert f'cut_short_total{{cause="hang-up",service="gateway"}} {len(CALLING)}.0' in metrics


@virtually
async def test_a_body_that_cannot_be_read_says_why() -> None:
    text, form = ({"content-type": kind} for kind in ("text/plain", "application/x-www-form-urlencoded"))
    bodies: list[tuple[str, dict[str, str], int, str]] = [
        ("{", {}, 400, "not JSON"),
        ('{"query": "\udcff"}', {}, 400, "not UTF-8"),
        ('{"query": ' + "1" * 5_000 + "}", {}, 400, "too many digits"),
        ("[" * 100_000 + "]" * 100_000, {}, 400, "nested too deeply"),
        ('{"query": "who?"}', text, 415, "content-type: must be application/json"),
        ("query=who", form, 415, "content-type: must be application/json"),
    ]
    async with opened() as gateway:
        for path, (body, headers, status, why) in itertools.product(("/answer", "/v1/chat/completions"), bodies):
            door = Door("POST", path, body, headers)
            reply = await gateway.ask(door)
            assert (reply.status, why in refusal(door, reply)) == (status, True), reply
            if status == 415:
                named = (
                    reply.json["error"]["param"] if path == "/v1/chat/completions" else reply.json["errors"][0]["field"]
                )
                assert named == "content-type"


@virtually
async def test_a_field_that_is_refused_is_named_with_its_limit() -> None:
    fields: list[tuple[dict[str, Any], str, str]] = [
        ({"query": None}, "query", "a string"),
        ({"query": "x" * 2_001}, "query", "at most 2000 characters"),
        ({"query": "   "}, "query", "at least 1 character"),
        ({"query_time": "yesterday"}, "query_time", ""),
        ({"strategy": "magic"}, "strategy", "one of adaptive, "),
        ({"budget_s": 31}, "budget_s", "at most 30"),
        ({"budget_s": float("nan")}, "budget_s", "a finite number"),
        ({"trace": "often"}, "trace", "true or false"),
        ({"search_results": 5}, "search_results", "a list"),
        ({"search_results": [{}] * 51}, "search_results", "at most 50 items"),
        ({"search_results": [{"page_name": 5}]}, "search_results.0.page_name", "a string"),
        ({"search_results": [{"page_result": "x" * (MAX_PAGE_CHARS + 1)}]}, "search_results.0.page_result", "at most"),
        ({"filters": [{"field": "year", "equals": []}]}, "filters.0.equals", "a string or a whole number or a number"),
        ({"options": {"rerank_kk": 5}}, "options.rerank_kk", ""),
        ({"options": {"recall_k": 201}}, "options.recall_k", "at most 200"),
        ({"options": {"extractor": "regex"}}, "options.extractor", "'"),
        ({"options": {"rerank_k": 5}, "strategy": "closed-book"}, "options.rerank_k", "no option at all"),
    ]
    async with opened() as gateway:
        for body, field, limit in fields:
            reply = await gateway.ask(Door("POST", "/answer", {"query": QUERY} | body))
            (error,) = reply.json["errors"]
            assert (reply.status, error["field"]) == (422, field), error
            assert error["message"], error
            assert error["limit"].startswith(limit), error
        messages: list[tuple[Any, str, str]] = [
            ([], "messages", "at least 1 item"),
            ([{"role": "user", "content": 5}], "messages.0.content", "a string or a list"),
            ([{"role": "user", "content": [{"type": 5}]}], "messages.0.content.0.type", "a string"),
        ]
        for sent, param, limit in messages:
            error = (await gateway.ask(Door("POST", "/v1/chat/completions", CHAT | {"messages": sent}))).json["error"]
            assert (error["param"], error["code"], limit in error["message"]) == (param, "invalid_value", True), error
        unknown = await gateway.ask(Door("PUT", "/collections/x", {"encoder": ["all-MiniLM-L6-v2"]}))
        assert (unknown.status, unknown.json["errors"][0]["field"]) == (422, "encoder")
        # A record of CRAG has fields of its own.
        assert (await gateway.ask(Door("POST", "/answer", ASKED | {"split": 1}))).status == 200


@virtually
async def test_a_rate_is_told_in_each_doors_own_form() -> None:
    async with opened(api_key="sk-test", rate_per_minute=1) as gateway:
        key = {"authorization": "Bearer sk-test"}
        await gateway.ask(OWN["models"], key)
        for name, door in DOORS.items():
            reply = await gateway.ask(door, key)
            assert reply.status == 429, name
            assert 0 < int(reply.headers["retry-after"]) <= 60, name
            assert "a minute" in refusal(door, reply), name
            unknown = await gateway.ask(door)
            assert unknown.status == 401, name
            assert not door.path.startswith("/v1/") or unknown.json["error"]["code"] == "invalid_api_key"


@virtually
async def test_a_full_gateway_says_so_in_each_doors_own_form() -> None:
    writing = [door for door in DOORS.values() if door.method != "GET"]

    async with opened(gateway_max_in_flight=1) as gateway:
        gateway.services.faults = {"generator": "hanging"}
        asking = asyncio.create_task(gateway.ask(QUESTIONS["answer"]))
        await asyncio.sleep(1)
        for door, reply in zip(writing, await asyncio.gather(*map(gateway.ask, writing)), strict=True):
            assert (reply.status, "retry-after" in reply.headers) == (429, True), door
            assert "in flight" in refusal(door, reply), door
        assert (await asking).status == 200


@virtually
async def test_of_an_agents_messages_only_those_for_the_generator_take_a_place() -> None:
    async with opened(gateway_max_in_flight=1) as gateway, gateway.state["places"].one():
        for method in ("ping", "tools/list"):
            message = {"jsonrpc": "2.0", "id": 1, "method": method}
            assert "result" in (await gateway.ask(Door("POST", "/mcp", message, AGENT))).json, method
        for door in (QUESTIONS["agent"], TOOLS["kg tool"]):
            result = (await gateway.ask(door)).json["result"]
            assert (result["isError"], "come again in" in result["content"][0]["text"]) == (True, True), result
    async with opened(gateway_max_in_flight=1) as gateway:
        assert agent(await gateway.ask(QUESTIONS["agent"]))[0] == ANSWER


@virtually
async def test_a_batch_holds_the_budget_of_each_of_its_questions(tmp_path: Path) -> None:
    parts = (
        '--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        '--x\r\ncontent-disposition: form-data; name="file"; filename="q.jsonl"\r\n\r\n%s\r\n--x--\r\n'
    )
    line = {"custom_id": "q", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}
    multipart = {"content-type": "multipart/form-data; boundary=x"}

    async with opened(batches_database=f"sqlite:///{tmp_path / 'batches.sqlite'}") as gateway:
        for service in SERVICES:
            gateway.services.faults = {service: "hanging"}
            file = await gateway.ask(Door("POST", "/v1/files", parts % json.dumps(line), multipart))
            wanted = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
            batch = await gateway.ask(Door("POST", "/v1/batches", wanted | {"input_file_id": file.json["id"]}))
            await asyncio.sleep(BUDGET_S + 1)
            ended = (await gateway.ask(Door("GET", f"/v1/batches/{batch.json['id']}"))).json
            assert ended["status"] == "completed", (service, ended)
            content = await gateway.ask(Door("GET", f"/v1/files/{ended['output_file_id']}/content"))
            said, missing = chat(Reply(200, {}, json.dumps(content.json["response"]["body"]).encode()))
            assert (service in missing, said == ANSWER) == (True, service != "generator")


def test_each_route_that_asks_for_a_right_is_a_door_here() -> None:
    rules = {(method, re.sub(r"{[^}]*}", "*", path.rstrip("/"))) for (method, path), right in RULES.items() if right}
    tried = {(door.method, re.sub(r"harbours|a%2Fb.pdf", "*", door.path)) for door in DOORS.values()}
    # Those of a batch's parts reach no service.
    assert {
        path for _, path in rules - tried if not path.startswith(("/v1/files", "/v1/batches", "/v1/models"))
    } == set()


@virtually
async def test_agents_read_refusals_of_the_door_and_of_the_sdk_alike() -> None:
    agent = QUESTIONS["agent"]
    text, huge, streams = (
        dataclasses.replace(agent, headers={"content-type": "text/plain"}),
        dataclasses.replace(agent, body=" " * (MAX_BODY + 1), headers={"content-length": str(MAX_BODY + 1)}),
        dataclasses.replace(agent, method="GET"),
    )
    async with opened() as gateway:
        for door, status, why in (
            (text, 400, "Content-Type"),
            (huge, 413, str(MAX_BODY)),
            # It never sends anything unasked: a stream would be held open for nothing until the deadline.
            (streams, 405, "Not Allowed"),
        ):
            reply = await gateway.ask(door)
            assert (reply.status, why in refusal(door, reply)) == (status, True), reply
