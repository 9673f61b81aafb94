"""From a question to facts: write a program, run it, let the model mend it once, put the rows into words."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from proto.base import Degradation, StageTiming
from proto.kg import KgEntity, KgExecuteRequest, KgMode, KgRequest, KgResponse, KgStatement, KgStatus
from services.kg.errors import ParseError
from services.kg.execute import ASKER, Executor
from services.kg.generate.base import Writer, Written
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.spans import Spotter, spots_in
from services.kg.live import LiveExecutor
from services.kg.outcome import Outcome
from services.kg.settle import settle
from services.kg.verbalize import verbalize
from services.kit.budget import Budget
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM

# Statuses from best to worst: a program is as good as its best statement.
ORDER: tuple[KgStatus, ...] = (
    *("ok", "stale", "no_event", "empty", "unknown_key", "ambiguous", "no_entity", "timeout"),
    *("no_program", "parse_error"),
)
RANK = {status: rank for rank, status in enumerate(ORDER)}
# What facts answer a question, and what is known not to have been.
ANSWERED = frozenset({"ok", "stale", "no_event"})
# What another program might mend; what the graph does not hold, none does.
MENDABLE = frozenset({"parse_error", "unknown_key", "no_entity"})
ROWS_IN_RESPONSE = 50
# Kept for execution and for putting rows into words when a program is written.
EXECUTE_RESERVE_S = 0.5
# Asking which models are served is a look-up.
ASK_CAP_S = 1.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program with what came of it."""

    written: Written
    outcomes: tuple[Outcome, ...]
    write_ms: float = 0.0
    execute_ms: float = 0.0
    calls: int = 0

    @property
    def status(self) -> KgStatus:
        return min((one.status for one in self.outcomes), key=lambda status: RANK[status], default="no_program")


@dataclass(frozen=True, slots=True)
class _Task:
    """A question on its way to facts."""

    request: KgRequest
    now: datetime  # when it is asked
    budget: Budget  # for writing
    execute_cap_s: float  # for running one program


