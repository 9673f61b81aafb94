"""From a tree to catalogue objects: functions, keys and parameters that exist, or an error that names what does."""

from dataclasses import dataclass, replace
from typing import cast

from services.kg.errors import ParseError, UnknownName
from services.kg.language.catalogue import Catalogue, Facet, Function, Key, Parameter
from services.kg.language.tree import (
    Aggregate,
    Argument,
    Call,
    Combine,
    Condition,
    Descending,
    Group,
    Keyword,
    List_,
    Literal_,
    Project,
    Query,
    Reference,
    Slice,
    Sort,
    Step,
    Value,
    Where,
)


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition on a key; `other` is the key on the right of a comparison between columns."""

    key: Key
    operator: str
    values: tuple[Value, ...]
    other: Key | None = None


@dataclass(frozen=True, slots=True)
class BoundProject:
    """Keys to show; `dynamic` are names of rows in a function whose keys are rows."""

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


BoundStep = BoundProject | BoundWhere | BoundSort | BoundGroup | Slice


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A function with what each parameter was given: one value or several."""

    function: Function
    arguments: dict[str, tuple[Value, ...]]
    conditions: tuple[BoundCondition, ...]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query over one function."""

    source: BoundCall | Reference  # a call, or the earlier statement whose rows it goes on with
    steps: tuple[BoundStep, ...]  # in order
    every: bool
    aggregate: Aggregate | None
    head: int | None
    facet: str = ""  # the key of the original function that this stands for, as `best_new_artist`
    asked: Function | None = None  # the function that the program named


@dataclass(frozen=True, slots=True)
class BoundCombine:
    how: str
    queries: tuple[BoundQuery, ...]


Bound = BoundQuery | BoundCombine


class Binder:
    """Binds statements of one program in order, since `*` takes its keys from an earlier one.

    Functions are looked for in `domain` first.
    """

    def __init__(self, catalogue: Catalogue, domain: str) -> None:
        self._catalogue = catalogue
        self._domain = domain
        self.functions: list[Function | None] = []

    def bind(self, query: Query) -> Bound:
        """The statement over the catalogue; also remembered for `*` in later ones.

        Raises:
            UnknownName: a function or key that does not exist.
            ParseError: arguments that fit no parameter, or a `*` with nothing before it.
        """
        if isinstance(query.source, Combine):
            queries = tuple(self.query(one) for one in query.source.queries)
            self.functions.append(None)
            return BoundCombine(query.source.how, queries)
        bound = self.query(query)
        self.functions.append(self.function_of(bound))
        return bound

    def skip(self) -> None:
        """A statement that could not be bound still counts for `*2`."""
        self.functions.append(None)

    def function_of(self, query: BoundQuery) -> Function:
        if isinstance(query.source, BoundCall):
            return query.source.function
        return self._earlier(query.source)

    def _earlier(self, reference: Reference) -> Function:
        index = len(self.functions) - 1 if reference.statement is None else reference.statement - 1
        function = self.functions[index] if 0 <= index < len(self.functions) else None
        if function is None:
            raise ParseError("* has no rows before it", expected=("a statement with rows before this one",))
        return function

    def query(self, query: Query) -> BoundQuery:
        """One query, not remembered; raises as `bind`."""
        if isinstance(query.source, Combine):
            raise ParseError("a combination cannot stand inside another")
        facet_name, facet, asked = "", None, None
        steps = list(query.steps)
        if isinstance(query.source, Call):
            asked = self._catalogue.function(query.source.function, self._domain)
            source: BoundCall | Reference = self._call(asked, query.source.arguments)
            if steps and isinstance(steps[0], Project) and len(steps[0].keys) == 1:
                facet_name = steps[0].keys[0]
                facet = asked.find_facet(facet_name)
            if facet is not None:
                source = self._facet(asked, cast(BoundCall, source), facet)
                steps = steps[1:]
        else:
            source = query.source
        function = source.function if isinstance(source, BoundCall) else self._earlier(source)
        bound = [step for one in steps for step in self._step(function, one)]
        narrowed = function.whole or any(isinstance(step, BoundWhere | BoundGroup) for step in bound)
        if isinstance(source, BoundCall) and not (source.arguments or source.conditions or narrowed):
            names = tuple(parameter.name for parameter in function.parameters)
            raise ParseError(f"{function.name} of what? It needs {' or '.join(names)}, or a condition", expected=names)
        aggregate = query.aggregate
        if facet is not None:
            if facet.project and not any(isinstance(step, BoundProject) for step in bound):
                bound.append(BoundProject(tuple(function.key(key) for key in facet.project)))
            aggregate = aggregate or (facet.aggregate if not any(isinstance(one, Project) for one in steps) else None)
        return BoundQuery(
            source, tuple(bound), query.every, aggregate, query.head, facet_name if facet is not None else "", asked
        )

    def _facet(self, asked: Function, call: BoundCall, facet: Facet) -> BoundCall:
        function = self._catalogue.function(facet.function, asked.domain)
        presets = tuple(
            BoundCondition(function.key(preset.key), preset.operator, (Literal_(preset.value),))
            for preset in facet.presets
        )
        kept = tuple(replace(one, key=function.key(one.key.name)) for one in call.conditions)
        known = {parameter.name for parameter in function.parameters}
        return BoundCall(function, {n: v for n, v in call.arguments.items() if n in known}, presets + kept)

    def _call(self, function: Function, arguments: tuple[Argument, ...]) -> BoundCall:
        given: dict[str, tuple[Value, ...]] = {}
        conditions: list[BoundCondition] = []
        free = list(function.parameters)
        for argument in arguments:
            match argument:
                case Condition():
                    conditions.append(self._condition(function, argument))
                case List_(items) if items and all(isinstance(item, Condition) for item in items):
                    conditions += [self._condition(function, cast(Condition, item)) for item in items]
                    _skip(free, "entity")
                case Keyword(name, value):
                    self._keyword(function, name, value, given, conditions)
                    free = [parameter for parameter in free if parameter.name not in given]
                case Descending():
                    raise ParseError(f"{function.name} takes no sort key as an argument")
                case Literal_(None):
                    if free:
                        free.pop(0)
                case _:
                    self._positional(function, argument, free, given, conditions)
        missing = [p.name for p in function.parameters if p.required and p.name not in given]
        if missing:
            raise ParseError(f"{function.name} lacks {', '.join(missing)}", expected=tuple(missing))
        return BoundCall(function, given, tuple(conditions))

    def _positional(
        self,
        function: Function,
        value: Value,
        free: list[Parameter],
        given: dict[str, tuple[Value, ...]],
        conditions: list[BoundCondition],
    ) -> None:
        year = isinstance(value, Literal_) and isinstance(value.value, int) and not isinstance(value.value, bool)
        if year and (not free or free[0].kind == "entity") and (key := function.find_key("year")) is not None:
            # A bare number where a name would stand is a year: get_movie_person_crew("batman", "Jack", 1997).
            conditions.append(BoundCondition(key, "eq", (value,)))
            return
        if not free:
            raise ParseError(
                f"{function.name} takes {len(function.parameters)} arguments",
                expected=tuple(parameter.name for parameter in function.parameters),
            )
        given[free.pop(0).name] = _values(value)

    def _keyword(
        self,
        function: Function,
        name: str,
        value: Value,
        given: dict[str, tuple[Value, ...]],
        conditions: list[BoundCondition],
    ) -> None:
        for parameter in function.parameters:
            if parameter.name == name.lower():
                given[parameter.name] = _values(value)
                return
        try:
            conditions.append(self._condition(function, Condition("eq", name, (value,))))
        except UnknownName as error:
            names = tuple(parameter.name for parameter in function.parameters)
            raise UnknownName("parameter", f"{function.name} has no parameter {name}", expected=names) from error

    def _step(self, function: Function, step: Step) -> list[BoundStep]:
        match step:
            case Project(keys):
                return [self._project(function, keys)]
            case Where(conditions):
                return [BoundWhere(tuple(self._condition(function, one) for one in conditions))]
            case Sort(conditions, key, descending):
                where: list[BoundStep] = (
                    [BoundWhere(tuple(self._condition(function, one) for one in conditions))] if conditions else []
                )
                return [*where, BoundSort(function.key(key), descending)]
            case Group(keys):
                return [BoundGroup(tuple(function.key(key) for key in keys))]
            case Slice():
                return [step]

    def _project(self, function: Function, keys: tuple[str, ...]) -> BoundProject:
        if not function.dynamic:
            # A facet among plain keys shows the first key that it stands for.
            return BoundProject(tuple(dict.fromkeys(function.key(key) for key in keys)))
        # An alias may be a fact of the entity: the `name` of a company in an infobox is no column of ours.
        columns = {key.name: key for key in function.keys}
        if all(key in columns for key in keys):
            return BoundProject(tuple(columns[key] for key in keys))
        return BoundProject((function.key("key"), function.key("value")), dynamic=keys)

    def _condition(self, function: Function, condition: Condition) -> BoundCondition:
        key = function.key(condition.key)
        other = None
        if len(condition.values) == 1 and condition.operator not in ("like", "isnull", "notnull"):
            value = condition.values[0]
            if isinstance(value, Literal_) and value.bare and isinstance(value.value, str):
                found = next((one for one in function.keys if value.value.lower() in (one.name, *one.aliases)), None)
                other = found if found is not None and found.kind == key.kind else None
        return BoundCondition(key, condition.operator, condition.values, other)


def _skip(free: list[Parameter], kind: str) -> None:
    while free and free[0].kind == kind and not free[0].required:
        free.pop(0)


def _values(value: Value) -> tuple[Value, ...]:
    if isinstance(value, List_):
        return tuple(item for item in value.items if not isinstance(item, Condition | Keyword | Descending))
    return (value,)
