"""The call of the language that a reading of a question comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.kg.generate.rules.english import english
from services.kg.generate.rules.question import all_of, quote
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Superlative
from services.kg.language.catalogue import NUMERIC, Function

# What asks for all rows with a key beside each: all countries and their capitals.
_LISTING = ("all", "every", "each", "list", "and", "with", "their")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question wants of one call."""

    names: Mapping[str, Sequence[str]]  # by parameter
    conditions: Sequence[str]  # on the rows
    superlative: Superlative | None  # which of them
    keys: Sequence[str]  # that are asked for
    aggregate: str  # LEN, SUM or AVG, or none
    rows: bool  # whether the rows' own names are asked for
    many: bool  # whether the call may be of several rows


def statement_of(roles: Roles, wanted: Wanted) -> str:
    """The one call; empty where the question asks for nothing of its rows."""
    function, names, keys = roles.function, wanted.names, wanted.keys
    if not (keys or wanted.conditions or wanted.superlative) and roles.tokens.find(english().doing):
        return ""
    counts = f"{wanted.aggregate} " if wanted.aggregate else ""
    if facets := [one for one in keys if one in function.facets]:
        plain = wanted.superlative is None and not wanted.conditions and len(keys) == 1
        return f'{counts}{call_of(function, names, ())}["{facets[0]}"]' if plain else ""
    if (order := wanted.superlative) is not None:
        sort = f"sort({all_of(wanted.conditions)}, {'-' if order.descending else ''}{order.key})"
        rows = f"[{order.first or ''}:{order.first + order.rows}]"
        shown = keys or (_told_by(function) if roles.subject.entity else ())
        return f"{call_of(function, names, ())} {sort}{project(shown)}{rows}"
    call = call_of(function, names, wanted.conditions)
    if wanted.aggregate == "LEN":
        # Pairs are as many as the things on one side only for one thing on the other.
        told = wanted.many and not keys and (function.pair is None or names)
        return f"LEN {call}" if told else ""
    if wanted.aggregate:
        return f"{counts}{call}{project(keys[:1])}"
    if wanted.rows:
        beside = keys if not wanted.many or not (wanted.conditions or names) else ()
        if beside and wanted.many and not roles.tokens.question.says(_LISTING):
            # "Which incidents are open?" wants some of them, and names no value.
            return ""
        return f"{call}{project((*function.subject[:1], *beside) if beside else _told_by(function))}"
    return "" if wanted.many and not keys else f"{call}{project(keys)}"


def _told_by(function: Function) -> Sequence[str]:
    """The key that tells a row that is asked for: its name; where that is a number, whatever is shown of it."""
    return [name for name in function.subject[:1] if function.key(name).kind not in NUMERIC]


def call_of(function: Function, names: Mapping[str, Sequence[str]], conditions: Sequence[str]) -> str:
    """A call with its names by position and the conditions on its rows."""
    given = [names.get(one.name, ()) for one in function.parameters]
    arguments = [all_of([name if name.startswith("*[") else quote(name) for name in some]) for some in given]
    while arguments and arguments[-1] == "None":
        arguments.pop()
    narrowed = f" where({', '.join(conditions)})" if conditions else ""
    return f"{function.name}({', '.join(arguments) or 'None'}){narrowed}"


def project(keys: Sequence[str]) -> str:
    """The keys that a call shows; nothing where it shows its own."""
    return f"[{', '.join(map(quote, keys))}]" if keys else ""
