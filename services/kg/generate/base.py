"""The interface of writers of programs, and how a prompt shows a question."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Protocol

from proto.kg import KgMode
from services.kg.generate.examples import Example
from services.kg.language.catalogue import Domain
from services.kit.budget import Budget
from services.kit.llm import Message
from services.kit.prompts import Prompt, PromptFolder
from services.kit.untrusted import one_line

# Of a longer question the rest is not shown; none of the real ones comes near.
MAX_QUESTION_CHARS = 600
# Left of the budget for running the program.
RESERVE_S = 0.2
PROMPTS = PromptFolder("services.kg")
# Feedback is a list of short errors; a longer one would cost more to read than the program it mends.
MAX_FEEDBACK_CHARS = 600


@dataclass(frozen=True, slots=True)
class Written:
    """A program and what it cost."""

    program: str  # text in the regularized language, "none" when no function fits
    mode: KgMode  # name of the writer
    prompt_tokens: int = 0  # of the generator; 0 when it was not asked
    completion_tokens: int = 0  # as above
    calls: int = 1  # to the generator, where it was asked
    probability: float | None = None  # that the program is right; None where nothing says how likely that is


class Writer(Protocol):
    """Question to program."""

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """The program of a question, whose names the question itself says.

        The question may be hostile; `feedback` is what was wrong with the first try, statement by statement.

        Raises:
            ServiceFailure: the generator gave no reply; only from writers that ask one.
        """
        ...


def as_data(query: str) -> str:
    """The beginning of a question, harmless and on one line."""
    return one_line(query)[:MAX_QUESTION_CHARS]


def question_text(query: str, query_time: datetime | None) -> str:
    """The question as a prompt has it, with the date where one is given: "last Friday" needs it."""
    when = f" (asked on {query_time:%A, %Y-%m-%d})" if query_time is not None else ""
    return f"{as_data(query)}{when}"


def domain_question(query: str, query_time: datetime, domain: Domain, feedback: str) -> str:
    """As `question_text`, with the errors of the first try, and the date only in domains that speak of times."""
    question = question_text(query, query_time if domain.timed else None)
    if feedback:
        question += f"\nThe first try failed: {one_line(feedback)[:MAX_FEEDBACK_CHARS]}"
    return question


def conversation(system: str, examples: Iterable[tuple[Example, str]], question: str) -> list[Message]:
    """The chat of a question after examples with replies; the part that a domain shares is first, for vLLM to cache."""
    turns = (
        (Message("user", question_text(one.query, one.query_time)), Message("assistant", reply))
        for one, reply in examples
    )
    return [Message("system", system), *chain.from_iterable(turns), Message("user", question)]


def chat(name: str, **values: str) -> list[Message]:
    """The chat of a prompt after its examples; what differs is last, for vLLM to cache the rest."""
    prompt, examples = _texts(name)
    system, last = prompt.fill(**values)
    return [system, *examples, last]


@cache
def _texts(name: str) -> tuple[Prompt, list[Message]]:
    return PROMPTS.prompt(name), PROMPTS.turns(f"{name}_examples")
