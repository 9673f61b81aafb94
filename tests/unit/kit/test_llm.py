"""Chat against an OpenAI-compatible server: adapters, constraints, tokens, hostile replies."""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.errors import BadReply, ServiceRejected, ServiceUnavailable
from services.kit.llm import LLM, Constraint, Message
from services.kit.tokens import estimate_tokens, head_by_estimate
from tests.mesh.fakes import FakeGenerator
from tests.unit.conftest import Clock

pytestmark = pytest.mark.anyio

ASK = [Message("user", "Which city?")]


def scripted(reply: Callable[[httpx.Request], httpx.Response], model: str = "m") -> LLM:
    return LLM(ServiceClient("generator", "http://g", http_client(httpx.MockTransport(reply))), model=model)


def serving(served: list[str], reply: Callable[[httpx.Request], httpx.Response]) -> LLM:
    """A server of these models, the first the base of the others, which a test may change; `reply` is all else."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/models":
            return reply(request)
        data = [{"id": name, "parent": None if name == served[0] else served[0]} for name in served]
        return httpx.Response(200, json={"data": data})

    return scripted(answer, model="")


def replying(content: bytes | dict[str, Any]) -> LLM:
    """A server that says this whatever it is asked."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return serving(["m"], lambda _: httpx.Response(200, content=body))


async def test_a_reply_with_its_tokens_and_logprob() -> None:
    generator = FakeGenerator(lambda _: "Paris, France")
    completion = await generator.llm().chat(ASK, max_tokens=9, allow_s=1, logprobs=True, n=2, temperature=0.7)
    assert completion.text == "Paris, France"
    assert len(completion.samples) == 2
    assert completion.samples[0].logprob == pytest.approx(-0.1)
    assert (completion.prompt_tokens, completion.completion_tokens, completion.model) == (4, 4, "fake")
    assert generator.requests[0]["temperature"] == 0.7


async def test_an_adapter_is_used_when_served_and_otherwise_the_base_model_which_names_it() -> None:
    generator = FakeGenerator()
    generator.adapters = ["answer"]
    model = generator.llm()
    for adapter, used, missing in (("answer", "answer", ""), ("", "fake", ""), ("kg-api", "fake", "kg-api")):
        completion = await model.chat(ASK, max_tokens=5, allow_s=1, adapter=adapter)
        assert (completion.model, completion.missing_adapter) == (used, missing)
        assert completion.adapter == ("" if missing else adapter)


def changing(served: list[str], requested: list[str]) -> LLM:
    """A server that answers by its models alone, and notes which were requested."""

    def reply(request: httpx.Request) -> httpx.Response:
        name = json.loads(request.content)["model"]
        requested.append(name)
        if name not in served:
            return httpx.Response(404, json={"error": {"message": f"The model `{name}` does not exist."}})
        return httpx.Response(200, json={"model": name, "choices": [{"message": {"content": "Paris"}}]})

    return serving(served, reply)


