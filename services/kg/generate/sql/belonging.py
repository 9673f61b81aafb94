"""Whether a question without a name of a domain belongs there all the same: by its words and values."""

import re
from collections.abc import Sequence

from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.sql.linking import Link, capitals
from services.kg.selects import table_name

_OURS = re.compile(r"\b(?:we|us|our|ours|here)\b", re.IGNORECASE)
# Rows have an order, whatever its column is called.
_NO_SUPERLATIVE = "arr|att|conqu|cont|dig|earn|for|harv|hon|inter|inv|manif|midw|mod|pri|prot|requ|sugg"
_SUPERLATIVE = re.compile(
    rf"\b(?:most|least|fewest|best|worst|top|(?!(?:{_NO_SUPERLATIVE})est\b)[a-z]{{3,}}est)\b", re.IGNORECASE
)
_OF_LATE = re.compile(
    r"\b(?:(?:this|last|past) (?:year|quarter|month|week)|today|yesterday|so far|currently)\b", re.IGNORECASE
)
# The things themselves are asked for.
_ASKED = re.compile(
    r"\b(?:how many|which|what|list|all|any|(?:number|list) of)\s+(?:of (?:the|our)\s+|\w+\s+)?$", re.IGNORECASE
)


def chars_known(query: str, links: Sequence[Link], lexicon: Lexicon) -> int:
    """How many characters of a question say that it belongs to a domain.

    They are texts of several words. Where there are none it is 1 for two signs, of which one is what the domain's
    things are called, a value of theirs, or whose they are ("our"). It is 0 where the question names, by a capital,
    what the domain has no text for: it is about something else.
    """
    if any(not any(one.start <= at < one.end for one in links) for at in capitals(query)):
        return 0
    telling = {(one.start, one.end) for one in links if one.is_telling}
    if telling:
        return sum(end - start for start, end in telling)
    is_theirs = any(one.is_said for one in links) or _OURS.search(query) or compiled(lexicon.every_noun).search(query)
    return int(bool(is_theirs) and count_signs(query, links, lexicon) > 1)


def count_signs(query: str, links: Sequence[Link], lexicon: Lexicon) -> int:
    """How many signs a question has that it belongs to a domain.

    They are values and words of the domain, things that are asked for ("how many jobs"), "our", words that put rows in
    order, and times that end now; part of the name of a row is two.
    """
    values = {(one.start, one.end) for one in links if one.is_said}
    names = {f"{table_name(one)}.{one.subject[0]}" for one in lexicon.own.shown}
    named = {(one.start, one.end) for one in links if one.is_said and not names.isdisjoint(one.columns)}
    words = [one for one in compiled(lexicon.every_word).finditer(query) if not _is_in(one.span(), values)]
    asks_things = any(_ASKED.search(query[: one.start()]) for one in compiled(lexicon.every_noun).finditer(query))
    signs = (one.search(query) is not None for one in (_OURS, _SUPERLATIVE, _OF_LATE))
    return len(values) + len(named) + len(words) + asks_things + sum(signs)


def _is_in(place: tuple[int, int], others: set[tuple[int, int]]) -> bool:
    return any(start < place[1] and place[0] < end for start, end in others)
