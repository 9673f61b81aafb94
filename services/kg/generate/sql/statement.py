"""A model's SELECT over a domain's functions, with the domain's names for tables, columns and values."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import permutations

from sqlglot import exp

from services.kg.comparisons import Comparison, comparisons, is_negated, place_of, tables_of
from services.kg.days import AROUND_DAYS, NOW, difference, write_days
from services.kg.errors import ParseError
from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.roles import subject_of
from services.kg.generate.sql.tables import (
    Tables,
    add_up_truths,
    count_in_hours,
    lead_by_role,
    over_first_table,
    role_of,
    shared_roles_of,
)
from services.kg.generate.sql.typed import type_comparison, type_flag
from services.kg.language.catalogue import Domain, Function, Key
from services.kg.selects import FLAGS, selection_of, table_name
from services.kg.syntax import columns_of, expand_aliases, first_of


class Statement:
    """One SELECT, or a UNION of several, whose tables and columns are those of a domain.

    Raises:
        ParseError: it names what the domain does not have, or is no SELECT.
    """

    def __init__(self, tree: exp.Query, domain: Domain) -> None:
        self.tree = tree
        self.domain = domain
        self.functions = {table_name(one): one for one in domain.shown}
        _without_truths(tree)
        over_first_table(tree)
        add_up_truths(tree)
        lead_by_role(tree, self.functions)
        count_in_hours(tree, self.functions)
        _among_several(tree)
        selects = list(tree.find_all(exp.Select))
        # All tables first: what a column is, those around it decide as well.
        for select in selects:
            self._name_tables(select)
        for select in selects:
            self._resolve(select)
        for one in list(tree.find_all(exp.Sub)):
            # Days are texts, of which a database would take the years.
            if self._is_day(one.left) and self._is_day(one.right):
                one.replace(difference(one.left, one.right))

    @property
    def sides(self) -> list[exp.Select]:
        """The SELECT, or those that a UNION joins."""
        return [first_of(self.tree), *(joint.expression for joint in self._joints)]

    @property
    def _joints(self) -> list[exp.SetOperation]:
        """The UNIONs between its sides, in their order."""
        joints, tree = list[exp.SetOperation](), self.tree
        while isinstance(tree, exp.SetOperation):
            joints.insert(0, tree)
            tree = tree.this
        return joints

    def sql(self, today: date) -> str:
        """The statement as the database is to run it.

        Raises:
            ParseError: it does more than a view may.
        """
        write_days(self.tree, today)
        self._type()
        selection_of(self.tree, self.domain)
        # Each count of "how many in A, how many in B" is told apart.
        trees = self.sides if self._is_of_counts else [self.tree]
        return "\n".join(one.sql("sqlite", comments=False) for one in trees)

    @property
    def _is_of_counts(self) -> bool:
        """Whether it is one number beside another, each over all rows of its own."""
        is_plain = all(
            type(one) is exp.Union and not one.args.get("order") and not one.args.get("limit") for one in self._joints
        )
        return is_plain and all(_tells_a_number(one) for one in self.sides)

    def comparisons(self) -> Iterator[Comparison]:
        """See `comparisons.comparisons`."""
        return comparisons(self.tree, self.functions)

    def place_of(self, column: exp.Column) -> tuple[Function, Key] | None:
        """See `comparisons.place_of`."""
        return place_of(column, self.functions)

    @property
    def keys(self) -> list[Key]:
        """The keys of all its tables."""
        tables = (self.functions.get(table.name) for table in self.tree.find_all(exp.Table))
        return [key for function in tables if function is not None for key in function.keys]

    def has_days(self, column: exp.Column) -> bool:
        """Whether a column has days."""
        place = self.place_of(column)
        return place is not None and place[1].kind == "date"

    def _is_day(self, value: exp.Expr) -> bool:
        """Whether a value is a day: today, one of a column, or the one that a SELECT finds."""
        inner = one_value(value)
        is_today = isinstance(inner, exp.CurrentDate | exp.CurrentTimestamp) or inner.name.lower() == NOW
        return is_today or (isinstance(inner, exp.Column) and self.has_days(inner))

    @property
    def outputs(self) -> list[exp.Expr]:
        """What the first SELECT tells, without aliases."""
        return [one.unalias() for one in self.sides[0].expressions]

    @property
    def only_place(self) -> tuple[Function, Key] | None:
        """The function and the key of the only column that it tells; None where it tells something else."""
        outputs = self.outputs
        return self.place_of(outputs[0]) if len(outputs) == 1 and isinstance(outputs[0], exp.Column) else None

    @property
    def names_its_rows(self) -> bool:
        """Whether it is of rows that it names one by one."""
        return any(
            one.is_name and one.key.name in one.function.subject and isinstance(one.node, exp.EQ | exp.In)
            for one in self.comparisons()
            if one.node.find_ancestor(exp.Select) is self.sides[0]
        )

    @property
    def is_counted(self) -> bool:
        """Whether it computes a number over rows."""
        return any(isinstance(one, exp.AggFunc) for one in self.outputs)

    def _name_tables(self, select: exp.Select) -> None:
        """Write tables as the domain names them, and columns in small letters."""
        tables, columns = tables_of(select), columns_of(select)
        if not tables:
            raise ParseError("it is over no table")
        for column in columns:
            column.set("this", exp.to_identifier(column.name.lower()))
        for table in tables:
            called, name = table.name.lower(), table_name(self._function_of(table, columns))
            table.set("this", exp.to_identifier(name))
            for column in select.find_all(exp.Column) if not table.alias else ():
                if column.table == called:
                    column.set("table", exp.to_identifier(name))

    def _resolve(self, select: exp.Select) -> None:
        """Write columns as the domain names them."""
        tables, columns = tables_of(select), columns_of(select)
        here = {table.alias_or_name: self.functions[table.name] for table in tables}
        for column in columns:
            if column.table and column.table not in here and self.place_of(column) is None:
                column.set("table", None)
        expand_aliases(select)
        self._drop_guesses(select, here)
        columns = columns_of(select)
        unknown = [one for one in columns if self.place_of(one) is None]
        near = [(column, key) for column in unknown if (key := self._near(column, here)) is not None]
        if len(near) == len(unknown):
            for column, key in near:
                column.set("this", exp.to_identifier(key.name))
        elif len(tables) > 1 or not self._is_brought(select, tables[0], columns):
            raise ParseError("it names a column that there is not")

    def _is_brought(self, select: exp.Select, table: exp.Table, columns: Sequence[exp.Column]) -> bool:
        """Bring a statement to the functions that have its columns; whether there are such.

        The repairs of a building are counted, and not the building, which has a column of that name; and what is told
        of the patient Ann by owners, who have names as well, is told of her owner.
        """
        where = select.args.get("where")
        is_narrowed = where is not None and _is_of(self.functions[table.name], where)
        if is_narrowed or _counts_rows(select):
            return self._chain(select, table) or self._move(table, columns)
        return self._move(table, columns) or self._chain(select, table)

    def _function_of(self, table: exp.Table, columns: Sequence[exp.Column]) -> Function:
        """The function of a table; the only one with the columns where there is no such table, as an example's."""
        name = table.name.lower()
        function = self.functions.get(name) or self.functions.get(singular(name))
        if function is None:
            names = {one.name for one in columns} - {"name"}
            having = [one for one in self.functions.values() if names <= one.exact_keys.keys()]
            is_narrowed = any(one.find_ancestor(exp.Where) and one.name in names for one in columns)
            if len(having) != 1 or not is_narrowed:
                raise ParseError(f"there is no table {table.name}")
            (function,) = having
        return function

    def _drop_guesses(self, select: exp.Select, here: Mapping[str, Function]) -> None:
        """Drop `kind = 'X'` beside `genre = 'X'` where there is no `kind`: a model guesses which column has a text."""
        equal = (one for one in select.find_all(exp.EQ) if isinstance(one.this, exp.Column))
        compared = [one for one in equal if one.expression.is_string]
        there = [one for one in compared if self._near(one.this, here) is not None]
        for one in compared:
            if one not in there and any(other.expression == one.expression for other in there):
                drop(one)

    def _near(self, column: exp.Column, here: Mapping[str, Function]) -> Key | None:
        """The key that a column names, or nearly names."""
        if (place := self.place_of(column)) is not None:
            return place[1]
        own = here.get(column.table)
        keys = (Tables(one, self.functions, here).key(column) for one in ([own] if own is not None else here.values()))
        return next(filter(None, keys), None)

    def _move(self, table: exp.Table, columns: Sequence[exp.Column]) -> bool:
        """Move to another function that has all columns: of the fuel of Ann's van drivers have both."""
        function = next((one for one in self.functions.values() if self._has(one, columns)), None)
        if function is not None:
            self._name_columns(function, columns)
            table.set("this", exp.to_identifier(table_name(function)))
        return function is not None

    def _chain(self, select: exp.Select, table: exp.Table) -> bool:
        """Take what another table's rows of some conditions name: the keg price of the beer in order 5015.

        Orders name beers; the beers are those of the order, or, the other way round, orders those of such a beer. Who
        lives in the flat of a repair has the flat that the repair names.
        """
        where = select.args.get("where")
        conditions = each_of(where.this, exp.And) if where is not None else []
        own = self.functions[table.name]
        others = [one for one in self.functions.values() if one is not own]
        pairs = [(own, other) for other in others]
        if not _counts_rows(select):
            pairs += [*((other, own) for other in others), *permutations(others, 2)]
        told = [*select.expressions, *filter(None, (select.args.get("order"), select.args.get("group")))]
        leads = [then for then in others if self._leads(then, own, conditions, told)]
        if len(leads) > 1:
            # The institution of a find is its finder's, and not that of its trench's supervisor; but a pet's owner and
            # its vet both have a phone.
            leads = [then for then in leads if all(_is_of(then, one) for one in told)]
            if len(leads) != 1:
                return False
            pairs = [(leads[0], own)]
        for then, first in pairs:
            if (between := _roles_between(then, first)) is None:
                continue
            named, naming = between
            inner = [one for one in conditions if not self._has(then, [one]) or _is_of(own, one) > _is_of(then, one)]
            rest = [one for one in conditions if one not in inner]
            if not inner or not self._has(first, inner) or not self._has(then, told):
                continue
            for part, function in ((rest + told, then), (inner, first)):
                self._name_columns(function, part)
            names = exp.select(exp.column(naming.name)).from_(exp.to_table(table_name(first)))
            chain = exp.In(this=exp.column(named.name), query=names.where(*inner).subquery())
            select.set("where", exp.Where(this=exp.and_(*rest, chain)))
            table.set("this", exp.to_identifier(table_name(then)))
            return True
        return False

    def _leads(self, then: Function, own: Function, conditions: Sequence[exp.Expr], told: Sequence[exp.Expr]) -> bool:
        """Whether another function that rows of one name has what is told, and their conditions not."""
        is_named = role_of(own, then) is not None and not self._has(own, told) and self._has(then, told)
        return is_named and all(_is_of(own, one) > _is_of(then, one) for one in conditions)

    def _has(self, function: Function, parts: Sequence[exp.Expr]) -> bool:
        """Whether all columns of parts of a statement are the function's."""
        tables = Tables(function, self.functions)
        return all(tables.key(column) is not None for part in parts for column in part.find_all(exp.Column))

    def _name_columns(self, function: Function, parts: Sequence[exp.Expr]) -> None:
        tables = Tables(function, self.functions)
        for column in [one for part in parts for one in part.find_all(exp.Column)]:
            if (key := tables.key(column)) is not None:
                column.set("this", exp.to_identifier(key.name))
                column.set("table", None)

    def _type(self) -> None:
        """Compare as the columns have their values: texts in any case, flags as yes and no, parts of days as days."""
        for one in list(self.comparisons()):
            type_comparison(one)
        for column in list(self.tree.find_all(exp.Column)):
            place = self.place_of(column)
            if place is not None and place[1].kind == "flag":
                type_flag(column)
        for beside in list(self.tree.find_all(exp.In)):
            # No value is beside an unknown one NOT IN anything.
            inner = beside.args.get("query")
            if is_negated(beside) and inner is not None:
                rows = inner.this if isinstance(inner, exp.Subquery) else inner
                if isinstance(rows, exp.Select) and isinstance(rows.expressions[0], exp.Column):
                    known = exp.Not(this=exp.Is(this=rows.expressions[0].copy(), expression=exp.Null()))
                    rows.where(known, copy=False)


