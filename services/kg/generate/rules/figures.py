"""Conditions on numbers and times that a question says: more or less than, between, just so many, "last week"."""

import re
from collections.abc import Sequence
from itertools import pairwise

from services.kg.generate.rules.inflection import inflections
from services.kg.generate.rules.orders import comparatives
from services.kg.generate.rules.question import quote
from services.kg.generate.rules.roles import NO, Roles
from services.kg.generate.rules.tokens import BESIDE, NEAR, Number, Range, Tokens
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC
from services.kit.text.vocabulary import MULTIPLES

_YEAR = re.compile(r"\d{4}")
_NONE = frozenset(("no", "zero", "without", "never", "not"))
# Words between a deed and how it was done.
_HOW = frozenset(("by", "with", "through", "via", "from", "to"))
_BETWEEN_NOT = frozenset(("a", "an", "any", "been", "yet", "be", "ever", "so", "far"))
# Words between the two ends of a span.
_TO = frozenset(("and", "to", "until", "till", "-", "through"))
_FOR_EACH = frozenset(("a", "an", "per", "each", "every"))
_BEFORE_COUNTS = frozenset(("has", "have", "had", "having", "with", "exactly", "worth"))


def thresholds_of(roles: Roles) -> list[str]:
    """Conditions on numbers: over, under, between, with the key that the unit, the adjective or a noun says."""
    tokens = roles.tokens
    numbers = (one for one in tokens.numbers if not one.ordinal and tokens.free(one.place))
    figures = [one for one in numbers if not _is_of_key(roles, one.place)]
    ranks = (one for one in tokens.numbers if one.ordinal and tokens.free(one.place))
    conditions = [*_date_conditions(roles), *_never_conditions(roles), *(_exactly(roles, one) for one in ranks)]
    for low, high in pairwise(figures):
        opening = [one for one in tokens.find(("between", "from")) if one.end == low.place.first]
        if not opening or high.place.first - low.place.end > BESIDE or not tokens.free(low.place):
            continue
        years = _are_years(roles, low, high)
        if key := roles.dated_key(roles.dated) if years else _key_of(roles, high, opening[0], ()):
            tokens.take(Range(opening[0].first, high.place.end))
            conditions += [_comparison(roles, key, "ge", low), _comparison(roles, key, "le", high)]
    for figure in figures:
        if tokens.free(figure.place):
            conditions.append(_year(roles, figure) or _bound(roles, figure) or _exactly(roles, figure))
    conditions = [one for one in conditions if one]
    empty = {one.removeprefix("isnull(").rstrip(")") for one in conditions if one.startswith("isnull(")}
    # "Not founded in 1900" is neither an empty date nor that year.
    tokens.doubt |= any(f"({key}, " in one for key in empty for one in conditions)
    roles.take_idle([one.partition("(")[2].partition(",")[0].rstrip(")") for one in conditions])
    return conditions


def _comparison(roles: Roles, key: str, operator: str, figure: Number) -> str:
    """The condition that compares a key with a number, in the key's scale; dates are texts."""
    own = roles.function.key(key)
    scale = MULTIPLES.get(own.unit.partition(" ")[0], 1)
    # Five million, or 500,000 euros, of what is counted in millions; five are such millions.
    units = {form for one in roles.units(own) for form in inflections(one.rpartition(" ")[2])}
    whole = scale > 1 and (figure.value >= scale or roles.tokens.word(figure.place.end) in units)
    value = figure.value / scale if whole else figure.value
    return f"{operator}({key}, {quote(str(value)) if own.kind == 'date' else value})"


def _bound(roles: Roles, figure: Number) -> str:
    """The condition of more or less than a number; empty where nothing says so."""
    words = english()
    for more, phrases, inclusive, strict in ((True, words.over, "ge", "gt"), (False, words.under, "le", "lt")):
        adjectives = comparatives(roles, more=more)
        signs = roles.tokens.find((*phrases, *(f"{one} than" for one in adjectives)))
        signs = [one for one in signs if one.leads_to(figure.place)]
        if not signs:
            continue
        sign = min(signs, key=figure.place.near)
        phrase = roles.tokens.text_of(sign).lower()
        keys = tuple(dict.fromkeys(key for one in adjectives if one in phrase for key in adjectives[one]))
        if key := _key_of(roles, figure, sign, keys):
            roles.tokens.take(sign, figure.place)
            loose = any(word in phrase for word in ("least", "at most", "no less", "no more"))
            return _comparison(roles, key, inclusive if loose else strict, figure)
    return ""


def _exactly(roles: Roles, figure: Number) -> str:
    """The condition of just this number: period 2, 8 cylinders, the second floor; else empty."""
    had = figure.ordinal or roles.tokens.word_before(figure.place) in _BEFORE_COUNTS
    for mention in roles.mentions:
        key = roles.key_of(mention)
        if key is None or key.kind not in ("integer", "number") or not roles.tokens.free(mention.place):
            continue
        counted = had and figure.place.end == mention.place.first
        whole = key.kind == "integer" and not figure.ordinal
        named = whole and not mention.counted and mention.place.end == figure.place.first
        if counted or named:
            roles.tokens.take(mention.place, figure.place)
            return _comparison(roles, key.name, "eq", figure)
    return ""


