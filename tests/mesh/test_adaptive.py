"""`adaptive` through the real mesh: what it weighs, when it calls a question false, and which calls it spares."""

from typing import Any

import httpx
import pytest

from services.gateway import confidence
from services.gateway.confidence import Confidence, Head
from tests.mesh.conftest import Services, answer_to, head

pytestmark = pytest.mark.anyio

QUESTION = {
    "query": "can you tell me who built the harbour light?",
    "evidence": ["The Harbour Light was built by Marta Lindqvist in 1864."],
    "strategy": "adaptive",
    "trace": True,
}


def fitted(monkeypatch: pytest.MonkeyPatch, **heads: Head) -> None:
    model = Confidence(**({"answer": head(support=4)} | heads))
    monkeypatch.setattr(confidence, "load", lambda: {"generic": model})


async def ask(services: Services, **change: Any) -> dict[str, Any]:
    async with services.usual() as gateway:
        return await answer_to(gateway, QUESTION | change)


def says(services: Services, text: str) -> None:
    services.generator.reply = lambda _: text


async def test_what_the_evidence_supports_is_given(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(monkeypatch)
    says(services, "Marta Lindqvist")
    body = await ask(services)
    assert (body["answer"], body["kind"]) == ("Marta Lindqvist", "answer")
    assert body["confidence"] > 0.9


async def test_what_it_does_not_support_is_kept_back(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(monkeypatch)
    says(services, "Jonas Berg")
    body = await ask(services)
    assert (body["answer"], body["kind"], body["source"]) == ("i don't know", "unknown", "none")
    assert body["confidence"] < 0.1
    assert body["citations"]


async def test_a_question_is_called_false_whatever_the_model_said(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(monkeypatch, invalid=head(no_record=6))
    says(services, "Marta Lindqvist")
    body = await ask(services, evidence=["There is no record of a harbour light by Marta Lindqvist."])
    assert (body["answer"], body["kind"]) == ("invalid question", "invalid_question")
    says(services, "i don't know")
    body = await ask(services, evidence=["There is no record of a harbour light."])
    assert body["kind"] == "invalid_question"


async def test_calls_that_no_head_weighs_are_not_made(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(monkeypatch)
    says(services, "Marta Lindqvist")
    assert (await ask(services))["usage"]["llm_calls"] == 1


@pytest.mark.parametrize("signal", ["check", "agreement", "sources"])
async def test_a_call_that_may_change_the_outcome_is_made(
    services: Services, monkeypatch: pytest.MonkeyPatch, signal: str
) -> None:
    fitted(monkeypatch, answer=head(**{signal: 4}))
    services.generator.reply = lambda body: "yes" if "structured_outputs" in body else "Marta Lindqvist"
    body = await ask(services)
    assert body["usage"]["llm_calls"] == 2
    assert body["signals"][signal] > 0
    assert body["kind"] == "answer"


async def test_the_model_that_answered_looks_again(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "load", lambda: {"fake+answer": Confidence(answer=head(check=4))})
    services.generator.adapters = ["answer"]
    services.generator.reply = lambda body: "yes" if "structured_outputs" in body else "Marta Lindqvist"
    assert (await ask(services))["kind"] == "answer"
    assert [request["model"] for request in services.generator.requests] == ["answer", "answer"]


async def test_a_server_without_logprobs_is_not_taken_for_a_sure_one(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confidence, "load", dict)
    services.generator.logprobs = False
    says(services, "Marta Lindqvist")
    body = await ask(services)
    assert (body["kind"], body["confidence"]) == ("answer", 0.0)
    assert "logprob_mean" not in body["signals"]


async def test_nothing_is_asked_again_where_the_first_look_is_sure(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(monkeypatch, answer=head(support=9, check=0.1))
    says(services, "Marta Lindqvist")
    body = await ask(services)
    assert body["usage"]["llm_calls"] == 1
    assert any("could change the outcome" in event["detail"] for event in body["trace"]["events"])


SUM = {
    "query": "how many more visitors did the lighthouse have in 1902 than in 1901?",
    "evidence": ["The lighthouse had 1,240 visitors in 1901 and 1,815 in 1902."],
}


async def test_what_is_to_be_calculated_is_calculated_first(services: Services) -> None:
    services.generator.reply = lambda body: "more visitors = 1815 - 1240" if "structured_outputs" in body else "575"
    body = await ask(services, **SUM)
    assert (body["answer"], body["usage"]["llm_calls"]) == ("575", 2)
    assert (body["citations"][0]["source"], body["source"]) == ("calculator", "web")
    assert "1,815 - 1,240 = 575" in services.generator.requests[-1]["messages"][-1]["content"]


async def test_an_adapter_is_given_no_calculations(services: Services) -> None:
    services.generator.adapters = ["answer"]
    says(services, "575")
    assert (await ask(services, **SUM))["usage"]["llm_calls"] == 1


async def test_polite_phrases_are_not_shown_to_the_model(services: Services, gateway: httpx.AsyncClient) -> None:
    says(services, "Marta Lindqvist")
    await gateway.post("/answer", json=QUESTION)
    prompt = services.generator.requests[0]["messages"][-1]["content"]
    assert "Question: who built the harbour light?" in prompt
