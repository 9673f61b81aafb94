"""Parts of a program's tree, as rules put them together."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from services.kg.language.catalogue import Function
from services.kg.language.tree import (
    Aggregate,
    Argument,
    Call,
    Condition,
    List_,
    Literal_,
    Operator,
    Project,
    Query,
    Reference,
    Step,
    Where,
)

NONE = Literal_(None)
# A name, or the values of the statement before.
Name: TypeAlias = str | Reference
Names: TypeAlias = Mapping[str, Sequence[Name]]  # by parameter


def compared(operator: Operator, key: str, *values: str | float) -> Condition:
    """The condition that a key has, exceeds ... these values."""
    return Condition(operator, key, tuple(map(Literal_, values)))


def argument_of(items: Sequence[Argument]) -> Argument:
    """An argument of none, one or several."""
    return items[0] if len(items) == 1 else List_(tuple(items)) if items else NONE


def call_of(function: str, arguments: Sequence[Argument]) -> Call:
    """The call of a function, without the arguments at the end that are None."""
    needed = [*arguments]
    while needed and needed[-1] == NONE:
        needed.pop()
    return Call(function, tuple(needed))


def query_of(function: Function, names: Names, *steps: Step, aggregate: Aggregate | None = None) -> Query:
    """A call with its names by position, and what its rows go through."""
    values = [names.get(one.name, ()) for one in function.parameters]
    literals = [[name if isinstance(name, Reference) else Literal_(name) for name in some] for some in values]
    source = call_of(function.name, list(map(argument_of, literals)))
    return Query(source if source.arguments else Call(function.name, (NONE,)), steps, aggregate=aggregate)


def where(conditions: Sequence[Condition]) -> tuple[Step, ...]:
    """The step that keeps rows of these conditions; none without any."""
    return (Where(tuple(conditions)),) if conditions else ()


def project(keys: Sequence[str]) -> tuple[Step, ...]:
    """The step that shows keys; none where a call shows its own."""
    return (Project(tuple(keys)),) if keys else ()
