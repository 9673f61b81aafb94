"""The client of the CRAG mock API."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure, ServiceRejected
from services.kit.telemetry import log

# Requests at a time; the mock API answers one after the other.
CONCURRENCY = 16
# For one request; searches scan the whole corpus.
CALL_CAP_S = 5.0
# For putting and indexing the results.
RESERVE_S = 0.4
MAX_REQUESTS = 400


@dataclass(slots=True)
class LiveReport:
    """What was fetched. `failed` names requests that got no answer, `skipped` counts results of another shape."""

    requests: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0


class MockApi:
    """Calls the API, a few at a time, until the budget nearly ends."""

    def __init__(self, client: ServiceClient, budget: Budget) -> None:
        self.report = LiveReport()
        self.error: ServiceFailure | None = None
        self._client = client
        self._budget = budget
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def call(self, name: str, **args: object) -> Any:
        """The result; None if there is none, no answer came, or one question may fetch no more."""
        async with self._slots:
            allow = self._budget.allow(CALL_CAP_S, reserve_s=RESERVE_S)
            if allow <= 0 or self.report.requests >= MAX_REQUESTS:
                return None
            self.report.requests += 1
            try:
                reply = await self._client.request("POST", f"/{name}", json.dumps(args).encode(), allow_s=allow)
                return await asyncio.to_thread(_result, reply)
            except ServiceRejected as error:
                # The API answers an unknown year, or an apostrophe in a team's name, with an error of the server.
                log.debug("live", call=name, status=error.status)
                return None
            except ServiceFailure as error:
                self.error = error
                self.report.failed.append(name)
                return None

    async def call_each(self, name: str, field: str, values: Iterable[object], **args: object) -> list[Any]:
        """Results of one call a value, in order."""
        return await all_of(self.call(name, **{field: value}, **args) for value in values)


def _result(reply: bytes) -> Any:
    try:
        body = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    return body.get("result") if isinstance(body, dict) else None
