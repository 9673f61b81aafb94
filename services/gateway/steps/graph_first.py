"""The order of db3 (sections 2.2 to 2.4): the graph's answer, else one from the web; in task 1, which has no graph,
records of the question's entities before the web's passages."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Draft
from services.gateway.steps.ask import Allowance
from services.gateway.steps.public_data import public_data
from services.gateway.steps.reason import origin
from services.gateway.steps.retrieve import Retrieval, reranked
from services.kit.concurrency import all_of, prefer


async def graph_first(
    context: Context,
    retrieval: Retrieval,
    *,
    from_graph: Callable[[Context], Coroutine[Any, Any, Draft | None]],
    read: Callable[[Context, Sequence[Evidence]], Awaitable[Draft]],
) -> Draft:
    """The first answer in this order; evidence that came with the question is read alone."""
    if context.question.evidence:
        return await read(context, context.question.evidence)
    if context.settings.db3_public_data and context.options.kg != "off":
        records, passages = await all_of((_records(context), reranked(context, retrieval)))
        draft = await read(context, [*records, *passages])
        of_records = draft.kind == "answer" and origin(draft.answer, draft.evidence) == "public_data"
        return replace(draft, source="public_data") if of_records else draft
    first = await prefer(from_graph(context), reranked(context, retrieval), decided=context.run.settle)
    return first if isinstance(first, Draft) else await read(context, first)


async def unasked_last(
    context: Context, draft: Draft, *, from_graph: Callable[..., Coroutine[Any, Any, Draft | None]]
) -> Draft:
    """The draft, or in place of an abstention the answer of a domain that nothing says the question belongs to.

    "Who left this year?" names nothing of anybody's tables. `from_graph` is told which domain to look it up in.
    """
    facts = context.run.kg
    if draft.kind != "unknown" or facts is None or not facts.unasked:
        return draft
    context.run.hold(draft)
    context.run.plan("kg", f"nothing else answers, so the tables of {facts.unasked} are asked")
    return await from_graph(context, domain=facts.unasked) or draft


async def _records(context: Context) -> list[Evidence]:
    allow_s = context.before_generation(context.settings.kg_cap_s)
    return await public_data(context, Allowance(allow_s, context.run.budget.left() - allow_s))
