"""From a tree to the catalogue's functions, keys and parameters, or an error that names those that exist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from services.kg.definition.schema import Facet, Fixed
from services.kg.errors import ParseError, UnknownName
from services.kg.language import tree
from services.kg.language.catalogue import Catalogue, Function, Key, Parameter
from services.kg.language.tree import Argument, Condition, Literal_, Query, Reference, Value, conditions_of, values_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition on a key; `other` is the key on the right of a comparison between columns."""

    key: Key
    operator: str
    values: tuple[Value, ...]
    other: Key | None = None


@dataclass(frozen=True, slots=True)
class BoundProject:
    """Keys to show; `dynamic` are names of facts in a function whose rows are a key and a value."""

    keys: tuple[Key, ...]
    dynamic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundWhere:
    conditions: tuple[BoundCondition, ...]


@dataclass(frozen=True, slots=True)
class BoundSort:
    key: Key
    descending: bool


@dataclass(frozen=True, slots=True)
class BoundGroup:
    keys: tuple[Key, ...]


BoundStep = BoundProject | BoundWhere | BoundSort | BoundGroup | tree.Slice


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A function with the values of each parameter, one or several."""

    function: Function
    arguments: dict[str, tuple[Value, ...]]
    conditions: tuple[BoundCondition, ...]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query over the rows of one function."""

    function: Function
    source: BoundCall | Reference  # a call, or the earlier statement whose rows it takes
    steps: tuple[BoundStep, ...]  # in order
    every: bool
    aggregate: tree.Aggregate | None
    head: int | None
    facet: str = ""  # the key of `called` that the query stands for, as `best_new_artist`
    called: Function | None = None  # the function that the program calls


@dataclass(frozen=True, slots=True)
class BoundCombine:
    how: str
    queries: tuple[BoundQuery, ...]


Bound = BoundQuery | BoundCombine


def earlier(reference: Reference, done: Sequence[T | None]) -> T:
    """What `done` has of the statement that a reference means; ParseError where it has nothing."""
    index = len(done) - 1 if reference.statement is None else reference.statement - 1
    item = done[index] if 0 <= index < len(done) else None
    if item is None:
        raise ParseError("* has no rows before it", expected=("a statement with rows before this one",))
    return item


def fixed(function: Function, conditions: Mapping[str, Fixed]) -> list[BoundCondition]:
    """Conditions of a domain's file, key -> value, on a function."""
    return [BoundCondition(function.key(key), "eq", (Literal_(value),)) for key, value in conditions.items()]


