"""What every request has in common: a run that ends before its answer is due, and an end that comes in any case."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from services.gateway.run import Listener, Run
from services.gateway.settings import GatewaySettings
from services.gateway.speed import GeneratorSpeed, current_sharing
from services.gateway.trace import Recorder
from services.kit.budget import Budget
from services.kit.errors import InvalidRequest
from services.kit.telemetry import log

# A short budget gives up less of itself to the margin.
MARGIN_SHARE = 0.2


def begin(
    arrived: Budget,
    budget_s: float,
    settings: GatewaySettings,
    *,
    listener: Listener = lambda _: None,
    recorder: Recorder | None = None,
) -> Run:
    """A run that leaves the margin for writing the answer.

    Args:
        arrived: the budget that began when the request arrived.
        budget_s: what the request gives itself.
    """
    margin_s = min(settings.safety_margin_s, MARGIN_SHARE * budget_s)
    due = arrived.within(budget_s)
    return Run(budget=due.within(due.total_s - margin_s), listener=listener, recorder=recorder)


@contextlib.asynccontextmanager
async def in_time(run: Run, speed: GeneratorSpeed, *, task: str) -> AsyncIterator[None]:
    """End the block with the run's budget; what cut it short is named in `degraded` and goes no further.

    The block counts as a request that needs the engine, and the speed learns what it has cost it.

    Args:
        task: its name in the log.

    Raises:
        InvalidRequest: the block found a fault of the caller.
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
            # A fault of ours: the caller still gets an honest answer in time, and the log the traceback.
            log.error("cut short by a fault", task=task, error=type(error).__name__, exc_info=error)
            run.degrade("gateway", "error", type(error).__name__)
        # An engine that refuses every call tells nothing; one that is too slow for any tells all.
        if run.generating_s and (run.llm_calls or any(item.reason == "timeout" for item in run.degraded)):
            # While it was prepared the engine worked on those before it; a service that hangs is not the engine.
            speed.observe_question(min(run.budget.elapsed_ms() / 1000, 2 * run.generating_s), sharing)
