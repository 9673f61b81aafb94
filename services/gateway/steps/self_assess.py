"""Step `self_assess`: the model's confidence in its own answer (WeKnow-RAG, answer generation).

WeKnow has the model state its confidence along with the answer. Here it is the next turn of the same chat, one word
out of three: the answer's prompt stays free of it, and the documents are in the engine's prefix cache already.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.steps.ask import Request, ask, estimate
from services.kit.llm import Constraint, Message
from services.kit.untrusted import harmless

Level = Literal["high", "medium", "low"]
LEVELS: tuple[Level, ...] = get_args(Level)
TURN = prompts.load_turn("self_assess")
MAX_TOKENS = 4


async def self_assess(context: Context, chat: Sequence[Message], answer: str) -> Level | None:
    """The model's confidence in its answer to a chat; None when there was no time for the call or it failed."""
    request = Request(
        "self_assess",
        [*chat, Message("assistant", harmless(answer)), TURN],
        max_tokens=MAX_TOKENS,
        min_tokens=MAX_TOKENS,
        cached_tokens=estimate(chat),
        constraint=Constraint(choice=LEVELS),
    )
    completion = await ask(context, request)
    return next((level for level in LEVELS if completion and completion.text == level), None)


def accepts(required: Level, level: Level | None) -> bool:
    """Whether an answer of this confidence is given; one without a confidence is not."""
    return level is not None and LEVELS.index(level) <= LEVELS.index(required)
