"""Days, months and "last week" of a question as conditions on a date."""

import re

from services.kg.generate.rules.english import english
from services.kg.generate.rules.question import quote
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Range, Tokens

_YEAR = re.compile(r"\d{4}")
_NOT = frozenset(("not", "never", "haven't", "hasn't", "wasn't", "weren't", "isn't", "aren't"))
_NONE = frozenset(("no", "zero", "without", "never", "not"))
_BETWEEN_NOT = frozenset(("been", "yet", "be", "ever", "so", "far"))
# Words between the two ends of a span.
_TO = frozenset(("and", "to", "until", "till", "-", "through"))


def date_conditions(roles: Roles) -> list[str]:
    """Conditions on a date by the times of the question: on, in, before, since one, between two; none by a year alone.

    Several times that are not the two ends of a span are a doubt.
    """
    tokens, question = roles.tokens, roles.tokens.question
    dates = [key for key in roles.dated if roles.function.key(key).kind == "date"]
    times = [
        (one.text, place)
        for one in question.times
        if tokens.free(place := tokens.place_of(one.start, one.start + len(one.text))) and not is_of_key(roles, place)
    ]
    if not dates or not times or all(text.isdigit() for text, _ in times):
        return []
    (first, place), *others = times
    if not others:
        operator = operator_of_time(tokens, place)
        key = roles.dated_key(dates)
        tokens.take(place)
        return [f"{operator}({key}, {quote(first)})"]
    (last, end) = others[0]
    opening = [one for one in tokens.find(("between", "from")) if one.end == place.first]
    if len(others) > 1 or not opening or not _TO.issuperset(tokens.between(place, end)):
        tokens.doubt = True
        return []
    key = roles.dated_key(dates)
    tokens.take(Range(opening[0].first, end.end))
    return [f"ge({key}, {quote(first)})", f"le({key}, {quote(last)})"]


def is_of_key(roles: Roles, place: Range) -> bool:
    """Whether a year belongs to a key that is mentioned, `visitors_2023`; of another year nothing is known."""
    text = roles.tokens.text_of(place)
    years = {year for one in roles.mentions if _YEAR.fullmatch(year := one.key.rpartition("_")[2]) and year != one.key}
    if not years or not _YEAR.fullmatch(text):
        return False
    if not any(one.place.overlaps(place) for one in roles.mentions):
        roles.tokens.take(place)
        roles.tokens.doubt |= text not in years
    return True


def never_conditions(roles: Roles) -> list[str]:
    """Conditions on dates that have not come, what has not been returned; and on counts of none: without children."""
    tokens, conditions = roles.tokens, []
    for mention in roles.mentions:
        key = roles.key_of(mention)
        first = mention.place.first - 1
        while first >= 0 and tokens.word(first) in _BETWEEN_NOT:
            first -= 1
        place = Range(first, mention.place.end)
        if key is None or first < 0 or not tokens.free(place):
            continue
        if key.kind == "date" and tokens.word(first) in _NOT:
            tokens.take(place)
            conditions.append(f"isnull({key.name})")
        elif key.kind == "integer" and tokens.word(first) in _NONE and key.name not in roles.dated:
            tokens.take(place)
            conditions.append(f"eq({key.name}, 0)")
    return conditions


def operator_of_time(tokens: Tokens, place: Range) -> str:
    """The operator that the words beside a time mean; they are read."""
    for operator, behind in (("ge", "(or later|or after|or newer|onwards)"), ("le", "or (earlier|before|older)")):
        if places := [one for one in tokens.find((behind,)) if one.first == place.end]:
            tokens.take(places[0])
            return operator
    for operator, phrases in (*english().time_operators, ("eq", ("in", "of", "on", "during"))):
        if places := [one for one in tokens.find(phrases) if one.leads_to(place)]:
            tokens.take(places[0])
            return operator
    return "eq"
