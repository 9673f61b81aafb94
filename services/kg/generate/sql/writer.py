"""The writer: a prompt with the tables, a statement, its program."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proto.kg import KgMode
from services.kg.entities import NameIndex
from services.kg.generate.base import Written, conversation, domain_question
from services.kg.generate.ground import ground
from services.kg.generate.names import Renaming
from services.kg.generate.program import RESERVE_S, load_prompt
from services.kg.generate.rules.guessing import resolved
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, Spotter, spots_in
from services.kg.generate.sql.said import left_out, order_longest_first, unsaid
from services.kg.generate.sql.schema import tables_text
from services.kg.generate.sql.translate import Untranslatable, parse_select, translate
from services.kg.language.catalogue import Catalogue
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query, render
from services.kit.budget import Budget
from services.kit.llm import LLM, Constraint
from services.kit.telemetry import log

MAX_TOKENS = 100
MAX_WORDS = 60
_ONE_LINE = Constraint(regex=rf"NONE|SELECT( [^ \n\r\t]+){{1,{MAX_WORDS}}}")
NOTHING = "none"


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

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`."""
        system = load_prompt("sql").substitute(tables=await asyncio.to_thread(self._text, domain))
        question = domain_question(query, query_time, self.catalogue.domains[domain], feedback)
        completion = await self.llm.chat(
            conversation(system, [], question),
            max_tokens=MAX_TOKENS,
            allow_s=budget.allow(reserve_s=RESERVE_S),
            constraint=_ONE_LINE,
        )
        spots = await spots_in(query, domain, self.spotter)
        program = await asyncio.to_thread(self._program, completion.text, query, domain, spots)
        return Written(program, self.name, completion.prompt_tokens, completion.completion_tokens)

    def _text(self, domain: str) -> str:
        """The tables in the prompt; kept by the thread that reads them, whether or not its question has given up."""
        if domain not in self._tables:
            self._tables[domain] = tables_text(self.catalogue, domain, self.values)
        return self._tables[domain]

    def _dates(self, domain: str) -> set[str]:
        """The columns of days, whichever table has them."""
        return {key.name for one in self.catalogue.domains[domain].shown for key in one.keys if key.kind == "date"}

    def _program(self, sql: str, query: str, domain: str, spots: Sequence[Spot]) -> str:
        """The program of a statement about the question; "none" where it is none, or about something else."""
        if sql.strip().upper().startswith("NONE"):
            return NOTHING
        try:
            select = parse_select(sql)
            order_longest_first(select, query, self._dates(domain))
            program = translate(select, self.catalogue, domain)
        except Untranslatable:
            # The reason may repeat the question, which no log has.
            log.info("sql", domain=domain, refused="untranslatable")
            return NOTHING
        program = self._with_whole_names(ground(program, query, self.catalogue, domain, spots), domain)
        if unsaid(select, query) or left_out(program, spots):
            log.info("sql", domain=domain, refused="about something else")
            return NOTHING
        return program

    def _with_whole_names(self, program: str, domain: str) -> str:
        """The program with each name whole that a question says in part, where only one name has its words."""

        def whole(name: str, kinds: Sequence[str]) -> str:
            best = resolved(self.names, name, kinds, partial=True)
            return best.surface if best is not None else name

        renaming = Renaming(self.catalogue, domain, whole)
        parsed = (one.statement for one in parse_each(program, self.catalogue.spellings))
        return "\n".join(render(renaming.query(one)) for one in parsed if isinstance(one, Query)) or NOTHING
