"""From a question to a ranking that always comes: each step adds to the pool, which is ranked when time is up.

The published order is enhancement, one search, re-scoring. Here the question as it stands is searched while the
generator writes: so there is a ranking after a fraction of a second, and its best documents give the feedback.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from proto.base import FieldError
from proto.papers import Paper, PaperScore, PapersRequest, PapersResponse
from services.gateway.context import Context
from services.gateway.deadline import budget_of, in_time
from services.gateway.observe import observe_cost, observe_stages
from services.gateway.papers import clean
from services.gateway.papers.candidates import Candidate, Pool, rescore, search
from services.gateway.papers.enhance import Prompts, enhance
from services.gateway.papers.ensemble import rank
from services.gateway.papers.feedback import DOCUMENTS, feedback_words
from services.gateway.papers.query_forms import ANSWER, FEEDBACK, KEYWORDS, QUESTION, Form, appended
from services.gateway.papers.weights import EQUAL, Weights
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.steps.ask import Allowance
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import all_of
from services.kit.errors import InvalidRequest, ServiceFailure, ServiceRejected
from services.kit.llm import NOT_FOUND
from services.kit.telemetry import log, request_id

if TYPE_CHECKING:
    from services.gateway.asking import State

# Of the enhanced forms' search; the rest of the reserve is the re-scoring's.
SEARCH_CAP_S = 6.0
PROMPTS = Prompts.read()
# Reserved by a search for the steps after it, and by the last step for the ranking itself.
RANK_RESERVE_S = 0.1


class NothingFound(Exception):
    """The collection holds nothing for the question, so there is nothing to enhance for."""


@dataclass(slots=True)
class Retrieval:
    """The state of one request.

    Attributes:
        forms: the question's forms, the question itself among them; where others are given, none is written.
    """

    collection: str
    forms: dict[Form, str]
    pool: Pool = field(default_factory=Pool)


async def find_papers(request: PapersRequest, state: "State") -> PapersResponse:
    """A ranking before the deadline, whatever happens: at worst an empty one, with the reason in `degraded`.

    Raises:
        InvalidRequest: the retriever has no collection of that name.
        Overloaded: the generator, with the questions in flight, would be too late for it.
    """
    mesh, settings, weights = state["mesh"], state["settings"], state["paper_weights"]
    arrived = current_budget.get() or Budget(request.budget_s)
    mesh.speed.require(arrived.within(request.budget_s).left())
    run = Run(budget_of(arrived, request.budget_s, settings))
    text = clean.question(request.query, request.body)
    context = Context(Question(text, datetime.now(UTC), filters=request.filters), run, mesh, settings)
    retrieval = Retrieval(request.collection, {QUESTION: text})
    # Weights that were tuned without a generator give its forms none: it need not be waited for.
    enhanced = request.enhance and weights.counts(KEYWORDS, ANSWER)
    async with in_time(run, mesh.speed, task="papers"):
        await gather(context, PROMPTS, retrieval, enhanced=enhanced, rescored=request.rescore)
    response = PapersResponse(
        papers=await asyncio.to_thread(ranking, retrieval.pool, weights, request.top_n),
        forms={str(form): text for form, text in retrieval.forms.items()},
        degraded=tuple(run.degraded),
        timings=run.timings,
        usage=run.usage,
        elapsed_ms=round(arrived.elapsed_ms(), 1),
        request_id=request_id(),
    )
    observe_stages(state["metrics"], run)
    observe_cost(state["metrics"], response.usage)
    log.info(
        "ranked",
        papers=len(response.papers),
        forms=list(response.forms),
        degraded=[f"{item.stage}={item.reason}" for item in response.degraded],
        left_ms=round(arrived.left() * 1000),
    )
    return response


async def gather(
    context: Context, prompts: Prompts, retrieval: Retrieval, *, enhanced: bool = True, rescored: bool = True
) -> None:
    """Fill the pool: search, enhance, feed back, search again, re-score. A failing step is named, the others go on.

    Raises:
        InvalidRequest: the retriever has no collection of that name.
    """
    settings, budget = context.settings, context.run.budget
    steps = [_first_search(context, retrieval)]
    if enhanced and len(retrieval.forms) == 1:
        allowance = Allowance(settings.papers_enhance_cap_s, settings.papers_reserve_s)
        steps.append(enhance(context, prompts, retrieval.forms, allowance))
    try:
        await all_of(steps)
    except (ServiceFailure, NothingFound):
        log.info("nothing to rank")
        return
    try:
        retrieval.forms |= await asyncio.to_thread(_feedback, retrieval.pool, context.question.query)
        further = {form: text for form, text in retrieval.forms.items() if form != QUESTION}
        allow_s = budget.allow(SEARCH_CAP_S, reserve_s=RANK_RESERVE_S)
        await search(context, "search_forms", retrieval.pool, retrieval.collection, further, allow_s=allow_s)
    except ServiceFailure:
        log.info("no lists for the further forms")
    if not rescored:
        return
    best = await asyncio.to_thread(_best, retrieval.pool, settings.papers_rescored)
    allow_s = budget.allow(settings.papers_rescore_cap_s, reserve_s=RANK_RESERVE_S)
    try:
        await rescore(context, retrieval.pool, best, allow_s=allow_s)
    except ServiceFailure:
        log.info("not re-scored")


def ranking(pool: Pool, weights: Weights, top_n: int) -> tuple[Paper, ...]:
    """The best documents, each with every score that made its rank."""
    ranks = [{id: place for place, id in enumerate(listing.scores, 1)} for listing in pool.lists]
    papers = []
    for name, total in list(rank(pool, weights).items())[:top_n]:
        candidate = pool.candidates[name]
        scores = tuple(
            PaperScore(
                source=listing.source,
                form=listing.form,
                rank=rank_of.get(name, 0),
                score=listing.scores.get(name, 0.0),
                weight=weights.of(listing.source, listing.form, listing.role),
            )
            for listing, rank_of in zip(pool.lists, ranks, strict=True)
        )
        texts = {"title": candidate.title, "url": candidate.url, "text": candidate.text}
        papers.append(Paper(id=name, **texts, score=total, scores=scores))
    return tuple(papers)


async def _first_search(context: Context, retrieval: Retrieval) -> None:
    run, forms = context.run, {QUESTION: context.question.query}
    allow_s = run.budget.allow(context.settings.retrieve_cap_s, reserve_s=RANK_RESERVE_S)
    try:
        await search(context, "search", retrieval.pool, retrieval.collection, forms, allow_s=allow_s)
    except ServiceFailure as failure:
        # Without a first search no further forms are needed: that they are cut short is no fault of theirs.
        run.settle()
        if isinstance(failure, ServiceRejected) and failure.status == NOT_FOUND:
            error = FieldError(field="collection", message="no collection of that name")
            raise InvalidRequest("no collection of that name", errors=(error,)) from failure
        raise
    if not retrieval.pool.candidates:
        run.settle()
        run.degrade("search", "empty", "the collection has no documents")
        raise NothingFound


def _feedback(pool: Pool, question: str) -> dict[Form, str]:
    ranked = [pool.candidates[name].passage for name in rank(pool, EQUAL)]
    words = feedback_words(ranked[:DOCUMENTS], ranked[DOCUMENTS:])
    return {FEEDBACK: appended(question, " ".join(words))} if words else {}


def _best(pool: Pool, count: int) -> Sequence[Candidate]:
    return [pool.candidates[name] for name in list(rank(pool, EQUAL))[:count]]