def one_value(value: exp.Expr) -> exp.Expr:
    """The value itself of one in brackets, the first or last of several, or the only one that a SELECT tells."""
    inner = value.unnest()
    while isinstance(inner, (*AROUND_DAYS, exp.Max, exp.Min)):
        inner = inner.this
    if isinstance(inner, exp.Subquery | exp.Select) and len(inner.selects) == 1:
        return one_value(inner.selects[0].unalias())
    return inner


def _is_of(function: Function, part: exp.Expr) -> bool:
    """Whether all columns of a part of a statement are called as the function's keys are."""
    return all(column.name in function.exact_keys for column in part.find_all(exp.Column))


def _among_several(tree: exp.Expr) -> None:
    """Compare with all that a SELECT finds, which `= (SELECT ...)` does with the first alone."""
    for one in [one for one in tree.find_all(exp.EQ) if isinstance(one.expression, exp.Subquery)]:
        inner = one.expression.this
        if isinstance(inner, exp.Select) and not any(each.find(exp.AggFunc) for each in inner.expressions):
            one.replace(exp.In(this=one.this, query=one.expression))


def _without_truths(tree: exp.Query) -> None:
    """Compare flags with yes and no where a statement has TRUE and FALSE."""
    for node in list(tree.find_all(exp.Boolean)):
        compared = node.parent
        if isinstance(compared, exp.EQ | exp.NEQ | exp.Is | exp.In):
            node.replace(exp.Literal.string(FLAGS[not node.this]))
        if isinstance(compared, exp.Is):
            compared.replace(exp.EQ(this=compared.this, expression=compared.expression))


