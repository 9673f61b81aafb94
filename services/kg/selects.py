"""A program in SQL: one SELECT over a domain's functions, each of which is a table.

The database runs the parser's tree of it over the functions' views and never its text; what it may call is listed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import TextualSelect
from sqlglot import exp

from services.kg.comparisons import comparisons, place_of, tables_of
from services.kg.days import words_of
from services.kg.definition.folder import BrokenPart
from services.kg.definition.views import PLAIN, Sources, check, select_of, tree_of
from services.kg.errors import ParseError
from services.kg.language.catalogue import NUMERIC, Domain, Function, Key
from services.kg.language.tree import Aggregate
from services.kg.syntax import expand_aliases, first_of
from services.kg.verbalize import AGGREGATES
from services.kit.text.vocabulary import ORDINALS

MAX_TABLES = 6
# Texts that are joined grow with each SELECT around another.
MAX_JOINED = 4
FLAGS = ("yes", "no")
# More rows than there are; databases take no larger number.
MAX_LIMIT = 2**31 - 1
# Those that a SELECT may call.
FUNCTIONS = (*PLAIN, exp.DateDiff)
_AGGREGATES: Mapping[type[exp.Expr], Aggregate] = {exp.Sum: "sum", exp.Avg: "avg", exp.Max: "max", exp.Min: "min"}
_SINGLE: tuple[type[exp.Expr], ...] = (exp.Count, *_AGGREGATES)


def table_name(function: Function) -> str:
    """A function's name as a table: `van` of `get_van`."""
    return function.name.removeprefix("get_")


def selection_of(tree: exp.Query, domain: Domain, tomorrow: str = "") -> "Selection":
    """The SELECT over a domain's functions.

    Args:
        tomorrow: events from that day on are hidden, unless the SELECT has a condition on their time.

    Raises:
        ParseError: it names what the domain does not have, or calls what it may not.
    """
    functions = {table_name(one): one for one in domain.shown}
    tree = tree.copy()
    tables = list(tree.find_all(exp.Table))
    names = {table.name for table in tables}
    if unknown := sorted(names - functions.keys()):
        raise ParseError(f"there is no table {unknown[0]}; there are {', '.join(functions)}")
    if any(value for table in tables for name, value in table.args.items() if name not in ("this", "alias")):
        raise ParseError("a SELECT is over tables by their names alone")
    if not 0 < len(tables) <= MAX_TABLES:
        raise ParseError(f"a SELECT is over 1 to {MAX_TABLES} tables")
    if len(list(tree.find_all(exp.DPipe))) > MAX_JOINED:
        raise ParseError(f"a SELECT joins texts by || at most {MAX_JOINED} times")
    if not all(map(_is_joined, tree.find_all(exp.Select))):
        raise ParseError("tables are joined by columns that are equal")
    for select in tree.find_all(exp.Select):
        expand_aliases(select)
        having = select.args.get("having")
        for column in having.find_all(exp.Column) if having is not None else ():
            # SQLite reads a name in quotes that it does not know as a text.
            if place_of(column, functions) is None:
                raise ParseError(f"there is no {column.name} to narrow groups by")
    for ordered in tree.find_all(exp.Ordered):
        # What is unknown is neither the least nor the first.
        ordered.set("nulls_first", False)
    selection = Selection(tree, functions)
    timed = {one.function.name for one in selection.comparisons if one.key.name == one.function.event}
    try:
        check(tree, Sources({}, {name: tree_of(functions[name].view) for name in names}), FUNCTIONS)
        for table in list(tree.find_all(exp.Table)):
            # A table of the store may have the name of a function's.
            function = functions[table.name]
            rows = _rows_of(function, "" if function.name in timed else tomorrow)
            table.replace(rows.subquery(table.alias_or_name))
        selection.finish(select_of(tree, Sources(domain.tables, {})))
    except BrokenPart as error:
        raise ParseError(str(error)) from error
    return selection


def _is_joined(select: exp.Select) -> bool:
    """Whether as many columns are equal as join a SELECT's tables; all pairs of rows would be too many."""
    equal = (one for one in select.find_all(exp.EQ) if one.find_ancestor(exp.Select) is select)
    pairs = {
        frozenset((one.left.table, one.right.table))
        for one in equal
        if isinstance(one.left, exp.Column) and isinstance(one.right, exp.Column) and one.left.table != one.right.table
    }
    return len(pairs) >= len(tables_of(select)) - 1


