"""The rules: each returns the answer that follows from the facts, or None where it is not certain of one."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from services.kg.outcome import Outcome
from services.kg.settle.facts import Measure, Value, position_of, projected
from services.kg.settle.wording import AMOUNT, AUXILIARY, BOUND, Wording
from services.kit.text.dates import whole_years
from services.kit.text.vocabulary import SCALES, SUFFIXES
from services.kit.text.writing import number_text

# Words before a bound -> how the value compares with it.
BOUNDS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    **dict.fromkeys(("more than", "over", "above"), operator.gt),
    **dict.fromkeys(("less than", "fewer than", "under", "below"), operator.lt),
    **{"at least": operator.ge, "at most": operator.le, "exactly": operator.eq},
}
# Longer lists are no answers of one line.
MAX_LIST = 40
LATEST_AGE = 120
_AVERAGE = re.compile(r"\b(?:average|mean)\b")
_TOTAL = re.compile(r"\b(?:total|sum|combined|altogether|overall|how many|how much)\b")
# Two names, of which one is asked for: was the lake or the tower closed first.
_EITHER = re.compile(r"\| or (?:the )?\|")
_THAN = re.compile(r"\bthan\b")
_SOONER = re.compile(r"\b(?:than|before|after)\b")
_ROWS_THAT_DIFFER = re.compile(r"where\((?P<sign>gt|lt)\((?P<key>\w+), \w+\)\)")


def choice(wording: Wording) -> str | None:
    """Which of several: who is older, which has more."""
    facts = wording.facts
    if len(facts) < 2 or not wording.alike or AMOUNT.search(wording.rest):
        return None
    if AUXILIARY.match(wording.query) and ("than" in wording.words or not _EITHER.search(wording.rest)):
        return None
    direction = wording.direction()
    if not direction:
        return None
    ordered = sorted(facts, key=lambda fact: _rank(fact.value), reverse=direction > 0)
    if ordered[0].value == ordered[1].value:
        return None
    return ordered[0].outcome.entities[0].name.strip()


def yes_or_no(wording: Wording) -> str | None:
    """Whether one has more than another, or more than a number."""
    if not AUXILIARY.match(wording.query):
        return None
    if len(wording.facts) == 1:
        return _against_number(wording)
    if len(wording.facts) != 2 or not wording.alike or " or " in wording.rest:
        return None
    left, right = wording.facts
    than = list((_SOONER if wording.dated else _THAN).finditer(wording.query))
    if len(than) != 1 or not left.at < than[0].start() < right.at:
        return None
    direction = {"before": -1, "after": 1}.get(than[0][0]) or wording.direction()
    if not direction:
        return None
    first, second = _rank(left.value), _rank(right.value)
    return "yes" if (first > second if direction > 0 else first < second) else "no"


def _against_number(wording: Wording) -> str | None:
    (fact,) = wording.facts
    bounds = list(BOUND.finditer(wording.rest))
    if len(bounds) != 1 or not isinstance(fact.value, Decimal) or len(re.findall(r"\d[\d,.]*", wording.rest)) != 1:
        return None
    bound = bounds[0]
    if bound["sign"] and bound["sign"] != fact.measure.unit:
        return None
    limit = Decimal(bound["number"].replace(",", "")).scaleb({**SCALES, **SUFFIXES}.get(bound["scale"] or "", 0))
    return "yes" if BOUNDS[bound["word"]](fact.value, limit) else "no"


def difference(wording: Wording) -> str | None:
    """How much more, how many years older, the difference."""
    if len(wording.facts) != 2 or not wording.alike:
        return None
    spread = re.search(r"\bdifference\b", wording.rest)
    more = re.search(r"\bhow (?:much|many)\b(?: \w+){0,3}? (?P<word>\w+)(?: \S+){0,6}? than\b", wording.rest)
    years = re.search(r"\bhow many (?P<unit>years|days)\b", wording.rest)
    if not spread and not more and not years:
        return None
    left, right = wording.facts
    if not spread:
        direction = wording.direction()
        # "How much more" of what has less is a false premise, and not for a rule to tell.
        if not direction or (_rank(left.value) - _rank(right.value)) * direction <= 0:
            return None
    if isinstance(left.value, date) and isinstance(right.value, date):
        first, last = sorted((left.value, right.value))
        if years and years["unit"] == "days":
            return f"{(last - first).days:,} days"
        # Of 19 years and 10 months some say 20.
        whole = whole_years(first, last)
        return f"{whole} years" if whole == last.year - first.year else None
    if isinstance(left.value, Decimal) and isinstance(right.value, Decimal) and not years:
        return _with_unit(abs(left.value - right.value), left.measure)
    return None


def age(wording: Wording) -> str | None:
    """How old somebody was when something came out."""
    if len(wording.facts) != 2 or not re.search(r"\b(?:how old|age)\b", wording.rest) or "difference" in wording.words:
        return None
    births = [fact for fact in wording.facts if fact.measure.birth]
    events = [fact for fact in wording.facts if not fact.measure.birth]
    if len(births) != 1 or len(events) != 1 or not re.search(r"\b(?:when|at|time)\b", wording.rest):
        return None
    birth, event = births[0].value, events[0].value
    if not isinstance(birth, date) or not isinstance(event, date) or event < birth:
        return None
    years = whole_years(birth, event)
    return str(years) if years <= LATEST_AGE else None


def count(wording: Wording) -> str | None:
    """How many, where one statement counted them."""
    if len(wording.facts) != 1 or not re.search(r"\b(?:how many|number of|how often)\b", wording.rest):
        return None
    (fact,) = wording.facts
    if fact.outcome.aggregate != "len" or not isinstance(fact.value, Decimal) or wording.compares():
        return None
    return number_text(fact.value)


def aggregate(wording: Wording) -> str | None:
    """An average or a total that one statement made; also one of two or more values that the question names."""
    if wording.compares():
        return None
    if len(wording.facts) == 1:
        (fact,) = wording.facts
        how, average = fact.outcome.aggregate, _AVERAGE.search(wording.rest)
        if not (average if how == "avg" else how == "sum" and not average and _TOTAL.search(wording.rest)):
            return None
        assert isinstance(fact.value, Decimal)  # noqa: S101 - sums and averages are numbers
        return _with_unit(fact.value, fact.measure)
    values = [fact.value for fact in wording.facts if isinstance(fact.value, Decimal)]
    if len(values) != len(wording.facts) or not wording.alike or " or " in wording.rest:
        return None
    total = sum(values, Decimal(0))
    measure = wording.facts[0].measure
    if _AVERAGE.search(wording.rest) and not re.search(r"\b(?:total|sum|combined)\b", wording.rest):
        return _with_unit(total / len(values), measure)
    if re.search(r"\b(?:combined|together|sum)\b", wording.rest):
        return _with_unit(total, measure)
    return None


def listed(query: str, outcomes: Sequence[Outcome]) -> str | None:
    """The days on which something rose or fell, where one statement listed all and the question is as it says."""
    if len(outcomes) != 1 or not outcomes[0].source.startswith("ALL ") or outcomes[0].function is None:
        return None
    outcome, key = outcomes[0], projected(outcomes[0].source)
    dated = any(one.name == key and one.kind == "date" for one in outcome.function.keys)  # type: ignore[union-attr]
    rows = outcome.rows
    if not dated or not 1 <= len(rows) <= MAX_LIST or len(rows) != outcome.total or not outcome.windows:
        return None
    values = [row.get(key) for row in rows]
    if len(outcome.entities) != 1 or not all(isinstance(value, str) and value for value in values):
        return None
    differ = _ROWS_THAT_DIFFER.search(outcome.source)
    position = position_of(query, outcome.entities[0].name.lower().strip())
    if position is None or differ is None or not re.search(r"\b(?:days|dates)\b", query):
        return None
    up = bool(re.search(r"\bhigher\b", query))
    if up == bool(re.search(r"\blower\b", query)) or up != (differ["sign"] == "gt"):
        return None
    return ", ".join(map(str, values))


def _rank(value: Value) -> Decimal:
    return Decimal(value.toordinal()) if isinstance(value, date) else value


def _with_unit(value: Decimal, measure: Measure) -> str:
    if measure.currency and abs(value) >= 1:
        cents = 0 if abs(value) >= 1_000 and value == value.to_integral_value() else 2
        return f"{measure.unit}{value:,.{cents}f}"
    text = number_text(value)
    return f"{measure.unit}{text}" if measure.currency else f"{text} {measure.unit}".rstrip()


# By name, in the order in which they are tried.
RULES: Mapping[str, Callable[[Wording], str | None]] = {
    **{"age": age, "difference": difference, "comparison": choice, "yes or no": yes_or_no},
    **{"count": count, "aggregate": aggregate},
}
