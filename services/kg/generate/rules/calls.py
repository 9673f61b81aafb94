"""The call of the language that a reading of a question comes to."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.kg.generate.rules.interrogatives import asks_about_it
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.sums import count_once, most_in_total
from services.kg.generate.rules.tokens import Superlative
from services.kg.generate.rules.trees import Names, project, query_of, where
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC, Function
from services.kg.language.tree import Aggregate, Condition, Query, Slice, Sort, Sql


@dataclass(frozen=True, slots=True)
class Selection:
    """What a question asks of one call."""

    names: Names
    conditions: Sequence[Condition]  # on the rows
    superlative: Superlative | None  # which of them
    keys: Sequence[str]  # that are asked for
    counted: bool  # whether rows are counted
    aggregate: Aggregate | None  # sum or avg
    rows: bool  # whether the rows' own names are asked for
    many: bool  # whether the call may be of several rows
    summed: bool  # whether a superlative is of what several rows of one thing come to
    once: bool  # whether a thing is counted once, however many rows it has


def statement_of(roles: Roles, selection: Selection) -> Query | Sql | None:
    """The one call; None where the question asks for nothing of its rows."""
    function, names, keys, conditions = roles.function, selection.names, selection.keys, selection.conditions
    if not (keys or conditions or selection.superlative):
        may_be_bare = selection.counted or asks_about_it(roles.tokens)
        if roles.tokens.find(english().doing) or not may_be_bare:
            return None
    aggregate: Aggregate | None = "len" if selection.counted else selection.aggregate
    if facets := [one for one in keys if one in function.facets]:
        plain = selection.superlative is None and not conditions and len(keys) == 1
        return query_of(function, names, *project(facets[:1]), aggregate=aggregate) if plain else None
    if (order := selection.superlative) is not None:
        if selection.summed:
            (group, *others) = keys or function.subject
            is_plain = not names and (not others or not keys)
            return most_in_total(roles, group, order, conditions) if is_plain else None
        columns = keys or (_naming_key(function) if roles.subject.entity else ())
        ordered = Sort(tuple(conditions), order.key, order.descending)
        return query_of(function, names, ordered, *project(columns), Slice(order.first, order.first + order.rows))
    if selection.counted:
        # Pairs are as many as the things on one side only for one thing on the other.
        countable = selection.many and not keys and (function.pair is None or names)
        if countable and selection.once:
            return None if names else count_once(roles, conditions)
        return query_of(function, names, *where(conditions), aggregate=aggregate) if countable else None
    shown: Sequence[str] = keys
    if aggregate is not None:
        shown = keys[:1]
    elif selection.rows:
        beside = keys if not selection.many or not (conditions or names) else ()
        if beside and selection.many and not roles.tokens.question.says(english().listing):
            # "Which incidents are open?" wants some of them, and names no value.
            return None
        shown = (*function.subject[:1], *beside) if beside else _naming_key(function)
    elif selection.many and not keys:
        return None
    return query_of(function, names, *where(conditions), *project(shown), aggregate=aggregate)


def _naming_key(function: Function) -> Sequence[str]:
    """The key that names a row; none where that is a number, as then the call's own keys say more."""
    return [name for name in function.subject[:1] if function.key(name).kind not in NUMERIC]
