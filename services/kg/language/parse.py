"""Text to tree. One bad statement does not cost the others: each is parsed alone and says what was wrong with it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedToken, VisitError

from services.kg.errors import ParseError
from services.kg.language import repair
from services.kg.language.tree import (
    Aggregate,
    Argument,
    Call,
    Combination,
    Combine,
    Condition,
    Descending,
    Group,
    Keyword,
    List_,
    Literal_,
    Nothing,
    Operator,
    Program,
    Project,
    Query,
    Reference,
    Slice,
    Sort,
    Source,
    Statement,
    Step,
    Value,
    Where,
)

GRAMMAR = Path(__file__).with_name("grammar.lark")

AGGREGATES: dict[str, Aggregate] = {
    "avg": "avg",
    "average": "avg",
    "mean": "avg",
    "sum": "sum",
    "total": "sum",
    "min": "min",
    "max": "max",
    "count": "len",
    "len": "len",
}
COMBINATIONS: dict[str, Combination] = {
    "diff": "diff",
    "ratio": "ratio",
    "avg": "avg",
    "average": "avg",
    "mean": "avg",
    "sum": "sum",
    "total": "sum",
    "min": "min",
    "max": "max",
}
# What a reader calls the grammar's terminals.
NAMES = {
    "FUNCTION": "a function",
    "STRING": "a quoted text",
    "WORD": "a word",
    "INTEGER": "a number",
    "NUMBER": "a number",
    "OPERATOR": "a condition",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "COMMA": ",",
    "EQUAL": "=",
    "COLON": ":",
    "STAR": "*",
    "$END": "the end",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement as it was mended, with its tree or what was wrong with it."""

    text: str
    statement: Statement | None
    error: ParseError | None = None


def parse(text: str, functions: Iterable[str] = ()) -> Program:
    """The tree of a program in which every statement is right.

    Raises:
        ParseError: for the first statement that is not.
    """
    parsed = parse_each(text, functions)
    for one in parsed:
        if one.error is not None:
            raise one.error
    return Program(tuple(cast(Statement, one.statement) for one in parsed))


def parse_each(text: str, functions: Iterable[str] = ()) -> list[Parsed]:
    """Every statement with its tree or its error.

    Raises:
        ParseError: the whole is too long, has too many statements or is nested too deeply.
    """
    return [_parse_one(statement) for statement in repair.statements(text, functions)]


def _parse_one(text: str) -> Parsed:
    if repair.is_nothing(text):
        return Parsed(text, Nothing())
    try:
        tree = _lark().parse(text)
        return Parsed(text, cast(Statement, _Build().transform(tree)))
    except UnexpectedToken as error:
        expected = tuple(sorted({NAMES[name] for name in error.accepts or error.expected if name in NAMES}))
        found = "the end" if error.token.type == "$END" else json.dumps(str(error.token), ensure_ascii=False)
        return Parsed(text, None, _error(text, f"found {found}", error.pos_in_stream, expected))
    except UnexpectedCharacters as error:
        return Parsed(
            text, None, _error(text, f"cannot read {text[error.pos_in_stream :][:20]!r}", error.pos_in_stream)
        )
    except VisitError as error:
        if isinstance(error.orig_exc, ParseError):
            return Parsed(text, None, error.orig_exc)
        raise
    except LarkError as error:
        return Parsed(text, None, _error(text, str(error).partition("\n")[0], 0))


def _error(text: str, message: str, position: int | None, expected: tuple[str, ...] = ()) -> ParseError:
    position = len(text) if position is None or position < 0 else position
    wanted = f"; expected {', '.join(expected)}" if expected else ""
    return ParseError(f"{message} at character {position + 1}{wanted}", position=position, expected=expected)


@cache
def _lark() -> Lark:
    return Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", maybe_placeholders=True, cache=False)


@dataclass(frozen=True, slots=True)
class _Every:
    pass


@dataclass(frozen=True, slots=True)
class _Aggregate:
    how: Aggregate


@dataclass(frozen=True, slots=True)
class _Head:
    rows: int


