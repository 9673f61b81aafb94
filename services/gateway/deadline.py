"""The deadline of a request: a run that ends before its answer is due, whatever fails."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.speed import GeneratorSpeed, current_sharing
from services.kit.budget import Budget
from services.kit.errors import InvalidRequest
from services.kit.telemetry import log

# The greatest share of a short budget that the margin takes.
MARGIN_SHARE = 0.2


def budget_of(arrived: Budget, budget_s: float, settings: GatewaySettings) -> Budget:
    """A request's own budget since it arrived, without the margin for writing the response."""
    due = arrived.within(budget_s)
    return due.within(due.total_s - min(settings.safety_margin_s, MARGIN_SHARE * budget_s))


@contextlib.asynccontextmanager
async def in_time(run: Run, speed: GeneratorSpeed, *, task: str) -> AsyncIterator[None]:
    """End the block with the run's budget; a time-out or a fault is named in `degraded` and not raised.

    The block counts as a request that needs the engine, whose speed learns from its cost.

    Args:
        task: its name in the log.

    Raises:
        InvalidRequest: the fault is the caller's.
    """
    with speed.request():
        sharing = current_sharing.get() or speed.sharing
        try:
            async with asyncio.timeout(run.budget.left()):
                yield
        except TimeoutError:
            run.degrade("gateway", "timeout", f"the budget of {run.budget.total_s:.1f} s was not enough")
        except InvalidRequest:
            raise
        except Exception as error:
            # Our own fault: the caller still gets an answer in time.
            log.error("cut short by a fault", task=task, error=type(error).__name__, exc_info=error)
            run.degrade("gateway", "error", type(error).__name__)
        # Nothing is learnt from an engine that refused every call, but from one that was too slow for any.
        if run.generating_s and (run.usage.llm_calls or any(item.reason == "timeout" for item in run.degraded)):
            # During its preparation the engine worked on earlier questions; the bound leaves out services that hang.
            speed.observe_question(min(run.budget.elapsed_ms() / 1000, 2 * run.generating_s), sharing)
