"""The response to a request, before its deadline: the strategy runs within the budget, and the best answer leaves."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from proto.answer import AnswerRequest, AnswerResponse, Turn
from services.gateway.context import Context
from services.gateway.deadline import budget_of, in_time
from services.gateway.evidence import Evidence
from services.gateway.observe import observe, observe_stages
from services.gateway.question import Question
from services.gateway.run import Draft, Listener, Run
from services.gateway.steps.classify import classify
from services.gateway.steps.condense import condense
from services.gateway.strategies import Strategy
from services.gateway.trace import Recorder
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import all_of
from services.kit.telemetry import log, request_id

if TYPE_CHECKING:
    from services.gateway.asking import State


async def answer(
    request: AnswerRequest, strategy: Strategy, state: "State", listener: Listener = lambda _: None
) -> AnswerResponse:
    """The answer before the deadline, whatever fails: at worst "i don't know", with the reasons in `degraded`."""
    settings, metrics = state["settings"], state["metrics"]
    arrived = current_budget.get() or Budget(request.budget_s)
    recorder = Recorder() if request.trace else None
    run = Run(budget_of(arrived, request.budget_s, settings), listener, recorder)
    context = Context(_question(request), run, state["mesh"], settings)
    draft = await _run(strategy, context, request.turns)
    observe_stages(metrics, run)
    log.info(
        "answered",
        kind=draft.kind,
        source=draft.source,
        degraded=[f"{item.stage}={item.reason}" for item in run.degraded],
        left_ms=round(run.budget.left() * 1000),
    )
    response = AnswerResponse(
        answer=draft.answer,
        kind=draft.kind,
        query="" if run.query == request.query else run.query,
        confidence=draft.confidence,
        source=draft.source,
        citations=tuple(item.citation() for item in draft.evidence),
        candidates=draft.candidates if draft.kind == "unknown" else (),
        classification=run.classification,
        kg=run.kg,
        signals=run.signals,
        degraded=tuple(run.degraded),
        timings=run.timings,
        usage=run.usage,
        strategy=strategy.name,
        generator=draft.generator,
        request_id=request_id(),
        interaction_id=request.interaction_id,
        trace=recorder.trace() if recorder else None,
    )
    observe(metrics, response, arrived.within(request.budget_s))
    return response


async def _run(strategy: Strategy, context: Context, turns: Sequence[Turn]) -> Draft:
    run = context.run
    run.query = context.question.query
    async with in_time(run, context.mesh.speed, task=strategy.name):
        if turns:
            run.query = await condense(context, turns)
            context = replace(context, question=replace(context.question, query=run.query))
        classifying = classify(context, min_domain_certainty=strategy.min_domain_certainty(context.settings))
        draft, _ = await all_of((strategy.answer(context), classifying))
        return _without_verdict(draft or run.best, context)
    return _without_verdict(run.best, context)


def _without_verdict(draft: Draft, context: Context) -> Draft:
    """The draft; an abstention where it calls the question invalid and the request wants no such verdict."""
    if draft.kind != "invalid_question" or context.options.false_premise is not False:
        return draft
    return draft.withheld()


def _question(request: AnswerRequest) -> Question:
    return Question(
        query=request.query,
        query_time=request.query_time or datetime.now(UTC),
        search_results=request.search_results,
        search=request.search,
        collections=request.all_collections,
        filters=request.filters,
        evidence=tuple(Evidence(text=text, page=index) for index, text in enumerate(request.evidence) if text.strip()),
        every_answer=request.every_answer,
        options=request.options,
    )