def _rows_of(function: Function, tomorrow: str) -> exp.Select:
    """A function's rows as prompts show them: its keys alone, flags as yes and no, no events from `tomorrow` on."""
    columns = []
    for key in function.keys:
        column: exp.Expr = exp.column(key.name, quoted=True)
        if key.kind == "flag":
            yes, no = map(exp.Literal.string, FLAGS)
            column = exp.case().when(column.eq(1), yes).when(column.eq(0), no)
        columns.append(exp.alias_(column, key.name, quoted=True))
    rows = exp.select(*columns).from_(tree_of(function.view).subquery("rows"))
    if function.event and tomorrow:
        time = exp.column(function.event, quoted=True)
        rows = rows.where(exp.or_(time < exp.Literal.string(tomorrow), time.is_(exp.null())))
    return rows


class Selection:
    """A SELECT taken apart: the executor orders, cuts and computes over the rows of its function."""

    function: Function  # whose view are the rows, and whose default keys are shown

    def __init__(self, tree: exp.Query, functions: Mapping[str, Function]) -> None:
        self.comparisons = tuple(comparisons(tree.copy(), functions))
        self.order: tuple[tuple[str, bool], ...] = ()  # keys, with whether descending
        self.limit: int | None = None
        self.aggregate: Aggregate | None = None  # of the last key that is shown; of all rows
        self.once = ""  # what is counted once, in words: of COUNT(DISTINCT ...)
        self.ranked = ""  # by what its LIMIT takes rows, in words: second highest price
        found = first_of(tree)
        self._select, self._functions = found, functions
        self._tables = tables_of(found)
        if not self._tables:
            raise ParseError("a SELECT is over tables")
        self._first = functions[self._tables[0].name]
        self._keys, self._values = dict[str, Key](), dict[str, exp.Expr]()
        outputs = [one.unalias() for item in found.expressions for one in self._expanded(item)]
        for part in ("order", "group"):
            self._name_places(found.args.get(part), outputs)
        is_whole = found is tree and not any(found.args.get(one) for one in ("group", "having", "distinct"))
        computed = [one for one in outputs if one.find(exp.AggFunc)]
        if is_whole and len(computed) == 1 < len(outputs) and isinstance(computed[0], exp.Max | exp.Min):
            # The largest weight is told with what weighs so much.
            is_most, value = isinstance(computed[0], exp.Max), computed[0].this
            found.set("order", exp.Order(expressions=[exp.Ordered(this=value.copy(), desc=is_most)]))
            found.set("limit", exp.Limit(expression=exp.Literal.number(1)))
            outputs, computed = [value if one is computed[0] else one for one in outputs], []
        # Its rows are rows of tables.
        self._is_plain = is_whole and (not computed or (len(outputs) == 1 and isinstance(outputs[0], _SINGLE)))
        if self._is_plain and computed:
            outputs = self._aggregated(outputs[0])
        for one in outputs:
            self._add(one)
        if found is tree and not self.aggregate:
            self._take_order()
        self._name_rows()

    def finish(self, view: TextualSelect) -> None:
        """Make the function of the view that the tree has become.

        Raises:
            ParseError: a sum or an average is of no number.
        """
        first, keys = self._first, tuple(self._keys.values())
        if self.aggregate in ("sum", "avg") and keys[0].kind not in NUMERIC - {"flag"}:
            raise ParseError(f"{keys[0].name} is no number")
        own = [key.name for key in keys if key.name in (self._group or first.subject)]
        self.function = Function(
            *(first.name, first.domain, first.summary, (), view, keys),
            subject=tuple(own) or (keys[0].name,),
            default=self._shown,
            grouped=bool(self._group),
        )

    @staticmethod
    def _name_places(part: exp.Expr | None, outputs: Sequence[exp.Expr]) -> None:
        """Put outputs in place of their numbers: ORDER BY 2."""
        for one in part.expressions if part is not None else ():
            place = one.this if isinstance(one, exp.Ordered) else one
            if isinstance(place, exp.Literal) and not place.is_string:
                number = str(place.this)
                if not number.isdigit() or not 0 < int(number) <= len(outputs):
                    raise ParseError(f"there is no output {number}")
                place.replace(outputs[int(number) - 1].copy())

    def _name_rows(self) -> None:
        """Add what names the rows to the outputs, each of which gets a name of its own."""
        select, keys = self._select, self._keys
        self._group, self._shown = tuple[str, ...](), tuple(keys)
        if select.args.get("group"):
            self._group = tuple(name for name in keys if isinstance(self._values[name], exp.Column))
        elif self._is_plain:
            # A row is told by what names it; behind what is shown, which a column of that name may be.
            for name in self._first.subject:
                if name not in keys:
                    keys[name] = self._first.exact_keys[name]
                    self._values[name] = self._own(name)
            if self.order and self._shown == (self.order[0][0],):
                self._shown = (*self._first.subject[:1], *self._shown)
        select.set("expressions", [exp.alias_(value, name, quoted=True) for name, value in self._values.items()])

    def _add(self, value: exp.Expr) -> str:
        """The name of an output, which is added unless it is there."""
        keys, values = self._keys, self._values
        if (same := next((name for name, other in values.items() if other == value), None)) is not None:
            return same
        key = self._key_of(value)
        name = key.name
        while name in keys:
            name = f"{name}_{len(keys) + 1}"
        keys[name], values[name] = replace(key, name=name, label=key.words), value
        return name

    def _take_order(self) -> None:
        """Take ORDER BY and LIMIT out of the tree, where what orders can stand among the outputs."""
        select = self._select
        order, limit = select.args.get("order"), select.args.get("limit")
        ordered = order.expressions if order is not None else []
        if limit is not None:
            if not isinstance(limit.expression, exp.Literal) or not str(limit.expression.this).isdigit():
                raise ParseError("a LIMIT is a number")
            self.limit = min(int(str(limit.expression.this)), MAX_LIMIT)
            self.ranked = self._rank(ordered[0]) if ordered else ""
        if select.args.get("offset") or (
            select.args.get("distinct") and any(one.this not in self._values.values() for one in ordered)
        ):
            self.limit = None
            return
        self.order = tuple((self._add(one.this), bool(one.args.get("desc"))) for one in ordered)
        select.set("order", None)
        select.set("limit", None)

    def _rank(self, ordered: exp.Ordered) -> str:
        """By what LIMIT takes rows, in words: `highest price`, `second latest day`."""
        key, offset = self._key_of(ordered.this), self._select.args.get("offset")
        place = 1 if offset is None else int(offset.expression.to_py()) + 1 if offset.expression.is_int else 0
        ordinal = next((word for word, rank in ORDINALS.items() if rank == place), "")
        if not ordinal:
            return ""
        ends = ("earliest", "latest") if key.kind == "date" else ("lowest", "highest")
        end = ends[bool(ordered.args.get("desc"))]
        return f"{end if place == 1 else f'{ordinal} {end}'} {key.words}"

    def _aggregated(self, value: exp.Expr) -> list[exp.Expr]:
        """What is counted, summed or averaged, in place of the number."""
        select, inner = self._select, value.this
        if select.args.get("offset"):
            raise ParseError("a number over all rows has no OFFSET")
        select.set("order", None)
        select.set("limit", None)
        is_once = isinstance(inner, exp.Distinct)
        values = list(inner.expressions) if is_once else [inner]
        if is_once:
            select.set("distinct", exp.Distinct())
            self._is_plain = False
        if not isinstance(value, exp.Count):
            self.aggregate = _AGGREGATES[type(value)]
            return values
        self.aggregate = "len"
        # What is unknown is none of them.
        for one in values if not isinstance(inner, exp.Star | exp.Literal) else ():
            select.where(one.copy().is_(exp.null()).not_(), copy=False)
        if is_once:
            self.once = " and ".join(self._key_of(one).words for one in values)
            return values
        return [self._own(name) for name in self._first.default or self._first.subject]

    def _expanded(self, item: exp.Expr) -> Sequence[exp.Expr]:
        """An output; the first table's default keys for *."""
        if not item.is_star or isinstance(item, exp.Count):
            return [item]
        return [self._own(name) for name in self._first.default or self._first.exact_keys]

    def _own(self, name: str) -> exp.Column:
        """A column of the first table."""
        return exp.column(name, table=self._tables[0].alias_or_name)

    def _key_of(self, value: exp.Expr) -> Key:
        """The key of an output: that of its column, or a name for what is computed."""
        if isinstance(value, exp.Count):
            return Key("count", "integer")
        column = value.find(exp.Column)
        key = self._of_column(column) if column is not None else None
        if isinstance(value, exp.Column) and key is not None:
            return replace(key, id_column="", entity="", compare=None)
        word = AGGREGATES.get(_AGGREGATES.get(type(value), "len"), "")
        inner = value.this if word else value
        if isinstance(inner, exp.DateDiff):
            return Key("days", "integer", label=f"{word} {words_of(inner)}".strip())
        if key is not None and word and isinstance(value.this, exp.Column):
            return Key(f"{word}_{key.name}", key.kind, label=f"{word} {key.words}", unit=key.unit)
        words = value.sql("sqlite", comments=False).lower().replace("_", " ")
        return Key("value", "number", label=words)

    def _of_column(self, column: exp.Column) -> Key | None:
        named = (one for one in self._tables if column.table in ("", one.alias_or_name))
        keys = (self._functions[one.name].exact_keys.get(column.name) for one in named)
        return next((key for key in keys if key is not None), None)
