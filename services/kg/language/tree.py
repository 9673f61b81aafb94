"""The typed tree of a program, and its printer.

A program is up to eight statements. A statement fetches rows by a call, by `*` from an earlier statement, or combines
the values of others; what follows it narrows, sorts, groups or projects the rows from left to right:

    get_movie_person_crew(None, "walt becker", eq(job, "Director")) sort(None, -year)["title"][:3]
    get_grammy_year("2011")["best_new_artist"]
    get_person(*["best_new_artist"])["birth_place"]
    AVG get_stock_price("nbbk", "this week")["high"]
    diff(get_movie("a")["length"], get_movie("b")["length"])
"""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator = Literal["eq", "neq", "ge", "le", "gt", "lt", "in", "like", "between", "isnull", "notnull"]
Aggregate = Literal["avg", "sum", "min", "max", "len"]
Combination = Literal["diff", "ratio", "avg", "sum", "min", "max"]


@dataclass(frozen=True, slots=True)
class Literal_:
    """A text, number, truth value or None; `bare` when it stood without quotes."""

    value: str | int | float | bool | None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """`*` or `*2`: the rows of the statement before, or of the second one; with a key its values."""

    statement: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    operator: Operator
    key: str
    values: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Keyword:
    """`year=1997`."""

    name: str
    value: "Value"


@dataclass(frozen=True, slots=True)
class List_:
    items: tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class Descending:
    """`-year` where a key is expected."""

    key: str


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class Combine:
    """`diff(q1, q2)`."""

    how: Combination
    queries: tuple["Query", ...]


@dataclass(frozen=True, slots=True)
class Project:
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows `start` to `stop`, the last excluded; `stop` None is the end."""

    start: int
    stop: int | None


@dataclass(frozen=True, slots=True)
class Where:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    conditions: tuple[Condition, ...]
    key: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Group:
    keys: tuple[str, ...]


Step: TypeAlias = Project | Slice | Where | Sort | Group
Source: TypeAlias = Call | Reference | Combine


@dataclass(frozen=True, slots=True)
class Query:
    """A source, steps from left to right, and the words in front: ALL, an aggregate, a number of rows."""

    source: Source
    steps: tuple[Step, ...] = ()
    every: bool = False
    aggregate: Aggregate | None = None
    head: int | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """`none`: no function fits the question."""


@dataclass(frozen=True, slots=True)
class Sql:
    """`SELECT ...`: one statement of SQL over the functions as tables, which is a whole program."""

    text: str


Value: TypeAlias = Literal_ | Reference | List_ | Query
Argument: TypeAlias = Value | Condition | Keyword | Descending
Statement: TypeAlias = Query | Nothing | Sql


def conditions_of(argument: Argument | None) -> tuple[Condition, ...]:
    """A condition, or the conditions of a list of nothing else; none of any other argument."""
    items = argument.items if isinstance(argument, List_) else (argument,)
    conditions = tuple(item for item in items if isinstance(item, Condition))
    return conditions if len(conditions) == len(items) else ()


def values_of(value: Argument) -> tuple[Value, ...]:
    """The value, or the values of a list."""
    items = value.items if isinstance(value, List_) else (value,)
    return tuple(item for item in items if not isinstance(item, Condition | Keyword | Descending))


def render(node: Statement | Source | Step | Argument) -> str:
    """The canonical text, which is parsed to the same tree."""
    match node:
        case Nothing():
            return "none"
        case Sql(text):
            return text
        case Query(source, steps, every, aggregate, head):
            front = ("ALL " if every else "") + (f"{aggregate.upper()} " if aggregate else "")
            return front + (f"{head} " if head is not None else "") + render(source) + "".join(map(render, steps))
        case Call(function, arguments):
            return f"{function}({', '.join(map(render, arguments))})"
        case Combine(how, queries):
            return f"{how}({', '.join(map(render, queries))})"
        case Reference(statement, key):
            return "*" + ("" if statement is None else str(statement)) + (f"[{json.dumps(key)}]" if key else "")
        case Project(keys):
            return f"[{', '.join(json.dumps(key) for key in keys)}]"
        case Slice(start, stop):
            return f"[{start or ''}:{'' if stop is None else stop}]"
        case Where(conditions):
            return f" where({', '.join(map(render, conditions))})"
        case Sort(conditions, key, descending):
            return f" sort({_conditions(conditions)}, {'-' if descending else ''}{key})"
        case Group(keys):
            return f" group({', '.join(keys)})"
        case Condition(operator, key, values):
            return f"{operator}({', '.join([key, *map(render, values)])})"
        case Keyword(name, value):
            return f"{name}={render(value)}"
        case Descending(key):
            return f"-{key}"
        case List_(items):
            return f"[{', '.join(map(render, items))}]"
        case Literal_(value, bare):
            if value is None:
                return "None"
            if isinstance(value, bool):
                return "true" if value else "false"
            return value if bare and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _conditions(conditions: tuple[Condition, ...]) -> str:
    if not conditions:
        return "None"
    if len(conditions) == 1:
        return render(conditions[0])
    return f"[{', '.join(map(render, conditions))}]"
