"""Step `condense`: the last turn of a conversation as a question of its own.

A turn without references to earlier ones is the question. The generator rewrites any other; where its reply is unfit,
the previous turn is put in front, which retrieval and a reader understand nearly as well.
"""

import re
from collections.abc import Sequence

from proto.answer import Turn
from proto.base import MAX_QUERY_CHARS
from services.gateway import prompts
from services.gateway.confidence import COMMON
from services.gateway.context import Context
from services.gateway.question import plain
from services.gateway.steps.ask import Allowance, Request, ask
from services.kit.llm import Constraint
from services.kit.untrusted import fence, one_line

STEP = "condense"
PROMPT = prompts.load("condense")
# References point to recent turns.
LAST_TURNS = 6
MAX_TURN_CHARS = 1_000
MAX_TOKENS = 60
MIN_TOKENS = 12
CAP_S = 6.0
# Of the budget.
SHARE = 0.25
# Shorter questions are incomplete alone: "and Norway?", "why?", "how much".
FEW_WORDS = 3
MAX_WORDS = 60

_POINTS_BACK = re.compile(
    r"\b(?:he|she|they|him|her|hers|them|his|its|their|theirs|this|these|those|such)\b"
    r"|\bit\b(?!\s+(?:true|possible|that|time|raining|snowing|cold|hot)\b)"
    r"|\b(?:the|that|this|which) (?:same|former|latter|other|others|previous|first one|second one|last one|one|ones)\b"
    r"|\bthat(?:\s+\w+)?\s*(?:\?|$)|\b(?:there|then)\s*(?:\?|$)"
    r"|\b(?:like|of|about|after|before|than|for|from|in|on|at|by|with|during|since|to) that\b(?! of\b)"
    r"|(?:^\W*|\b(?:who|what|when|where|why|how) )(?:is|are|was|were) that\b"
    r"|\b(?:do|does|did|has|had|can|could|will|would) that\b(?! of\b)"
    # But "who said that it rains".
    r"|\bwho (?!(?:sa[iy]|claim|th[io]|believ|argu|prov|discover|show|stat|found|predict|kn[eo]w)\w*\b)\w+ that\b"
    r"|\bthat (?:building|city|country|day|event|man|month|one|person|thing|town|woman|year)\b",
    re.IGNORECASE,
)
# Words of the languages beside it do not tell English.
_ENGLISH = COMMON - frozenset(("a", "an", "as", "do", "had", "he", "in", "is", "me", "my", "on", "to", "was", "we"))
_ENGLISH |= {"after", "before", "between", "compare", "define", "describe", "explain", "give", "list", "name", "show"}
_ENGLISH |= {"than", "tell", "using", "versus", "words"}
_WORD = re.compile(r"\w+")
_CONTINUES = re.compile(r"^\W*(?:and|but|or|so|also|what about|how about|what else|who else|why not)\b", re.IGNORECASE)
_WORDS = Constraint(regex=rf"[^ \n\r\t]+( [^ \n\r\t]+){{1,{MAX_WORDS - 1}}}")


def stands_alone(question: str) -> bool:
    """Whether a question can be understood without earlier turns; one that is not in English may point to them."""
    if len(plain(question).split()) <= FEW_WORDS or _ENGLISH.isdisjoint(_WORD.findall(question.lower())):
        return False
    return not _CONTINUES.search(question) and not _POINTS_BACK.search(question)


async def condense(context: Context, turns: Sequence[Turn]) -> str:
    """The last question of a conversation, worded to stand alone; `turns` are those before it, oldest first."""
    run, last = context.run, context.question.query
    if stands_alone(last):
        run.decide(STEP, "the last turn stands alone")
        return last
    recent = [turn for turn in turns if turn.content.strip()][-LAST_TURNS:]
    text = "\n".join(f"{turn.role}: {one_line(turn.content)[:MAX_TURN_CHARS]}" for turn in recent)
    messages = PROMPT.fill(documents=fence(text, title="conversation"), query=one_line(last))
    allow_s = min(CAP_S, SHARE * run.budget.left())
    request = Request(STEP, messages, MAX_TOKENS, MIN_TOKENS, constraint=_WORDS)
    completion = await ask(context, request, Allowance(allow_s))
    rewritten = one_line(completion.text) if completion and completion.samples[0].finish_reason != "length" else ""
    if not rewritten or len(rewritten) > MAX_QUERY_CHARS:
        before = next((turn.content for turn in reversed(recent) if turn.role == "user"), "")
        # Of control tokens alone nothing is left.
        rewritten = one_line(f"{before} {last}")[-MAX_QUERY_CHARS:] or last
        run.decide(STEP, "not rewritten: the turn before stands in front of it")
    else:
        run.decide(STEP, f"rewritten: {rewritten}")
    return rewritten
