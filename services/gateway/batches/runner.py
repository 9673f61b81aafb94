"""Answers batches: each request takes a place of the idle lane, and gives it back to a caller that comes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from services.gateway import calibration
from services.gateway.access import Scope, current_caller, current_scope
from services.gateway.batches.lane import GaveWay, IdleLane, MeshLane
from services.gateway.batches.store import TRIES, Item, Store
from services.gateway.batches.wire import reply_line
from services.gateway.openai.errors import error_of
from services.gateway.openai.wire import ChatRequest, of_body
from services.gateway.settings import GatewaySettings
from services.gateway.shared import SharedStore
from services.gateway.steps.generate import ADAPTER_STAGE
from services.kit.admission import Admission
from services.kit.app import invalid
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import beside
from services.kit.errors import MeshError, Unauthorized, Unavailable
from services.kit.telemetry import TraceContext, current_trace, log, request_id

# Between two looks at an idle database, to which other gateways may have written.
POLL_S = 10.0
# Between two looks for what has expired, however busy the mesh is.
SWEEP_S = 60.0
# Reasons of `degraded` that pass.
PASSING = frozenset({"unavailable", "overloaded"})
# Statuses that pass: the engine has too much to do, or a service was away.
BUSY = frozenset({429, 503, 504})

# The completion of a request, as `/v1/chat/completions` gives it.
Complete = Callable[[ChatRequest], Awaitable[dict[str, Any]]]
ScopeOf = Callable[[str], Awaitable[Scope | None]]


@asynccontextmanager
async def opened(
    settings: GatewaySettings, admission: Admission, shared: SharedStore, complete: Complete, scope_of: ScopeOf
) -> AsyncIterator["Runner"]:
    """A store of batches by the settings, and its runner, which answers them while the context is open."""
    store = Store(settings.batches_database, max_bytes=settings.batches_mib * 2**20, days=settings.batches_days)
    runner = Runner(store, MeshLane(admission, settings.batches_level, shared), complete, scope_of)
    try:
        async with runner.running():
            yield runner
    finally:
        await asyncio.to_thread(store.close)


class Runner:
    """Answers the requests of a store while the gateway runs.

    Args:
        complete: answers one.
        scope_of: the scope of a key at present; None where it has been revoked.
    """

    def __init__(self, store: Store, lane: IdleLane, complete: Complete, scope_of: ScopeOf) -> None:
        self.store = store
        self._lane = lane
        self._complete = complete
        self._scope_of = scope_of
        self._wake_up = asyncio.Event()

    def wake(self) -> None:
        """Look for requests now."""
        self._wake_up.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with beside(self._run()), beside(self._sweep()):
            yield

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._lane.wait()
                self._wake_up.clear()
                if item := await self._next():
                    group.create_task(self._serve(item))
                    # It takes its place in the lane before the next one is looked for.
                    await asyncio.sleep(0)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._wake_up.wait()

    async def _next(self) -> Item | None:
        # A database that is away is in the log, and may be back at the next look.
        with contextlib.suppress(Unavailable):
            return await self.store.call(self.store.take)
        return None

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                await self.store.call(self.store.sweep)
            await asyncio.sleep(SWEEP_S)

    async def _serve(self, item: Item) -> None:
        # A reply that cannot be written is in the log, and its lease ends by itself.
        with contextlib.suppress(Unavailable):
            try:
                async with self._lane.place():
                    status, body = await self._answer(item)
            except GaveWay:
                await self.store.call(self.store.give_back, item, failed=False)
                self.wake()
                return
            if (status in BUSY or _is_incomplete(body)) and item.tries + 1 < TRIES:
                await self.store.call(self.store.give_back, item, failed=True)
                return
            line = reply_line(item.custom_id, item.number, status, request_id(), body)
            await self.store.call(self.store.finish, item, line, good=status == 200)

    async def _answer(self, item: Item) -> tuple[int, dict[str, Any]]:
        """A status and a body, as `/v1/chat/completions` would give them to the batch's owner now."""
        current_trace.set(TraceContext.from_headers({}))
        try:
            scope = await self._scope_of(item.owner)
            if scope is None or "ask" not in scope.rights:
                raise Unauthorized("the key that made this batch may ask no more")
            current_scope.set(scope)
            current_caller.set(item.owner)
            request = _request(item.body)
            current_budget.set(Budget(request.budget_s))
            return 200, await self._complete(request)
        except MeshError as error:
            problem = error.problem(request_id())
        except RequestValidationError as error:
            problem = invalid(error)
        except Exception as error:
            log.error("batch request failed", error=type(error).__name__, exc_info=error)
            problem = MeshError("the service failed; its log has the details").problem(request_id())
        return problem.status, error_of(problem.model_dump(mode="json"))


def _request(body: str) -> ChatRequest:
    try:
        return ChatRequest.model_validate_json(body).model_copy(update={"stream": False})
    except ValidationError as error:
        raise of_body(error, json.loads(body)) from error


def _is_incomplete(body: dict[str, Any]) -> bool:
    """Whether the answer lacks a service that will be back; a confidence or an adapter that is not there will not."""
    degraded = body.get("cragmesh", {}).get("degraded", ())
    return any(item["reason"] in PASSING and not _is_lasting(item["stage"]) for item in degraded)


def _is_lasting(stage: str) -> bool:
    return stage == calibration.STAGE or stage.startswith(ADAPTER_STAGE)
