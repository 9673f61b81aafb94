"""The answer to a made-up question, from what executing its program returns."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from lab.trainer.synthesise.drawing import Slots, fill
from lab.trainer.synthesise.graph import Statement, shown
from lab.trainer.synthesise.phrases import Answer
from services.kg.language.catalogue import NUMERIC, Key
from services.kg.outcome import Outcome, Scalar
from services.kg.verbalize import grouped, key_of, spell
from services.kit.text.dates import whole_years

# The longest list of values that an answer holds.
MOST_VALUES = 10
# A smaller ratio is rounded away.
LEAST = 0.01


def settle(how: Answer, statements: Sequence[Statement], slots: Slots) -> str | None:
    """The answer in words; None where there is none, or several."""
    outcomes = [statement.outcome for statement in statements]
    last = outcomes[-1]
    if how.more or how.less or how.than:
        one, two = (_single(outcome) for outcome in outcomes[-2:])
        if one is None or two is None or type(one) is not type(two) or one == two:
            return None
        if how.than:
            return "yes" if (one > two) == (how.than == "more") else "no"
        return str(slots["a"] if (one > two) == how.more else slots["b"])
    if how.holds:
        return _yes(how.holds, _single(last), slots)
    if how.has:
        expected = str(fill(how.has, slots)).casefold()
        if last.total > len(last.rows):
            return None
        return "yes" if any(expected == str(value).casefold() for value in shown(last)) else "no"
    if how.say:
        return how.say.get(str(_single(last)))
    if how.years:
        return _years(outcomes)
    return _values(last, statements[-1].text, how.key)


def refuted(how: Answer, statements: Sequence[Statement], slots: Slots) -> bool:
    """Whether executing shows that the question's premise is false."""
    last = statements[-1].outcome
    if how.refuted == "no rows":
        return last.status == "no_event" or (last.status == "ok" and last.value == 0)
    claim = str(fill(how.refuted, slots)).casefold()
    values = [str(value).casefold() for value in shown(last)]
    return last.status == "ok" and bool(values) and not any(claim in value or value in claim for value in values)


def _written(key: Key, value: Scalar) -> tuple[str, ...]:
    """A value as people write it, and as evidence may have it."""
    if isinstance(value, bool) or key.kind == "flag":
        return ("yes" if value else "no",)
    if isinstance(value, str) and key.kind != "date" and key.spell != "plain":
        # "French (fr)": the word and not the code.
        return (spell(key, value).removesuffix(f" ({value})"),)
    if not isinstance(value, int | float) or key.spell == "plain":
        return (str(value),)
    number = grouped(value)
    if key.kind == "money":
        return (f"${value:,.2f}" if abs(value) < 1_000 else f"${value:,.0f}", number, str(value))
    return (f"{number} {key.unit}", number, str(value)) if key.unit else (number, str(value))


def _single(outcome: Outcome) -> Any:
    if outcome.value is not None:
        return outcome.value
    if len(outcome.rows) != 1:
        return None
    row = outcome.rows[0]
    number = row.get("number")
    if outcome.function is not None and outcome.function.dynamic and isinstance(number, int | float):
        return number
    value = row.get(outcome.shown[-1])
    return _leading_number(value) if outcome.function is not None and outcome.function.dynamic else value


def _leading_number(value: Scalar) -> Scalar:
    """ "4,200 m" as a number: facts of an encyclopedia are text; one that begins with none is compared as it is."""
    head = str(value).split(" ", 1)[0].replace(",", "")
    return int(head) if head.isdigit() else value


def _values(outcome: Outcome, text: str, only: str) -> str | None:
    if outcome.aggregate and outcome.value is not None:
        key = key_of(outcome, outcome.shown[-1]) if outcome.shown else Key("")
        if outcome.aggregate in ("len", "ratio") or (outcome.aggregate == "diff" and key.kind not in NUMERIC):
            key = Key("number", "number")
        # "By how much more": the question says that the first is the larger.
        if isinstance(outcome.value, int | float) and (outcome.value < 0 or 0 < outcome.value < LEAST):
            return None
        return _as_in(text, _written(key, outcome.value))
    if outcome.total > len(outcome.rows) or len(outcome.rows) > MOST_VALUES:
        return None
    parts: list[str] = []
    for row in outcome.rows:
        if outcome.function is not None and outcome.function.dynamic:
            parts.append(_as_in(text, _dynamic(row, outcome.function.percent)))
            continue
        keys = [key_of(outcome, name) for name in ((only,) if only else outcome.shown)]
        parts += [_as_in(text, _written(key, row[key.name])) for key in keys if row.get(key.name) is not None]
    return ", ".join(dict.fromkeys(parts)) or None


def _dynamic(row: Any, percent: Sequence[str]) -> tuple[str, ...]:
    """A fact's value; `percent` are words in keys of shares, which are written in per cent."""
    number = row.get("number")
    if not isinstance(number, int | float):
        return (str(row["value"]),)
    if any(word in str(row["key"]).lower() for word in percent):
        return (f"{grouped(round(number * 100, 3))}%", grouped(number))
    return (grouped(number), str(number))


def _as_in(text: str, ways: Sequence[str]) -> str:
    """The way of writing a value that its evidence has."""
    return next((way for way in ways if way in text), ways[0])


def _yes(how: dict[Any, str], value: Any, slots: Slots) -> str | None:
    ((operator, bound),) = how.items()
    other = str(fill(bound, slots))
    one = str(value)[: len(other)]
    if value is None or (operator != "eq" and one == other):
        return None
    compared = {"lt": one < other, "gt": one > other, "eq": str(value).casefold() == other.casefold()}
    return "yes" if compared[operator] else "no"


def _years(outcomes: Sequence[Outcome]) -> str | None:
    """Whole years from the first statement's date to the last one's."""
    try:
        born, day = (date.fromisoformat(str(_single(outcome))) for outcome in (outcomes[0], outcomes[-1]))
    except ValueError:
        return None
    years = whole_years(born, day)
    return str(years) if 0 <= years <= 110 else None
