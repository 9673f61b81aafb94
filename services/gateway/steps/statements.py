"""Facts that a text states one by one, "the budget of Heat is 60000000", as the rules of `post_process` take them.

Records are often written so: by CRAG's participants (db3, section 2.3), by dumps of tables and by search engines' own
answers. Only texts that are wholly of this form count: a sentence more may qualify what the first one says.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from proto.kg import KgStatement
from services.gateway.steps.post_process import (
    MEASURES,
    Fact,
    Measure,
    Settled,
    place,
    settle_facts,
    tells_time,
    typed,
)

MAX_TEXT_CHARS = 300
_STATEMENT = re.compile(
    r"(?:the )?(?P<attribute>[A-Za-z][A-Za-z _]{1,40}?) of (?P<name>(?:(?! (?:is|was) ).){1,80}?)"
    r"(?: (?:in|on|at) (?P<at>\d{4}-?\d{2}-?\d{2}))?"
    r" (?:is|was) (?P<value>\$?-?\d[\d,]*(?:\.\d+)?|\d{4}-\d{2}-\d{2})\.?",
    re.IGNORECASE,
)
_PART = re.compile(r"[a-z]+")
_SATURDAY = 5


def _trading_day(latest: date) -> date:
    """The last weekday up to a day; holidays are not known here, and what falls on one is left to the model."""
    return latest - timedelta(max(0, latest.weekday() - _SATURDAY + 1))


def _year_end(found: re.Match[str], _: date) -> date:
    return _trading_day(date(int(found[1]), 12, 31))


# What questions call a day, and which it is for one asked on another.
_DAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], date]], ...] = (
    (re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b"), lambda found, _: date(*map(int, found.groups()))),
    (re.compile(r"\b(?:the )?last trading day of (\d{4})\b"), _year_end),
    (re.compile(r"\b(?:the )?(?:last|previous) trading day\b"), lambda _, asked: _trading_day(asked - timedelta(1))),
    (re.compile(r"\b(?:the )?day before yesterday\b"), lambda _, asked: asked - timedelta(2)),
    (re.compile(r"\byesterday\b"), lambda _, asked: asked - timedelta(1)),
    (re.compile(r"\btoday\b"), lambda _, asked: asked),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One value of one attribute of one entity, perhaps of one day."""

    attribute: str
    name: str
    at: str
    value: str


def read(text: str) -> Statement | None:
    """The statement that a text is; None for all other texts."""
    text = " ".join(text.split())
    found = _STATEMENT.fullmatch(text) if len(text) <= MAX_TEXT_CHARS else None
    if found is None:
        return None
    return Statement(found["attribute"].lower(), found["name"].lower(), found["at"] or "", found["value"])


def settle_texts(question: str, texts: Sequence[str], asked_on: date) -> Settled | None:
    """The answer that follows from several texts, when each is a statement that the question asks about.

    One text alone is for the model to read: rules are for what follows from several, which models do badly.

    Args:
        asked_on: the day of the question, from which its "yesterday" counts.
    """
    if len(texts) < 2:
        return None
    query = " ".join(question.lower().replace("’", "'").split())
    facts: list[Fact] = []
    for text in texts:
        statement = read(text)
        fact = None if statement is None else _fact(query, statement, asked_on)
        if fact is None:
            return None
        facts.append(fact)
    return settle_facts(query, facts)


def _fact(query: str, statement: Statement, asked_on: date) -> Fact | None:
    if statement.at and not _asks_of_day(query, statement.at, asked_on):
        return None
    at, value, measure = place(query, statement.name), typed(statement.value), _measure(query, statement.attribute)
    if at is None or value is None or measure is None:
        return None
    told = f"{statement.attribute} of {statement.name}"
    windows = (statement.at,) if statement.at else ()
    stated = KgStatement(source=told, status="ok", text=told, windows=windows)
    return Fact(statement.name, at, value, measure, f"{statement.attribute} {statement.at}", stated, (), "")


def _asks_of_day(query: str, day: str, asked_on: date) -> bool:
    """Whether all that the question says of time means this day; a question that says nothing of it does."""
    for pattern, meant in _DAYS:
        for found in pattern.finditer(query):
            try:
                if meant(found, asked_on).strftime("%Y%m%d") != day.replace("-", ""):
                    return False
            except ValueError:
                return False
        query = pattern.sub(" ", query)
    return not tells_time(query)


def _measure(query: str, attribute: str) -> Measure | None:
    """What the attribute measures, when the question asks for it; the longest match of its words decides."""
    parts = set(_PART.findall(attribute))
    for measure in MEASURES:
        if not measure.needed.search(query):
            continue
        if parts & measure.keys or "get_" + "_".join(attribute.split()) in measure.functions:
            return measure
    return None
