"""What every door of the gateway does with a question: its strategy, its knobs, its answer, its stages as they end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, TypedDict

from fastapi import Depends

from proto.answer import MAX_BUDGET_S, AnswerRequest, AnswerResponse, Citation, StageEvent
from proto.base import FieldError, Problem
from services.gateway.access import current_caller
from services.gateway.answering import answer
from services.gateway.batches import Batches
from services.gateway.feedback import Feedback
from services.gateway.health import Health
from services.gateway.mesh import Mesh
from services.gateway.observe import observe
from services.gateway.papers.strategy import Papers
from services.gateway.run import Listener
from services.gateway.settings import GatewaySettings
from services.gateway.strategies import Strategy
from services.kit import app as kit
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import beside
from services.kit.errors import InvalidRequest, MeshError, UnknownStrategy
from services.kit.telemetry import Metrics, log, request_id

# As the deadline's middleware says it of what fails before a status is sent.
FAULT = "the service failed; its log has the details under this request id"

REPLY_S = 0.05
# Where a document or a fact has no address, clients get a name in its place.
URN = "urn:cragmesh:"

Event = StageEvent | AnswerResponse | Problem


class State(TypedDict):
    """What handlers get."""

    mesh: Mesh
    strategies: dict[str, Strategy]
    settings: GatewaySettings
    metrics: Metrics
    papers: Papers
    health: Health
    feedback: Feedback
    batches: Batches | None


def left() -> float:
    """Seconds that a service has: until the request's deadline, less those in which its failure is told."""
    return max(0.0, (current_budget.get() or Budget(MAX_BUDGET_S)).left() - REPLY_S)


Given = Annotated[State, Depends(kit.state_of)]


def chosen(body: AnswerRequest, state: State) -> Strategy:
    """The strategy that a request names, or the default one.

    Raises:
        UnknownStrategy: there is none of that name.
        InvalidRequest: it does not heed an option; its answer would be taken for an ablation's.
        Overloaded: beside those on their way, the generator would not be in time for it.
    """
    strategy = state["strategies"].get(body.strategy or state["settings"].default_strategy)
    if strategy is None:
        known = ", ".join(sorted(state["strategies"]))
        raise UnknownStrategy(
            "no strategy of that name",
            errors=(FieldError(field="strategy", message="no strategy of that name", limit=f"one of {known}"),),
        )
    if unheeded := sorted(body.options.given - strategy.options):
        limit = f"of {', '.join(sorted(strategy.options))}"
        raise InvalidRequest(
            f"{strategy.name} has no such knob",
            errors=tuple(
                FieldError(field=f"options.{name}", message=f"not heeded by {strategy.name}", limit=limit)
                for name in unheeded
            ),
        )
    state["mesh"].speed.require(min(body.budget_s, left()))
    return strategy


async def answered(
    body: AnswerRequest, strategy: Strategy, state: State, listener: Listener = lambda _: None
) -> AnswerResponse:
    """The answer, within the request's budget, counted.

    Args:
        listener: told of every stage as it starts and ends.
    """
    response = await observed(body, strategy, state, listener)
    generator = state["mesh"].weighing(state["settings"]).generator
    state["feedback"].remember(current_caller.get(), body, response, generator)
    return response


async def observed(
    body: AnswerRequest, strategy: Strategy, state: State, listener: Listener = lambda _: None
) -> AnswerResponse:
    """As `answered`, of a question that nobody can give a verdict on."""
    arrived = current_budget.get() or Budget(body.budget_s)
    response = await answer(
        body, strategy, state["mesh"], state["settings"], state["metrics"], arrived=arrived, listener=listener
    )
    observe(state["metrics"], response, arrived.within(body.budget_s))
    return response


async def events(body: AnswerRequest, strategy: Strategy, state: State) -> AsyncIterator[Event]:
    """Stages as they start and end, then the answer, or a problem where the gateway failed.

    When the iterator is closed, as it is when a client hangs up, the answer's making is cancelled.
    """
    queue: asyncio.Queue[Event] = asyncio.Queue()

    async def produce() -> None:
        try:
            response = await answered(body, strategy, state, queue.put_nowait)
        except Exception as error:
            log.error("stream failed", strategy=strategy.name, error=type(error).__name__, exc_info=error)
            fault = error if isinstance(error, MeshError) else MeshError(FAULT)
            queue.put_nowait(fault.problem(request_id()))
        else:
            queue.put_nowait(response)

    async with beside(produce()):
        event: Event | None = None
        while event is None or isinstance(event, StageEvent):
            event = await queue.get()
            yield event


def title_of(citation: Citation) -> str:
    """A source's name, with the page of a document that has pages."""
    name = citation.page_name or citation.source
    return f"{name}, p. {citation.page_number}" if citation.page_number else name


def address_of(citation: Citation) -> str:
    """A source's address, a document's at the page; a name where it has none."""
    if citation.page_url:
        # As viewers of PDF open a page.
        return f"{citation.page_url}#page={citation.page_number}" if citation.page_number else citation.page_url
    return f"{URN}document:{citation.document}" if citation.document else f"{URN}{citation.source}:{citation.page}"
