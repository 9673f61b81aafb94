"""The call of the language that a reading of a question comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.kg.generate.rules.interrogatives import asks_about_it
from services.kg.generate.rules.question import all_of, quote
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.sums import count_once, most_in_total
from services.kg.generate.rules.tokens import Superlative
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC, Function

# What asks for all rows with a key beside each: all countries and their capitals.
_LISTING = ("all", "every", "each", "list", "and", "with", "their")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a question asks of one call."""

    names: Mapping[str, Sequence[str]]  # by parameter
    conditions: Sequence[str]  # on the rows
    superlative: Superlative | None  # which of them
    keys: Sequence[str]  # that are asked for
    counted: bool  # whether rows are counted
    aggregate: str  # SUM or AVG, or none
    rows: bool  # whether the rows' own names are asked for
    many: bool  # whether the call may be of several rows
    summed: bool  # whether a superlative is of what several rows of one thing come to
    once: bool  # whether a thing is counted once, however many rows it has


def statement_of(roles: Roles, selection: Selection) -> str:
    """The one call; empty where the question asks for nothing of its rows."""
    function, names, keys = roles.function, selection.names, selection.keys
    if not (keys or selection.conditions or selection.superlative):
        may_be_bare = selection.counted or asks_about_it(roles.tokens)
        if roles.tokens.find(english().doing) or not may_be_bare:
            return ""
    aggregate = "LEN" if selection.counted else selection.aggregate
    prefix = f"{aggregate} " if aggregate else ""
    if facets := [one for one in keys if one in function.facets]:
        plain = selection.superlative is None and not selection.conditions and len(keys) == 1
        return f"{prefix}{call_of(function, names, ())}{project(facets[:1])}" if plain else ""
    if (order := selection.superlative) is not None:
        if selection.summed:
            (group, *others) = keys or function.subject
            is_plain = not names and (not others or not keys)
            return most_in_total(roles, group, order, selection.conditions) if is_plain else ""
        rows = f"[{order.first or ''}:{order.first + order.rows}]"
        columns = keys or (_naming_key(function) if roles.subject.entity else ())
        call = sorted_call(function, names, selection.conditions, order.key, descending=order.descending)
        return f"{call}{project(columns)}{rows}"
    call = call_of(function, names, selection.conditions)
    if selection.counted:
        # Pairs are as many as the things on one side only for one thing on the other.
        countable = selection.many and not keys and (function.pair is None or names)
        if countable and selection.once:
            return "" if names else count_once(roles, selection.conditions)
        return f"{prefix}{call}" if countable else ""
    if aggregate:
        return f"{prefix}{call}{project(keys[:1])}"
    if selection.rows:
        beside = keys if not selection.many or not (selection.conditions or names) else ()
        if beside and selection.many and not roles.tokens.question.says(_LISTING):
            # "Which incidents are open?" wants some of them, and names no value.
            return ""
        return f"{call}{project((*function.subject[:1], *beside) if beside else _naming_key(function))}"
    return "" if selection.many and not keys else f"{call}{project(keys)}"


def _naming_key(function: Function) -> Sequence[str]:
    """The key that names a row; none where that is a number, as then the call's own keys say more."""
    return [name for name in function.subject[:1] if function.key(name).kind not in NUMERIC]


def call_of(function: Function, names: Mapping[str, Sequence[str]], conditions: Sequence[str]) -> str:
    """A call with its names by position and the conditions on its rows."""
    values = [names.get(one.name, ()) for one in function.parameters]
    arguments = [all_of([name if name.startswith("*[") else quote(name) for name in some]) for some in values]
    return f"{function.name}({', '.join(without_nones(arguments)) or 'None'}){where(conditions)}"


def sorted_call(
    function: Function, names: Mapping[str, Sequence[str]], conditions: Sequence[str], key: str, *, descending: bool
) -> str:
    """As `call_of`, its rows sorted by a key."""
    return f"{call_of(function, names, ())} sort({all_of(conditions)}, {'-' if descending else ''}{key})"


def without_nones(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments without those at the end that are None."""
    needed = [*arguments]
    while needed and needed[-1] == "None":
        needed.pop()
    return needed


def where(conditions: Sequence[str]) -> str:
    """The step that keeps rows of these conditions; empty without any."""
    return f" where({', '.join(conditions)})" if conditions else ""


def project(keys: Sequence[str]) -> str:
    """The keys that a call shows; nothing where it shows its own."""
    return f"[{', '.join(map(quote, keys))}]" if keys else ""