class Answering:
    """Answers questions from the graph.

    `writers` are by mode, `rules` among them; `as_of` is the last day that a domain's sources know; without `spotter`
    no name is known of a question; `live` runs programs against a live API instead of the store.
    """

    def __init__(
        self,
        executor: Executor,
        writers: Mapping[str, Writer],
        as_of: Mapping[str, str],
        llm: LLM,
        *,
        adapter: str,
        base_model_writes: bool,
        workers: int,
        spotter: Spotter | None = None,
        live: LiveExecutor | None = None,
    ) -> None:
        self._executor = executor
        self._writers = writers
        self._as_of = as_of
        self._llm = llm
        self._adapter = adapter
        self._base_model_writes = base_model_writes
        self._spotter = spotter
        self._live = live
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="kg")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def answer(
        self, request: KgRequest, budget: Budget, *, write_cap_s: float, execute_cap_s: float
    ) -> KgResponse:
        """Facts for a question.

        Raises:
            ServiceFailure: the LLM failed and the mode asks for it alone.
        """
        now = request.query_time or datetime.now(tz=ASKER)
        writing = budget.within(budget.elapsed_ms() / 1000 + write_cap_s)
        task, attempt = await self._place(_Task(request, now, writing, execute_cap_s))
        if request.mode not in ("auto", "rules"):
            attempt = await self._program(request.mode, task)
        elif attempt is None:
            # Rules cost milliseconds and are right more often than small models; a model fails elsewhere than they do.
            attempt = await self._program("rules", task)
        degraded: list[Degradation] = []
        if request.mode == "auto" and RANK[attempt.status] > RANK["no_event"]:
            try:
                if await self._model_may_find(task.request) and await self._model_writes(task.request.domain, writing):
                    attempt = _better(attempt, await self._program("program", task))
            except (ServiceFailure, TimeoutError) as error:
                reason = error.reason if isinstance(error, ServiceFailure) else "timeout"
                degraded.append(Degradation(stage="generator", reason=reason, detail="rules alone wrote the program"))
        return self._response(attempt, task.request, now, degraded)

    async def _place(self, task: _Task) -> tuple[_Task, Attempt | None]:
        """The task in the domain that its question belongs to, and what the rules brought there if they were asked.

        Its label is one of the benchmark's five. A domain that somebody added is asked as well, and has the question
        where its rules answer it, or where it knows more of its names than the label's domain and neither answers.
        """
        request, domains = task.request, self._executor.catalogue.domains.values()
        added = tuple(domain.name for domain in domains if not domain.bundled)
        if not added or request.domain in added:
            return task, None
        tried: list[tuple[tuple[int, int], _Task, Attempt]] = []
        for domain in (*added, request.domain):
            placed = replace(task, request=request.model_copy(update={"domain": domain}))
            attempt = await self._program("rules", placed)
            if attempt.status in ANSWERED:
                tried.append(((RANK[attempt.status], 0), placed, attempt))
            else:
                spots = await spots_in(request.query, domain, self._spotter)
                known = sum({(spot.start, spot.end): spot.end - spot.start for spot in spots}.values())
                # Of two that know as much, the label's.
                tried.append(((len(ORDER), -2 * known - (domain == request.domain)), placed, attempt))
        _, placed, attempt = min(tried, key=lambda one: one[0])
        return placed, attempt

    async def _model_may_find(self, request: KgRequest) -> bool:
        """Whether the question names anything that the graph knows: about all else no program finds a row.

        Rules find the rest: questions that name a year and an award only, and names that are misspelt.
        """
        return self._spotter is None or bool(await spots_in(request.query, request.domain, self._spotter))

    async def _model_writes(self, domain: str, budget: Budget) -> bool:
        """Whether there is a model that was taught to write programs of this domain, or can without."""
        if self._base_model_writes:
            return True
        taught = self._executor.catalogue.domains[domain].bundled
        return taught and await self._llm.serves(self._adapter, allow_s=budget.allow(ASK_CAP_S))

    async def execute(self, request: KgExecuteRequest, budget: Budget, *, execute_cap_s: float) -> KgResponse:
        """Facts of a program that came with the request.

        Raises:
            ParseError: the whole is too long, has too many statements or is nested too deeply.
        """
        now = request.query_time or datetime.now(tz=ASKER)
        written = Written(request.program, "auto")
        attempt = await self._run(written, request.domain, now, budget.allow(execute_cap_s))
        return self._response(attempt, request, now)

    async def _attempt(self, mode: KgMode, task: _Task, feedback: str = "") -> Attempt:
        request, budget, began = task.request, task.budget, time.monotonic()
        async with asyncio.timeout(budget.allow(reserve_s=EXECUTE_RESERVE_S)):
            written = await self._writers[mode].write(
                request.query, query_time=task.now, domain=request.domain, budget=budget, feedback=feedback
            )
        write_ms = (time.monotonic() - began) * 1000
        try:
            attempt = await self._run(written, request.domain, task.now, task.execute_cap_s)
        except ParseError as error:
            failed = Outcome(written.program[:200], "parse_error", message=str(error))
            attempt = Attempt(written, (failed,))
        return replace(attempt, write_ms=write_ms, calls=int(written.completion_tokens > 0))

    async def _program(self, mode: KgMode, task: _Task) -> Attempt:
        """A program by one writer, and what running it brought.

        A second one is tried where its writer could mend the errors of the first and has the time that it took again.
        """
        first = await self._attempt(mode, task)
        wrong = [outcome for outcome in first.outcomes if outcome.status in MENDABLE]
        spare_s = task.budget.left() - EXECUTE_RESERVE_S
        if not wrong or first.status == "ok" or mode == "rules" or spare_s < 1.5 * first.write_ms / 1000:
            return first
        feedback = "\n".join(f"{outcome.source}\n-> {outcome.message}" for outcome in wrong)
        try:
            second = await self._attempt(mode, task, feedback)
        except (ServiceFailure, TimeoutError):
            return first
        better = second if RANK[second.status] < RANK[first.status] else first
        return replace(better, write_ms=first.write_ms + second.write_ms, calls=first.calls + second.calls)

    async def _run(self, written: Written, domain: str, now: datetime, seconds: float) -> Attempt:
        began = time.monotonic()
        # What a live API serves are the bundled domains; another has its rows in the store.
        if self._live is not None and self._executor.catalogue.domains[domain].bundled:
            outcomes = await self._live.execute(written.program, domain=domain, query_time=now, budget=Budget(seconds))
        else:
            outcomes = await asyncio.get_running_loop().run_in_executor(
                self._pool,
                lambda: self._executor.execute(written.program, domain=domain, query_time=now, seconds=seconds),
            )
        return Attempt(written, tuple(outcomes), execute_ms=(time.monotonic() - began) * 1000)

    def _response(
        self,
        attempt: Attempt,
        request: KgRequest | KgExecuteRequest,
        now: datetime,
        degraded: Sequence[Degradation] = (),
    ) -> KgResponse:
        catalogue = self._executor.catalogue
        today = now.astimezone(ASKER).date()
        texts = verbalize(attempt.outcomes, catalogue.domains, today, max_tokens=request.max_tokens)
        question = request.query if isinstance(request, KgRequest) else ""
        written = attempt.written
        return KgResponse(
            status=attempt.status,
            program=written.program,
            domain=request.domain,
            mode=written.mode,
            statements=tuple(_statement(one, text) for one, text in zip(attempt.outcomes, texts, strict=True)),
            text="\n".join(text for text in texts if text),
            settled=settle(question, attempt.outcomes, lexicons(catalogue)),
            degraded=tuple(degraded),
            repaired=attempt.calls > 1,
            llm_calls=attempt.calls,
            prompt_tokens=written.prompt_tokens,
            completion_tokens=written.completion_tokens,
            as_of=self._as_of.get(request.domain, ""),
            write=StageTiming(elapsed_ms=attempt.write_ms),
            execute=StageTiming(elapsed_ms=attempt.execute_ms),
            timing=StageTiming(elapsed_ms=attempt.write_ms + attempt.execute_ms, inference_ms=attempt.write_ms),
        )


def _better(rules: Attempt, model: Attempt) -> Attempt:
    """The model's attempt where it found something, with the time of both; else that of the rules."""
    found = model if RANK[model.status] <= RANK["no_event"] else rules
    return replace(found, calls=model.calls, write_ms=rules.write_ms + model.write_ms)


def _statement(outcome: Outcome, text: str) -> KgStatement:
    entities = ({**asdict(one), "score": min(1.0, max(0.0, one.score))} for one in outcome.entities)
    return KgStatement(
        source=outcome.source,
        status=outcome.status,
        text=text,
        rows_json=json.dumps([dict(row) for row in outcome.rows[:ROWS_IN_RESPONSE]], ensure_ascii=False),
        row_count=outcome.total,
        value_json="" if outcome.value is None else json.dumps(outcome.value, ensure_ascii=False),
        entities=tuple(KgEntity(**entity) for entity in entities),
        windows=outcome.windows,
        notes=outcome.notes,
        error=outcome.message,
        expected=outcome.expected,
    )
