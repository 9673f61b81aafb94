"""The account of one request: its time, its stages, what was missing, and the best answer so far."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from proto.answer import AnswerKind, AnswerSource, Candidate, StageEvent, TraceKind, Usage
from proto.base import Degradation, StageTiming
from proto.classify import Classification
from proto.kg import KgResponse
from services.gateway.evidence import Evidence
from services.gateway.normalize import UNKNOWN
from services.gateway.trace import Recorder
from services.kit.budget import Budget
from services.kit.errors import ServiceFailure
from services.kit.llm import Completion

StageStatus = Literal["started", "done", "degraded", "skipped"]
Listener = Callable[[StageEvent], None]


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before it becomes a response.

    Args:
        candidates: spans of `evidence`, for an abstention to show.
        generator: MODEL or MODEL+ADAPTER that replied; empty where none did.
    """

    answer: str = UNKNOWN
    kind: AnswerKind = "unknown"
    confidence: float = 0.0
    source: AnswerSource = "none"
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    generator: str = ""

    def withheld(self, confidence: float = 0.0) -> "Draft":
        """An abstention in its place, with what it rests on."""
        return replace(self, answer=UNKNOWN, kind="unknown", confidence=confidence, source="none")


@dataclass(slots=True)
class Stage:
    """The costs and the detail that a running stage reports."""

    queue_ms: float = 0.0
    inference_ms: float = 0.0
    detail: str = ""

    def add(self, timing: StageTiming) -> None:
        """Add the times that a service reports."""
        self.queue_ms += timing.queue_ms
        self.inference_ms += timing.inference_ms


