"""The columns of a model's SELECT as keys of the domain's functions, however the model calls them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from services.kg.comparisons import tables_of
from services.kg.generate.rules.roles import subject_of
from services.kg.language.catalogue import Function, Key
from services.kg.syntax import columns_of


@dataclass(frozen=True, slots=True)
class Tables:
    """The function that a SELECT is over, and the tables that it joins, whose columns the function has as well."""

    function: Function
    functions: Mapping[str, Function]  # all of the domain, by the names that a prompt has for them
    joined: Mapping[str, Function] = field(default_factory=dict)  # by the names that the statement has for them

    def key(self, column: exp.Column) -> Key | None:
        """The key that a column names, or nearly names."""
        other = self.joined.get(column.table)
        name = column.name.lower()
        for one in self._names(name, other or self.function):
            if (key := self.function.exact_keys.get(one)) is not None:
                return key
        subject = subject_of(self.function)
        if other is None and subject.entity and self.functions.get(name) is self.function:
            # What a table's rows are called, whatever else begins so: `SELECT staff FROM staff`.
            return subject
        # The quantity of a stock is its quantity_in_stock, whatever else has one; else the model of a driver is that of
        # the van, where a driver has nothing else with one. A tenant is neither tenant_count nor charged_to_tenant.
        telling = [key for key in self.function.keys if key.kind == "text" or name not in self.functions]
        beginning = [key for key in telling if key.name.startswith(f"{name}_")]
        ending = [key for key in telling if key.name.endswith(f"_{name}")]
        alone = (keys[0] for keys in (beginning, ending) if len(keys) == 1)
        return next(alone, None) or self._called_otherwise(name)

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
            # The name of what a row names: author_name of a book, whose authors may be called so themselves.
            own = subject_of(function).name
            if name == own != "name" and (role := role_of(self.function, function)):
                return role
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


def shared_roles_of(function: Function, other: Function) -> tuple[Key, Key] | None:
    """The keys by which two functions name the same rows: the flat of a repair and of a tenant; only where one may."""
    pairs = [(one, two) for one in function.keys for two in other.keys if one.entity and one.entity == two.entity]
    return pairs[0] if len(pairs) == 1 else None


def role_of(function: Function, other: Function) -> Key | None:
    """The key of a function that has names of another one's rows, where it has one such key."""
    roles = roles_of(function, other)
    return roles[0] if len(roles) == 1 else None


def roles_of(function: Function, other: Function) -> list[Key]:
    """The keys of a function that have names of another one's rows."""
    entity = subject_of(other).entity
    return [one for one in function.keys if one.entity == entity] if entity else []


def lead_by_role(tree: exp.Expr, functions: Mapping[str, Function]) -> None:
    """Lead from one table to another by the key that names its rows: the cars of a driver.

    A model compares a column of the outer table with itself, which is true of every row: `make IN (SELECT make FROM
    driver WHERE name = 'Ann')`, where drivers have no make.
    """
    for beside in list(tree.find_all(exp.EQ, exp.In)):
        inner = beside.args.get("query") or beside.args.get("expression")
        inner = inner.this if isinstance(inner, exp.Subquery) else inner
        outer, named = beside.parent_select, beside.this
        if not isinstance(inner, exp.Select) or outer is None or not isinstance(named, exp.Column):
            continue
        there = [functions.get(one.name.lower()) for select in (outer, inner) for one in tables_of(select)]
        columns = inner.expressions
        own, other = there if len(there) == 2 else (None, None)
        if len(columns) != 1 or not isinstance(columns[0], exp.Column) or own is None or other is None or own is other:
            continue
        key, subject = own.exact_keys.get(named.name.lower()), subject_of(own)
        key_there = other.exact_keys.get(columns[0].name.lower())
        if key is None:
            continue
        if key_there is not None and subject.entity and key_there.entity == subject.entity != key.entity:
            # The customer of an order is a name, and that of a customer may be a code, or its number.
            told = [one for one in outer.expressions if isinstance(one, exp.Column) and one.name == named.name]
            for column in (named, *told):
                column.set("this", exp.to_identifier(subject.name))
        if columns[0].name != named.name:
            continue
        if (role := role_of(own, other)) is not None and Tables(other, functions).key(columns[0]) is None:
            named.set("this", exp.to_identifier(role.name))
            columns[0].set("this", exp.to_identifier(subject_of(other).name))


def count_in_hours(tree: exp.Expr, functions: Mapping[str, Function]) -> None:
    """Take minutes for the hours that a table does not have."""
    for select in tree.find_all(exp.Select):
        tables = [functions.get(one.name.lower()) for one in tables_of(select)]
        if len(tables) != 1 or tables[0] is None:
            continue
        keys = [key.name for key in tables[0].keys if key.unit == "minutes"]
        unknown = [one for one in select.find_all(exp.Column) if one.name.lower() == "hours"]
        # Its own name for something that it computes.
        is_named = any(one.alias.lower() == "hours" for one in select.expressions)
        if len(keys) == 1 and not is_named and Tables(tables[0], functions).key(exp.column("hours")) is None:
            for column in unknown:
                column.replace(exp.paren(exp.Div(this=exp.column(keys[0]), expression=exp.Literal.number("60.0"))))


def over_first_table(tree: exp.Expr) -> None:
    """Write a SELECT that only computes with others, `SELECT (SELECT ...) - (SELECT ...)`, over a row of a table."""
    if isinstance(tree, exp.Select) and tree.args.get("from_") is None and not columns_of(tree):
        table = next(tree.find_all(exp.Table, bfs=False), None)
        if table is not None:
            tree.from_(table.name, copy=False).limit(1, copy=False)


def add_up_truths(tree: exp.Expr) -> None:
    """Add up a condition as 1 and 0, which databases do not agree on: `SUM(status = 'open')`."""
    for total in tree.find_all(exp.Sum, exp.Avg):
        if isinstance(total.this, exp.Predicate | exp.Connector | exp.Not):
            total.set("this", exp.case().when(total.this.copy(), exp.Literal.number(1)).else_(exp.Literal.number(0)))