class Binder:
    """Binds the statements of one program in order, since `*` takes its keys from an earlier one.

    Functions of `domain` come before those of others.
    """

    def __init__(self, catalogue: Catalogue, domain: str) -> None:
        self._catalogue = catalogue
        self._domain = domain
        self.functions: list[Function | None] = []

    def bind(self, query: Query) -> Bound:
        """The statement over the catalogue, which is remembered for `*` in later ones.

        Raises:
            UnknownName: a function or key that does not exist.
            ParseError: arguments that fit no parameter, or a `*` with nothing before it.
        """
        if isinstance(query.source, tree.Combine):
            queries = tuple(self.query(one) for one in query.source.queries)
            self.functions.append(None)
            return BoundCombine(query.source.how, queries)
        bound = self.query(query)
        self.functions.append(bound.function)
        return bound

    def skip(self) -> None:
        """A statement that could not be bound still counts for `*2`."""
        self.functions.append(None)

    def query(self, query: Query) -> BoundQuery:
        """One query, not remembered; raises as `bind`."""
        if isinstance(query.source, tree.Combine):
            raise ParseError("a combination cannot stand inside another")
        facet_name, facet, called = "", None, None
        steps = list(query.steps)
        source: BoundCall | Reference
        if isinstance(query.source, tree.Call):
            called = self._catalogue.function(query.source.function, self._domain)
            source = self._call(called, query.source.arguments)
            facet = called.facet_of(steps)
            if facet is not None:
                facet_name = cast(tree.Project, steps.pop(0)).keys[0]
                source = self._facet(called, source, facet)
        else:
            source = query.source
        function = source.function if isinstance(source, BoundCall) else earlier(source, self.functions)
        bound = [step for one in steps for step in self._step(function, one)]
        narrowed = function.whole or any(isinstance(step, BoundWhere | BoundGroup) for step in bound)
        if isinstance(source, BoundCall) and not (source.arguments or source.conditions or narrowed):
            names = tuple(parameter.name for parameter in function.parameters)
            raise ParseError(f"{function.name} of what? It needs {' or '.join(names)}, or a condition", expected=names)
        aggregate = query.aggregate
        if facet is not None and not any(isinstance(step, BoundProject) for step in bound):
            bound += [BoundProject(tuple(function.key(key) for key in facet.show))] if facet.show else []
            aggregate = aggregate or facet.aggregate
        return BoundQuery(function, source, tuple(bound), query.every, aggregate, query.head, facet_name, called)

    def _facet(self, called: Function, call: BoundCall, facet: Facet) -> BoundCall:
        function = self._catalogue.function(facet.function, called.domain)
        conditions = tuple(replace(one, key=function.key(one.key.name)) for one in call.conditions)
        names = {parameter.name: parameter.name for parameter in function.parameters}
        entity = called.parameters[0] if called.parameters else None
        if entity is not None and entity.entities and entity.name not in names:
            # The same entity may have another parameter there: the team of employees.
            same = next((one.name for one in function.parameters if one.entities == entity.entities), "")
            names |= {entity.name: same} if same else {}
        if lost := call.arguments.keys() - names.keys():
            raise ParseError(f"{facet.function} takes no {' or '.join(sorted(lost))}")
        arguments = {names[name]: values for name, values in call.arguments.items()}
        return BoundCall(function, arguments, (*fixed(function, facet.where), *conditions))

    def _call(self, function: Function, arguments: tuple[Argument, ...]) -> BoundCall:
        call = BoundCall(function, {}, ())
        conditions: list[BoundCondition] = []
        free = list(function.parameters)
        for argument in arguments:
            match argument:
                case Condition() | tree.List_() if own := conditions_of(argument):
                    conditions += [self._condition(function, one) for one in own]
                    several = isinstance(argument, tree.List_)
                    while several and free and free[0].kind == "entity" and not free[0].required:
                        free.pop(0)
                case tree.Keyword(name, value):
                    conditions += self._keyword(call, name, value)
                    free = [parameter for parameter in free if parameter.name not in call.arguments]
                case tree.Descending():
                    raise ParseError(f"{function.name} takes no sort key as an argument")
                case Literal_(None):
                    free = free[1:]
                case _:
                    conditions += self._positional(call, cast(Value, argument), free)
        missing = tuple(p.name for p in function.parameters if p.required and p.name not in call.arguments)
        if missing:
            raise ParseError(f"{function.name} lacks {', '.join(missing)}", expected=missing)
        return replace(call, conditions=tuple(conditions))

    def _positional(self, call: BoundCall, value: Value, free: list[Parameter]) -> list[BoundCondition]:
        """Give the value to the first parameter that is free; a year where a name would stand is a condition."""
        function = call.function
        year = isinstance(value, Literal_) and isinstance(value.value, int) and not isinstance(value.value, bool)
        if year and (not free or free[0].kind == "entity") and (key := function.find_key("year")) is not None:
            # get_movie_person_crew("batman", "Jack", 1997)
            return [BoundCondition(key, "eq", (value,))]
        if not free:
            names = tuple(parameter.name for parameter in function.parameters)
            raise ParseError(f"{function.name} takes {len(names)} arguments", expected=names)
        call.arguments[free.pop(0).name] = values_of(value)
        return []

    def _keyword(self, call: BoundCall, name: str, value: Value) -> list[BoundCondition]:
        names = tuple(parameter.name for parameter in call.function.parameters)
        if name.lower() in names:
            call.arguments[name.lower()] = values_of(value)
            return []
        try:
            return [self._condition(call.function, Condition("eq", name, (value,)))]
        except UnknownName as error:
            message = f"{call.function.name} has no parameter {name}"
            raise UnknownName(message, expected=names) from error

    def _step(self, function: Function, step: tree.Step) -> list[BoundStep]:
        match step:
            case tree.Project(keys):
                return [self._project(function, keys)]
            case tree.Group(keys):
                return [BoundGroup(tuple(function.key(key) for key in keys))]
            case tree.Slice():
                return [step]
        where = BoundWhere(tuple(self._condition(function, one) for one in step.conditions))
        if isinstance(step, tree.Where):
            return [where]
        return [*([where] if step.conditions else []), BoundSort(function.key(step.key), step.descending)]

    def _project(self, function: Function, keys: tuple[str, ...]) -> BoundProject:
        if not function.dynamic:
            # A facet among plain keys shows the first key that it stands for.
            return BoundProject(tuple(dict.fromkeys(function.key(key) for key in keys)))
        # An alias may be a fact of the entity: the `name` of a company in an infobox is no column of ours.
        if all(key in function.exact_keys for key in keys):
            return BoundProject(tuple(function.exact_keys[key] for key in keys))
        return BoundProject((function.key("key"), function.key("value")), dynamic=keys)

    def _condition(self, function: Function, condition: Condition) -> BoundCondition:
        key = function.key(condition.key)
        other = None
        if len(condition.values) == 1 and condition.operator not in ("like", "isnull", "notnull"):
            value = condition.values[0]
            if isinstance(value, Literal_) and value.bare and isinstance(value.value, str):
                match = next((one for one in function.keys if value.value.lower() in (one.name, *one.aliases)), None)
                other = match if match is not None and match.kind == key.kind else None
        return BoundCondition(key, condition.operator, condition.values, other)