@dataclass(slots=True)
class Run:
    """The time of one request and its account, which the response reports whenever it ends.

    Steps return their results; no step reads what another writes here.

    Args:
        budget: time until the answer must leave, without the safety margin.
        listener: called with every stage as it starts and ends.
        recorder: of the trace; None when the caller wants none.

    Attributes:
        best: the answer that leaves when time is up.
        classification: open and unknown until `classified` is set, and after it when the classifier failed; steps await
            `Context.classification`.
        query: the question that is answered, once the turns before it are condensed.
        kg: the knowledge graph's response.
        settled: whether the answer stands, so that stages are cancelled as superseded.
        signals: that the confidence weighed.
        completions: the generator's, by step.
        generating_s: seconds in which at least one call to the generator was running.
    """

    budget: Budget
    listener: Listener = lambda _: None
    recorder: Recorder | None = None
    best: Draft = field(default_factory=Draft)
    timings: dict[str, StageTiming] = field(default_factory=dict)
    degraded: list[Degradation] = field(default_factory=list)
    classification: Classification = field(default_factory=Classification)
    classified: asyncio.Event = field(default_factory=asyncio.Event)
    query: str = ""
    kg: KgResponse | None = None
    settled: bool = False
    signals: dict[str, float] = field(default_factory=dict)
    completions: dict[str, list[Completion]] = field(default_factory=dict)
    generating_s: float = 0.0
    _calls: int = 0
    _calling_since: float = 0.0

    @contextlib.contextmanager
    def generating(self) -> Iterator[None]:
        """Time a call to the generator for `generating_s`."""
        if not self._calls:
            self._calling_since = time.monotonic()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self.generating_s += time.monotonic() - self._calling_since

    @contextlib.asynccontextmanager
    async def stage(self, name: str) -> AsyncIterator[Stage]:
        """Time and report a stage. A service's failure is named in `degraded` and raised again."""
        start_ms = self.budget.elapsed_ms()
        began = time.monotonic()
        stage = Stage()
        self._report(StageEvent(stage=name, status="started", left_ms=self.budget.left() * 1000))
        failure = ""
        try:
            yield stage
        except ServiceFailure as error:
            failure = error.reason
            self.degrade(error.service, error.reason, error.detail)
            raise
        except asyncio.CancelledError:
            failure = "superseded" if self.settled else "timeout"
            if not self.settled:
                self.degrade(name, "timeout", "cut short")
            raise
        finally:
            timing = StageTiming(
                start_ms=round(start_ms, 1),
                elapsed_ms=round((time.monotonic() - began) * 1000, 1),
                queue_ms=round(stage.queue_ms, 1),
                inference_ms=round(stage.inference_ms, 1),
            )
            self.timings[name] = self._with_earlier(name, timing)
            status: StageStatus = "skipped" if failure == "superseded" else "degraded" if failure else "done"
            left_ms, detail = self.budget.left() * 1000, failure or stage.detail
            event = StageEvent(stage=name, status=status, timing=timing, left_ms=left_ms, detail=detail)
            self._report(event, at_ms=start_ms)

    def _with_earlier(self, name: str, timing: StageTiming) -> StageTiming:
        """The sum of all rounds of a stage, for the graph and then for the web."""
        earlier = self.timings.get(name, StageTiming(start_ms=timing.start_ms))
        return StageTiming(
            start_ms=earlier.start_ms,
            elapsed_ms=round(earlier.elapsed_ms + timing.elapsed_ms, 1),
            queue_ms=round(earlier.queue_ms + timing.queue_ms, 1),
            inference_ms=round(earlier.inference_ms + timing.inference_ms, 1),
        )

    def degrade(self, stage: str, reason: str, detail: str = "") -> None:
        """Name something that was missing, once."""
        degradation = Degradation(stage=stage, reason=reason, detail=detail[:500])
        if degradation not in self.degraded:
            self.degraded.append(degradation)

    def degrade_all(self, degradations: Iterable[Degradation], *, stage: str = "", pages: Sequence[int] = ()) -> None:
        """Name what a service reports as missing.

        Args:
            stage: of all of them; each keeps its own when empty.
            pages: numbers in the request of the service's pages, by which its stages `page:INDEX` are renumbered.
        """
        for degradation in degradations:
            name, _, index = degradation.stage.partition(":")
            is_page = index.isdecimal() and int(index) < len(pages)
            own = f"{name}:{pages[int(index)]}" if is_page else degradation.stage
            self.degrade(stage or own, degradation.reason, degradation.detail)

    def hold(self, draft: Draft) -> Draft:
        """The draft, which is kept as the answer for when time is up."""
        self.best = draft
        return draft

    def settle(self) -> None:
        """Let the answer stand: stages that are cancelled from now on are superseded."""
        self.settled = True

    def skip(self, stage: str, why: str) -> None:
        """Name a stage that was not run."""
        self.degrade(stage, "skipped", why)
        self._report(StageEvent(stage=stage, status="skipped", left_ms=self.budget.left() * 1000, detail=why))

    def plan(self, step: str, detail: str) -> None:
        """Record a plan in the trace."""
        if self.recorder:
            self.recorder.note("plan", self.budget.elapsed_ms(), step, detail)

    def decide(self, step: str, detail: str) -> None:
        """Record a decision and its reason in the trace."""
        if self.recorder:
            self.recorder.note("decision", self.budget.elapsed_ms(), step, detail)

    @property
    def usage(self) -> Usage:
        """The generator's costs, and those of the knowledge graph's calls to it."""
        completions = list(itertools.chain.from_iterable(self.completions.values()))
        costs: list[Completion | KgResponse] = [*completions, *filter(None, (self.kg,))]
        return Usage(
            llm_calls=len(completions) + (self.kg.llm_calls if self.kg else 0),
            prompt_tokens=sum(cost.prompt_tokens for cost in costs),
            completion_tokens=sum(cost.completion_tokens for cost in costs),
        )

    def _report(self, event: StageEvent, *, at_ms: float | None = None) -> None:
        self.listener(event)
        if self.recorder and event.status != "started":
            kind: TraceKind = "skipped" if event.status == "skipped" else "stage"
            detail = f"failed: {event.detail}" if event.status == "degraded" else event.detail
            # Not the rounded start of the event's timing, which may lie before the plan that led to the stage.
            started_ms = self.budget.elapsed_ms() if at_ms is None else at_ms
            self.recorder.note(kind, started_ms, event.stage, detail, elapsed_ms=event.timing.elapsed_ms)
