"""What a model gets wrong in a statement whose question says it: the direction of an order, a total, a day's year."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from sqlglot import exp

from services.kg.comparisons import tables_of
from services.kg.days import difference
from services.kg.generate.ground import says_year
from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.roles import subject_of
from services.kg.generate.rules.values import Values
from services.kg.generate.sql.figures import DAY, months_of, numbers_of
from services.kg.generate.sql.refusals import HOW_MANY
from services.kg.generate.sql.statement import Statement, drop, each_of
from services.kg.generate.sql.tables import role_of
from services.kg.language.catalogue import NUMERIC, Function
from services.kg.load.values import NOTHING
from services.kg.selects import table_name
from services.kg.store.names import normalise
from services.kit.text.numbers import Figure, numbers, ordinals

_EARLIEST = re.compile(r"\b(?:longest|oldest|earliest|first)\b")
_LATEST = re.compile(r"\b(?:newest|latest|youngest|last|most recent(?:ly)?)\b")
_LONG, _SHORT = ("long", "slow"), ("short", "quick", "fast")
_TOTAL = re.compile(r"\b(?:all? ?together|in total|total|sum|spend|spent|spending|takings|turnover|income|adds? up)\b")
_SUPERLATIVE = re.compile(r"[ -](?:most|least|best|worst|latest|[a-z]{2,}est)\b")
_NO_ROW = "COUNT(*) = 0"
_BOTH = re.compile(r"\bboth\b.* and\b")
# What is asked for behind another one.
_BEHIND = re.compile(r"\b(?:after|apart from|behind|besides|except|other than|runners?-up|then)\b")
_AMOUNT_OF = re.compile(
    r"(?<!\bat )\b(?:most|least|fewest|highest|lowest|largest|biggest|smallest|greatest)"
    r"((?: (?:number|amount) of)?(?: (?!(?:at|by|for|from|in|of|on|to|with)\b)\w+){1,3})"
)
_MORE = re.compile(r"^(?:who|which|what)\b.*\b(?:more|higher|bigger|larger|greater)\b(?!.*\bthan\b).*\bor\b")
_WHOSE = re.compile(r"\W*(?:who|which)\b")
_AMOUNT = re.compile(r"\b(?:how (?:many|much)|number|count|sum|total|average)\b")
_NUMBER = re.compile(rf"{_AMOUNT.pattern}|\b(?:more|most|less|least|fewer|fewest|percentage|share)\b")
# What says that rows are of one day.
_OF_A_DAY = re.compile(
    r"\b(?:closing|current|currently|date|day|final|next|now|opening|recent|recently|so far|today|upcoming)\b"
)
# Behind a table, in the name of the number of its rows.
_COUNT = "_count"
# What a model writes for no value.
_NONE = NOTHING | {"nobody", "no one", "nothing"}
_EACH = re.compile(r"\b(?:each|every|list|per)\b")


def order_as_said(select: exp.Select, query: str, lexicon: Lexicon) -> None:
    """Sort by a column as the question's superlative wants it.

    The coldest trip has the least temperature, and who joined first has been there longest.
    """
    order, text = select.args.get("order"), f" {normalise(query)} "
    for ordered in order.expressions if order is not None else ():
        name = ordered.this.name.lower() if isinstance(ordered.this, exp.Column) else ""
        functions = [one for one in lexicon.own.functions if name in one.exact_keys]
        own = [lexicon.key(one.name, name) for one in functions]
        is_dated = any(one.exact_keys[name].kind == "date" for one in functions)
        is_more = any(_says(text, one.more) for one in own) or (is_dated and _LATEST.search(text) is not None)
        is_less = any(_says(text, one.less) for one in own) or (is_dated and _EARLIEST.search(text) is not None)
        if is_more != is_less:
            _sort(ordered, descending=is_more)


def _sort(ordered: exp.Ordered, *, descending: bool) -> None:
    """Sort the one way or the other, rows without a value where SQLite has them then."""
    ordered.set("desc", descending)
    ordered.set("nulls_first", not descending)


def rank_by_length(select: exp.Select, query: str, functions: Mapping[str, Function]) -> None:
    """Sort what is over by how long it took: "which complaint dragged on longest until it was closed".

    Of rows whose last day is known a model takes the earliest one for the longest.
    """
    order, where, text = select.args.get("order"), select.args.get("where"), f" {normalise(query)} "
    if order is None or where is None or len(order.expressions) > 1:
        return
    (ordered,), tables = order.expressions, tables_of(select)
    last = ordered.this
    is_long, is_short = (_says(text, adjectives) for adjectives in (_LONG, _SHORT))
    if not isinstance(last, exp.Column) or len(tables) != 1 or is_long == is_short:
        return
    is_over = exp.Not(this=exp.Is(this=last.copy(), expression=exp.Null()))
    function = functions.get(tables[0].name)
    dates = [key.name for key in function.keys if key.kind == "date"] if function is not None else []
    if is_over in each_of(where.this, exp.And) and last.name in dates[1:]:
        ordered.set("this", difference(last, exp.column(dates[0])))
        _sort(ordered, descending=is_long)


def measure_as_said(select: exp.Select, query: str, lexicon: Lexicon) -> None:
    """Take the most and the least of what the question says: the most minutes, whatever cost us them.

    The highest hut is that of the greatest altitude, and not of most bookings.
    """
    text = normalise(query)
    amount = _AMOUNT_OF.search(text)
    ordered = [one.this for one in select.find_all(exp.Ordered, exp.Max, exp.Min) if isinstance(one.this, exp.Column)]
    names = {one.name for one in ordered}
    if len(names) != 1:
        return
    tables = {one.name for one in select.find_all(exp.Table)}
    functions = [one for one in lexicon.own.functions if table_name(one) in tables and names < one.exact_keys.keys()]
    numeric = [(function, key.name) for function in functions for key in function.keys if key.kind in NUMERIC]
    words = amount[1] if amount is not None else ""
    said = {key for function, key in numeric if compiled(lexicon.plain(function.name, key)).search(words)}
    if not said and all(name.endswith(_COUNT) for name in names):
        keys = [(key, lexicon.key(function.name, key)) for function, key in numeric]
        said = {key for key, own in keys if _says(f" {text} ", (*own.more, *own.less))}
    if len(said) != 1 or said & names:
        return
    (key,) = said
    compared = [one.this for one in select.find_all(exp.EQ, exp.In) if one.find(exp.Subquery)]
    for column in (*ordered, *compared):
        if isinstance(column, exp.Column) and column.name in names:
            column.set("this", exp.to_identifier(key))


def sum_as_said(select: exp.Select, query: str, functions: Mapping[str, Function], lexicon: Lexicon) -> None:
    """Add up the amount that the question says, where a statement counts rows: the most rotations, how many guests."""
    text, tables = normalise(query), tables_of(select)
    asked = _AMOUNT_OF.search(text) or HOW_MANY.search(text)
    counts = [one for one in select.find_all(exp.Count) if one.this.is_star and one.parent_select is select]
    if asked is None or not counts or len(tables) != 1 or (function := functions.get(tables[0].name)) is None:
        return
    # Minutes of lessons are no lessons, and the club's lane hires are no lanes.
    noun = asked[1] if asked.re is _AMOUNT_OF else asked[1].partition(" of ")[0]
    rows = compiled(lexicon.rows(function)).search(text, asked.start(1))
    if rows is not None and rows.start() < asked.start(1) + len(noun):
        return
    numeric = [key.name for key in function.keys if key.kind in NUMERIC and key.kind != "flag" and not key.entity]
    words = f"how many {noun.strip()}"
    said = [key for key in numeric if compiled(lexicon.plain(function.name, key)).search(words)]
    if len(said) == 1:
        for one in counts:
            one.replace(exp.Sum(this=exp.column(said[0])))


def rank_as_said(select: exp.Select, query: str) -> None:
    """Leave out the rows before the one that the question asks for, and no others: the second largest."""
    order, limit, text = select.args.get("order"), select.args.get("limit"), query.lower()
    if order is None or limit is None:
        return
    ranks = [(end, rank) for _, end, rank in ordinals(text)]
    ranks += [(one.end, int(one.value)) for one in numbers(text) if isinstance(one, Figure) and one.ordinal]
    if select.args.get("offset"):
        if not ranks and not _BEHIND.search(text):
            select.set("offset", None)
        return
    before = [rank - 1 for end, rank in ranks if rank > 1 and _SUPERLATIVE.match(text, end)]
    # The first two have the second.
    if len(before) == 1 and limit.expression in map(exp.Literal.number, (1, before[0] + 1)):
        select.limit(1, copy=False).offset(before[0], copy=False)


def _says(text: str, adjectives: Sequence[str]) -> bool:
    """Whether a text has a comparative or superlative of one of the adjectives."""
    return any(f" {form} " in text for one in adjectives for form in degrees(one))


def add_up(select: exp.Select, query: str, amounts: Collection[str]) -> None:
    """Sum a column of some rows where the question wants a total: "how many hours altogether".

    Args:
        amounts: columns of numbers, in lower case.
    """
    items, text = select.expressions, query.lower()
    is_amount = len(items) == 1 and isinstance(items[0], exp.Column) and items[0].name.lower() in amounts
    is_plain = not any(select.args.get(part) for part in ("distinct", "group", "limit", "order"))
    is_plain = is_plain and select.find(exp.Subquery) is None
    if is_amount and is_plain and _TOTAL.search(text) and not _EACH.search(text):
        select.set("expressions", [exp.Sum(this=items[0])])


def named_not_counted(select: exp.Select, query: str, functions: Mapping[str, Function]) -> None:
    """Tell which rows there are where a statement counts them: "which are still open" asks for no number."""
    items, tables = select.expressions, tables_of(select)
    is_plain = not any(select.args.get(part) for part in ("distinct", "group", "having", "limit", "order"))
    is_count = len(items) == 1 and isinstance(items[0], exp.Count) and items[0].this.is_star
    text = normalise(query)
    if not (is_plain and is_count) or len(tables) != 1 or not _WHOSE.match(text) or _NUMBER.search(text):
        return
    if (function := functions.get(tables[0].name)) is not None:
        select.select(exp.column(subject_of(function).name), append=False, copy=False)


def among_all(select: exp.Select, functions: Mapping[str, Function]) -> None:
    """Look among all things for those that no row of another table names: members who have never booked.

    A model looks among the rows that name them, where there are none: `GROUP BY member HAVING COUNT(*) = 0`, or
    `SELECT member FROM booking WHERE NOT member IN (SELECT member FROM booking)`.
    """
    tables, output = tables_of(select), select.expressions
    own = functions.get(tables[0].name) if len(tables) == 1 else None
    if own is None or len(output) != 1 or not isinstance(output[0], exp.Column):
        return
    (named,), entity = output, getattr(own.exact_keys.get(output[0].name), "entity", "")
    things = [one for one in functions.values() if one is not own and entity and subject_of(one).entity == entity]
    # What only tells more of them, by their names as well, is not the thing.
    things = [one for one in things if table_name(one) == entity] or things
    where, group, having = (select.args.get(part) for part in ("where", "group", "having"))
    if len(things) != 1 or select.args.get("order"):
        return
    is_grouped = group is not None and group.expressions == [named]
    is_no_row = is_grouped and having is not None and having.this.sql() == _NO_ROW
    rows = exp.select(named.copy()).from_(exp.to_table(tables[0].name))
    is_no_other = where is not None and _is_of_no_row(where.this, named, tables[0].name)
    if not is_no_row and not (is_no_other and group is None and having is None):
        return
    if is_no_row and where is not None:
        rows = rows.where(where.this.copy())
    rows = rows.where(exp.Not(this=exp.Is(this=named.copy(), expression=exp.Null())))
    subject = exp.column(subject_of(things[0]).name)
    those = exp.select(subject).from_(exp.to_table(table_name(things[0])))
    those = those.where(exp.Not(this=exp.In(this=subject.copy(), query=rows.subquery())))
    for part in ("expressions", "from_", "where", "group", "having"):
        select.set(part, those.args.get(part))


def _is_of_no_row(condition: exp.Expr, named: exp.Column, table: str) -> bool:
    """Whether a condition is that a column has no value that it has."""
    inner = condition.this.args.get("query") if isinstance(condition, exp.Not) else None
    found = inner.this if isinstance(inner, exp.Subquery) else inner
    if not isinstance(found, exp.Select) or condition.this.this != named or found.expressions != [named]:
        return False
    where = found.args.get("where")
    is_known = exp.Not(this=exp.Is(this=named, expression=exp.Null()))
    return [one.name for one in tables_of(found)] == [table] and (where is None or where.this == is_known)


def named_by_flag(statement: Statement, query: str) -> None:
    """Tell whose flag is set where a statement tells the flag itself, which is yes: "who has keys"."""
    place, select = statement.only_place, statement.sides[0]
    is_of_many = not statement.names_its_rows and len(statement.sides) == 1
    if place is None or place[1].kind != "flag" or not is_of_many or _WHOSE.match(query.lower()) is None:
        return
    where = select.args.get("where")
    compared = [one.this for one in where.find_all(exp.EQ)] if where is not None else []
    if any(isinstance(one, exp.Column) and statement.place_of(one) == place for one in compared):
        select.select(exp.column(subject_of(place[0]).name), append=False, copy=False)


def each_compared(select: exp.Select, query: str, is_day: Callable[[exp.Column], bool]) -> None:
    """Tell which of two names has more where a statement takes both together: "who brought in more, Ann or Ben"."""
    output, where = select.expressions, select.args.get("where")
    is_plain = not any(select.args.get(part) for part in ("distinct", "group", "limit", "order"))
    is_amount = len(output) == 1 and isinstance(output[0], exp.Sum | exp.Count)
    text = normalise(query)
    if where is None or not (is_plain and is_amount) or _MORE.search(text) is None or _AMOUNT.search(text):
        return
    compared = [column for one in each_of(where.this, exp.And) if (column := _of_two_texts(one)) is not None]
    if len(compared) == 1 and not is_day(compared[0]):
        (column,) = compared
        select.group_by(column.copy(), copy=False).order_by(exp.Ordered(this=output[0].copy(), desc=True), copy=False)
        select.limit(1, copy=False).select(column.copy(), append=False, copy=False)


def of_both(select: exp.Select, query: str, functions: Mapping[str, Function]) -> None:
    """Tell what goes with both of two names, where a statement takes what goes with one of them: "who was in both"."""
    output, where, tables = select.expressions, select.args.get("where"), tables_of(select)
    is_plain = not any(select.args.get(part) for part in ("group", "having", "limit", "order"))
    if where is None or not is_plain or len(output) != 1 or len(tables) != 1 or _BOTH.search(normalise(query)) is None:
        return
    of_two = [column for one in each_of(where.this, exp.And) if (column := _of_two_texts(one)) is not None]
    function, told = functions.get(tables[0].name), output[0]
    if len(of_two) != 1 or function is None or not isinstance(told, exp.Column) or told.name == of_two[0].name:
        return
    if function.subject != (of_two[0].name,):
        counted = exp.Count(this=exp.Distinct(expressions=[of_two[0].copy()]))
        select.set("distinct", None)
        select.group_by(told.copy(), copy=False)
        select.having(exp.EQ(this=counted, expression=exp.Literal.number(2)), copy=False)


def _of_two_texts(condition: exp.Expr) -> exp.Column | None:
    """The column that has one of two texts by a condition; None where that says something else."""
    columns, texts = set[exp.Expr](), list[exp.Expr]()
    for one in each_of(condition, exp.Or):
        if not isinstance(one, exp.EQ | exp.In) or one.args.get("query") is not None:
            return None
        columns.add(one.this)
        texts += one.expressions if isinstance(one, exp.In) else [one.expression]
    column = columns.pop()
    is_of_two = not columns and len(texts) == 2 and all(isinstance(one, exp.Literal) and one.is_string for one in texts)
    return column if is_of_two and isinstance(column, exp.Column) else None


def without_unsaid_days(select: exp.Select, query: str, is_day: Callable[[exp.Column], bool]) -> None:
    """Drop that rows are of the first or the last day, where they are sorted by something else and it is not said."""
    text, order = normalise(query), select.args.get("order")
    if order is None or any(one.search(text) for one in (_LATEST, _EARLIEST, _OF_A_DAY)):
        return
    for one in list(select.find_all(exp.EQ, exp.In)):
        found = one.find(exp.Select)
        ends = (
            found is not None
            and found.args.get("where") is None
            and [end.this for end in found.expressions if isinstance(end, exp.Max | exp.Min)]
        )
        if one.parent_select is select and isinstance(one.this, exp.Column) and ends == [one.this] and is_day(one.this):
            drop(one)


def nothing_as_null(statement: Statement, values: Values) -> None:
    """Ask for rows without a value where a model writes "none", which no row has. Blocks for milliseconds."""
    for one in list(statement.comparisons()):
        if not isinstance(one.node, exp.EQ | exp.NEQ) or not _NONE.issuperset(text.lower() for text in one.texts):
            continue
        if one.texts and not values.stored(one.function, one.key.name, one.texts[0]):
            is_null = exp.Is(this=one.node.this.copy(), expression=exp.Null())
            one.node.replace(exp.Not(this=is_null) if isinstance(one.node, exp.NEQ) else is_null)


def count_rows(statement: Statement, query: str, lexicon: Lexicon) -> None:
    """Count the rows of a thing where their number is told: `visit_count` is of all times, a visit of one."""
    place, select = statement.only_place, statement.sides[0]
    compared = list(statement.comparisons())
    named = [one for one in compared if one.finds_names and place and one.key == subject_of(place[0])]
    where = select.args.get("where")
    if place is None or where is None or len(named) != 1 or not isinstance(named[0].node, exp.EQ):
        return
    function, key = place
    days = [one for one in function.keys if one.kind == "date"]
    is_of_days = all(one is named[0] or one.key.kind == "date" for one in compared)
    if not is_of_days or len(each_of(where.this, exp.And)) > len(compared) or len(tables_of(select)) > 1:
        return
    if any(compiled(lexicon.plain(function.name, one.name)).search(query) for one in days):
        # Rex was born then.
        return
    counted = statement.functions.get(key.name.removesuffix(_COUNT)) if key.name.endswith(_COUNT) else None
    role = role_of(counted, function) if counted is not None else None
    if counted is not None and role is not None:
        rows = exp.select(exp.Count(this=exp.Star())).from_(exp.to_table(table_name(counted)))
        rows = rows.where(exp.EQ(this=exp.column(role.name), expression=named[0].literals[0].copy()))
        for part in ("expressions", "from_", "where", "order", "limit"):
            select.set(part, rows.args.get(part))


def ask_of_any_year(select: exp.Select, query: str) -> None:
    """Make conditions on a month or a day those of every year where the question says none: "in December"."""
    for one in list(select.find_all(exp.EQ, exp.Like)):
        if not isinstance(one.expression, exp.Literal):
            continue
        column: exp.Expr | None = None
        month, value = "", one.expression.name
        if isinstance(one.this, exp.Column) and (day := DAY.fullmatch(value)):
            column = one.this
            month = "-".join(filter(None, (day[2], day[3]))) if not says_year(day[1], query) else ""
        elif value.isdecimal() and (column := _of_months(one.this)) is not None:
            month = f"{int(value):02}"
        if month and isinstance(column, exp.Column):
            pattern = f"%-{month}" if "-" in month else f"%-{month}-%"
            one.replace(exp.Like(this=column.copy(), expression=exp.Literal.string(pattern)))


def ask_of_the_month(select: exp.Select, query: str) -> None:
    """Make a condition on a month's first day one on the month where the question says that and no day of it."""
    figures, months = numbers_of(query), months_of(query)
    for one in list(select.find_all(exp.EQ)):
        day = DAY.fullmatch(one.expression.name) if isinstance(one.expression, exp.Literal) else None
        if day and day[3] == "01" and int(day[2]) in months and 1.0 not in figures:
            pattern = exp.Literal.string(f"{day[1]}-{day[2]}-%")
            one.replace(exp.Like(this=one.this.copy(), expression=pattern))


def _of_months(value: exp.Expr) -> exp.Expr | None:
    """The column whose month a value is; None where it is something else."""
    is_month = isinstance(value, exp.Month) or (isinstance(value, exp.Extract) and value.name.upper() == "MONTH")
    is_month |= isinstance(value, exp.TimeToStr) and value.text("format") == "%m"
    return value.find(exp.Column) if is_month else None