@v_args(inline=True)
class _Build(Transformer[Token, Any]):
    """The grammar's rules to the tree's nodes."""

    def start(self, query: Query) -> Query:
        return query

    def aggregate_last(self, token: Token) -> Query:
        return Query(Reference(), aggregate=AGGREGATES[token.lower()])

    def query(self, *parts: Any) -> Query:
        every, aggregate, head = False, None, None
        steps: list[Step] = []
        source: Source | None = None
        for part in parts:
            match part:
                case _Every():
                    every = True
                case _Aggregate(how):
                    aggregate = how
                case _Head(rows):
                    head = rows
                case Call() | Reference() | Combine():
                    source = part
                case (Step_, True):
                    every = True
                    steps.append(cast(Step, Step_))
                case _:
                    steps.append(part)
        if len(steps) > repair.MAX_DEPTH:
            raise ParseError(f"a statement may have {repair.MAX_DEPTH} steps, this one has {len(steps)}")
        # `["len"]` at the end is a count, whatever else was projected.
        if steps and isinstance(steps[-1], Project) and steps[-1].keys == ("len",):
            steps, aggregate = steps[:-1], "len"
        assert source is not None  # noqa: S101 - the grammar has exactly one
        return Query(source, tuple(steps), every, aggregate, head)

    def query_value(self, *parts: Any) -> Query:
        return self.query(*parts)

    def every(self, _: Token) -> _Every:
        return _Every()

    def aggregate(self, token: Token) -> _Aggregate:
        return _Aggregate(AGGREGATES[token.lower()])

    def head(self, token: Token) -> _Head:
        return _Head(_integer(token))

    def reference(self, _: Token, number: Token | None) -> Reference:
        return Reference(None if number is None else _integer(number))

    def reference_value(self, _: Token, number: Token | None, key: str) -> Reference:
        return Reference(None if number is None else _integer(number), key)

    def combine(self, token: Token, *queries: Query) -> Combine:
        return Combine(COMBINATIONS[token.lower()], queries)

    def call(self, name: Token, *arguments: Argument | None) -> Call:
        return Call(name.lower(), tuple(argument for argument in arguments if argument is not None))

    def project(self, *keys: str) -> Project:
        return Project(keys)

    def slice(self, start: Token | None, stop: Token | None) -> Slice:
        return Slice(0 if start is None else _integer(start), None if stop is None else _integer(stop))

    def nth(self, number: Token) -> Slice:
        return Slice(_integer(number), _integer(number) + 1)

    def sort(self, token: Token, *arguments: Argument | None) -> Any:
        conditions: list[Condition] = []
        key, descending = "", False
        for argument in arguments:
            match argument:
                case Condition():
                    conditions.append(argument)
                case List_(items):
                    conditions += [item for item in items if isinstance(item, Condition)]
                case Descending(name):
                    key, descending = name, True
                case Literal_(str() as name):
                    key = name.removeprefix("-")
                    descending = name.startswith("-")
                case None | Literal_():
                    pass
                case _:
                    raise ParseError("sort takes conditions and one key")
        if not key and not conditions:
            raise ParseError("sort lacks a key", expected=("sort(None, key)", "sort(None, -key)"))
        step: Step = Sort(tuple(conditions), key, descending) if key else Where(tuple(conditions))
        return (step, True) if "all" in token.lower() else step

    def where(self, _: Token, *arguments: Argument) -> Where:
        conditions: list[Condition] = []
        for argument in arguments:
            match argument:
                case Condition():
                    conditions.append(argument)
                case List_(items) if all(isinstance(item, Condition) for item in items):
                    conditions += cast("tuple[Condition, ...]", items)
                case Keyword(name, value):
                    conditions.append(Condition("eq", name, (value,)))
                case _:
                    raise ParseError("where takes conditions", expected=('eq(key, "value")', "gt(key, 1)"))
        return Where(tuple(conditions))

    def group(self, _: Token, *keys: str) -> Group:
        return Group(keys)

    def condition(self, token: Token, *arguments: Argument) -> Condition:
        operator = cast(Operator, {"ne": "neq"}.get(token.lower(), token.lower()))
        key, *values = arguments
        if not isinstance(key, Literal_) or not isinstance(key.value, str):
            raise ParseError(f"{operator} takes a key first", expected=(f"{operator}(year, 2010)",))
        plain: list[Value] = []
        for value in values:
            if isinstance(value, Condition | Keyword | Descending):
                raise ParseError(f"{operator} takes a key and values")
            plain += (
                [item for item in value.items if not isinstance(item, Condition | Keyword | Descending)]
                if (isinstance(value, List_))
                else [value]
            )
        needed = {"isnull": 0, "notnull": 0, "between": 2}.get(operator, 1)
        if len(plain) < needed:
            raise ParseError(f"{operator} takes a key and {needed} value{'s' if needed > 1 else ''}")
        return Condition(operator, key.value, tuple(plain))

    def keyword(self, name: Token, value: Value) -> Keyword:
        return Keyword(str(name), value)

    def key(self, *tokens: Token) -> str:
        text = str(json.loads(tokens[0])) if tokens[0].type == "STRING" else " ".join(tokens)
        return text.strip().lower()

    def string(self, token: Token) -> Literal_:
        return Literal_(str(json.loads(token)))

    def null(self, _: Token) -> Literal_:
        return Literal_(None)

    def boolean(self, token: Token) -> Literal_:
        return Literal_(token.lower() == "true")

    def number(self, token: Token) -> Literal_:
        return Literal_(float(token) if "." in token else int(token))

    def descending(self, token: Token) -> Descending:
        return Descending(token.lstrip("- ").strip("\"'").lower())

    def bare(self, *tokens: Token) -> Literal_:
        if len(tokens) == 1 and tokens[0].type == "INTEGER":
            return Literal_(_integer(tokens[0]))
        return Literal_(" ".join(tokens), bare=True)

    def list(self, *items: Argument | None) -> List_:
        return List_(tuple(item for item in items if item is not None))


def _integer(token: Token) -> int:
    return int(token)
