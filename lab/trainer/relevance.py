"""Whether texts hold an answer, so that a model could have known it from them.

db3 asks an LLM for it (section 2.4, rule 3.2). Here it is decided by the texts themselves: the words of the answer,
its numbers within rounding, its dates however they are written.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from datetime import date

from services.kit.text.dates import dates
from services.kit.text.folding import without_accents
from services.kit.text.numbers import numbers
from services.kit.text.vocabulary import MULTIPLES, SMALL, SUFFIXES, TENS

# Rounding in either the answer or the text: 1.2 billion for 1,204,000,000.
TOLERANCE = 0.005
# An answer of yes or no stands in no text; it can be known where so much of the question's words is spoken of.
ABOUT_SHARE = 0.6
# Integers below it are counts, years and scores, which nobody rounds.
EXACT_BELOW = 10_000

_SAY_NOTHING = """a an and are as at be been by did do does for from had has have he her his how in is it its many more
most much no of on or she than that the their them there they this to was were what when where which who whom whose why
will with would yes you i me my tell can could please"""
_STOP_WORDS = frozenset(_SAY_NOTHING.split())
_BESIDE_NUMBERS = "percent pct usd us dollar dollars euro euros cents year years time times about around over"
_UNITS = frozenset(_BESIDE_NUMBERS.split())
_OF_NUMBERS = frozenset((*SMALL, *TENS, *MULTIPLES, *SUFFIXES))
# What begins with such a word may be a name: No Country for Old Men, No. 10.
_YES_NO = re.compile(r"(?:yes|no|true|false)(?:[,;:]|\.(?!\s*\d)|\s(?:it|he|she|they|there|this|that)\b|$)")
_ITEMS = re.compile(r"\s*(?:,|;|\n|\band\b|&)\s*")


def plain(text: str) -> str:
    """Lower case, without accents and typographic variants, in single spaces."""
    text = text.translate({0x2019: "'", 0x2018: "'", 0x2013: "-", 0x2014: "-"})
    return " ".join(without_accents(text).lower().split())


def days_in(text: str) -> set[date]:
    """The full dates of a `plain` text, however they are written."""
    return {day for written in dates(text, compact=True) for day in itertools.islice(written.days(), 1)}


def numbers_in(text: str) -> list[float]:
    """The numbers of a `plain` text, with their scale: `$1.2 million` is 1,200,000, `three` is 3."""
    return [float(number.value) for number in numbers(text)]


def same_number(gold: float, other: float) -> bool:
    """Whether one is the other, or its rounding."""
    if gold == other:
        return True
    if gold == int(gold) and other == int(other) and abs(gold) < EXACT_BELOW:
        return False
    return abs(gold - other) <= TOLERANCE * max(abs(gold), abs(other))


def holds(contexts: Sequence[str], gold: str, query: str) -> bool:
    """Whether an answer can be known from the texts.

    An answer of several items is held when each of them is, in whichever text. A yes or a no is held by a text that
    speaks of what the question names.
    """
    answer = plain(gold).strip(" .!?\"'")
    texts = [plain(context) for context in contexts if context.strip()]
    if not answer or not texts:
        return False
    if _YES_NO.match(answer):
        return _about(texts, plain(query))
    question = frozenset(_content(plain(query)))
    return any(_has(text, answer, question) for text in texts) or _all_items(texts, answer, question)


def _all_items(texts: Sequence[str], answer: str, question: frozenset[str]) -> bool:
    # The comma of a date parts no items.
    items = [item for item in _ITEMS.split(answer) if item] if not days_in(answer) else []
    return len(items) > 1 and all(any(_has(text, item, question) for text in texts) for item in items)


def _has(text: str, answer: str, question: frozenset[str]) -> bool:
    if days := days_in(answer):
        return days <= days_in(text)
    if re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text):
        return True
    words = _content(answer)
    numbers = numbers_in(answer)
    names = {word for word in words if not re.search(r"\d", word) and word not in _OF_NUMBERS}
    if numbers:
        candidates = numbers_in(text)
        if not all(any(same_number(number, one) for one in candidates) for number in numbers):
            return False
        # The number needs no unit and no word of the question beside it; any other word is a name.
        return names - _UNITS - question <= set(_content(text))
    return bool(names) and names <= set(_content(text))


def _about(texts: Iterable[str], query: str) -> bool:
    words = set(_content(query))
    return bool(words) and any(len(words & set(_content(text))) >= ABOUT_SHARE * len(words) for text in texts)


def _content(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+(?:['.][^\W_]+)*", text)
    return [word.removesuffix("'s") for word in words if word not in _STOP_WORDS]
