"""Conditions on numbers and times that a question says: more or less than, between, just so many, "last week"."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from services.kg.generate.rules.inflection import inflections
from services.kg.generate.rules.orders import comparatives
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import BESIDE, NEAR, Number, Range, Tokens
from services.kg.generate.rules.trees import compared
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC
from services.kg.language.tree import Condition, Operator
from services.kit.text.vocabulary import MONTH_NAMES, MULTIPLES

_YEAR = re.compile(r"\d{4}")
_DIGITS = re.compile(r"\d+(?:['’]s)?")
# How keys end whose numbers name something.
_NUMBERED = ("_no", "_nr", "_number", "_code", "_id", "extension")


def thresholds_of(roles: Roles) -> list[Condition]:
    """Conditions on numbers: over, under, between, with the key that the unit, the adjective or a noun says."""
    tokens = roles.tokens
    figures = [one for one in tokens.numbers if not one.ordinal and tokens.free(one.place)]
    figures = [one for one in figures if not _is_of_key(roles, one.place)]
    ranks = (one for one in tokens.numbers if one.ordinal and tokens.free(one.place))
    conditions: list[Condition | None] = [
        *_date_conditions(roles),
        *_never_conditions(roles),
        *(_exactly(roles, one) for one in ranks),
    ]
    for low, high in pairwise(figures):
        span = _span(tokens, low.place, high.place)
        if span is None or not tokens.free(low.place):
            continue
        years, sign = _are_years(roles, low, high), Range(span.first, low.place.first)
        if key := roles.dated_key(roles.dated) if years else _key_of(roles, high, sign, ()):
            tokens.take(span)
            conditions += [_comparison(roles, key, "ge", low), _comparison(roles, key, "le", high)]
    for figure in figures:
        if tokens.free(figure.place):
            conditions.append(_year(roles, figure) or _bound(roles, figure) or _exactly(roles, figure))
    kept = [one for one in conditions if one is not None]
    empty = {one.key for one in kept if not one.values}
    # "Not founded in 1900" is neither an empty date nor that year.
    tokens.doubt |= any(one.key in empty for one in kept if one.values)
    roles.take_idle([one.key for one in kept])
    return kept


def _span(tokens: Tokens, low: Range, high: Range) -> Range | None:
    """The words from "between" or "from" to the second of two numbers or times; None where they end no span."""
    roughly = english().roughly
    joint = [one for one in tokens.between(low, high) if one not in roughly]
    openings = (one for one in tokens.find(("between", "from")) if one.end <= low.first)
    opening = next((one for one in openings if roughly.issuperset(tokens.between(one, low))), None)
    is_joined = len(joint) <= BESIDE and (not joint or joint[-1] in english().span_joints)
    return Range(opening.first, high.end) if opening is not None and is_joined else None


def _comparison(roles: Roles, key: str, operator: Operator, figure: Number) -> Condition:
    """The condition that compares a key with a number, in the key's scale; dates are texts."""
    own = roles.function.key(key)
    scale = MULTIPLES.get(own.unit.partition(" ")[0], 1)
    # Five million, or 500,000 euros, of what is counted in millions; five are such millions.
    units = {form for one in roles.units(own) for form in inflections(one.rpartition(" ")[2])}
    whole = scale > 1 and (figure.value >= scale or roles.tokens.word(figure.place.end) in units)
    value = figure.value / scale if whole else figure.value
    return compared(operator, key, str(value) if own.kind == "date" else value)


def _bound(roles: Roles, figure: Number) -> Condition | None:
    """The condition of more or less than a number; None where nothing says so."""
    words = english()
    for more, phrases in ((True, words.over), (False, words.under)):
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
            operators: tuple[Operator, Operator] = ("gt", "ge") if more else ("lt", "le")
            return _comparison(roles, key, operators[loose], figure)
    ends: Sequence[tuple[Operator, Sequence[str]]] = (("ge", words.or_more), ("le", words.or_less))
    for operator, behind in ends:
        # "Five nights or more".
        for end in (one for one in roles.tokens.find(behind) if 0 <= one.first - figure.place.end <= BESIDE):
            if key := _key_of(roles, figure, end, ()):
                roles.tokens.take(end, figure.place)
                return _comparison(roles, key, operator, figure)
    return None


def _exactly(roles: Roles, figure: Number) -> Condition | None:
    """The condition of just this number: period 2, 8 cylinders, the second floor; else None."""
    had = figure.ordinal or roles.tokens.word_before(figure.place) in english().before_counts
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
    return None


def _year(roles: Roles, figure: Number) -> Condition | None:
    """The condition of a year with what stands before it: in, before, since; None where it is none."""
    bounds = roles.tokens.find((*english().over, *english().under))
    if any(one.end == figure.place.first for one in bounds) or not _are_years(roles, figure):
        return None
    # Part of a date that nothing has read, 31/31/2024, or of 2024-Q3, is no year.
    roles.tokens.doubt |= not _DIGITS.fullmatch(roles.tokens.text_of(figure.place))
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
    return place.first >= figure.place.end and len(between) <= 1 and not english().apiece.intersection(between)


