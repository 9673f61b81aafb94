"""What a question wants of many rows together: their total or average, the value that most have, how many have any.

Where a thing has many rows, as a turbine has months, a SELECT says what they come to.
"""

from collections.abc import Sequence

from sqlglot import exp

from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Mention, Range, Superlative
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC
from services.kg.language.tree import Aggregate, Condition, Group, Literal_, Slice, Sql, Step
from services.kg.selects import FLAGS, table_name
from services.kg.values import lower_bound
from services.kit.text.times import UnknownTime, resolve_time

# Units of what is added up.
_ENERGY = ("Wh", "kWh", "MWh", "GWh", "TWh")
_ADDED = frozenset(("seconds", "minutes", "hours", "days", *_ENERGY, "mm", "km", "miles", "g", "kg", "t", "litres"))
# What money is asked for one thing.
_PRICES = frozenset(("price", "rate", "fare", "ticket", "rent", "salary", "wage", "cost", "budget", "value", "balance"))
_SIGNS = {"eq": "=", "ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def adds_up(roles: Roles, key: str, conditions: Sequence[Condition]) -> bool:
    """Whether the values of a key may be added up.

    Hours, energy and money may, degrees and kilowatts may not; numbers of people only within one time, as members of
    one year are those of the next.
    """
    own = roles.function.key(key)
    if own.kind not in NUMERIC or own.kind == "percent" or key in roles.dated:
        return False
    timed = any(one.operator == "eq" and one.key in roles.dated for one in conditions)
    return own.unit in _ADDED if own.unit else own.kind == "money" or timed or not roles.dated


def most_in_total(roles: Roles, group: str, order: Superlative, conditions: Sequence[Condition]) -> Sql | None:
    """The SELECT of the groups with the largest or the smallest totals; None where it cannot say all of this."""
    if order.first or not adds_up(roles, order.key, conditions):
        return None
    by, total = _name(group), f"SUM({_name(order.key)})"
    end = f" GROUP BY {by} ORDER BY {total}{' DESC' if order.descending else ''} LIMIT {order.rows}"
    return _select(roles, f"{by}, {total}", conditions, end)


def count_once(roles: Roles, conditions: Sequence[Condition]) -> Sql | None:
    """The SELECT of the number of things that have such rows; None where it cannot say a condition.

    Something must ask for the rows: things of a kind, and those of a year, are also those without any.
    """
    own = roles.tokens.find_all(roles.lexicon.words.function(roles.function.name).words)
    keys = {one.key for one in conditions}
    of_things = {one for one in keys if one.startswith(f"{roles.subject.name}_")}
    if not own and keys <= {*of_things, *roles.dated}:
        return None
    return _select(roles, f"COUNT(DISTINCT {_name(roles.subject.name)})", conditions)


def _select(roles: Roles, outputs: str, conditions: Sequence[Condition], end: str = "") -> Sql | None:
    clauses = [_clause(roles, one) for one in conditions]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    # Names of the catalogue and quoted texts; the executor runs its parser's tree of it.
    select = f"SELECT {outputs} FROM {_name(table_name(roles.function))}{where}{end}"  # noqa: S608
    return Sql(select) if all(clauses) else None


def _clause(roles: Roles, condition: Condition) -> str:
    """A condition of the language in SQL; empty where it cannot be said, as of names, which SQL does not look up."""
    key, operator = roles.function.key(condition.key), condition.operator
    if key.entity:
        return ""
    column = _name(key.name)
    if not condition.values:
        return f"{column} IS NULL"
    (literal,) = condition.values
    value = literal.value if isinstance(literal, Literal_) else None
    if key.kind == "date":
        return _within(roles, key.name, operator, str(value))
    if operator == "like":
        return f"{column} LIKE {_text(f'%{value}%')}"
    if operator not in _SIGNS:
        return ""
    if key.kind == "flag":
        value = FLAGS[value != "true"]
    return f"{column} {_SIGNS[operator]} {value if key.kind in NUMERIC else _text(str(value))}"


def _within(roles: Roles, key: str, operator: str, time: str) -> str:
    """The condition of a time, as the executor has it of a program's; empty of a time of which nothing is known."""
    question = roles.tokens.question
    try:
        window = resolve_time(time, question.query_time, question.calendar)
    except UnknownTime:
        return ""
    start, end = (lower_bound(one) for one in (window.start, window.end))
    first = roles.values.least(roles.function, key)
    if operator in ("eq", "lt", "le") and first >= (start if operator == "lt" else end):
        return ""
    column, start, end = _name(key), _text(start), _text(end)
    if operator == "eq":
        return f"{column} >= {start} AND {column} < {end}"
    sign = ">=" if operator in ("ge", "gt") else "<"
    return f"{column} {sign} {start if operator in ('ge', 'lt') else end}"


def _name(name: str) -> str:
    return f'"{name}"'


def _text(text: str) -> str:
    return exp.Literal.string(text).sql()


def total(roles: Roles, targets: Sequence[Mention]) -> Aggregate | None:
    """The sum or the average where the question says so of one number."""
    if len({one.key for one in targets}) != 1 or not roles.numeric(targets[0]):
        return None
    aggregates: Sequence[tuple[Aggregate, Sequence[str]]] = (("sum", english().sums), ("avg", english().average))
    for aggregate, phrases in aggregates:
        if places := [one for one in roles.tokens.find(phrases) if not _is_price(roles, one)]:
            if aggregate == "sum" and targets[0].key.endswith("rate"):
                # Wages by the hour come to nothing.
                continue
            roles.tokens.take(*places)
            return aggregate
    return None


def _is_price(roles: Roles, place: Range) -> bool:
    """Whether "a month" says what is paid for one, of rows that are no months."""
    if roles.tokens.word(place.first) not in english().apiece:
        return False
    known = {word for words in (*roles.nouns, *(key.words for key in roles.function.keys)) for word in words.split()}
    return roles.tokens.word(place.end - 1) not in known


def averaged(roles: Roles) -> list[Mention]:
    """The only number of rows that the question averages: the average rating, of ratings that are stars."""
    ends = {one.end for one in roles.tokens.find(english().average)}
    if not ends or any(roles.numeric(one) for one in roles.mentions):
        return []
    nouns = [noun for noun in roles.tokens.find(roles.nouns) if noun.first in ends]
    others = (*roles.dated, roles.subject.name)
    keys = [one.name for one in roles.function.keys if one.kind in NUMERIC and one.name not in others]
    return [Mention(nouns[0], keys[0])] if nouns and len(keys) == 1 else []


def reckoned(roles: Roles) -> list[Mention]:
    """The only money of rows that are added up: what their orders come to."""
    signs, nouns = roles.tokens.find(english().reckoning), roles.tokens.find(roles.nouns)
    if not signs or not nouns or any(roles.numeric(one) for one in roles.mentions):
        return []
    keys = [one.name for one in roles.function.keys if one.is_money]
    return [Mention(nouns[0], keys[0])] if len(keys) == 1 else []


def is_tally(roles: Roles, targets: Sequence[Mention], thresholds: Sequence[Condition]) -> bool:
    """Whether "how many" or "how much" asks for what several rows have together: the votes of 2018."""
    key = roles.key_of(targets[0]) if len(targets) == 1 else None
    if key is None or (key.kind != "integer" and not key.unit):
        return False
    # How much a thing costs is no total of what it was sold for.
    return key.kind != "money" and adds_up(roles, key.name, thresholds)


def is_spent(roles: Roles, targets: Sequence[Mention]) -> bool:
    """Whether money is asked for that went from hand to hand: "how much did we charge in 2025", and no price."""
    key = roles.key_of(targets[0]) if len({one.key for one in targets}) == 1 else None
    if key is None or not key.is_money or not _PRICES.isdisjoint(key.name.split("_")):
        return False
    return roles.tokens.begins("how", "much") and roles.tokens.word(2) in english().did


def grouped(roles: Roles, targets: Sequence[Mention], nouns: Sequence[Range]) -> tuple[Step, ...]:
    """The steps to the value that most rows have, "which state has the most orders", or to all of them, "per state"."""
    if len({one.key for one in targets}) != 1:
        return ()
    key = roles.key_of(targets[0])
    if key is None or key.kind != "text":
        return ()
    each = [one for one in roles.tokens.find_all(english().for_each) if one.end == targets[0].place.first]
    if each and nouns and roles.tokens.find_all(english().count):
        return (Group((key.name,)),)
    starts = {noun.first for noun in nouns}
    behind = (one for one in roles.tokens.find(("most",)) if targets[-1].place.end <= one.first)
    most = [one for one in behind if one.end in starts] + roles.tokens.find(
        ("most (common|frequent|often|frequently)",)
    )
    if not most:
        return ()
    roles.tokens.take(most[0])
    return Group((key.name,)), Slice(0, 1)
