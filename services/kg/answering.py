"""From a question to facts: a program is written, run, mended once by its model, and its rows are put into words."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from proto.base import Degradation, StageTiming
from proto.kg import KgExecuteRequest, KgMode, KgRequest, KgResponse, KgStatement, KgStatus
from services.kg.errors import ParseError
from services.kg.execute import Executor
from services.kg.generate.base import Writer, Written, chat
from services.kg.generate.rules.interrogatives import asks_for_a_single, asks_for_one
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.spans import Spotter, spots_in
from services.kg.generate.sql.certainty import LIKELY
from services.kg.generate.sql.checking import CHECK, NO_COLUMN, choose_column, look_up, tells_all
from services.kg.generate.sql.writer import NOTHING, SqlWriter
from services.kg.live.execute import LiveExecutor
from services.kg.outcome import Outcome
from services.kg.settings import KgSettings
from services.kg.settle import settle
from services.kg.verbalize import verbalize
from services.kit.budget import Budget
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM
from services.kit.telemetry import log

# Statuses from best to worst: a program is as good as its best statement.
ORDER: tuple[KgStatus, ...] = (
    *("ok", "stale", "no_event", "empty", "unknown_key", "ambiguous", "no_entity", "timeout"),
    *("no_program", "parse_error"),
)
RANK = {status: rank for rank, status in enumerate(ORDER)}
# Statuses with facts that answer a question, an absence among them.
ANSWERED = frozenset({"ok", "stale", "no_event"})
# Errors that another program might mend; facts that the graph lacks, none does.
MENDABLE = frozenset({"parse_error", "unknown_key", "no_entity"})
# Modes whose writers take no errors back.
UNMENDED = frozenset({"rules", "sql"})
ROWS_IN_RESPONSE = 50
# The domain of a question that no domain answers or knows a name of.
UNPLACED = "open"
# Left for running a program and putting its rows into words.
EXECUTE_RESERVE_S = 0.5
# Reading some thousand tokens takes a slow CPU twenty seconds.
READ_AHEAD_S = 120.0
# For the look-up of the models that the generator serves.
LOOK_UP_CAP_S = 1.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program with its outcomes."""

    written: Written
    outcomes: tuple[Outcome, ...]
    write_ms: float = 0.0
    execute_ms: float = 0.0
    calls: int = 0  # to the generator
    is_repaired: bool = False

    @property
    def status(self) -> KgStatus:
        return min((one.status for one in self.outcomes), key=RANK.__getitem__, default="no_program")


@dataclass(frozen=True, slots=True)
class _Task:
    """A question with its domain, its time and its budget."""

    request: KgRequest
    domain: str  # where it is looked up; the request may name another or none
    now: datetime  # when the question is asked
    budget: Budget  # for writing programs


