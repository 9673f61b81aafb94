"""Facts that a text states one by one, "the budget of Heat is 60000000", as the rules of `post_process` take them.

Records are often written so: by CRAG's participants (db3, section 2.3), by dumps of tables and by search engines' own
answers. Only texts that are wholly of this form count: a sentence more may qualify what the first one says.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proto.kg import KgStatement
from services.gateway.steps.post_process import MEASURES, Fact, Measure, Settled, place, settle_facts, typed

MAX_TEXT_CHARS = 300
_STATEMENT = re.compile(
    r"(?:the )?(?P<attribute>[A-Za-z][A-Za-z _]{1,40}?) of (?P<name>(?:(?! (?:is|was) ).){1,80}?)"
    r"(?: (?:in|on|at) (?P<at>\d{4}-?\d{2}-?\d{2}))?"
    r" (?:is|was) (?P<value>\$?-?\d[\d,]*(?:\.\d+)?|\d{4}-\d{2}-\d{2})\.?",
    re.IGNORECASE,
)
_PART = re.compile(r"[a-z]+")


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


def settle_texts(question: str, texts: Sequence[str]) -> Settled | None:
    """The answer that follows from several texts, when each is a statement that the question asks about.

    One text alone is for the model to read: rules are for what follows from several, which models do badly.
    """
    if len(texts) < 2:
        return None
    query = " ".join(question.lower().replace("’", "'").split())
    facts: list[Fact] = []
    for text in texts:
        statement = read(text)
        fact = None if statement is None else _fact(query, statement)
        if fact is None:
            return None
        facts.append(fact)
    return settle_facts(query, facts)


def _fact(query: str, statement: Statement) -> Fact | None:
    at, value, measure = place(query, statement.name), typed(statement.value), _measure(query, statement.attribute)
    if at is None or value is None or measure is None:
        return None
    told = f"{statement.attribute} of {statement.name}"
    windows = (statement.at,) if statement.at else ()
    stated = KgStatement(source=told, status="ok", text=told, windows=windows)
    return Fact(statement.name, at, value, measure, f"{statement.attribute} {statement.at}", stated, (), "")


def _measure(query: str, attribute: str) -> Measure | None:
    """What the attribute measures, when the question asks for it; the longest match of its words decides."""
    parts = set(_PART.findall(attribute))
    for measure in MEASURES:
        if not measure.needed.search(query):
            continue
        if parts & measure.keys or "get_" + "_".join(attribute.split()) in measure.functions:
            return measure
    return None
