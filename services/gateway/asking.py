"""A question at every API of the gateway: its strategy, its options, its answer, its stages as they end."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, TypedDict

from fastapi import Depends

from proto.answer import MAX_BUDGET_S, AnswerRequest, AnswerResponse, Citation, StageEvent
from proto.base import FieldError, Problem
from services.gateway.access import current_caller
from services.gateway.answering import answer
from services.gateway.feedback import Feedback
from services.gateway.health import Health
from services.gateway.mesh import Mesh
from services.gateway.papers.weights import Weights
from services.gateway.places import Places
from services.gateway.run import Listener
from services.gateway.settings import GatewaySettings
from services.gateway.strategies import STRATEGIES, Strategy
from services.kit import app as kit
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import beside
from services.kit.errors import InvalidRequest, MeshError
from services.kit.telemetry import Metrics, log, request_id

if TYPE_CHECKING:
    from services.gateway.batches.runner import Runner

# As the deadline's middleware has it, for faults before a status is sent.
FAULT = "the service failed; its log has the details under this request id"

REPLY_S = 0.05
# Names for documents and facts without an address.
URN = "urn:cragmesh:"

Event = StageEvent | AnswerResponse | Problem


class State(TypedDict):
    """The gateway's parts, for handlers."""

    mesh: Mesh
    settings: GatewaySettings
    metrics: Metrics
    paper_weights: Weights
    health: Health
    feedback: Feedback
    places: Places
    # A forward reference: SQLAlchemy takes 20 MB, which a gateway without batches does without.
    batches: "Runner | None"


def seconds_left() -> float:
    """Seconds for a call to a service: until the request's deadline, less REPLY_S to report its failure."""
    return max(0.0, (current_budget.get() or Budget(MAX_BUDGET_S)).left() - REPLY_S)


Given = Annotated[State, Depends(kit.state_of)]


def strategy_of(body: AnswerRequest, state: State) -> Strategy:
    """The strategy that a request names, or the default one.

    Raises:
        InvalidRequest: there is none of that name, or it ignores an option, so that its answer would pass for an
            ablation's.
        Overloaded: the generator, with the questions in flight, would be too late for it.
    """
    strategy = STRATEGIES.get(body.strategy or state["settings"].default_strategy)
    if strategy is None:
        names = ", ".join(sorted(STRATEGIES))
        raise InvalidRequest(
            "no strategy of that name",
            errors=(FieldError(field="strategy", message="no strategy of that name", limit=f"one of {names}"),),
        )
    if unheeded := sorted(body.options.given - strategy.options):
        limit = f"one of {', '.join(sorted(strategy.options))}" if strategy.options else "no option at all"
        raise InvalidRequest(
            f"{strategy.name} has no such knob",
            errors=tuple(
                FieldError(field=f"options.{name}", message=f"not heeded by {strategy.name}", limit=limit)
                for name in unheeded
            ),
        )
    state["mesh"].speed.require(min(body.budget_s, seconds_left()))
    return strategy


async def answered(
    body: AnswerRequest, strategy: Strategy, state: State, listener: Listener = lambda _: None
) -> AnswerResponse:
    """The answer within the request's budget, remembered for feedback."""
    response = await answer(body, strategy, state, listener)
    generator = state["mesh"].weighing(state["settings"]).generator
    state["feedback"].remember(current_caller.get(), body, response, generator)
    return response


async def events(body: AnswerRequest, strategy: Strategy, state: State) -> AsyncIterator[Event]:
    """Stages as they start and end, then the answer, or a problem where the gateway failed.

    Closing the iterator, as a client does that hangs up, cancels the answer.
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
    """A source's name, with its page number if it has one."""
    name = citation.page_name or citation.document or citation.source
    return f"{name}, p. {citation.page_number}" if citation.page_number else name


def address_of(citation: Citation) -> str:
    """A source's address, with its page number if it has one; a URN where it has no address."""
    if citation.page_url:
        # As viewers of PDF open a page.
        return f"{citation.page_url}#page={citation.page_number}" if citation.page_number else citation.page_url
    return f"{URN}document:{citation.document}" if citation.document else f"{URN}{citation.source}:{citation.page}"
