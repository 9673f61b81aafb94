"""Words of phrases of time as parts of patterns, and the numbers that they mean."""

import re

from services.kit.text.vocabulary import LOOSE_COUNTS, MONTH, ORDINAL_ENDING, ORDINALS, SMALL, WEEKDAY, alternatives

_COUNTS = {**LOOSE_COUNTS, **{word: number for word, number in SMALL.items() if 1 <= number <= 12}}
_RANKS = {word: rank for word, rank in ORDINALS.items() if rank <= 5} | {"last": -1, "final": -1}

LAST = r"(?:last|latest|most recent|recent|previous|past|prior|preceding|this past)"
NEXT = r"(?:next|upcoming|coming|following|this coming)"
THIS = r"(?:this|current)"
WHICH = rf"(?:(?P<last>{LAST})|{THIS}|(?P<next>{NEXT}))"
OF = r"(?:(?:of|in|from|for|during) )?"
COUNT = rf"(?P<count>\d{{1,5}}|{alternatives(_COUNTS)})(?: of)?"
UNIT = r"(?P<unit>business day|day|week|month|quarter|year|decade)s?"
NTH = rf"(?P<nth>{alternatives(_RANKS)}|[1-5]{ORDINAL_ENDING}?)"
# A day, month or quarter without a year, or a weekday without a week.
OPEN = re.compile(
    rf"(?!.*(?:\d{{4}}|\b(?:{LAST}|{NEXT}|{THIS})\b(?! \w+ (?:of|in) )))"
    rf".*(?:\b(?:{MONTH}|{WEEKDAY}s?|q[1-4]|(?:first|second|third|fourth) quarter|quarter [1-4])\b"
    rf"|\d{ORDINAL_ENDING}\b|^\d{{1,2}}[/.-]\d{{1,2}}$).*"
)


def count_of(word: str) -> int:
    return int(word) if word.isdecimal() else _COUNTS[word]


def rank_of(word: str) -> int:
    """The place in an order, from 1; -1 is the last."""
    return _RANKS[word] if word in _RANKS else int(word[0])
