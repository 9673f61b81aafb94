"""The tables that a SELECT is over, as functions of the graph, and their columns as keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from services.kg.generate.rules.roles import subject_of
from services.kg.language.catalogue import Function, Key, Parameter

# What may stand around a column and changes nothing here: the year of a day is compared as the day's beginning.
_AROUND = (exp.Lower, exp.Upper, exp.Date, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr, exp.Year, exp.Paren)


class Untranslatable(ValueError):
    """The text is no SELECT, names what the domain does not have, or no program says the same."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The function that a SELECT is over, and the tables that it joins, whose columns the function has as well."""

    function: Function
    functions: Mapping[str, Function]  # all of the domain, by the names that a prompt has for them
    joined: Mapping[str, Function] = field(default_factory=dict)  # by the names that the statement has for them

    def key(self, column: exp.Expr) -> Key:
        """The key of a column, whatever stands around it."""
        while isinstance(column, _AROUND):
            column = column.this
        if not isinstance(column, exp.Column):
            raise Untranslatable(f"{column.sql()} is no column")
        other = self.joined.get(column.table.lower())
        name = column.name.lower()
        for one in self._names(name, other or self.function):
            if (key := self.function.exact_keys.get(one)) is not None:
                return key
        # The quantity of a stock is its quantity_in_stock, whatever else has one.
        beginning = [key for key in self.function.keys if key.name.startswith(f"{name}_")]
        if len(beginning) == 1:
            return beginning[0]
        # The model of a driver is that of the van, where a driver has nothing else with one.
        ending = [key for key in self.function.keys if key.name.endswith(f"_{name}")]
        if len(ending) == 1:
            return ending[0]
        if key := self._called_otherwise(name):
            return key
        raise Untranslatable(f"{self.function.name} has no column {column.sql()}")

    def _called_otherwise(self, name: str) -> Key | None:
        """The key that a statement calls by its table too, `show_genre`, or as what names a row: `show_name`."""
        subject = subject_of(self.function)
        if name in self.functions and (role := role_of(self.function, self.functions[name])):
            return role
        for table, function in self.functions.items():
            short = name.removeprefix(f"{table}_")
            if function is self.function and short != name:
                own_key = self.function.exact_keys.get(short) or (subject if short == "name" else None)
                if own_key is not None:
                    return own_key
            key = function.exact_keys.get(name)
            if key is not None and key.entity and key.entity == subject.entity:
                return subject
            # What another table says of such rows, by what they are to it: the keeper_phone of a person.
            for role in roles_of(function, self.function):
                if key := self.function.exact_keys.get(name.removeprefix(f"{role.name}_")):
                    return key
            # The name of what a row names: author_name of a book.
            own = subject_of(function).name
            if role := next((one for one in roles_of(self.function, function) if name == f"{one.name}_{own}"), None):
                return role
        return subject if name == "name" and subject.entity else None

    def _names(self, name: str, table: Function) -> Iterator[str]:
        """What the function may call a column of a table; of another one where that table has no such column."""
        others = [table] if name in table.exact_keys else [self.function, *self.joined.values()]
        for other in others:
            if other is self.function:
                yield name
            else:
                yield from self._names_here(other, name)

    def _names_here(self, other: Function, name: str) -> Iterator[str]:
        """What the function calls a column of a table that it joins: `van_fuel`, the fuel of its van."""
        is_subject = name == subject_of(other).name
        for role in roles_of(self.function, other):
            yield role.name if is_subject else f"{role.name}_{name}"


def bases(select: exp.Select, functions: Mapping[str, Function]) -> Iterator[Tables]:
    """Each table of a SELECT as the one that has the columns of the others."""
    joined: dict[str, Function] = {}
    for table in tables_of(select):
        function = functions.get(table.name.lower()) or _with_columns(select, functions)
        if function is None:
            raise Untranslatable(f"there is no table {table.name}")
        joined[table.alias_or_name.lower()] = function
    if not joined or not all(map(_is_by_columns, select.args.get("joins") or ())):
        raise Untranslatable("it is not over tables alone")
    for function in dict.fromkeys(joined.values()):
        yield Tables(function, functions, joined)
    # "The fuel of the van whose driver is Ann": drivers have both.
    for function in functions.values():
        if function not in joined.values():
            yield Tables(function, functions)


def _with_columns(select: exp.Select, functions: Mapping[str, Function]) -> Function | None:
    """The only table with the columns of a SELECT of some rows of one that is not there: an example's, a plural."""
    where, names = select.args.get("where"), _names_of(select) - {"name"}
    if where is None or len(tables_of(select)) > 1 or names.isdisjoint(_names_of(where)):
        return None
    having = [one for one in functions.values() if names <= one.exact_keys.keys()]
    return having[0] if len(having) == 1 else None


def _names_of(tree: exp.Expr) -> set[str]:
    """The names of the columns below."""
    return {one.name.lower() for one in tree.find_all(exp.Column)}


def tables_of(select: exp.Select) -> list[exp.Table]:
    """The tables that a SELECT itself is over, without those of another one within it."""
    return [one for one in select.find_all(exp.Table) if one.find_ancestor(exp.Select) is select]


def _is_by_columns(join: exp.Join) -> bool:
    """Whether two tables are joined by equal columns and by nothing else."""
    on = join.args.get("on")
    conditions = list(joined_conditions(on)) if on is not None else []
    return bool(conditions) and all(
        isinstance(one, exp.EQ) and isinstance(one.left, exp.Column) and isinstance(one.right, exp.Column)
        for one in conditions
    )


def role_of(function: Function, other: Function) -> Key | None:
    """The key of a function that has names of another one's rows, where it has one such key."""
    roles = roles_of(function, other)
    return roles[0] if len(roles) == 1 else None


def roles_of(function: Function, other: Function) -> list[Key]:
    """The keys of a function that have names of another one's rows."""
    entity = subject_of(other).entity
    return [one for one in function.keys if one.entity == entity] if entity else []


def parameter_of(function: Function, key: Key) -> Parameter | None:
    """The parameter that takes the names of a key; None where its values are no names."""
    parameters = (one for one in function.parameters if one.kind == "entity" and one.column == key.id_column)
    return next(parameters, None) if key.entity else None


def joined_conditions(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that hold together."""
    if isinstance(condition, exp.Paren):
        yield from joined_conditions(condition.this)
    elif isinstance(condition, exp.And):
        yield from joined_conditions(condition.left)
        yield from joined_conditions(condition.right)
    else:
        yield condition
