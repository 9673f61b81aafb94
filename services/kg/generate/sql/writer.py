"""The writer: a prompt with the tables, a statement, its program."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlglot import exp

from services.kg.entities import NameIndex
from services.kg.errors import ParseError
from services.kg.generate.base import RESERVE_S, Written
from services.kg.generate.rules.lexicon import Lexicon, lexicons
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, Spotter, spots_in
from services.kg.generate.sql.belonging import chars_known, count_signs
from services.kg.generate.sql.certainty import LIKELY, NO_TABLE, SURE, certainty, of_no_table, says_no_table
from services.kg.generate.sql.figures import unsaid
from services.kg.generate.sql.grounding import name_entities, with_items, with_parts, without_guesses
from services.kg.generate.sql.linking import (
    Link,
    linked_roles,
    with_left_out_values,
    with_stored_values,
    with_values_where_they_are,
)
from services.kg.generate.sql.mending import (
    add_up,
    among_all,
    ask_of_any_year,
    ask_of_the_month,
    count_rows,
    each_compared,
    measure_as_said,
    named_by_flag,
    named_not_counted,
    nothing_as_null,
    of_both,
    order_as_said,
    rank_as_said,
    rank_by_length,
    sum_as_said,
    without_unsaid_days,
)
from services.kg.generate.sql.prompt import SqlPrompt
from services.kg.generate.sql.refusals import UNSAID_FLAG, asks_no_flag, doubts
from services.kg.generate.sql.statement import Statement
from services.kg.generate.sql.times import (
    ask_of_the_time,
    conditions_on_days,
    from_today_on,
    leaves_out_time,
    said_days,
    said_time,
    today_as_now,
    without_unsaid_end,
)
from services.kg.language.catalogue import NUMERIC, Catalogue
from services.kg.syntax import parse_select
from services.kit.budget import Budget
from services.kit.llm import LLM, Completion, Constraint, Message
from services.kit.telemetry import log

MAX_TOKENS = 100
MAX_WORDS = 60
_SELECT = rf"SELECT( [^ \n\r\t]+){{1,{MAX_WORDS}}}"
ONE_LINE, A_SELECT = Constraint(regex=rf"{NO_TABLE}|{_SELECT}"), Constraint(regex=_SELECT)
NOTHING = "none"
# Some 400 tokens, which a slow CPU reads in five seconds: so long others wait while tables are read ahead.
READ_CHARS = 1_600

Measure = Callable[[str, Sequence[Link], Lexicon], int]


def beginnings(messages: Sequence[Message], chars: int = READ_CHARS) -> Iterator[Sequence[Message]]:
    """Beginnings of a chat, each at most so much longer than the one before, and the whole last.

    An engine that caches prefixes reads no more for all of them than for the whole, and others in between.
    """
    sent, length = 0, 0
    for index, message in enumerate(messages):
        whole = length + len(message.content)
        for end in range(max(sent + chars, length + 1), whole, chars) if message.role == "user" else ():
            yield [*messages[:index], Message("user", message.content[: end - length])]
            sent = end
        length = whole
    yield messages


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and what is known of it before a statement is read."""

    query: str
    now: datetime
    domain: str
    spots: Sequence[Spot]
    links: Sequence[Link]
    is_likely: bool  # whether its statement is, by its model


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Asks the generator for SQL and translates it."""

    llm: LLM  # the generator
    catalogue: Catalogue  # what may be called
    names: NameIndex  # of the graph
    values: Values  # of the graph, some of which the prompt shows
    spotter: Spotter | None = None  # finds the names of a question, none of which a program may leave out
    adapter: str = "sql"  # the fine-tuned one, where the generator serves it
    _prompt: SqlPrompt = field(init=False)
    _read: dict[str, asyncio.Event] = field(default_factory=dict)  # by domain: when the generator has read its tables

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prompt", SqlPrompt(self.catalogue, self.values))

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`; nobody tells it what was wrong with a first try."""
        now, spots = self.catalogue.asked(query_time, domain), await spots_in(query, domain, self.spotter)
        links = await asyncio.to_thread(self._prompt.links, query, domain, spots)
        adapted = await self.llm.serves(self.adapter, allow_s=budget.allow(reserve_s=RESERVE_S))
        messages = await asyncio.to_thread(
            self._prompt.messages, query, query_time=now, domain=domain, links=links, adapted=adapted
        )
        if domain in self._read:
            # Asked beside it the generator would read the same tables twice, each time at half its speed.
            await self._read[domain].wait()
        completions = [await self._complete(messages, ONE_LINE, budget, adapted=adapted)]
        probability = None
        if adapted:
            none = of_no_table(completions[0].samples[0])
            # Of what a question names it also says so where a table answers (docs/notebook.md).
            is_doubtful = 0 < none < SURE or bool(spots) or any(one.is_said for one in links)
            if is_doubtful and says_no_table(completions[0].samples[0]):
                completions.append(await self._complete(messages, A_SELECT, budget, adapted=adapted))
            probability = certainty(none, completions[-1].samples[0].token_logprobs)
        asked = _Asked(query, now, domain, spots, links, is_likely=(probability or 0.0) >= LIKELY)
        program = await asyncio.to_thread(self._program, completions[-1].text, asked)
        prompt_tokens = sum(one.prompt_tokens for one in completions)
        completion_tokens = sum(one.completion_tokens for one in completions)
        return Written(program, "sql", prompt_tokens, completion_tokens, len(completions), probability)

    async def _complete(
        self, messages: Sequence[Message], constraint: Constraint, budget: Budget, *, adapted: bool
    ) -> Completion:
        return await self.llm.chat(
            messages,
            max_tokens=MAX_TOKENS,
            allow_s=budget.allow(reserve_s=RESERVE_S),
            adapter=self.adapter if adapted else "",
            constraint=constraint,
            logprobs=adapted,
        )

    async def read_ahead(self, domain: str, llm: LLM, allow_s: float) -> None:
        """Have a generator read what the prompts of a domain's questions share, so that it is in its cache.

        Raises:
            ServiceFailure: it gave no reply.
        """
        read = self._read[domain] = asyncio.Event()
        try:
            adapted = await llm.serves(self.adapter, allow_s=allow_s)
            now = self.catalogue.asked(datetime.now(tz=UTC), domain)
            messages = await asyncio.to_thread(
                self._prompt.messages, "", query_time=now, domain=domain, adapted=adapted
            )
            for beginning in beginnings(messages):
                await llm.chat(beginning, max_tokens=1, allow_s=allow_s, adapter=self.adapter if adapted else "")
        finally:
            read.set()

    async def known_chars(self, query: str, domain: str) -> int:
        """How many characters of a question without a name of a domain say that it belongs there."""
        return await asyncio.to_thread(self._measure, chars_known, query, domain)

    async def signs(self, query: str, domain: str) -> int:
        """How many signs such a question has that it belongs there, few as they may be."""
        return await asyncio.to_thread(self._measure, count_signs, query, domain)

    def _measure(self, measure: Measure, query: str, domain: str) -> int:
        return measure(query, self._prompt.links(query, domain, ()), lexicons(self.catalogue)[domain])

    def _columns(self, domain: str, *kinds: str) -> set[str]:
        """The columns of such kinds, whichever table has them."""
        return {key.name for one in self.catalogue.domains[domain].shown for key in one.keys if key.kind in kinds}

    def _amounts(self, domain: str) -> set[str]:
        """The columns of numbers that add up to something: neither years nor shares."""
        names = self._columns(domain, *NUMERIC) - self._columns(domain, "flag", "percent")
        return {one for one in names if "year" not in one.split("_")}

    def _program(self, sql: str, asked: _Asked) -> str:
        """The statement that the generator wrote, as it is run; "none" where it is none, or about something else."""
        if sql.strip().upper().startswith(NO_TABLE):
            return NOTHING
        try:
            statement, reason = self._statement(sql, asked)
            program = "" if reason else statement.sql(asked.now.date())
        except ParseError:
            program, reason = "", "untranslatable"
        if not program:
            # The error may repeat the question, which no log has.
            log.info("sql", domain=asked.domain, refused=reason)
        return program or NOTHING

    def _statement(self, sql: str, asked: _Asked) -> tuple[Statement, str]:
        """A statement with the values that the question says, and the reason to refuse it, if there is one.

        Raises:
            ParseError: it is no SELECT over the domain's tables.
        """
        query, now, domain, spots, links = asked.query, asked.now, asked.domain, asked.spots, asked.links
        area = self.catalogue.domains[domain]
        tree = parse_select(sql)
        for select in list(tree.find_all(exp.Select)):
            with_stored_values(select, query, links)
            with_values_where_they_are(select, links, area.shown, self.values)
        statement = Statement(tree, area)
        today_as_now(tree, now.date())
        flags, lexicon = self._columns(domain, "flag"), lexicons(self.catalogue)[domain]
        question = Question(query, area.calendar, now, tuple(spots))
        said_then = said_time(question)
        days_said, times = tuple(said_days(question)), list[str]()
        nothing_as_null(statement, self.values)
        roles = [] if spots else linked_roles(query, area.shown, self.values)
        among_all(statement.sides[0], statement.functions)
        named_by_flag(statement, query)
        named_not_counted(statement.sides[0], query, statement.functions)
        if said_then is not None:
            count_rows(statement, query, lexicon)
        for select in statement.sides:
            with_left_out_values(select, query, links)
            with_left_out_values(select, query, roles)
            if said_then is None:
                ask_of_any_year(select, query)
                ask_of_the_month(select, query)
                without_unsaid_end(select, statement.has_days)
            add_up(select, query, self._amounts(domain))
            sum_as_said(select, query, statement.functions, lexicon)
            measure_as_said(select, query, lexicon)
            rank_by_length(select, query, statement.functions)
            order_as_said(select, query, lexicon)
            rank_as_said(select, query)
            without_unsaid_days(select, query, statement.has_days)
            if question.is_half_read and any(conditions_on_days(select, statement.has_days)):
                return statement, "a time of which words are unread"
            days = ask_of_the_time(select, said_then, statement) if said_then is not None else ()
            times += days
            if unsaid(select, query, (*days, *days_said)):
                return statement, "a number or a day that is not said"
            if asks_no_flag(select, query, flags):
                return statement, "yes or no for something else"
        from_today_on(tree, question, statement.has_days)
        if (said_then is not None or question.times) and leaves_out_time(statement, said_then, times):
            return statement, "without the time that is said"
        if not name_entities(statement, query, spots, self.names):
            return statement, "a name that is not said"
        of_both(statement.sides[0], query, statement.functions)
        each_compared(statement.sides[0], query, statement.has_days)
        said = " ".join((query, *(one.value for one in links)))
        without_guesses(statement, said)
        with_items(statement, self.values)
        with_parts(statement, self.values)
        # A flag is also said in other words: what failed its check, by `qc_pass`.
        reasons = doubts(statement, query, said, spots, self.values, lexicon)
        return statement, next((one for one in reasons if not (asked.is_likely and one == UNSAID_FLAG)), "")
