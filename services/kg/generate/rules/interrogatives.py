"""What a question asks for by its first words: a date, people, an amount, yes or no."""

import re
from collections.abc import Sequence

from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.tokens import Range, Tokens
from services.kg.generate.rules.words import english

# What a question begins with that wants yes or no.
DOES = ("do", "does", "did")
WHETHER = ("is", "are", "was", "were", *DOES, "has", "have", "had", "can")
_FOR_ONE = re.compile(r"\W*(?:how|what|when|where|which|who|whom|whose|why)\b(?!['’]s\b)", re.IGNORECASE)


_OF_ONE = re.compile(
    r"\W*(?:(?:at|by|for|from|in|on|to|under|up to) )?(?:(?:what|which) (?!.*\b(?:all|each|every|list)\b)\w*[^s\W] "
    r"(?:is|was|do|does|did|has|had|will|would|can|should)|when|where|what(?:['’]s| is| was) the \w*[^s\W])\b",
    re.IGNORECASE,
)


def asks_when(tokens: Tokens) -> bool:
    """Whether the question wants a date."""
    return tokens.word(0) == "when" or bool(tokens.find_all(english().dates))


def asks_what(tokens: Tokens) -> bool:
    """Whether the question wants what something is, and no rows: "what is her email", and not "what books"."""
    contracted = tokens.word(0) in ("what's", "what’s", "whats")
    return contracted or tokens.begins("what", "is") or tokens.begins("what", "are")


def asks_for_deeds(tokens: Tokens, nouns: Sequence[Range]) -> bool:
    """Whether the question wants what rows do: "what do all the sponsors give us" asks for no sponsors."""
    first = min((one.first for one in nouns), default=0)
    does = tokens.begins("what") and tokens.word(1) in DOES
    return does and english().before_kinds.issuperset(map(tokens.word, range(2, first)))


def asks_for_one(query: str) -> bool:
    """Whether the question may want one thing of what it names: "who owns it", and not "who is he" or "is it there"."""
    return _FOR_ONE.match(query) is not None and compiled(english().whole).search(query) is None


def asks_for_a_single(query: str) -> bool:
    """Whether the question wants one value: "which ship is there now", and not "which ships" or "who plays"."""
    return _OF_ONE.match(query) is not None


def values_may_answer(tokens: Tokens) -> bool:
    """Whether a value that the question says may be its answer: "is radon a noble gas", and not "who closed it"."""
    return tokens.word(0) not in ("who", "when", "where", "whose", "how") and not asks_when(tokens)


def asks_about_it(tokens: Tokens) -> bool:
    """Whether the question may want all that is known of what it names: "who is he", and not "how much is he paid"."""
    return tokens.word(0) not in ("how", "when", "whose", "which") and not asks_when(tokens)
