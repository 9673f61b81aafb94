"""The time that a question says, in place of what a model makes of it: last month is not the last 30 days."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlglot import exp

from services.kg.comparisons import tables_of
from services.kg.generate.rules.inflection import inflections
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.times import TimePhrase
from services.kg.generate.rules.words import english
from services.kg.generate.sql.figures import ANY_YEAR, DAY, RANGES, months_of
from services.kg.generate.sql.statement import Statement
from services.kg.language.catalogue import Function
from services.kg.store.names import normalise
from services.kit.text.vocabulary import MONTH_NAMES, ORDINAL_ENDING, WEEKDAYS, alternatives

# Rows of a time and behind it, and none before: see `_BEFORE`.
_SINCE = (False, True, True)
# What stands before a time -> whether rows before its first day, of it, and behind its last one are asked for.
_BEFORE: tuple[tuple[str, tuple[bool, bool, bool]], ...] = (
    (r"(?:before|earlier than|prior to)", (True, False, False)),
    (r"(?:after|later than)", (False, False, True)),
    (r"since(?: the (?:start|beginn?ing|first)(?: of)?)?", _SINCE),
    (r"(?:until|till|up to|(?:by|until|till|up to|through) the end of)", (True, True, False)),
    (r"(?:in|during|for|over|throughout)", (False, True, False)),
)
_LEADS = [(re.compile(rf"\b{words}(?: the)?(?: year)?\s*$", re.IGNORECASE), parts) for words, parts in _BEFORE]
# Before a time that has no end: from 2021 on.
_ONWARDS_LEADS = [(re.compile(r"\b(?:from|since|in|starting(?: in)?)(?: the)?(?: year)?\s*$", re.IGNORECASE), _SINCE)]
# "Last month" alone is of it; "first half of last year" is something else.
_ALONE = re.compile(
    r"(?:^|\b(?!\d|of\b|by\b|from\b|to\b|than\b|within\b|and\b|or\b|between\b|not\b)[a-z]+)\s*$", re.IGNORECASE
)
_PART = re.compile(
    rf"\b(?:half|quarter|q[1-4]|h[12]|weekends?|(?:{alternatives(WEEKDAYS)})s?|(?:start|beginning) of|ago)\b",
    re.IGNORECASE,
)
_PART_BEFORE = re.compile(r"\b(?:early|late|mid)[ -](?:in )?(?:the )?$", re.IGNORECASE)
# "2021 or later" and "from May on" have no end; what else goes on has another one.
_ONWARDS = re.compile(r"^\s*(?:onwards?|(?:or|and) (?:later|after)|on(?=\W*$))(?!\w)", re.IGNORECASE)
_GOES_ON = re.compile(r"^\s*(?:or|and|to|on|so far|till|until|[-–/])(?!\w)", re.IGNORECASE)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_THIS_YEAR = re.compile(r"\b(?:this|last|next) year\b", re.IGNORECASE)
# A month of a certain year, though that is not said: since March, from March on, last August.
_OF_LATE = re.compile(
    rf"\b(?i:since (?:the (?:start|beginn?ing|first)(?: of)? )?(?P<since>{alternatives(MONTH_NAMES)}))\b|"
    rf"\b(?i:(?P<onwards>{alternatives(MONTH_NAMES)}) (?:onwards?|on(?=\W*$)))\b|"
    # "This may sound odd".
    rf"\b(?P<near>(?:this|last|next) (?!may\b|march\b)(?i:{alternatives(MONTH_NAMES)}))\b"
)
_COMPARED = (exp.EQ, exp.NEQ, *RANGES, exp.Like, exp.In)
_OF_A_ROW = ("date", "day")
# Behind what was done, in the name of a day.
_ENDING = re.compile(r"_(?:on|at|by|date|day)$")
_NEXT = re.compile(r"\b(?:next|upcoming|soonest|coming up)\b", re.IGNORECASE)
# Days that are said by their number alone, and by a name.
_DAY_OF_MONTH = re.compile(rf"\bthe (\d{{1,2}})(?:{ORDINAL_ENDING})\b(?! of\b)")
_MONTH_DAYS = 31
_YEAR_END = re.compile(r"\b(?:end of (?:the|this) year|the year(?:['’]s| is) (?:end|out|over)|year[ -]end)\b")
_OF_A_YEAR = re.compile(rf"\b{_YEAR.pattern}s?\b")
_FEASTS = {"new year": (1, 1), "christmas": (12, 25)}
# What is so now: who works here today.
_NOW = ("today", "tonight")
_NAMED_DAYS = frozenset((*WEEKDAYS, *MONTH_NAMES))
_TODAY = (exp.CurrentDate, exp.CurrentTimestamp)


@dataclass(frozen=True, slots=True)
class SaidTime:
    """Days that a question asks for, as texts that days are compared with."""

    first: str  # "2023-05" of a month; empty without one
    behind: str  # the first one behind them; empty without an end
    is_now: bool = False  # whether it may only say that something is so at present
    words: tuple[str, ...] = ()  # the question's other words, in lower case, without names
    ahead: str = ""  # the day that may be meant as well: Friday is the last one or the next

    def of(self, column: exp.Column) -> exp.Expr:
        """The condition that a column has one of the days."""
        first, behind = map(exp.Literal.string, (self.first, self.behind))
        since, before = exp.GTE(this=column.copy(), expression=first), exp.LT(this=column.copy(), expression=behind)
        return exp.and_(*([since] if self.first else []), *([before] if self.behind else []))


def said_time(question: Question) -> SaidTime | None:
    """The only time that a question says, of which it leaves nothing open: last month, since 2021; else None."""
    phrase = _only_phrase(question)
    if phrase is None:
        return None
    before, behind = question.text[: phrase.start], question.text[phrase.end :]
    onwards = _ONWARDS.match(behind)
    leads = ((lead.search(before), parts) for lead, parts in (_ONWARDS_LEADS if onwards else _LEADS))
    lead, parts = next(((lead, parts) for lead, parts in leads if lead), (None, None))
    behind = behind[onwards.end() :] if onwards else behind
    elsewhere = f"{before[: lead.start()] if lead else before} {behind}"
    if _PART.search(elsewhere) or _PART_BEFORE.search(before) or months_of(elsewhere) or _GOES_ON.search(behind):
        return None
    if parts is None and (onwards or not phrase.text[0].isdigit()) and _ALONE.search(before):
        parts = _SINCE if onwards else (False, True, False)
    window = question.window_of(phrase.text)
    if parts is None or window is None or window.kind != "window" or window.start is None or window.end is None:
        return None
    start, end = _texts(window.start, window.end)
    before_it, of_it, after_it = parts
    first, last = "" if before_it else start if of_it else end, "" if after_it else end if of_it else start
    words = question.words[: lead.start() if lead else phrase.start], question.words[len(question.text) - len(behind) :]
    ahead = (window.start + timedelta(days=7)).isoformat() if phrase.text.lower() in WEEKDAYS else ""
    return SaidTime(first, last, phrase.text.lower() in _NOW, tuple(normalise(" ".join(words)).split()), ahead)


def said_days(question: Question) -> Iterator[str]:
    """Days that a question says, as texts.

    They are the first and the last day of each of its times, the one behind it, and its month; the last and the next
    29th, and Christmas; and the end of the year.
    """
    text, today = question.text.lower(), question.query_time.date()
    around = [today + timedelta(days=days) for days in range(-_MONTH_DAYS, _MONTH_DAYS + 1)]
    dated = {int(day[1]) for day in _DAY_OF_MONTH.finditer(text)}
    yield from (day.isoformat() for day in around if day.day in dated)
    if _YEAR_END.search(text):
        yield from (f"{today.year}-12-31", f"{today.year + 1}", f"{today.year + 1}-01-01")
    for words, feast in _FEASTS.items():
        if words in text:
            last = today.year - ((today.month, today.day) < feast)
            yield from (date(year, *feast).isoformat() for year in (last, last + 1))
    for window in (question.window_of(phrase.text) for phrase in question.times):
        if window is not None and window.kind == "window" and window.start and window.end:
            yield from _texts(window.start, window.end)
            yield from (day.isoformat() for day in (window.start, window.end - timedelta(days=1), window.end))
            if window.granularity == "month":
                yield f"{window.start:%Y-%m}%"


def _only_phrase(question: Question) -> TimePhrase | None:
    """The only time of a question; a year alone is one whatever stands before it."""
    times = question.times
    months = list(_OF_LATE.finditer(question.text)) if not times else []
    if len(months) == 1 and len(months_of(question.words)) == 1 and not _YEAR.search(question.words):
        (month,) = months
        group = month.lastgroup or ""
        return TimePhrase(month[group], month.start(group), len(month[group]))
    years = [] if times else list(_YEAR.finditer(question.words))
    phrases = [*times, *(TimePhrase(year[0], year.start(), len(year[0])) for year in years)]
    if len(phrases) != 1:
        return None
    phrase = phrases[0]
    # A day of any year: on 30 June.
    is_open = any(map(str.isdigit, phrase.text)) or months_of(phrase.text)
    is_told = _YEAR.search(phrase.text) or _THIS_YEAR.search(phrase.text)
    return None if is_open and not is_told else phrase


def _texts(*days: date) -> list[str]:
    """Days as texts that sort before all days of theirs, the year or the month alone where all begin one."""
    if all((day.month, day.day) == (1, 1) for day in days):
        return [f"{day:%Y}" for day in days]
    return [f"{day:%Y-%m}" if all(one.day == 1 for one in days) else day.isoformat() for day in days]


def ask_of_the_time(select: exp.Select, said: SaidTime, statement: Statement) -> tuple[str, ...]:
    """Put the time that a question says in place of a statement's conditions on the only column of days that has some.

    Where there are none it is added, see `with_left_out_time`.

    Returns:
        the days that the statement has then; empty where it stays as it is.
    """
    days = tuple(filter(None, (said.first, said.behind)))
    conditions = list(conditions_on_days(select, statement.has_days))
    if said.is_now and (not conditions or any(map(is_of_today, conditions))):
        # What is overdue today was due before.
        return ()
    if not conditions:
        return days if with_left_out_time(select, said, statement.functions) else ()
    columns = {column.sql() for one in conditions for column in one.find_all(exp.Column)}
    is_other = any(isinstance(one, exp.NEQ) or one.find_ancestor(exp.Or, exp.Not) for one in conditions)
    if len(columns) != 1 or is_other:
        return ()
    told = {literal.name for one in conditions for literal in one.find_all(exp.Literal)}
    if said.ahead and told == {said.ahead}:
        return (said.ahead,)
    condition = said.of(next(conditions[0].find_all(exp.Column)))
    for one in conditions:
        one.replace(condition.copy())
    return days


def with_left_out_time(select: exp.Select, said: SaidTime, functions: Mapping[str, Function]) -> bool:
    """Add the time that a question says to a statement without any, over a table whose rows each are of a day.

    Who was hired this year is another question than who was absent most this year. So it is a day that the question
    names, or a `date`, or the row's own, `roasted_on` of roasts, where no other is there or may be meant.

    Returns:
        whether the statement has it now.
    """
    if select.find(*_TODAY) or any(_says_days(one, said) for one in select.find_all(exp.Literal)):
        return False
    is_added = False
    # The longest of this year has the most hours of this year.
    for one in list(select.find_all(exp.Select)):
        tables = tables_of(one)
        dates = [key.name for table in tables for key in functions[table.name].keys if key.kind == "date"]
        nouns = {tables[0].name, *inflections(tables[0].name)} if tables else set()
        named = [name for name in dates if _is_said(name, said.words, nouns)]
        texts = normalise(" ".join(text.name for text in one.find_all(exp.Literal))).split()
        is_plain = len(dates) == 1 or english().fillers.union(nouns, texts).issuperset(said.words)
        own = [name for name in dates if name in _OF_A_ROW or (is_plain and _is_of_the_row(name, tables[0].name))]
        if len(tables) == len(named or own) == 1:
            one.where(said.of(exp.column((named or own)[0])), copy=False)
            is_added = True
    return is_added


def _is_of_the_row(date: str, noun: str) -> bool:
    """Whether a date is that of a row itself: `test_date` of tests, `ordered` of orders, `paid_on` of payments."""
    deed, stems = date.partition("_")[0], (noun, noun.removesuffix("ment"), noun.removesuffix("ing"))
    return date.removeprefix(f"{noun}_") in _OF_A_ROW or deed in {form for one in stems for form in inflections(one)}


def _is_said(date: str, words: Sequence[str], nouns: Collection[str]) -> bool:
    """Whether words say a date by what was done then, joined of `joined_on`, and not of what: registered patients."""
    deed = _ENDING.sub("", date)
    forms = {deed, *inflections(deed)} - {*nouns, *_OF_A_ROW}
    behind = (words[index + 1] if index + 1 < len(words) else "" for index, word in enumerate(words) if word in forms)
    return any(word not in nouns for word in behind)


def leaves_out_time(statement: Statement, said: SaidTime | None, days: Collection[str]) -> bool:
    """Whether a statement over many rows, some of which have days, is without the time that its question says.

    Args:
        said: that time, where it is understood.
        days: of it, which the statement has.
    """
    tree = statement.tree
    is_of_many = not statement.names_its_rows and not (said is not None and said.is_now)
    has_days = any(key.kind == "date" for key in statement.keys)
    told = (one for side in tree.find_all(exp.Select) for one in conditions_on_days(side, statement.has_days))
    is_told = bool(days) or any(told) or any(_says_days(one, said) for one in tree.find_all(exp.Literal))
    return is_of_many and has_days and not is_told


def _says_days(literal: exp.Literal, said: SaidTime | None) -> bool:
    """Whether a text is a day or the name of one, or a number the year that is said; an amount over 2000 is none."""
    if literal.is_string:
        # The clubs on Thursdays are of a day, whatever the date, and costumes of the 1940s of no event's time.
        return (
            literal.name.lower() in _NAMED_DAYS
            or bool(_OF_A_YEAR.search(literal.name))
            or any(one.fullmatch(literal.name) for one in (DAY, ANY_YEAR))
        )
    return said is not None and literal.name == said.first[:4]


def conditions_on_days(select: exp.Select, is_day: Callable[[exp.Column], bool]) -> Iterator[exp.Expr]:
    """The comparisons of a column of days with days or with today."""
    where = select.args.get("where")
    for one in where.find_all(*_COMPARED) if where is not None else ():
        columns = list(one.find_all(exp.Column))
        texts = [str(text.this) for text in one.find_all(exp.Literal)]
        has_days = any(form.fullmatch(text) for form in (DAY, ANY_YEAR) for text in texts)
        if len(columns) == 1 and is_day(columns[0]) and (is_of_today(one) or has_days):
            yield one


def from_today_on(tree: exp.Expr, question: Question, is_day: Callable[[exp.Column], bool]) -> None:
    """Take the first of what is still to come where the question asks for the next one and no condition says so."""
    if question.times or not _NEXT.search(question.text):
        return
    for select in list(tree.find_all(exp.Select)):
        day = _least(select)
        where = select.args.get("where")
        told = [one for one in where.find_all(exp.Column) if one == day] if where is not None else []
        # That there is one bounds nothing.
        is_bounded = any(not isinstance(one.parent, exp.Is) for one in told)
        if isinstance(day, exp.Column) and is_day(day) and not is_bounded:
            select.where(exp.GTE(this=day.copy(), expression=exp.CurrentDate()), copy=False)


def without_unsaid_end(select: exp.Select, is_day: Callable[[exp.Column], bool]) -> None:
    """Drop the last day of a period of which the first row is told: the next renewal is that of whatever year."""
    for one in list(select.find_all(exp.Between)):
        if one.parent_select is select and one.this == _least(select) and is_day(one.this):
            one.replace(exp.GTE(this=one.this, expression=one.args["low"]))


def _least(select: exp.Select) -> exp.Expr | None:
    """What the first rows of a SELECT have the least of, where it takes those alone."""
    order = select.args.get("order")
    first = order.expressions[0] if order is not None and select.args.get("limit") is not None else None
    return None if first is None or first.args.get("desc") else first.this


def today_as_now(tree: exp.Expr, today: date) -> None:
    """Write today as such where days are compared with it: what is next, or overdue, is so whenever it is asked."""
    for literal in list(tree.find_all(exp.Literal)):
        if literal.is_string and literal.name == today.isoformat() and isinstance(literal.parent, RANGES):
            literal.replace(exp.CurrentDate())


def is_of_today(condition: exp.Expr) -> bool:
    """Whether something is compared with today."""
    texts = (str(text.this).lower() for text in condition.find_all(exp.Literal))
    return condition.find(*_TODAY) is not None or "now" in texts
