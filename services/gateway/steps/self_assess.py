"""Step `self_assess`: how sure the model is of an answer that it has just given (WeKnow-RAG, answer generation).

WeKnow has the model state its confidence along with the answer. Here it is the next turn of the same chat, one word
out of three: the answer's own prompt stays free of it, and the documents are in the engine's prefix cache already, so
the turn costs the reading of a few lines.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from services.gateway.context import Context
from services.gateway.steps.ask import Request, ask, estimate
from services.kit.llm import Constraint, Message
from services.kit.untrusted import harmless

Level = Literal["high", "medium", "low"]
LEVELS: tuple[Level, ...] = get_args(Level)
MAX_TOKENS = 4


async def self_assess(context: Context, turn: Message, chat: Sequence[Message], answer: str) -> Level | None:
    """The model's confidence; None when it was not asked or gave none.

    Args:
        turn: the question how sure it is.
        chat: the messages that the answer was a reply to.
        answer: as it was given.
    """
    request = Request(
        "self_assess",
        [*chat, Message("assistant", harmless(answer)), turn],
        max_tokens=MAX_TOKENS,
        min_tokens=MAX_TOKENS,
        known_tokens=estimate(chat),
        constraint=Constraint(choice=LEVELS),
    )
    completion = await ask(context, request)
    return next((level for level in LEVELS if completion and completion.text == level), None)


def accepts(required: Level, level: Level | None) -> bool:
    """Whether an answer of this confidence is given; one that nobody judged is not."""
    return level is not None and LEVELS.index(level) <= LEVELS.index(required)
