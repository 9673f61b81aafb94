"""Step `calculate`: when it asks, what it believes, what it hands on."""

from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from services.gateway.calculator.decoding import GRAMMAR
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance
from services.gateway.steps.calculate import calculate
from services.kit.client import http_client
from tests.mesh.fakes import FakeGenerator, Faulty

pytestmark = pytest.mark.anyio

AT = datetime(2024, 2, 28, 10, 4, tzinfo=UTC)
QUESTION = Question("by how much did the toll rise between 2016 and 2018, in percent?", AT)
TOLLS = Evidence(
    "The toll was $4.20 in 2016 and $5.25 in 2018. The keeper was born on 30 July 1961.", 3, page_name="Bridge"
)
WORDS = Evidence("The bridge is said to be haunted.", 1, page_name="Legends")


@pytest.fixture
def context(context: Context) -> Context:
    return replace(context, question=QUESTION)


async def step(context: Context, evidence: tuple[Evidence, ...] = (TOLLS,)) -> list[str]:
    references = await calculate(context, evidence, Allowance(20))
    assert all((item.source, item.page_name) == ("calculator", "calculation") for item in references)
    assert all(item.citation().source == "calculator" for item in references)
    return [item.text for item in references]


async def test_values_become_references(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "rise of the toll = pct_change($4.20, $5.25)\ndearer = 5.25 > 4.20"
    assert await step(context) == ["rise of the toll: pct_change($4.20, $5.25) = 25 %", "dearer: 5.25 > 4.20 is true"]
    body = generator.requests[0]
    assert body["structured_outputs"] == {"grammar": GRAMMAR}
    assert TOLLS.text in body["messages"][1]["content"]
    assert body["messages"][1]["content"].endswith(f"Question: {QUESTION.query}")
    assert context.run.usage.llm_calls == 1


@pytest.mark.parametrize(
    ("reply", "results"),
    [
        ("a = 5.25 - 4.20\nb = 5.25 - 3.75", ["a: 5.25 - 4.20 = 1.05"]),
        ("a = mean(4.20, 4.80, 5.25)", []),
        ("a = (4.20 + 5.25) / 2", ["a: (4.20 + 5.25) / 2 = 4.725"]),
        (
            'age = years_between("1961-07-30", "2024-02-28")',
            ['age: years_between("1961-07-30", "2024-02-28") = 62 years'],
        ),
        ('age = years_between("1961-07-31", "2024-02-28")', []),
        ("toll = $5.25", []),
        ("a = 5.25 / (4.20 - 4.20)", []),
        ("a = 5.25 - 4.20\na = 5.25 - 4.20", ["a: 5.25 - 4.20 = 1.05"]),
        ('a = __import__("os").system("id")', []),
        ("The toll rose by 25 %.", []),
        ("none", []),
        ("", []),
    ],
)
async def test_replies_are_not_believed(
    context: Context, generator: FakeGenerator, reply: str, results: list[str]
) -> None:
    generator.reply = lambda _: reply
    assert await step(context) == results


async def test_what_was_left_out_is_told(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "a = 5.25 - 3.75\nb = 5.25 / (4.20 - 4.20)\nc"
    assert await step(context) == []
    assert context.run.recorder is not None
    decisions = [event.detail for event in context.run.recorder.trace().events if event.kind == "decision"]
    assert decisions
    for word in ("ungrounded: 3.75", "division by zero", "without label"):
        assert word in decisions[-1]


@pytest.mark.parametrize(
    ("query", "evidence"),
    [
        ("who keeps the bridge?", (TOLLS,)),
        ("why did the toll rise by 25 percent?", (TOLLS,)),
        ("what is the difference between the bridges?", (WORDS,)),
        ("what is the average toll?", ()),
    ],
)
async def test_no_call_is_spent_where_there_is_nothing_to_calculate(
    context: Context, generator: FakeGenerator, query: str, evidence: tuple[Evidence, ...]
) -> None:
    assert await step(replace(context, question=Question(query, AT)), evidence) == []
    assert generator.requests == []
    assert context.run.degraded == []


async def test_documents_without_a_figure_are_not_read(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "none"
    await step(context, (WORDS, TOLLS))
    assert WORDS.text not in generator.requests[0]["messages"][1]["content"]


async def test_a_question_may_bring_its_own_figures(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "product = 17 * 23"
    assert await step(replace(context, question=Question("what is 17 * 23?", AT)), ()) == ["product: 17 * 23 = 391"]


async def test_it_is_skipped_and_named_where_time_is_short(context: Context, generator: FakeGenerator) -> None:
    assert await calculate(context, [TOLLS], Allowance(0.5)) == []
    assert generator.requests == []
    assert [(item.stage, item.reason) for item in context.run.degraded] == [("calculate", "skipped")]


async def test_a_generator_that_fails_costs_the_calculation_alone(context: Context, generator: FakeGenerator) -> None:
    app = Faulty(generator.app)
    app.fault = "503"
    async with http_client(httpx.ASGITransport(app)) as http:
        assert await step(replace(context, mesh=Mesh.connect(GatewaySettings(), http))) == []
    assert {item.stage for item in context.run.degraded} == {"generator"}
