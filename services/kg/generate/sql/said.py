"""A statement beside its question: the numbers, days, texts and names that both must have, and what `longest` is."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from rapidfuzz import fuzz
from sqlglot import exp

from services.kg.generate.ground import WEAK_WORDS, named, says_year, words_of
from services.kg.generate.rules.inflection import degrees, singular
from services.kg.generate.rules.interrogatives import WHETHER
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, asking_words
from services.kg.generate.sql.conditions import ANY_YEAR
from services.kg.generate.sql.schema import FEW_VALUES
from services.kg.generate.sql.tables import Untranslatable
from services.kg.language.catalogue import Catalogue, Function, Key
from services.kg.language.tree import Call, Condition, Literal_, Project, Query, Sort, Step, Where
from services.kg.store.names import normalise
from services.kit.text import quantities
from services.kit.text.numbers import numbers
from services.kit.text.vocabulary import MONTHS, UNITS

_DAY = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?-?%?")
# What a statement adds to a year that is compared with.
_FIRST, _LAST = ("01", "01"), ("12", "31")
_RANGES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_AFTER = re.compile(r"\b(?:after|later than)\b")
_END = re.compile(r"\bend of\b")
_EARLIEST = re.compile(r"\b(?:longest|oldest|earliest|first)\b")
_LATEST = re.compile(r"\b(?:newest|latest|youngest|last|most recent(?:ly)?)\b")
_ASKING = re.compile(r"\b(?:how (?:much|many)|what|when|where|whose|who)\b")
_TOTAL = re.compile(r"\b(?:all ?together|in total|total|sum|spend|spent|spending|takings|turnover|income|adds? up)\b")
_EACH = re.compile(r"\b(?:each|every|list|per)\b")
_WHETHER = re.compile(rf"\W*(?:{'|'.join(WHETHER)})\b", re.IGNORECASE)
_DAY_ASKED = re.compile(r"\W*(?:on |by )?(?:what|which) date\b", re.IGNORECASE)
_WHEN = re.compile(r"\W*when\b", re.IGNORECASE)
_ARTICLES = ("a", "an", "the")
# Before names, and no part of them.
_TITLES = frozenset(("dr", "miss", "mr", "mrs", "ms", "sir"))
# Two spellings of a word beside others of its name, in percent.
ALIKE = 75.0
# Fewer letters begin too many words.
LEAST_LETTERS = 3
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def order_by_age(select: exp.Select, query: str, dates: Collection[str]) -> None:
    """Sort by days as the question's superlative wants it: who joined first has been there longest.

    Args:
        dates: columns of days, in lower case.
    """
    order, text = select.args.get("order"), query.lower()
    is_early, is_late = _EARLIEST.search(text) is not None, _LATEST.search(text) is not None
    if order is None or is_early == is_late:
        return
    for ordered in order.expressions:
        if isinstance(ordered.this, exp.Column) and ordered.this.name.lower() in dates:
            ordered.set("desc", is_late)


def order_as_said(select: exp.Select, query: str, lexicon: Lexicon) -> None:
    """Sort by a column as the question's adjective of it wants: the coldest trip has the least temperature."""
    order = select.args.get("order")
    if order is None:
        return
    text = f" {normalise(query)} "
    for ordered in order.expressions:
        name = ordered.this.name.lower() if isinstance(ordered.this, exp.Column) else ""
        own = [lexicon.key(one.name, name) for one in lexicon.own.functions if name in one.exact_keys]
        is_more = any(_says(text, one.more) for one in own)
        is_less = any(_says(text, one.less) for one in own)
        if is_more != is_less:
            ordered.set("desc", is_more)


def _says(text: str, adjectives: Sequence[str]) -> bool:
    """Whether a text has a comparative or superlative of one of the adjectives."""
    return any(f" {form} " in text for one in adjectives for form in degrees(one))


def add_up(select: exp.Select, query: str, amounts: Collection[str]) -> None:
    """Sum a column of some rows where the question wants a total: "how many hours altogether".

    Args:
        amounts: columns of numbers, in lower case.
    """
    items, text = select.expressions, query.lower()
    is_amount = len(items) == 1 and isinstance(items[0], exp.Column) and items[0].name.lower() in amounts
    is_plain = not any(select.args.get(part) for part in ("distinct", "group", "limit", "order"))
    is_plain = is_plain and select.find(exp.Subquery) is None
    if is_amount and is_plain and _TOTAL.search(text) and not _EACH.search(text):
        select.set("expressions", [exp.Sum(this=items[0])])


def ask_of_any_year(select: exp.Select, query: str) -> None:
    """Make conditions on a month or a day those of every year where the question says none: "in December"."""
    for one in list(select.find_all(exp.EQ, exp.Like)):
        if not isinstance(one.expression, exp.Literal):
            continue
        column: exp.Expr | None = None
        month, value = "", one.expression.name
        if isinstance(one.this, exp.Column) and (day := _DAY.fullmatch(value)):
            column = one.this
            month = "-".join(filter(None, (day[2], day[3]))) if not says_year(day[1], query) else ""
        elif value.isdecimal() and (column := _of_months(one.this)) is not None:
            month = f"{int(value):02}"
        if month and isinstance(column, exp.Column):
            pattern = f"%-{month}" if "-" in month else f"%-{month}-%"
            one.replace(exp.Like(this=column.copy(), expression=exp.Literal.string(pattern)))