def _date_conditions(roles: Roles) -> list[Condition]:
    """Conditions on a date by the times of the question: on, in, before, since one, between two; none by a year alone.

    Several times that are not the two ends of a span are a doubt.
    """
    tokens = roles.tokens
    dates = [key for key in roles.dated if roles.function.key(key).kind == "date"]
    said = tokens.times().items()
    times = [(text, place) for place, text in said if tokens.free(place) and not _is_of_key(roles, place)]
    if not dates or not times or all(text.isdigit() for text, _ in times):
        return []
    (first, place), *others = times
    if not others:
        operator = _operator_of_time(tokens, place)
        key = roles.dated_key(dates)
        tokens.take(place)
        return [compared(operator, key, first)]
    (last, end) = others[0]
    span = _span(tokens, place, end)
    if len(others) > 1 or span is None:
        tokens.doubt = True
        return []
    key = roles.dated_key(dates)
    tokens.take(span)
    return _between(tokens, key, first, last)


def _between(tokens: Tokens, key: str, first: str, last: str) -> list[Condition]:
    """The conditions of a span: on each end, or on both where one tells the other's year, 5 May to 10 June 2023."""
    span = f"{first} to {last}"
    whole, start, end = map(tokens.question.window_of, (span, first, last))
    if whole is None or end is None or whole.end != end.end:
        # Not before its end began: "June 2023 to May 2022".
        tokens.doubt = True
        return []
    if start is not None and start.start == whole.start:
        return [compared("ge", key, first), compared("le", key, last)]
    return [compared("eq", key, span)]


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


def _never_conditions(roles: Roles) -> list[Condition]:
    """Conditions on dates that have not come, what has not been returned; and on counts of none: without children."""
    tokens = roles.tokens
    conditions: list[Condition] = []
    for mention in roles.mentions:
        key = roles.key_of(mention)
        first = tokens.index_before(mention.place, english().between_not)
        place = Range(first, mention.place.end)
        if key is None or not tokens.free(place):
            continue
        # A microchip's number counts nothing.
        is_text = (key.kind == "text" or key.name.endswith(_NUMBERED)) and key != roles.subject
        word = tokens.word(first)
        # "Dogs that don't have a microchip" are those without one; what is not of steel may be of iron.
        between = tokens.between(Range(first, first + 1), mention.place)
        lacks = tokens.negates(first) and not english().having.isdisjoint(between)
        is_unset = (key.kind == "date" and tokens.negates(first)) or (is_text and (word in english().without or lacks))
        is_none = key.kind == "integer" and not is_text and word in english().none and key.name not in roles.dated
        if is_unset or is_none:
            # No manager Ann may be another manager.
            names = (one for one in tokens.names() if one.first >= place.end)
            called = english().before_names.difference(english().at)
            tokens.doubt |= any(called.issuperset(tokens.between(place, one)) for one in names)
            # "Not shipped by DHL" may be shipped by another.
            tokens.doubt |= key.kind == "date" and tokens.word(place.end) in english().how_done
            tokens.take(place)
            conditions.append(compared("isnull", key.name) if is_unset else compared("eq", key.name, 0))
    return conditions


def months_alone(tokens: Tokens) -> Iterator[Range]:
    """Months of no year, which nothing narrows rows by: "opened in May"; June of "the age of June" may be a name."""
    question = tokens.question
    times = tokens.times()
    for place in (Range(index, index + 1) for index in range(tokens.count)):
        text, before = tokens.text_of(place), tokens.word_before(place)
        if text.lower() not in MONTH_NAMES or text.islower() or before not in english().before_months:
            continue
        spots = [one for one in question.spots if place.overlaps(tokens.place_of(one.start, one.end))]
        # Whoever was "hired in June" is not June Park.
        is_named = any(one not in tokens.spots_at(place) or one.text.lower() == text.lower() for one in spots)
        is_owner = before == "of" and bool(spots)
        if not (is_named or is_owner or any(map(place.overlaps, times))):
            yield place


def _operator_of_time(tokens: Tokens, place: Range) -> Operator:
    """The operator that the words beside a time mean; they are read."""
    if _goes_on(tokens, place):
        tokens.take(Range(place.first - 1, place.end + 1))
        return "ge"
    ends, signs = english().open_ends, (*english().time_operators, ("le", english().through))
    # "In 2020 or later"; but "in 2020 after Ann" is not after 2020.
    behind = [(operator, one) for operator, phrases in ends for one in tokens.find(phrases) if one.first == place.end]
    before = [(operator, one) for operator, phrases in signs for one in tokens.find(phrases) if one.leads_to(place)]
    # The longest: "all through 2023" is not until its end.
    for operator, sign in (behind or sorted(before, key=lambda one: one[1].first - one[1].end))[:1]:
        tokens.take(sign)
        return operator
    # "By 2023" may be before it or until its end, and is no day or year alone.
    tokens.doubt |= tokens.word_before(place) == "by"
    return "eq"


def _goes_on(tokens: Tokens, place: Range) -> bool:
    """Whether a time only begins: "from 2023 on", but not "from 2023 on DVD"."""
    on, behind = tokens.word(place.end), tokens.word(place.end + 1)
    return tokens.word_before(place) == "from" and on == "on" and (not behind.isalnum() or behind in english().did)
