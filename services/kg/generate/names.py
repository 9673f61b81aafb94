"""The names of entities in a program: where they stand, and how to put others in their place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from services.kg.errors import KgError
from services.kg.language.catalogue import Catalogue, Function, Parameter
from services.kg.language.parse import parse_each
from services.kg.language.tree import (
    Argument,
    Call,
    Combine,
    Condition,
    Descending,
    Keyword,
    List_,
    Literal_,
    Project,
    Query,
    Reference,
    Sort,
    Step,
    Value,
    Where,
)

# What becomes of a name of one of these kinds: another spelling, or None to refuse the statement.
Rename = Callable[[str, Sequence[str]], str | None]
# The parameters of functions that are years.
YEARS = frozenset(("year", "until"))


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the literals of a statement."""

    name: Rename  # of names of entities
    text: Callable[[str], str | None] = str  # of other words that the question should have said, such as a league
    year: Callable[[str], bool] = bool  # whether years, alone or in dates, may stay; False refuses the statement


class Unnamed(Exception):
    """A statement has a name that was refused; `name` is that name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def literals(program: str, catalogue: Catalogue, domain: str) -> tuple[str, ...]:
    """All names of entities in a program, in order; those of statements that cannot be read are left out."""
    found: dict[str, None] = {}

    def note(name: str, _: Sequence[str]) -> str:
        found[name] = None
        return name

    for parsed in parse_each(program):
        if isinstance(parsed.statement, Query):
            rename(parsed.statement, Change(note), catalogue, domain)
    return tuple(found)


def refers(query: Query) -> bool:
    """Whether a statement goes on with the rows of an earlier one."""
    if isinstance(query.source, Reference):
        return True
    queries = query.source.queries if isinstance(query.source, Combine) else (query,)
    return any(
        isinstance(value, Reference) or (isinstance(value, Query) and refers(value))
        for one in queries
        if isinstance(one.source, Call)
        for argument in one.source.arguments
        for value in _values(argument)
    )


def _values(argument: Argument) -> Sequence[object]:
    match argument:
        case List_(items):
            return [value for item in items for value in _values(item)]
        case Condition(_, _, values):
            return values
        case Keyword(_, value):
            return (value,)
        case _:
            return (argument,)


def rename(query: Query, change: Change, catalogue: Catalogue, domain: str) -> Query:
    """The statement with every name of an entity changed.

    Raises:
        Unnamed: a name was refused.
    """
    if isinstance(query.source, Combine):
        queries = tuple(rename(one, change, catalogue, domain) for one in query.source.queries)
        return replace(query, source=replace(query.source, queries=queries))
    if not isinstance(query.source, Call):
        return query
    try:
        function = catalogue.function(query.source.function, domain)
    except KgError:
        return query
    arguments = _arguments(function, query.source.arguments, change, catalogue, domain)
    rows = _rows_of(function, query.steps, catalogue)
    steps = tuple(_step(rows, step, change) for step in query.steps)
    return replace(query, source=Call(query.source.function, arguments), steps=steps)


def _rows_of(function: Function, steps: Sequence[Step], catalogue: Catalogue) -> Function:
    """The function whose keys the steps have: of `get_person(x)["music"]` the one that lists works."""
    if steps and isinstance(steps[0], Project) and len(steps[0].keys) == 1:
        facet = function.find_facet(steps[0].keys[0])
        if facet is not None:
            return catalogue.function(facet.function, function.domain)
    return function


def _arguments(
    function: Function, arguments: Sequence[Argument], change: Change, catalogue: Catalogue, domain: str
) -> tuple[Argument, ...]:
    changed: list[Argument] = []
    free = list(function.parameters)
    for argument in arguments:
        match argument:
            case Condition():
                changed.append(_condition(function, argument, change))
            case List_(items) if items and all(isinstance(item, Condition) for item in items):
                conditions = (_condition(function, item, change) for item in items if isinstance(item, Condition))
                changed.append(List_(tuple(conditions)))
            case Keyword(name, value):
                known = next((parameter for parameter in function.parameters if parameter.name == name.lower()), None)
                changed.append(Keyword(name, _argument(known, value, change, catalogue, domain)))
            case Descending():
                changed.append(argument)
            case _:
                parameter = free.pop(0) if free else None
                changed.append(_argument(parameter, argument, change, catalogue, domain))
    return tuple(changed)


def _argument(parameter: Parameter | None, argument: Value, change: Change, catalogue: Catalogue, domain: str) -> Value:
    if parameter is None:
        return argument
    if parameter.kind == "entity":
        return _value(argument, parameter.entities, change, catalogue, domain)
    if isinstance(argument, Literal_) and argument.value is not None:
        text = str(argument.value)
        if parameter.kind == "text":
            return Literal_(change.text(text) or text)
        dated = parameter.kind == "time" or (parameter.kind == "integer" and parameter.name in YEARS)
        if dated and not change.year(text):
            raise Unnamed(text)
    return argument


def _value(value: Value, kinds: Sequence[str], change: Change, catalogue: Catalogue, domain: str) -> Value:
    match value:
        case Literal_(str() as name):
            changed = change.name(name, kinds)
            if changed is None:
                raise Unnamed(name)
            return Literal_(changed)
        case List_(items):
            values = (item for item in items if not isinstance(item, Condition | Keyword | Descending))
            return List_(tuple(_value(item, kinds, change, catalogue, domain) for item in values))
        case Query():
            return rename(value, change, catalogue, domain)
        case _:
            return value


def _step(function: Function, step: Step, change: Change) -> Step:
    match step:
        case Where(conditions):
            return Where(tuple(_condition(function, one, change) for one in conditions))
        case Sort(conditions, key, descending):
            return Sort(tuple(_condition(function, one, change) for one in conditions), key, descending)
        case _:
            return step


def _condition(function: Function, condition: Condition, change: Change) -> Condition:
    """Values of keys that hold names are names too: the opponent, the artist."""
    key = function.find_key(condition.key)
    if key is not None and (key.kind == "date" or key.name.endswith("year")):
        for value in condition.values:
            if isinstance(value, Literal_) and not change.year(str(value.value)):
                raise Unnamed(str(value.value))
    if key is None or not (key.entity or key.id_column):
        return condition
    values: list[Value] = []
    for value in condition.values:
        if isinstance(value, Literal_) and isinstance(value.value, str):
            changed = change.name(value.value, (key.entity,) if key.entity else ())
            if changed is None:
                raise Unnamed(value.value)
            values.append(Literal_(changed))
        else:
            values.append(value)
    return replace(condition, values=tuple(values))
