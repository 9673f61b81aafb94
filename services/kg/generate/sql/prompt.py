"""The chats that ask for a SELECT: the tables, which all questions about a domain share, then the question."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.kg.generate.base import PROMPTS, chat, domain_question, question_text
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot
from services.kg.generate.sql.linking import Link, linked_values, links_text
from services.kg.generate.sql.schema import tables_text
from services.kg.language.catalogue import Catalogue
from services.kit.llm import Message

_ADAPTED = PROMPTS.prompt("sql_adapter")


@dataclass(frozen=True, slots=True)
class SqlPrompt:
    """What a model is shown of the domains of a graph."""

    catalogue: Catalogue
    values: Values
    _tables: dict[str, str] = field(default_factory=dict)  # by domain

    def links(self, query: str, domain: str, spots: Sequence[Spot]) -> Sequence[Link]:
        """The stored values that a question says. Blocks for some milliseconds."""
        return linked_values(query, self.catalogue.domains[domain].shown, self.values, spots)

    def messages(
        self, query: str, *, query_time: datetime, domain: str, links: Sequence[Link] = (), adapted: bool = True
    ) -> list[Message]:
        """The chat that asks for a statement; training data is rendered by this very function.

        Args:
            adapted: for an adapter that was taught to write SQL, and what to make of the day it is asked on; a base
                model is shown examples over other tables first.
        """
        named, tables = links_text(links), self._text(domain)
        if adapted:
            return _ADAPTED.fill(tables=tables, question="\n".join((question_text(query, query_time), *named)))
        question = domain_question(query, query_time, self.catalogue.domains[domain], "")
        return chat("sql", tables=tables, question="\n".join((question, *named)))

    def _text(self, domain: str) -> str:
        """The tables; kept by the thread that reads them, whether or not its question has given up."""
        if domain not in self._tables:
            self._tables[domain] = tables_text(self.catalogue, domain, self.values)
        return self._tables[domain]
