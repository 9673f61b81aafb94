"""The writer: a prompt with the tables, a statement, its program."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from proto.kg import KgMode
from services.kg.entities import NameIndex
from services.kg.generate.base import Written, domain_question
from services.kg.generate.ground import ground
from services.kg.generate.names import Renaming
from services.kg.generate.program import PROMPTS, RESERVE_S
from services.kg.generate.rules.guessing import resolved
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, Spotter, spots_in
from services.kg.generate.sql.linking import (
    Link,
    capitals,
    linked_values,
    links_text,
    with_left_out_values,
    with_stored_values,
    with_values_where_they_are,
)
from services.kg.generate.sql.said import (
    add_up,
    another_name,
    ask_of_any_year,
    asks_no_flag,
    asks_no_text,
    counted_nowhere,
    left_out,
    order_as_said,
    order_by_age,
    tells_what_it_asks,
    unsaid,
    unsaid_texts,
    with_items,
)
from services.kg.generate.sql.schema import tables_text
from services.kg.generate.sql.tables import Untranslatable
from services.kg.generate.sql.translate import parse_selects, translate
from services.kg.language.catalogue import NUMERIC, Catalogue
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query, render
from services.kit.budget import Budget
from services.kit.llm import LLM, Constraint, Message
from services.kit.prompts import Prompt
from services.kit.telemetry import log

MAX_TOKENS = 100
MAX_WORDS = 60
_ONE_LINE = Constraint(regex=rf"NONE|SELECT( [^ \n\r\t]+){{1,{MAX_WORDS}}}")
NOTHING = "none"


@cache
def _prompt() -> tuple[Prompt, list[Message]]:
    return PROMPTS.prompt("sql"), PROMPTS.turns("sql_examples")


def messages(tables: str, question: str) -> list[Message]:
    """The chat of a question after examples over tables of their own; it is last, for vLLM to cache the rest."""
    prompt, examples = _prompt()
    system, last = prompt.fill(tables=tables, question=question)
    return [system, *examples, last]


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Asks the generator for SQL and translates it."""

    llm: LLM  # the generator
    catalogue: Catalogue  # what may be called
    names: NameIndex  # of the graph
    values: Values  # of the graph, some of which the prompt shows
    spotter: Spotter | None = None  # finds the names of a question, none of which a program may leave out
    name: KgMode = "sql"
    _tables: dict[str, str] = field(default_factory=dict)  # by domain
    _read: dict[str, asyncio.Event] = field(default_factory=dict)  # by domain: when the generator has read its tables

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`."""
        spots = await spots_in(query, domain, self.spotter)
        question = domain_question(query, query_time, self.catalogue.domains[domain], feedback)
        links, chat = await asyncio.to_thread(self._chat, query, question, domain, spots)
        if domain in self._read:
            # Asked beside it the generator would read the same tables twice, each time at half its speed.
            await self._read[domain].wait()
        completion = await self.llm.chat(
            chat,
            max_tokens=MAX_TOKENS,
            allow_s=budget.allow(reserve_s=RESERVE_S),
            constraint=_ONE_LINE,
        )
        program = await asyncio.to_thread(self._program, completion.text, query, domain, spots, links)
        return Written(program, self.name, completion.prompt_tokens, completion.completion_tokens)

    async def read_ahead(self, domain: str, llm: LLM, allow_s: float) -> None:
        """Have a generator read what the prompts of a domain's questions share, so that it is in its cache.

        Raises:
            ServiceFailure: it gave no reply.
        """
        read = self._read[domain] = asyncio.Event()
        try:
            _, chat = await asyncio.to_thread(self._chat, "", "", domain, ())
            await llm.chat(chat, max_tokens=1, allow_s=allow_s)
        finally:
            read.set()

    async def places_said(self, query: str, domain: str) -> set[tuple[int, int]]:
        """Where a question without a name of a domain says texts of several words by which it belongs there.

        None where it also names, by a capital, what the domain has no text for: it is about something else.
        """
        links = await asyncio.to_thread(linked_values, query, self.catalogue.domains[domain].shown, self.values, ())
        if any(not any(one.start <= at < one.end for one in links) for at in capitals(query)):
            return set()
        return {(one.start, one.end) for one in links if one.is_telling}

    def _chat(
        self, query: str, question: str, domain: str, spots: Sequence[Spot]
    ) -> tuple[Sequence[Link], Sequence[Message]]:
        """The values that a question says, and the messages that ask for its statement."""
        links = linked_values(query, self.catalogue.domains[domain].shown, self.values, spots)
        return links, messages(self._text(domain), "\n".join((question, *links_text(links))))

    def _text(self, domain: str) -> str:
        """The tables in the prompt; kept by the thread that reads them, whether or not its question has given up."""
        if domain not in self._tables:
            self._tables[domain] = tables_text(self.catalogue, domain, self.values)
        return self._tables[domain]

    def _columns(self, domain: str, *kinds: str) -> set[str]:
        """The columns of such kinds, whichever table has them."""
        return {key.name for one in self.catalogue.domains[domain].shown for key in one.keys if key.kind in kinds}

    def _amounts(self, domain: str) -> set[str]:
        """The columns of numbers that add up to something: neither years nor shares."""
        names = self._columns(domain, *NUMERIC) - self._columns(domain, "flag", "percent")
        return {one for one in names if "year" not in one.split("_")}

    def _program(self, sql: str, query: str, domain: str, spots: Sequence[Spot], links: Sequence[Link]) -> str:
        """The program of a statement about the question; "none" where it is none, or about something else."""
        if sql.strip().upper().startswith("NONE"):
            return NOTHING
        programs: list[str] = []
        try:
            for select in parse_selects(sql):
                with_stored_values(select, query, links)
                with_values_where_they_are(select, links, self.catalogue.domains[domain].shown, self.values)
                with_left_out_values(select, links)
                ask_of_any_year(select, query)
                add_up(select, query, self._amounts(domain))
                order_by_age(select, query, self._columns(domain, "date"))
                order_as_said(select, query, lexicons(self.catalogue)[domain])
                if unsaid(select, query) or asks_no_flag(select, query, self._columns(domain, "flag")):
                    log.info("sql", domain=domain, refused="about something else")
                    return NOTHING
                programs.append(translate(select, self.catalogue, domain))
            program = ground("\n".join(programs), query, self.catalogue, domain, spots)
            queries = self._as_stored(program, domain)
        except Untranslatable:
            # The reason may repeat the question, which no log has.
            log.info("sql", domain=domain, refused="untranslatable")
            return NOTHING
        if not queries or self._is_other(queries, query, domain, spots, links):
            log.info("sql", domain=domain, refused="about something else")
            return NOTHING
        return "\n".join(map(render, queries))

    def _is_other(
        self, queries: Sequence[Query], query: str, domain: str, spots: Sequence[Spot], links: Sequence[Link]
    ) -> bool:
        """Whether a program is about something else than its question, which no statement's form tells."""
        program = "\n".join(map(render, queries))
        said = " ".join((query, *(one.value for one in links)))
        return (
            bool(left_out(program, spots))
            or bool(another_name(program, query))
            or any(unsaid_texts(queries, said, self.catalogue, domain, self.values))
            or any(counted_nowhere(queries, self.catalogue, domain, self.values))
            or asks_no_text(queries[-1], query, self.catalogue, domain)
            or tells_what_it_asks(queries[-1], query)
        )

    def _as_stored(self, program: str, domain: str) -> list[Query]:
        """The statements with names whole that a question says in part, and with items of cells that list several."""

        def whole(name: str, kinds: Sequence[str]) -> str:
            best = resolved(self.names, name, kinds, partial=True)
            return best.surface if best is not None else name

        renaming = Renaming(self.catalogue, domain, whole)
        parsed = (one.statement for one in parse_each(program, self.catalogue.spellings))
        queries = (renaming.query(one) for one in parsed if isinstance(one, Query))
        return [with_items(one, self.catalogue, domain, self.values) for one in queries]