def _of_months(value: exp.Expr) -> exp.Expr | None:
    """The column whose month a value is; None where it is something else."""
    is_month = isinstance(value, exp.Month) or (isinstance(value, exp.Extract) and value.name.upper() == "MONTH")
    is_month |= isinstance(value, exp.TimeToStr) and value.text("format") == "%m"
    return value.find(exp.Column) if is_month else None


def asks_no_flag(select: exp.Select, query: str, flags: Collection[str]) -> bool:
    """Whether a statement tells yes or no where the question wants an amount, a day, a place or somebody."""
    items = select.expressions
    is_flag = len(items) == 1 and isinstance(items[0], exp.Column) and items[0].name.lower() in flags
    return is_flag and _ASKING.match(query.lower().strip()) is not None


def asks_no_text(last: Query, query: str, catalogue: Catalogue, domain: str) -> bool:
    """Whether a last statement tells a text alone where the question wants a day, or names somebody for `when`.

    When a mill was last greased is not by whom; when a stall is open may be told in words.
    """
    if not isinstance(last.source, Call) or last.aggregate is not None:
        return False
    function = catalogue.function(last.source.function, domain)
    shown = [function.exact_keys.get(key) for step in last.steps if isinstance(step, Project) for key in step.keys]
    if len(shown) != 1 or (key := shown[0]) is None or key.kind != "text":
        return False
    is_by_whom = bool(key.entity) or key.name.endswith("_by")
    is_dated = "date" in key.name.split("_")
    return (bool(_DAY_ASKED.match(query)) and not is_dated) or (bool(_WHEN.match(query)) and is_by_whom)


def unsaid(select: exp.Select, query: str) -> str:
    """A number or a day of the statement's conditions that the question does not say; empty where there is none."""
    where = select.find(exp.Where)
    return next(_unsaid(where, query.lower()), "") if where is not None else ""


def _unsaid(where: exp.Where, query: str) -> Iterator[str]:
    figures = {float(one) for one in _DIGITS.findall(query.replace(",", ""))}
    figures |= {float(one.value) for one in numbers(query)}
    figures |= set(_in_other_units(query))
    months = {number for name, number in MONTHS.items() if re.search(rf"\b{name}\b", query)}
    for literal in where.find_all(exp.Literal):
        if literal.is_string and (of_year := ANY_YEAR.fullmatch(str(literal.this))):
            if int(of_year[1]) not in months | figures or (of_year[2] and int(of_year[2]) not in figures):
                yield of_year[0]
            continue
        day = _DAY.fullmatch(str(literal.this)) if literal.is_string else None
        if day:
            _, month, of_month = day.groups()
            year_said = says_year(day[1], query)
            day_said = month is None or int(month) in months | figures
            day_said &= of_month is None or int(of_month) in figures or _is_end_of_month(literal, day[0], query)
            is_whole_year = year_said and _is_end_of_year(literal, (month, of_month), query)
            if not is_whole_year and not (day_said and (year_said or months)):
                yield day[0]
        elif not literal.is_string and float(literal.this) not in figures | {0.0, 1.0}:
            yield str(literal.this)


def _in_other_units(query: str) -> Iterator[float]:
    """The quantities of a question in all units of their dimensions: two hours are 120 minutes."""
    for one in quantities.find(query):
        factors = {factor for dimension, factor in UNITS.values() if dimension == one.dimension}
        yield from (round(float(one.value * one.factor / factor), 6) for factor in factors)


def _is_end_of_year(literal: exp.Literal, day: tuple[str, str], query: str) -> bool:
    """Whether a comparison with a day is one with its year: "since 2021" with January 1, "after 2021" not."""
    is_after = isinstance(literal.parent, exp.GT) and _AFTER.search(query) is not None
    return isinstance(literal.parent, _RANGES) and (day == _LAST or (day == _FIRST and not is_after))


def _is_end_of_month(literal: exp.Literal, day: str, query: str) -> bool:
    """Whether a comparison with a day is one with its month: "since May" with the first, "by May" with the last."""
    try:
        when = date.fromisoformat(day)
    except ValueError:
        return False
    is_last, parent = (when + timedelta(days=1)).day == 1, literal.parent
    if isinstance(parent, exp.Between):
        return is_last if parent.args["high"] is literal else when.day == 1
    if isinstance(parent, exp.GT):
        return is_last or (when.day == 1 and not _AFTER.search(query))
    if isinstance(parent, exp.LT):
        return when.day == 1 or (is_last and _END.search(query) is not None)
    return (isinstance(parent, exp.GTE) and when.day == 1) or (isinstance(parent, exp.LTE) and is_last)