class Answering:
    """Answers questions from the graph.

    `writers` are by mode, `rules` among them; `as_of` has the last day that a domain's sources know; without `spotter`
    no names of a question are known; `live` runs programs against a live API instead of the store.
    """

    def __init__(
        self,
        executor: Executor,
        writers: Mapping[str, Writer],
        as_of: Mapping[str, str],
        llm: LLM,
        settings: KgSettings,
        *,
        spotter: Spotter | None = None,
        live: LiveExecutor | None = None,
    ) -> None:
        self._executor = executor
        self._writers = writers
        self._as_of = as_of
        self._llm = llm
        self._settings = settings
        self._spotter = spotter
        self._live = live
        self._pool = ThreadPoolExecutor(settings.kg_workers, thread_name_prefix="kg")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: KgRequest, budget: Budget) -> KgResponse:
        """Facts for a question.

        Raises:
            ServiceFailure: the LLM failed and the mode asks for it alone.
        """
        now = request.query_time or datetime.now(tz=UTC)
        writing = budget.within(budget.elapsed_ms() / 1000 + self._settings.kg_write_cap_s)
        task, attempt = await self._place(_Task(request, request.domain or UNPLACED, now, writing))
        if request.mode not in ("auto", "rules"):
            attempt = await self._program(request.mode, task)
        elif attempt is None:
            # Rules cost milliseconds and are right more often than small models; a model fails elsewhere than they do.
            attempt = await self._program("rules", task)
        degraded, unasked = list[Degradation](), ""
        is_vague = self._is_vague(attempt, task)
        if request.mode == "auto" and (attempt.status not in ANSWERED or is_vague):
            try:
                is_known = is_vague or await self._is_known(task)
                # Without a spotter nobody knows what a question names, and a model may find out.
                mode = await self._model_mode(task) if is_known or self._spotter is None else None
                if mode:
                    attempt = _better(attempt, await self._program(mode, task))
                elif not is_known:
                    unasked = await self._unasked(task)
            except (ServiceFailure, TimeoutError) as error:
                reason = error.reason if isinstance(error, ServiceFailure) else "timeout"
                degraded.append(Degradation(stage="generator", reason=reason, detail="rules alone wrote the program"))
        return self._response(attempt, request, task.domain, now, degraded, unasked)

    def _is_vague(self, attempt: Attempt, task: _Task) -> bool:
        """Whether rules found all that is known of what a question names, and it may ask for one thing of it.

        Only in an added domain, whose words nobody has gone through, a model may know which.
        """
        catalogue = self._executor.catalogue
        if attempt.status not in ANSWERED or catalogue.domains[task.domain].bundled:
            return False
        return tells_all(attempt.written.program, catalogue) and asks_for_one(task.request.query)

    @property
    def _added(self) -> list[str]:
        """The domains that are not bundled."""
        return [domain.name for domain in self._executor.catalogue.domains.values() if not domain.bundled]

    async def _place(self, task: _Task) -> tuple[_Task, Attempt | None]:
        """The task in the domain that its question belongs to, with the attempt of the rules there, if they ran.

        A request that names no domain is tried in all of them. One that names a bundled one, as a classifier labels
        questions, is tried in the added ones too. A domain has the question where its rules answer it best, or where
        it knows more of the question's names than the others and none answers.
        """
        named, domains = task.request.domain, self._executor.catalogue.domains
        if named and not domains[named].bundled:
            return task, None
        others = [one.name for one in domains.values() if one.name != task.domain and not (named and one.bundled)]
        if not others:
            return task, None
        attempts: list[tuple[tuple[bool, int, bool, int], _Task, Attempt]] = []
        # Of several that rank alike, the first.
        for domain in (*others, task.domain) if named else (task.domain, *others):
            placed = replace(task, domain=domain)
            attempt = await self._program("rules", placed)
            is_answered, known_chars = attempt.status in ANSWERED, 0
            if not (named and is_answered):
                known_chars = await self._known_chars(task.request.query, domain)
            # Without a label, rules that know no name of a question make an answer of its "in 2023" alone.
            is_answer = is_answered and bool(named or known_chars)
            # Of two that know as much and do not answer, the label's.
            rank = (not is_answer, -known_chars, not is_answer and domain != named, RANK[attempt.status])
            attempts.append((rank, placed, attempt))
        _, placed, attempt = min(attempts, key=lambda one: one[0])
        return placed, attempt

    async def _known_chars(self, query: str, domain: str) -> int:
        """How many characters of a question say what a domain knows: names, else what a model may ask an added one."""
        places = {spot.place for spot in await spots_in(query, domain, self._spotter)}
        writer, bundled = self._writers.get("sql"), self._executor.catalogue.domains[domain].bundled
        if places or bundled or not self._settings.writes_sql or not isinstance(writer, SqlWriter):
            return sum(end - start for start, end in places)
        return await writer.known_chars(query, domain)

    async def read_ahead(self, llm: LLM) -> None:
        """Have a generator read what questions about added domains share before the first of them.

        Raises:
            ServiceFailure: it gave no reply.
        """
        writer = self._writers.get("sql")
        if not self._added or not isinstance(writer, SqlWriter):
            return
        for name in self._added:
            await writer.read_ahead(name, llm, READ_AHEAD_S)
        await llm.chat(chat(CHECK, columns="", found="", question=""), max_tokens=1, allow_s=READ_AHEAD_S)

    async def _is_known(self, task: _Task) -> bool:
        """Whether the question names what its domain knows, or its caller an added domain.

        About what the graph does not know no program finds a row; rules find names that are misspelt, and questions
        that name a year and an award only. Who names a domain of one's own knows where the question belongs.
        """
        is_added = not self._executor.catalogue.domains[task.domain].bundled
        is_meant = is_added and task.request.domain == task.domain
        return is_meant or await self._known_chars(task.request.query, task.domain) > 0

    async def _model_mode(self, task: _Task) -> KgMode | None:
        """The mode by which a model may answer where rules do not; None where none is asked."""
        if not self._executor.catalogue.domains[task.domain].bundled:
            return "sql" if self._settings.writes_sql else None
        adapter, allow_s = self._settings.kg_adapter, task.budget.allow(LOOK_UP_CAP_S)
        writes = self._settings.kg_base_model_writes or await self._llm.serves(adapter, allow_s=allow_s)
        return "program" if writes else None

    async def _unasked(self, task: _Task) -> str:
        """The added domain that has most signs of a question that names nothing of any; empty without a model for it.

        Only a model that was taught to says of questions about something else that no table answers them.
        """
        query, writer = task.request.query, self._writers.get("sql")
        if not self._added or not self._settings.writes_sql or not isinstance(writer, SqlWriter):
            return ""
        if not await self._llm.serves(writer.adapter, allow_s=task.budget.allow(LOOK_UP_CAP_S)):
            return ""
        signs = {name: await writer.signs(query, name) for name in self._added}
        return max(signs, key=signs.__getitem__)

    async def execute(self, request: KgExecuteRequest, budget: Budget) -> KgResponse:
        """Facts of the request's own program.

        Raises:
            ParseError: the whole is too long, has too many statements or is nested too deeply.
        """
        now = request.query_time or datetime.now(tz=UTC)
        seconds = budget.allow(self._settings.execute_cap_s)
        attempt = await self._run(Written(request.program, "auto"), request.domain, now, seconds)
        return self._response(attempt, request, request.domain, now)

    async def _attempt(self, mode: KgMode, task: _Task, feedback: str = "") -> Attempt:
        budget, began = task.budget, time.monotonic()
        async with asyncio.timeout(budget.allow(reserve_s=EXECUTE_RESERVE_S)):
            written = await self._writers[mode].write(
                task.request.query, query_time=task.now, domain=task.domain, budget=budget, feedback=feedback
            )
        write_ms = (time.monotonic() - began) * 1000
        try:
            attempt = await self._run(written, task.domain, task.now, self._settings.execute_cap_s)
        except ParseError as error:
            failed = Outcome(written.program[:200], "parse_error", message=str(error))
            attempt = Attempt(written, (failed,))
        attempt = replace(attempt, write_ms=write_ms, calls=written.calls if written.completion_tokens else 0)
        return await self._checked(attempt, task) if mode == "sql" else attempt

    async def _checked(self, attempt: Attempt, task: _Task) -> Attempt:
        """The attempt, or one without a program where it tells another thing of a row than the question asks for."""
        query, domain = task.request.query, task.domain
        if attempt.status not in ANSWERED:
            return attempt
        if asks_for_a_single(query) and _tells_several(attempt.outcomes[-1]):
            return _refused(attempt, domain, "several for one")
        fact = look_up(attempt.written.program, self._executor.catalogue.domains[domain])
        if fact is None or (attempt.written.probability or 0.0) >= LIKELY:
            return attempt
        last = attempt.outcomes[-1]
        row = next(iter(last.rows), {}) if last.value is None else {key.name: last.value for key in fact.keys}
        if not fact.is_in(row) or (not fact.is_of_names and fact.is_said(query)):
            return attempt
        if fact.is_of_names:
            is_refused = fact.repeats(row, query)
        else:
            began, allow_s = time.monotonic(), task.budget.allow(reserve_s=EXECUTE_RESERVE_S)
            try:
                choice = await choose_column(self._llm, query, fact, row, allow_s=allow_s)
            except (ServiceFailure, TimeoutError):
                return attempt
            is_refused = choice.text == NO_COLUMN
            prompt_tokens = attempt.written.prompt_tokens + choice.prompt_tokens
            completion_tokens = attempt.written.completion_tokens + choice.completion_tokens
            written = replace(attempt.written, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
            write_ms = attempt.write_ms + (time.monotonic() - began) * 1000
            attempt = replace(attempt, written=written, write_ms=write_ms, calls=attempt.calls + 1)
        if not is_refused:
            return attempt
        return _refused(attempt, domain, "no such column")

    async def _program(self, mode: KgMode, task: _Task) -> Attempt:
        """A program by one writer, with its outcomes.

        A second one mends the errors of the first where its writer can, and has half as much time again as that took.
        """
        first = await self._attempt(mode, task)
        wrong = [outcome for outcome in first.outcomes if outcome.status in MENDABLE]
        spare_s = task.budget.left() - EXECUTE_RESERVE_S
        if not wrong or first.status == "ok" or mode in UNMENDED or spare_s < 1.5 * first.write_ms / 1000:
            return first
        feedback = "\n".join(f"{outcome.source}\n-> {outcome.message}" for outcome in wrong)
        try:
            second = await self._attempt(mode, task, feedback)
        except (ServiceFailure, TimeoutError):
            return first
        better = second if RANK[second.status] < RANK[first.status] else first
        write_ms, calls = first.write_ms + second.write_ms, first.calls + second.calls
        return replace(better, write_ms=write_ms, calls=calls, is_repaired=True)

    async def _run(self, written: Written, domain: str, now: datetime, seconds: float) -> Attempt:
        began = time.monotonic()
        # A live API serves the bundled domains; the rows of others are in the store.
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
        domain: str,
        now: datetime,
        degraded: Sequence[Degradation] = (),
        unasked: str = "",
    ) -> KgResponse:
        catalogue = self._executor.catalogue
        today = catalogue.asked(now, domain).date()
        texts = verbalize(attempt.outcomes, catalogue.domains, today, max_tokens=request.max_tokens)
        question = request.query if isinstance(request, KgRequest) else ""
        written = attempt.written
        return KgResponse(
            status=attempt.status,
            program=written.program,
            domain=domain,
            mode=written.mode,
            statements=tuple(_statement(one, text) for one, text in zip(attempt.outcomes, texts, strict=True)),
            text="\n".join(text for text in texts if text),
            settled=settle(
                question,
                attempt.outcomes,
                lexicons(catalogue),
                by_rules=written.mode == "rules",
                probability=written.probability,
            ),
            degraded=tuple(degraded),
            unasked=unasked,
            repaired=attempt.is_repaired,
            llm_calls=attempt.calls,
            prompt_tokens=written.prompt_tokens,
            completion_tokens=written.completion_tokens,
            as_of=self._as_of.get(domain, ""),
            write=StageTiming(elapsed_ms=attempt.write_ms),
            execute=StageTiming(elapsed_ms=attempt.execute_ms),
            timing=StageTiming(elapsed_ms=attempt.write_ms + attempt.execute_ms, inference_ms=attempt.write_ms),
        )