async def test_an_adapter_unloaded_meanwhile_degrades_to_the_base_model_in_the_same_request() -> None:
    served, requested = ["base", "answer"], list[str]()
    model = changing(served, requested)
    assert (await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")).missing_adapter == ""
    served.remove("answer")
    completion = await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")
    assert (completion.text, completion.model, completion.missing_adapter) == ("Paris", "base", "answer")
    assert completion.adapter == ""
    assert requested == ["answer", "answer", "base"]
    # What is gone is not asked for again.
    assert (await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")).missing_adapter == "answer"
    assert requested[3:] == ["base"]


async def test_an_adapter_loaded_meanwhile_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGenerator()
    model = generator.llm()
    assert not await model.serves("answer", allow_s=1)
    generator.adapters = ["answer"]
    assert not await model.serves("answer", allow_s=1)
    monkeypatch.setattr("services.kit.llm.MODELS_TTL_S", 0.0)
    assert await model.serves("answer", allow_s=1)
    assert (await model.chat(ASK, max_tokens=5, allow_s=1, adapter="answer")).model == "answer"


async def test_a_server_in_anothers_place_is_noticed_though_its_adapter_has_the_same_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = ["small", "answer"]
    model = changing(served, [])
    await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")
    assert model.model == "small"
    served[0] = "large"
    await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")
    assert model.model == "small"
    monkeypatch.setattr("services.kit.llm.MODELS_TTL_S", 0.0)
    await model.chat(ASK, max_tokens=5, allow_s=5, adapter="answer")
    assert model.model == "large"


async def test_a_tokenizer_is_kept_where_another_model_is_served_now() -> None:
    served = ["small"]

    def reply(request: httpx.Request) -> httpx.Response:
        is_served = json.loads(request.content)["model"] == served[0]
        return httpx.Response(200, json={"tokens": [1, 2]}) if is_served else httpx.Response(404, json={})

    model = serving(served, reply)
    assert await model.count_tokens("Which city is it?", allow_s=5) == 2
    served[0] = "large"
    assert await model.count_tokens("Which city is it?", allow_s=5) == 2
    assert model.model == "large"


@pytest.mark.parametrize(
    ("constraint", "field"),
    [
        (Constraint(choice=("Paris", "Rome")), ("structured_outputs", "choice")),
        (Constraint(regex="[A-Z][a-z]+"), ("structured_outputs", "regex")),
        (Constraint(grammar='root ::= "Paris"'), ("structured_outputs", "grammar")),
        (Constraint(json_schema={"type": "string"}), ("response_format", "json_schema")),
    ],
)
async def test_constraints_travel(constraint: Constraint, field: tuple[str, str]) -> None:
    generator = FakeGenerator(lambda _: '"Paris"' if constraint.json_schema else "Paris")
    await generator.llm().chat(ASK, max_tokens=5, allow_s=1, constraint=constraint)
    assert field[1] in generator.requests[0][field[0]]


@pytest.mark.parametrize("reply", ["Paris", "[" * 100_000])
@pytest.mark.parametrize(
    "constraint",
    [Constraint(choice=("yes", "no")), Constraint(regex=r"\d+"), Constraint(json_schema={"type": "array"})],
)
async def test_a_server_that_ignores_a_constraint_is_found_out(constraint: Constraint, reply: str) -> None:
    with pytest.raises(BadReply):
        await FakeGenerator(lambda _: reply).llm().chat(ASK, max_tokens=5, allow_s=1, constraint=constraint)


COUNTED = '{"choices": [{"message": {"content": "Yes."}}], "usage": {"prompt_tokens": %d}}'


@pytest.mark.parametrize(
    "reply",
    [
        *(b"", b"[]", b"{}", b"\xff", b"[" * 5000, (COUNTED % -1).encode(), (COUNTED % 10**400).encode()),
        *(b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [{"message": 1}]}'),
    ],
)
async def test_hostile_replies_are_bad_replies(reply: bytes) -> None:
    with pytest.raises(BadReply):
        await replying(reply).chat(ASK, max_tokens=5, allow_s=1)


async def test_a_reply_that_the_engines_end_cut_off_is_no_answer() -> None:
    choices = [
        {"message": {"content": text}, "finish_reason": why} for text, why in (("Paris", "stop"), ("P", "abort"))
    ]
    with pytest.raises(ServiceUnavailable, match="aborted"):
        await replying({"model": "m", "choices": choices}).chat(ASK, max_tokens=5, allow_s=1, n=2)


def saying(logprob: float) -> LLM:
    choice = {"message": {"content": "Paris"}, "logprobs": {"content": [{"logprob": logprob}]}}
    return replying({"choices": [choice]})


async def test_a_probability_above_one_is_one_and_what_is_no_number_is_no_reply() -> None:
    empty = await replying({"choices": [{"message": {"content": None}}]}).chat(ASK, max_tokens=5, allow_s=1)
    assert (empty.text, empty.samples[0].logprob) == ("", None)
    completion = await saying(0.5).chat(ASK, max_tokens=5, allow_s=1, logprobs=True)
    assert completion.samples[0].token_logprobs == (0.0,)
    for unheard in (math.nan, -math.inf):
        with pytest.raises(BadReply):
            await saying(unheard).chat(ASK, max_tokens=5, allow_s=1, logprobs=True)


async def test_tokens_are_counted_and_cut_by_the_servers_own_tokenizer() -> None:
    model = FakeGenerator().llm()
    text = "one two three four"
    assert await model.count_tokens(text, allow_s=1) == 7
    assert await model.truncate(text, 3, allow_s=1) == ("one two", 3)
    assert await model.truncate(text, 50, allow_s=1) == (text, 7)


async def test_without_a_tokenizer_tokens_are_estimated_from_above() -> None:
    model = scripted(lambda _: httpx.Response(404))
    text = "The river is long and wide. " * 20
    estimated = await model.count_tokens(text, allow_s=1)
    assert estimated > len(text.split()) * 1.3
    head, count = await model.truncate(text, 10, allow_s=1)
    assert text.startswith(head)
    assert count <= 10
    assert len(head.split()) <= 10
    with pytest.raises(ServiceRejected):
        await scripted(lambda _: httpx.Response(401)).count_tokens("x", allow_s=1)


@pytest.mark.parametrize(
    ("text", "tokens"),
    # By Qwen's tokenizer.
    [
        ("The lighthouse was designed by Marta Lindqvist, who also drew the plans of the customs house.", 22),
        ("| 1901 | 1,240 | 3.14 | 99 |", 24),
        ("港口灯塔由玛尔塔设计，于一八六四年建成。", 16),
        ("Гавань была открыта весной 1864 года компанией купцов.", 22),
        ("افتتح الميناء في ربيع عام 1864 من قبل شركة من التجار.", 21),
    ],
)
def test_an_estimate_is_from_above_and_a_head_keeps_to_it(text: str, tokens: int) -> None:
    assert 0.95 * tokens <= estimate_tokens(text) <= 1.6 * tokens
    for limit in range(-1, 60):
        head = head_by_estimate(text, limit)
        assert text.startswith(head)
        assert not head or estimate_tokens(head) <= limit
        assert head == text or estimate_tokens(text[: len(head) + 1]) > limit


async def test_the_listing_of_models_is_paid_from_the_same_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, allowances = Clock(), list[int]()

    def reply(request: httpx.Request) -> httpx.Response:
        allowances.append(round(int(request.headers["x-deadline-ms"]), -2))
        clock.now += 3
        body = {"choices": [{"message": {"content": "Paris"}}], "tokens": [1], "data": [{"id": "m"}]}
        return httpx.Response(200, json=body)

    monkeypatch.setattr("services.kit.llm.Budget", partial(Budget, clock=clock))
    await scripted(reply).chat(ASK, max_tokens=5, allow_s=50)
    await scripted(reply).count_tokens("x", allow_s=50)
    model = scripted(reply)
    model.model = ""
    await model.count_tokens("x", allow_s=50)
    assert allowances == [50_000, 47_000, 50_000, 50_000, 47_000]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(httpx.Response(200, json={"tokens": []}), id="llama.cpp, which reads `content`"),
        pytest.param(httpx.Response(200, json={"error": "Unexpected endpoint"}), id="LM Studio"),
        pytest.param(httpx.Response(422, json={}), id="TGI, which reads `inputs`"),
        pytest.param(httpx.Response(501), id="not implemented"),
    ],
)
async def test_a_tokenizer_of_another_kind_is_none(reply: httpx.Response, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [reply, httpx.Response(200, json={"tokens": [1, 2]})]
    model = serving(["m"], lambda _: replies[0])
    assert await model.count_tokens("word " * 100, allow_s=1) == 167
    del replies[0]
    assert await model.count_tokens("word " * 100, allow_s=1) == 167
    monkeypatch.setattr(model, "_tokenizer_again_at", 0.0)
    assert await model.count_tokens("word " * 100, allow_s=1) == 2


async def test_a_named_model_needs_no_list_of_models() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(404)
        reply = {"choices": [{"message": {"content": "Yes."}, "logprobs": None}], "usage": None, "model": None}
        return httpx.Response(200, json=reply)

    completion = await scripted(answer).chat(ASK, max_tokens=5, allow_s=1)
    assert (completion.text, completion.prompt_tokens, completion.model) == ("Yes.", 0, "")
    with pytest.raises(ServiceRejected):
        await scripted(answer, model="").chat(ASK, max_tokens=5, allow_s=1)


async def test_a_server_that_comes_back_with_another_model_is_asked_again() -> None:
    served = ["old"]
    model = changing(served, [])
    assert (await model.chat(ASK, max_tokens=5, allow_s=1)).model == "old"
    served[0] = "new"
    with pytest.raises(ServiceRejected):
        await model.chat(ASK, max_tokens=5, allow_s=1)
    assert (await model.chat(ASK, max_tokens=5, allow_s=1)).model == "new"
