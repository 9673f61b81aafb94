"""Step `kg`: facts of the knowledge graph, and an answer from them alone (db3, section 2.3)."""

from dataclasses import replace

from proto.kg import KgMode, KgRequest, KgResponse
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.steps.generate import read_and_answer
from services.kit.errors import ServiceFailure
from services.kit.prompts import Prompt

# What a program that found something ends with.
FOUND = frozenset({"ok", "stale"})
TITLE = "knowledge graph"


async def look_up(
    run: Run, mesh: Mesh, question: Question, *, allow_s: float, max_tokens: int, mode: KgMode = "auto"
) -> KgResponse | None:
    """Facts in the domain that the question was classified into; None when the service failed."""
    await run.classified.wait()
    request = KgRequest(
        query=question.query,
        query_time=question.query_time,
        domain=run.classification.domain,
        mode=mode,
        max_tokens=max_tokens,
    )
    try:
        async with run.stage("kg") as stage:
            response = await mesh.query_kg(request, allow_s=allow_s)
            stage.of(response.timing)
            stage.detail = f"{response.status}: {response.program}"[:500]
    except ServiceFailure:
        return None
    run.kg = response
    run.llm_calls += response.llm_calls
    run.prompt_tokens += response.prompt_tokens
    run.completion_tokens += response.completion_tokens
    return response


def as_evidence(response: KgResponse) -> Evidence:
    """The facts as a document among others."""
    until = f", known until {response.as_of}" if response.as_of else ""
    return Evidence(text=response.text, page=0, page_name=f"{TITLE}{until}", source="kg")


def no_such_event(run: Run, facts: KgResponse) -> bool:
    """Whether the question is about a game that did not take place."""
    return facts.status == "no_event" and run.classification.domain == "sports"


def answers(run: Run, facts: KgResponse) -> bool:
    """Whether facts were found, and are not too old for a question about this moment."""
    late = facts.status == "stale" and run.classification.dynamism == "real-time"
    return facts.status in FOUND and not late


async def answer_from_facts(
    run: Run, mesh: Mesh, prompt: Prompt, question: Question, facts: KgResponse, *, max_tokens: int, adapter: str
) -> Draft | None:
    """The answer that the facts give; None where they give none and other sources must.

    A day without the game that is asked about makes the question false (db3, section 2.3: "no match" is answered with
    "invalid question"). Facts that end before a real-time question do not answer it.
    """
    if no_such_event(run, facts):
        return Draft(INVALID, "invalid_question", 1.0, "kg", (as_evidence(facts),))
    if not answers(run, facts):
        return None
    draft = await read_and_answer(
        run,
        mesh,
        prompt,
        question.query,
        question.query_time,
        [as_evidence(facts)],
        max_context_tokens=max_tokens + 100,
        max_tokens=75,
        adapter=adapter,
    )
    # Only a match that did not take place shows by itself that a question is false; else the web has the next word.
    return replace(draft, source="kg") if draft.kind == "answer" else None