def _year(roles: Roles, figure: Number) -> str:
    """The condition of a year with what stands before it: in, before, since; empty where it is none."""
    bounds = roles.tokens.find((*english().over, *english().under))
    if any(one.end == figure.place.first for one in bounds) or not _are_years(roles, figure):
        return ""
    # Before the key is looked for: one may be called `since`.
    operator = _operator_of_time(roles.tokens, figure.place)
    roles.tokens.take(figure.place)
    return _comparison(roles, roles.dated_key(roles.dated), operator, figure)


def _are_years(roles: Roles, *figures: Number) -> bool:
    """Whether the rows are dated and these may be years: neither order 2050, which is not known, nor 1000 euros."""
    if not roles.dated or not all(isinstance(one.value, int) and 1000 <= one.value < 2100 for one in figures):
        return False
    units = roles.tokens.find(one for key in roles.function.keys for one in roles.units(key))
    before, behind = {noun.end for noun in roles.tokens.find(roles.nouns)}, {unit.first for unit in units}
    return not any(one.place.first in before or one.place.end in behind for one in figures)


def _key_of(roles: Roles, figure: Number, sign: Range, keys: Sequence[str]) -> str:
    """The key that a number is of: by the unit behind it, by the adjective, by a key that is named beside it."""
    numbers = (key for key in roles.function.keys if key.kind in NUMERIC)
    units = {
        key.name: places
        for key in numbers
        if (places := [one for one in roles.tokens.find(roles.units(key)) if _is_unit(roles, figure, one)])
    }
    if units:
        named = [one for one in roles.mentions if one.key in units and one.place.near(sign) <= NEAR]
        nearest = min(named, key=lambda one: one.place.near(sign), default=None)
        # Of several in one unit the one that is named, or that the adjective is of.
        fitting = [nearest.key] if nearest is not None else [one for one in units if one in keys] or [*units]
        roles.tokens.doubt |= len(fitting) > 1
        name = fitting[0]
        roles.tokens.take(*units[name], *(one.place for one in named if one.key == name))
        return name
    if keys:
        return keys[0]
    numeric = [one for one in roles.mentions if roles.numeric(one) and roles.tokens.free(one.place)]
    distances = ((min(one.place.near(sign), one.place.near(figure.place)), one) for one in numeric)
    distance, nearest = min(distances, key=lambda one: one[0], default=(NEAR, None))
    if nearest is None or distance > NEAR:
        return ""
    roles.tokens.take(nearest.place)
    return nearest.key


def _is_unit(roles: Roles, figure: Number, place: Range) -> bool:
    """Whether a unit is that of a number: 16 kilos, and not 16 a kilo."""
    if place.first < figure.place.end < place.end and figure.place.first < place.first:
        # The million is the number's and the unit's.
        return True
    between = roles.tokens.between(figure.place, place)
    return place.first >= figure.place.end and len(between) <= 1 and not _FOR_EACH.intersection(between)


def _date_conditions(roles: Roles) -> list[str]:
    """Conditions on a date by the times of the question: on, in, before, since one, between two; none by a year alone.

    Several times that are not the two ends of a span are a doubt.
    """
    tokens, question = roles.tokens, roles.tokens.question
    dates = [key for key in roles.dated if roles.function.key(key).kind == "date"]
    times = [
        (one.text, place)
        for one in question.times
        if tokens.free(place := tokens.place_of(one.start, one.start + len(one.text))) and not _is_of_key(roles, place)
    ]
    if not dates or not times or all(text.isdigit() for text, _ in times):
        return []
    (first, place), *others = times
    if not others:
        operator = _operator_of_time(tokens, place)
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


def _is_of_key(roles: Roles, place: Range) -> bool:
    """Whether a year belongs to a key that is mentioned, `visitors_2023`; of another year nothing is known."""
    text = roles.tokens.text_of(place)
    years = {year for one in roles.mentions if _YEAR.fullmatch(year := one.key.rpartition("_")[2]) and year != one.key}
    if not years or not _YEAR.fullmatch(text):
        return False
    if not any(one.place.overlaps(place) for one in roles.mentions):
        roles.tokens.take(place)
        roles.tokens.doubt |= text not in years
    return True


def _never_conditions(roles: Roles) -> list[str]:
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
        if key.kind == "date" and tokens.negates(first):
            # "Not shipped by DHL" may be shipped by another.
            tokens.doubt |= tokens.word(place.end) in _HOW
            tokens.take(place)
            conditions.append(f"isnull({key.name})")
        elif key.kind == "text" and not key.entity and tokens.word(first) in NO and key != roles.subject:
            tokens.take(place)
            conditions.append(f"isnull({key.name})")
        elif key.kind == "integer" and tokens.word(first) in _NONE and key.name not in roles.dated:
            tokens.take(place)
            conditions.append(f"eq({key.name}, 0)")
    return conditions


def _operator_of_time(tokens: Tokens, place: Range) -> str:
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
