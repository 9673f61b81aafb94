"""`adaptive` through the real mesh: what it weighs, when it calls a question false, and what it reads first."""

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


async def test_what_the_evidence_supports_is_given_and_else_kept_back(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(monkeypatch)
    says(services, "Marta Lindqvist")
    body = await ask(services)
    assert (body["answer"], body["kind"]) == ("Marta Lindqvist", "answer")
    assert body["confidence"] > 0.9
    assert body["usage"]["llm_calls"] == 1
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


OPEN = {"query": "Could you tell me: is the harbour light open on sundays?", "evidence": ["The light opens daily."]}


WEIGHED = {"answer": Confidence(answer=head(said_unknown=4)), "yes-no": Confidence(answer=head(yes_no=4))}


def weighing(monkeypatch: pytest.MonkeyPatch, *adapters: str) -> None:
    models = {f"fake+{name}": WEIGHED[name] for name in adapters}
    monkeypatch.setattr(confidence, "load", lambda: models)


@pytest.mark.parametrize(
    ("fitted_on", "question", "replied"),
    [
        (["answer", "yes-no"], OPEN, "yes-no"),
        (["answer", "yes-no"], {}, "answer"),
        # Nothing would tell its good answers from its bad ones.
        (["answer"], OPEN, "answer"),
        (["answer"], OPEN | {"every_answer": True}, "yes-no"),
    ],
    ids=["asked for", "not asked for", "not fitted", "every answer"],
)
async def test_yes_or_no_is_asked_of_its_own_adapter_and_weighed_by_its_confidence(
    services: Services, monkeypatch: pytest.MonkeyPatch, fitted_on: list[str], question: Any, replied: str
) -> None:
    weighing(monkeypatch, *fitted_on)
    services.generator.adapters = ["answer", "yes-no"]
    says(services, "yes")
    body = await ask(services, **question)
    assert services.generator.requests[0]["model"] == replied
    assert (body["generator"], body["degraded"]) == (f"fake+{replied}", [])
    assert (body["kind"] == "answer") == (replied == "yes-no")


@pytest.mark.parametrize("fitted_on", [["answer", "yes-no"], ["answer"]], ids=["its own", "another model's"])
async def test_the_adapter_for_yes_or_no_is_missed_by_the_model_that_it_is_made_for(
    services: Services, monkeypatch: pytest.MonkeyPatch, fitted_on: list[str]
) -> None:
    weighing(monkeypatch, *fitted_on)
    services.generator.adapters = ["answer"]
    says(services, "yes")
    body = await ask(services, **OPEN)
    missed = [(item["stage"], item["detail"]) for item in body["degraded"]]
    assert missed == [("adapter:yes-no", "answer replied")] * ("yes-no" in fitted_on)
    assert body["generator"] == "fake+answer"


async def test_an_answer_of_the_base_model_in_place_of_an_unloaded_adapter_is_called_so(services: Services) -> None:
    services.generator.adapters = ["answer"]
    says(services, "Marta Lindqvist")
    async with services.usual(abstain=False) as gateway:
        assert (await answer_to(gateway, QUESTION))["generator"] == "fake+answer"
        services.generator.adapters = []
        assert (await answer_to(gateway, QUESTION))["generator"] == "fake"


async def test_a_server_without_logprobs_is_not_taken_for_a_sure_one(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confidence, "load", dict)
    services.generator.logprobs = False
    says(services, "Marta Lindqvist")
    body = await ask(services)
    assert (body["kind"], body["confidence"]) == ("answer", 0.0)
    assert "logprob_mean" not in body["signals"]


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


BUILT = (
    "The Harbour Light was built by Marta Lindqvist in 1864. " + "Its lamp was lit each evening by the keeper. " * 10
)
OTHERS = [f"House number {number} of the street was painted white. " * 8 for number in range(4)]
SLOW = {"prefill_tokens_per_s": 50}


async def read_slowly(services: Services, **change: Any) -> dict[str, Any]:
    """The answer of a generator that takes seconds for the passages behind the best ones."""
    async with services.usual(**SLOW) as gateway:
        return await answer_to(gateway, QUESTION | {"evidence": [BUILT, *OTHERS]} | change)


def prompts_of(services: Services) -> list[str]:
    return [request["messages"][-1]["content"] for request in services.generator.requests]


async def test_a_slow_generator_reads_the_best_passages_first_and_a_fast_one_all(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(monkeypatch)
    says(services, "Marta Lindqvist")
    body = await read_slowly(services)
    await ask(services, evidence=[BUILT, *OTHERS])
    slow, fast = prompts_of(services)
    assert body["answer"] == "Marta Lindqvist"
    assert "House number 0" in slow
    assert "House number 3" not in slow
    assert len(body["citations"]) < 1 + len(OTHERS)
    assert "House number 3" in fast


async def test_arithmetic_reads_all_passages(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(monkeypatch)
    services.generator.adapters = ["answer"]
    says(services, "four")
    await read_slowly(services, query="how many more lamps than houses are there?")
    assert all("House number 3" in prompt for prompt in prompts_of(services))


@pytest.mark.parametrize("first", ["i don't know", "Jonas Berg"])
async def test_what_the_best_passages_leave_unsure_is_read_on(
    services: Services, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The second prompt begins as the first one, so that an engine which caches prompts reads on where it stopped."""
    fitted(monkeypatch)
    services.generator.reply = lambda body: "Marta Lindqvist" if "House number 3" in str(body["messages"]) else first
    body = await read_slowly(services)
    best, everything = prompts_of(services)
    assert body["answer"] == "Marta Lindqvist"
    assert everything.startswith(best.partition("</document>\n\n")[0])


async def test_a_likely_answer_stands_where_the_second_reading_fails(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(
        monkeypatch, answer=head(support=4).model_copy(update={"thresholds": {"low": 0, "balanced": 0.5, "high": 1}})
    )

    def reply(body: dict[str, Any]) -> str:
        if "House number 3" in str(body["messages"]):
            raise RuntimeError("out of order")
        return "Marta Lindqvist"

    services.generator.reply = reply
    body = await read_slowly(services)
    assert len(prompts_of(services)) == 2
    assert body["answer"] == "Marta Lindqvist"
    assert any(one["stage"] == "generator" for one in body["degraded"])


async def test_all_is_read_at_once_where_every_answer_is_given(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(monkeypatch)
    says(services, "i don't know")
    async with services.usual(**SLOW, abstain=False) as gateway:
        await answer_to(gateway, QUESTION | {"evidence": [BUILT, *OTHERS]})
    assert len(prompts_of(services)) == 1
