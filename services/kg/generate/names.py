"""The names of entities in a program: where they stand, and how to put others in their place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from services.kg.errors import KgError
from services.kg.language import tree
from services.kg.language.catalogue import Catalogue, Function, Parameter
from services.kg.language.parse import parse_each
from services.kg.language.tree import Argument, Call, Condition, List_, Literal_, Query, Value, conditions_of, values_of

# A name and its kinds -> the name to write, or None to refuse the statement.
Rename = Callable[[str, Sequence[str]], str | None]
# The parameters of functions that are years.
YEARS = frozenset(("year", "until"))


class Unnamed(Exception):
    """A statement has a name that was refused."""


def literals(program: str, catalogue: Catalogue, domain: str) -> tuple[str, ...]:
    """All names of entities in the statements of a program that can be parsed, in order, each once."""
    names: dict[str, None] = {}

    def note(name: str, _: Sequence[str]) -> str:
        names[name] = None
        return name

    for parsed in parse_each(program):
        if isinstance(parsed.statement, Query):
            Renaming(catalogue, domain, note).query(parsed.statement)
    return tuple(names)


def refers(node: object) -> bool:
    """Whether a statement, or a part of one, goes on with the rows of an earlier statement."""
    match node:
        case tree.Reference():
            return True
        case Query(part) | tree.Keyword(_, part):
            return refers(part)
        case Call(_, parts) | tree.Combine(_, parts) | List_(parts) | Condition(_, _, parts):
            return any(map(refers, parts))
    return False


@dataclass(frozen=True, slots=True)
class Renaming:
    """Replaces the literals of a domain's statements."""

    catalogue: Catalogue
    domain: str
    name: Rename  # of names of entities
    text: Callable[[str], str | None] = str  # of other words that the question should have said, such as a league
    # Whether years, alone or in dates, may stay; False refuses the statement.
    year: Callable[[str], bool] = lambda _: True

    def query(self, query: Query) -> Query:
        """The statement with every name replaced.

        Raises:
            Unnamed: a name or a year is refused.
        """
        if isinstance(query.source, tree.Combine):
            return replace(query, source=replace(query.source, queries=tuple(map(self.query, query.source.queries))))
        if not isinstance(query.source, Call):
            return query
        try:
            function = self.catalogue.function(query.source.function, self.domain)
        except KgError:
            return query
        free = list(function.parameters)
        arguments = tuple(self._argument(function, free, argument) for argument in query.source.arguments)
        # The function whose keys the steps have: of `get_person(x)["music"]` the one that lists works.
        facet = function.facet_of(query.steps)
        rows = self.catalogue.function(facet.function, function.domain) if facet is not None else function
        steps = tuple(self._step(rows, step) for step in query.steps)
        return replace(query, source=Call(query.source.function, arguments), steps=steps)

    def _step(self, function: Function, step: tree.Step) -> tree.Step:
        if isinstance(step, tree.Where | tree.Sort):
            return replace(step, conditions=tuple(self._condition(function, one) for one in step.conditions))
        return step

    def _argument(self, function: Function, free: list[Parameter], argument: Argument) -> Argument:
        match argument:
            case Condition():
                return self._condition(function, argument)
            case List_() if conditions := conditions_of(argument):
                return List_(tuple(self._condition(function, one) for one in conditions))
            case tree.Keyword(name, value):
                parameter = next((one for one in function.parameters if one.name == name.lower()), None)
                return tree.Keyword(name, self._parameter_value(parameter, value) if parameter else value)
            case Literal_() | List_() | Query() | tree.Reference() if free:
                return self._parameter_value(free.pop(0), argument)
        return argument

    def _parameter_value(self, parameter: Parameter, argument: Value) -> Value:
        if parameter.kind == "entity":
            return self._value(argument, parameter.entities)
        if isinstance(argument, Literal_) and argument.value is not None:
            text = str(argument.value)
            if parameter.kind == "text":
                return Literal_(self.text(text) or text)
            if parameter.kind == "time" or parameter.name in YEARS:
                self._check_year(text)
        return argument

    def _value(self, value: Value, kinds: Sequence[str]) -> Value:
        match value:
            case Literal_(str() as name):
                if (new := self.name(name, kinds)) is None:
                    raise Unnamed(name)
                return Literal_(new)
            case List_():
                return List_(tuple(self._value(item, kinds) for item in values_of(value)))
            case Query():
                return self.query(value)
        return value

    def _condition(self, function: Function, condition: Condition) -> Condition:
        """Values of keys that hold names are names too: the opponent, the artist."""
        key = function.find_key(condition.key)
        if key is not None and (key.kind == "date" or key.name.endswith("year")):
            for value in condition.values:
                if isinstance(value, Literal_):
                    self._check_year(str(value.value))
        if key is None or not (key.entity or key.id_column):
            return condition
        kinds = (key.entity,) if key.entity else ()
        values = (self._value(one, kinds) if isinstance(one, Literal_) else one for one in condition.values)
        return replace(condition, values=tuple(values))

    def _check_year(self, text: str) -> None:
        if not self.year(text):
            raise Unnamed(text)
