"""Comparisons of a domain's files as clauses: membership in a related table, words within a text, vocabularies."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table, exists, func, or_

from services.kg.definition.vocabulary import Vocabulary
from services.kg.language.catalogue import Compare
from services.kg.language.tree import Operator
from services.kg.store.texts import lowered

Clause = Callable[[Any, tuple[Any, ...]], ColumnElement[bool]]


def comparison(clause: Clause) -> Compare:
    """The comparison of a key by a clause, which `neq` negates."""

    def compare(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
        return ~clause(c, values) if operator == "neq" else clause(c, values)

    return compare


def contains(column: str) -> Clause:
    """The words stand somewhere in the text: a role in "Bruce Wayne / Batman"; never in an empty one."""
    return lambda c, values: _contains(c[column], values)


def is_member(table: Table, on: dict[str, str], column: str) -> Clause:
    """A row of a related table has one of the values, whatever their case."""

    def clause(c: Any, values: tuple[Any, ...]) -> ColumnElement[bool]:
        texts = [str(value).lower().replace("_", " ") for value in values]
        return exists().where(*_joined(c, table, on), lowered(table.c[column], *texts).in_(texts))

    return clause


def in_vocabulary(vocabulary: Vocabulary, codes: str, text: str, *, or_contains: bool) -> Clause:
    """By the codes of the words; words without a code, or all with `or_contains`, are searched in the text."""

    def clause(c: Any, values: tuple[Any, ...]) -> ColumnElement[bool]:
        matches = [code for value in values for code in vocabulary.find(str(value))]
        if not matches:
            return _contains(c[text], values[:1])
        coded: ColumnElement[bool] = c[codes].in_(matches)
        return coded | _contains(c[text], values) if or_contains else coded

    return clause


def among_members(table: Table, on: dict[str, str], column: str) -> Clause:
    """A row of a related table has one of the identifiers."""
    return lambda c, identifiers: exists().where(*_joined(c, table, on), table.c[column].in_(identifiers))


def like(column: str, *, squash: bool, or_unknown: bool, drop: str) -> Clause:
    """The text has the words in it.

    `squash` compares without spaces and hyphens, `or_unknown` keeps rows without a text, and the words lose first what
    `drop`, a pattern, matches.
    """

    def clause(c: Any, values: tuple[Any, ...]) -> ColumnElement[bool]:
        words = str(values[0]).lower().strip()
        words = re.sub(drop, "", words) if drop else words
        text: ColumnElement[str] = lowered(c[column], words)
        if squash:
            words = words.replace("-", "").replace(" ", "")
            text = func.replace(func.replace(text, "-", ""), " ", "")
        contained = text.contains(words, autoescape=True)
        return c[column].is_(None) | contained if or_unknown else contained

    return clause


def _contains(column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
    texts = [str(value).lower() for value in values]
    return or_(*(lowered(column, text).contains(text, autoescape=True) for text in texts))


def _joined(c: Any, table: Table, on: dict[str, str]) -> list[ColumnElement[bool]]:
    return [table.c[own] == c[of_view] for own, of_view in on.items()]