def _tells_several(outcome: Outcome) -> bool:
    """Whether the rows of a statement tell different things."""
    first = next(iter(outcome.shown), "")
    return outcome.value is None and len({row.get(first) for row in outcome.rows}) > 1


def _refused(attempt: Attempt, domain: str, reason: str) -> Attempt:
    """The attempt without its program."""
    log.info("sql", domain=domain, refused=reason)
    return replace(attempt, written=replace(attempt.written, program=NOTHING), outcomes=())


def _better(rules: Attempt, model: Attempt) -> Attempt:
    """The model's attempt where it has an answer, else that of the rules; with the time of both."""
    better = model if model.status in ANSWERED else rules
    asked = model.written
    written = replace(better.written, prompt_tokens=asked.prompt_tokens, completion_tokens=asked.completion_tokens)
    return replace(better, written=written, calls=model.calls, write_ms=rules.write_ms + model.write_ms)


def _statement(outcome: Outcome, text: str) -> KgStatement:
    return KgStatement(
        source=outcome.source,
        status=outcome.status,
        text=text,
        rows_json=json.dumps([dict(row) for row in outcome.rows[:ROWS_IN_RESPONSE]], ensure_ascii=False),
        row_count=outcome.total,
        value_json="" if outcome.value is None else json.dumps(outcome.value, ensure_ascii=False),
        entities=outcome.entities,
        windows=outcome.windows,
        notes=outcome.notes,
        error=outcome.message,
        expected=outcome.expected,
    )