def _tells_a_number(select: exp.Select) -> bool:
    return not select.args.get("group") and any(
        one.find_ancestor(exp.Select) is select for item in select.expressions for one in item.find_all(exp.AggFunc)
    )


def _counts_rows(select: exp.Select) -> bool:
    return any(one.find(exp.Count) and not one.find(exp.Column) for one in select.expressions)


def _roles_between(then: Function, first: Function) -> tuple[Key, Key] | None:
    """The keys of two functions that have the same names: those of one of them, else of what both name."""
    if role := role_of(first, then):
        return subject_of(then), role
    if role := role_of(then, first):
        return role, subject_of(first)
    return shared_roles_of(then, first)


def each_of(condition: exp.Expr, joint: type[exp.Connector]) -> Sequence[exp.Expr]:
    """The conditions that one joins, or itself."""
    whole = condition.unnest()
    return [one.unnest() for one in whole.flatten()] if isinstance(whole, joint) else [whole]


def drop(condition: exp.Expr) -> None:
    """Leave a condition out, of those that it is joined with or the only one."""
    while isinstance(condition.parent, exp.Paren):
        condition = condition.parent
    both = condition.parent
    if isinstance(both, exp.And | exp.Or):
        both.replace(both.right if both.left is condition else both.left)
    elif isinstance(both, exp.Where):
        both.pop()