def unsaid_texts(
    queries: Sequence[Query], query: str, catalogue: Catalogue, domain: str, values: Values
) -> Iterator[str]:
    """Texts of a program's conditions that the question does not say, of keys with more of them than a prompt shows.

    Of a few, which the model was shown, one may be meant in other words.
    """
    for one in queries:
        for function, key, condition in _on_texts(one, catalogue, domain):
            texts = [str(value.value) for value in condition.values if isinstance(value, Literal_)]
            if any(named(text, query) is None and not _is_shortened(text, query) for text in texts):
                shown = values.of(function, key.name)
                if not 0 < len(shown) <= FEW_VALUES:
                    yield from texts


def _is_shortened(text: str, query: str) -> bool:
    """Whether a question has the beginning of a text's word: the dobs of Dobsonian."""
    said = {singular(word.text) for word in words_of(query) if word.text not in WEAK_WORDS}
    begun = tuple(word for word in said - asking_words() if len(word) >= LEAST_LETTERS)
    return any(word.text.startswith(begun) for word in words_of(text))


def another_name(program: str, query: str) -> str:
    """A text of the program that the question says in part, as part of another name; empty where there is none.

    Fromagerie Brignac is not asked of where the question says "Fromagerie Delacroix".
    """
    texts: list[str] = [literal.replace('\\"', '"') for literal in _QUOTED.findall(program)]
    written = [word.text for text in texts for word in words_of(text)]
    said = words_of(query)
    for text in texts:
        part = named(text, query)
        if part is None or part == text or not any(map(str.isalpha, text)):
            continue
        start = query.find(part)
        ends = (start - 1, start + len(part) + 1)
        beside = [one.text for one in said[1:] if one.is_capital and (one.end == ends[0] or one.start == ends[1])]
        if any(not any(_may_be(one, other) for other in (*written, *_TITLES)) for one in beside):
            return text
    return ""


def _may_be(word: str, other: str) -> bool:
    """Whether a word is another one, its beginning, or a misspelling of it."""
    return other.startswith(word) or fuzz.ratio(word, other) >= ALIKE


def counted_nowhere(queries: Sequence[Query], catalogue: Catalogue, domain: str, values: Values) -> Iterator[str]:
    """Texts that no row has, of which a program counts rows. Blocks for milliseconds.

    That there are none is no answer: who asks how many came to Kielder does not ask whether there was a trip.
    """
    for one in (query for query in queries if query.aggregate is not None):
        for function, key, condition in _on_texts(one, catalogue, domain):
            texts = _texts_of(condition) if condition.operator == "eq" else []
            yield from (text for text in texts if text and not values.stored(function, key.name, text))


def _texts_of(condition: Condition) -> list[str]:
    """The texts that a condition compares with."""
    return [one.value for one in condition.values if isinstance(one, Literal_) and isinstance(one.value, str)]


def with_items(query: Query, catalogue: Catalogue, domain: str, values: Values) -> Query:
    """A statement that asks for an item where cells list several: "PC" of "PC, Switch".

    Raises:
        Untranslatable: it asks for what lacks an item, or has one of several, which no condition says.
    """
    items: dict[Condition, Condition] = {}
    for function, key, condition in _on_texts(query, catalogue, domain):
        compares = condition.operator in ("eq", "neq", "in")
        if not compares or not any(values.is_listed(function, key.name, one) for one in _texts_of(condition)):
            continue
        if condition.operator != "eq":
            raise Untranslatable(f"{condition.operator} of an item")
        items[condition] = replace(condition, operator="like")

    def with_them(step: Step) -> Step:
        if not isinstance(step, Where | Sort):
            return step
        return replace(step, conditions=tuple(items.get(one, one) for one in step.conditions))

    return replace(query, steps=tuple(map(with_them, query.steps)))


def _on_texts(statement: Query, catalogue: Catalogue, domain: str) -> Iterator[tuple[Function, Key, Condition]]:
    """The conditions of a statement on texts that are no names: the function, its key and the condition."""
    if not isinstance(statement.source, Call):
        return
    function = catalogue.function(statement.source.function, domain)
    for step in statement.steps:
        for condition in step.conditions if isinstance(step, Where | Sort) else ():
            key = function.key(condition.key)
            if key.kind == "text" and not key.entity:
                yield function, key, condition


def tells_what_it_asks(last: Query, query: str) -> bool:
    """Whether a program's last statement tells nothing but a text that it looks for, where no yes or no is asked.

    The contact of whoever has this contact is none.
    """
    if last.aggregate is not None or _WHETHER.match(query):
        return False
    shown = {key for step in last.steps if isinstance(step, Project) for key in step.keys}
    conditions = (one for step in last.steps if isinstance(step, Where) for one in step.conditions)
    texts = {one.key for one in conditions if one.operator == "eq" and _texts_of(one)}
    return bool(shown) and shown <= texts


def left_out(program: str, spots: Sequence[Spot]) -> str:
    """A name of the question that the program does not have; empty where it has all of them, with an article or not."""
    words = {*normalise(program).split(), *_ARTICLES}
    return next((spot.text for spot in spots if not words.issuperset(normalise(spot.text).split())), "")
