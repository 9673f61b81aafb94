"""Comparisons of a domain's files as clauses: membership in a related table, words within a text, vocabularies."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table, exists, func, or_

from services.kg.definition.vocabulary import Vocabulary
from services.kg.language.catalogue import Compare
from services.kg.language.tree import Operator

Clause = Callable[[Any, tuple[Any, ...]], ColumnElement[bool]]


def contains(column: str) -> Compare:
    """The words stand somewhere in the text: a role in "Bruce Wayne / Batman"; never in an empty one."""

    def compare(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
        clause = _contains(c[column], values)
        return ~clause if operator == "neq" else clause

    return compare


def is_member(table: Table, on: dict[str, str], column: str) -> Compare:
    """A row of a related table has one of the values, whatever their case."""

    def compare(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
        texts = [str(value).lower().replace("_", " ") for value in values]
        clause = exists().where(*_joined(c, table, on), func.lower(table.c[column]).in_(texts))
        return ~clause if operator == "neq" else clause

    return compare


def in_vocabulary(vocabulary: Vocabulary, codes: str, text: str, *, or_contains: bool) -> Compare:
    """By the codes of the words; words without a code, or all with `or_contains`, are searched in the text."""

    def compare(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
        matches = [code for value in values for code in vocabulary.find(str(value))]
        clause = c[codes].in_(matches) if matches else _contains(c[text], values[:1])
        if matches and or_contains:
            clause |= _contains(c[text], values)
        return ~clause if operator == "neq" else clause

    return compare


def among_members(table: Table, on: dict[str, str], column: str) -> Clause:
    """A row of a related table has one of the identifiers."""

    def clause(c: Any, identifiers: tuple[Any, ...]) -> ColumnElement[bool]:
        return exists().where(*_joined(c, table, on), table.c[column].in_(identifiers))

    return clause


def like(column: str, *, squash: bool, or_unknown: bool, drop: str) -> Clause:
    """The text has the words in it.

    `squash` compares without spaces and hyphens, `or_unknown` keeps rows without a text, and the words lose first what
    `drop`, a pattern, matches.
    """

    def clause(c: Any, values: tuple[Any, ...]) -> ColumnElement[bool]:
        words = re.sub(drop, "", str(values[0]).lower().strip()) if drop else str(values[0]).lower().strip()
        text: ColumnElement[str] = func.lower(c[column])
        if squash:
            words = words.replace("-", "").replace(" ", "")
            text = func.replace(func.replace(text, "-", ""), " ", "")
        contained = text.contains(words, autoescape=True)
        return c[column].is_(None) | contained if or_unknown else contained

    return clause


def _contains(column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
    return or_(*(func.lower(column).contains(str(value).lower(), autoescape=True) for value in values))


def _joined(c: Any, table: Table, on: dict[str, str]) -> list[ColumnElement[bool]]:
    return [table.c[own] == c[of_view] for own, of_view in on.items()]
