"""Part `strategies`: every request that each strategy makes of each service, and its answer, under a virtual clock."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog

from lab.goldens import virtual
from lab.goldens.canned import Canned
from lab.goldens.cases import load
from lab.goldens.records import Records
from lab.papers.in_process import transport_of
from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from services.gateway.strategies import STRATEGIES

NAMES = tuple(STRATEGIES)
SERVICES = ("retriever", "reranker", "classifier", "kg", "generator")
# The settings' defaults are fitted to a small CPU; the canned generator writes faster.
SETTINGS: dict[str, Any] = {
    **{f"{name}_url": f"http://{name}" for name in SERVICES},
    "confidence_dir": Path("no/such/folder"),
    "warm_up_s": 0,
    "page": False,
    "api_key": "",
    "mesh_token": "",
}
# A generator with a confidence of its own for its adapter.
EMBEDDED = "SmolLM2-135M-Instruct"
PAPERS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"query": "Lamps and lenses of lighthouses", "collection": "harbours"},
    "body": {"query": "Keepers", "body": "<p>Who <b>paid</b> the keepers of the lamp?</p>", "collection": "harbours"},
    "bare": {"query": "Keepers", "collection": "harbours", "enhance": False, "rescore": False},
    "nowhere": {"query": "Keepers", "collection": "nowhere"},
}
PAPERS_FAULTS: tuple[dict[str, str], ...] = ({}, {"generator": "hanging"}, {"reranker": "down"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """A mesh that answers cases.

    Args:
        tag: only cases that have it; all when empty.
        body: further fields of the request.
        names: the strategies that answer.
    """

    name: str
    tag: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = NAMES


def scenarios() -> Iterator[Scenario]:
    """All meshes: healthy, hurried, with the adapters, with public data, and each service broken in turn."""
    yield Scenario("usual")
    yield Scenario("hurried", "tight", body={"budget_s": 5}, services={"slowness": 2.0})
    yield Scenario("stalled", "tight", body={"budget_s": 8}, services={"slowness": 40.0})
    yield Scenario(
        "embedded", "adapter", services={"model": EMBEDDED, "adapters": ("answer",)}, names=("adaptive", "db3")
    )
    yield Scenario("records", "records", settings={"db3_public_data": True}, names=("adaptive", "db3"))
    yield Scenario("no abstention", "adapter", settings={"abstain": False}, names=("adaptive",))
    yield Scenario("sure", "adapter", settings={"weknow_confidence": "low"}, names=("weknow",))
    yield Scenario("generator garbled", "faults", services={"faults": {"generator": "garbage"}})
    for service in SERVICES:
        for fault in ("down", "hanging"):
            yield Scenario(f"{service} {fault}", "faults", services={"faults": {service: fault}})


def record() -> Records:
    """Calls and answer of each strategy to each case in each scenario."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    cases = load()
    records: Records = {}
    for scenario in scenarios():
        for case in cases:
            if scenario.tag and scenario.tag not in case.tags:
                continue
            for name in scenario.names:
                options = {"strategy": name, "trace": True, "interaction_id": case.name}
                canned = Canned(case, **scenario.services)
                request = ask(canned, "/answer", {**case.body, **scenario.body, **options}, scenario.settings)
                reply = virtual.run(request)
                records[f"{scenario.name}: {case.name} by {name}"] = record_of(canned, reply)
    for title, body in PAPERS.items():
        for faults in PAPERS_FAULTS:
            canned = Canned(cases[0], faults=faults)
            reply = virtual.run(ask(canned, "/papers", body, {}))
            broken = "".join(f", {service} {fault}" for service, fault in faults.items())
            records[f"papers: {title}{broken}"] = record_of(canned, reply)
    return records


async def ask(canned: Canned, path: str, body: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """The gateway's reply to one request, with its status."""
    app = create_app(GatewaySettings(**(SETTINGS | dict(settings)), _env_file=None), transport=canned)
    async with transport_of(app) as (transport, _):
        canned.case.start_s = asyncio.get_running_loop().time()
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=None) as client:  # noqa: S113
            reply = await client.post(path, json=dict(body))
    return {"status": reply.status_code, "body": reply.json()}


def record_of(canned: Canned, reply: dict[str, Any]) -> dict[str, Any]:
    """Calls in an order that no scheduler decides, and the reply without its request's identifier."""
    calls = sorted(canned.calls, key=lambda call: (call["at"], call["call"], json.dumps(call["body"])))
    body = reply["body"]
    body.pop("request_id", None)
    if trace := body.get("trace"):
        body["trace"] = sorted((_line(event) for event in trace["events"]), key=lambda event: event[0])
    return {"calls": calls, "reply": reply}


def _line(event: dict[str, Any]) -> list[Any]:
    """An event of the trace; its messages are among the calls."""
    return [event["at_ms"], event["kind"], event["step"], event["detail"], event["elapsed_ms"]]
