"""One request on its way: its time, what was done, what was missing, and the best answer so far."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
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
    """An answer before it is dressed for the wire.

    Args:
        candidates: what passages of `evidence` say, for an abstention to show.
    """

    answer: str = UNKNOWN
    kind: AnswerKind = "unknown"
    confidence: float = 0.0
    source: AnswerSource = "none"
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[Candidate, ...] = ()


@dataclass(slots=True)
class Stage:
    """What a running stage reports about itself."""

    queue_ms: float = 0.0
    inference_ms: float = 0.0
    detail: str = ""

    def of(self, timing: StageTiming) -> None:
        """Take over a service's own account."""
        self.queue_ms += timing.queue_ms
        self.inference_ms += timing.inference_ms


@dataclass(slots=True)
class Generation:
    """What the generator's completions of one step cost, and who wrote the last."""

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class Run:
    """The time of one request and its account: what the caller is told of it, whenever it ends.

    Steps give back what they find; what they write here, none of them reads.

    Args:
        budget: time until the answer must leave, the safety margin taken off.
        listener: told of every stage as it starts and ends.
        recorder: keeps what happens for the caller; None when no trace was asked for.

    Attributes:
        best: the answer that leaves when time is up.
        classification: open and unknown until `classified` is set, and after it when the classifier failed; steps await
            `Context.classification`.
        query: the question that is answered, once the turns before it are condensed.
        kg: what the knowledge graph was asked and said.
        signals: by which the answer was weighed.
        generations: what each step asked of the generator.
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
    generations: dict[str, Generation] = field(default_factory=dict)
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    generating_s: float = 0.0
    _calls: int = 0
    _calling_since: float = 0.0

    @contextlib.contextmanager
    def generating(self) -> Iterator[None]:
        """Time the generator; of calls side by side each moment counts once, in `generating_s`."""
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
        """Time a stage and tell of it. A service's failure is named in `degraded` and passed on."""
        start_ms = self.budget.elapsed_ms()
        began = time.monotonic()
        stage = Stage()
        self._tell(StageEvent(stage=name, status="started", left_ms=self.budget.left() * 1000))
        failed = ""
        try:
            yield stage
        except ServiceFailure as failure:
            failed = failure.reason
            self.degrade(failure.service, failure.reason, failure.detail)
            raise
        except asyncio.CancelledError:
            failed = "superseded" if self.settled else "timeout"
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
            status: StageStatus = "skipped" if failed == "superseded" else "degraded" if failed else "done"
            left_ms = self.budget.left() * 1000
            event = StageEvent(stage=name, status=status, timing=timing, left_ms=left_ms, detail=failed or stage.detail)
            self._tell(event, at_ms=start_ms)

    def _with_earlier(self, name: str, timing: StageTiming) -> StageTiming:
        """A stage that runs again, for the graph and then for the web, counts for all that it took."""
        earlier = self.timings.get(name)
        if earlier is None:
            return timing
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

    def hold(self, draft: Draft) -> Draft:
        """Keep a draft for the moment in which time is up; gives it back."""
        self.best = draft
        return draft

    def settle(self) -> None:
        """The answer stands: stages that are cancelled from now on were not needed."""
        self.settled = True

    def skip(self, stage: str, why: str) -> None:
        """Name a stage that was not run."""
        self.degrade(stage, "skipped", why)
        self._tell(StageEvent(stage=stage, status="skipped", left_ms=self.budget.left() * 1000, detail=why))

    def plan(self, step: str, detail: str) -> None:
        """Tell the trace what is meant to be done."""
        if self.recorder:
            self.recorder.note("plan", self.budget.elapsed_ms(), step, detail)

    def decide(self, step: str, detail: str) -> None:
        """Tell the trace what was decided, and why."""
        if self.recorder:
            self.recorder.note("decision", self.budget.elapsed_ms(), step, detail)

    def consulted(self, response: KgResponse) -> None:
        """Tell what the knowledge graph said, and what that cost."""
        self.kg = response
        self.llm_calls += response.llm_calls
        self.prompt_tokens += response.prompt_tokens
        self.completion_tokens += response.completion_tokens

    def spent(self, step: str, completion: Completion) -> None:
        """Count a completion."""
        generation = self.generations.setdefault(step, Generation())
        generation.model = completion.model
        generation.prompt_tokens += completion.prompt_tokens
        generation.completion_tokens += completion.completion_tokens
        self.llm_calls += 1
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens

    @property
    def usage(self) -> Usage:
        return Usage(
            llm_calls=self.llm_calls, prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens
        )

    def _tell(self, event: StageEvent, *, at_ms: float | None = None) -> None:
        self.listener(event)
        if self.recorder and event.status != "started":
            kind: TraceKind = "skipped" if event.status == "skipped" else "stage"
            detail = f"failed: {event.detail}" if event.status == "degraded" else event.detail
            # Not the rounded start of the event's timing, which may lie before the plan that led to the stage.
            started_ms = self.budget.elapsed_ms() if at_ms is None else at_ms
            self.recorder.note(kind, started_ms, event.stage, detail, elapsed_ms=event.timing.elapsed_ms)
