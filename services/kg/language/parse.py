"""Text to tree. One bad statement does not cost the others: each is parsed alone and has an error of its own."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedToken, VisitError

from services.kg.errors import ParseError
from services.kg.language import repair, tree
from services.kg.language.tree import Argument, Condition, List_, Literal_, Query, Statement, conditions_of, values_of

# Other words for an aggregate or a combination.
SYNONYMS = {"average": "avg", "mean": "avg", "total": "sum", "count": "len"}
# Words for the grammar's terminals.
NAMES = {
    **{"FUNCTION": "a function", "STRING": "a quoted text", "WORD": "a word", "INTEGER": "a number"},
    **{"NUMBER": "a number", "OPERATOR": "a condition", "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]"},
    **{"COMMA": ",", "EQUAL": "=", "COLON": ":", "STAR": "*", "$END": "the end"},
}
# The least number of values of an operator, where it is not one.
VALUES = {"isnull": 0, "notnull": 0, "between": 2}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A mended statement with its tree, or with its error."""

    text: str
    statement: Statement | None
    error: ParseError | None = None


def parse(text: str, functions: Iterable[str] = ()) -> tuple[Statement, ...]:
    """The trees of a program's statements.

    Raises:
        ParseError: of the first statement that is wrong.
    """
    parsed = parse_each(text, functions)
    for one in parsed:
        if one.error is not None:
            raise one.error
    return tuple(cast(Statement, one.statement) for one in parsed)


def parse_each(text: str, functions: Iterable[str] = ()) -> list[Parsed]:
    """Every statement with its tree or its error.

    Raises:
        ParseError: the whole is too long, has too many statements or is nested too deeply.
    """
    return [_parse_one(statement) for statement in repair.statements(text, functions)]


def _parse_one(text: str) -> Parsed:
    if repair.is_nothing(text):
        return Parsed(text, tree.Nothing())
    if repair.is_sql(text):
        return Parsed(text, tree.Sql(text))
    try:
        return Parsed(text, cast(Statement, _Build().transform(_lark().parse(text))))
    except UnexpectedToken as error:
        expected = tuple(sorted({NAMES[name] for name in error.accepts or error.expected if name in NAMES}))
        token = "the end" if error.token.type == "$END" else json.dumps(str(error.token), ensure_ascii=False)
        return Parsed(text, None, _error(text, f"found {token}", error.pos_in_stream, expected))
    except UnexpectedCharacters as error:
        place = error.pos_in_stream
        return Parsed(text, None, _error(text, f"cannot read {text[place:][:20]!r}", place))
    except VisitError as error:
        if isinstance(error.orig_exc, ParseError):
            return Parsed(text, None, error.orig_exc)
        raise
    except LarkError as error:
        return Parsed(text, None, _error(text, str(error).partition("\n")[0], 0))


def _error(text: str, message: str, position: int | None, expected: tuple[str, ...] = ()) -> ParseError:
    position = len(text) if position is None or position < 0 else position
    wanted = f"; expected {', '.join(expected)}" if expected else ""
    return ParseError(f"{message} at character {position + 1}{wanted}", expected=expected)


@cache
def _lark() -> Lark:
    return Lark.open("grammar.lark", rel_to=__file__, parser="lalr")


def _how(token: Token) -> Any:
    return SYNONYMS.get(token.lower(), token.lower())


@v_args(inline=True)
class _Build(Transformer[Token, Any]):
    """The grammar's rules to the tree's nodes; words in front of a query are its fields."""

    def aggregate_last(self, token: Token) -> Query:
        return Query(tree.Reference(), aggregate=_how(token))

    def query(self, *parts: Any) -> Query:
        fields: dict[str, Any] = {}
        for part in parts:
            fields |= part if isinstance(part, dict) else {}
        source, *steps = (part for part in parts if not isinstance(part, dict))
        if any(isinstance(step, _SortAll) for step in steps):
            fields["every"] = True
            steps = [step.step if isinstance(step, _SortAll) else step for step in steps]
        if len(steps) > repair.MAX_DEPTH:
            raise ParseError(f"a statement may have {repair.MAX_DEPTH} steps, this one has {len(steps)}")
        # `["len"]` at the end is a count, whatever else was projected.
        if steps and steps[-1] == tree.Project(("len",)):
            steps, fields["aggregate"] = steps[:-1], "len"
        return Query(source, tuple(steps), **fields)

    def every(self, _: Token) -> dict[str, Any]:
        return {"every": True}

    def aggregate(self, token: Token) -> dict[str, Any]:
        return {"aggregate": _how(token)}

    def head(self, token: Token) -> dict[str, Any]:
        return {"head": int(token)}

    def reference(self, _: Token, number: Token | None, key: str = "") -> tree.Reference:
        return tree.Reference(None if number is None else int(number), key)

    def combine(self, token: Token, *queries: Query) -> tree.Combine:
        return tree.Combine(_how(token), queries)

    def call(self, name: Token, *arguments: Argument | None) -> tree.Call:
        return tree.Call(name.lower(), tuple(argument for argument in arguments if argument is not None))

    def project(self, *keys: str) -> tree.Project:
        return tree.Project(keys)

    def slice(self, start: Token | None, stop: Token | None) -> tree.Slice:
        return tree.Slice(int(start or 0), None if stop is None else int(stop))

    def nth(self, number: Token) -> tree.Slice:
        return tree.Slice(int(number), int(number) + 1)

    def sort(self, token: Token, *arguments: Argument | None) -> Any:
        conditions: list[Condition] = []
        key, descending = "", False
        for argument in arguments:
            match argument:
                case Condition():
                    conditions.append(argument)
                case List_(items):
                    conditions += [item for item in items if isinstance(item, Condition)]
                case tree.Descending(name):
                    key, descending = name, True
                case Literal_(str() as name):
                    key, descending = name.removeprefix("-"), name.startswith("-")
                case None | Literal_():
                    pass
                case _:
                    raise ParseError("sort takes conditions and one key")
        if not key and not conditions:
            raise ParseError("sort lacks a key", expected=("sort(None, key)", "sort(None, -key)"))
        narrowed = tuple(conditions)
        step: tree.Step = tree.Sort(narrowed, key, descending) if key else tree.Where(narrowed)
        return _SortAll(step) if "all" in token.lower() else step

    def where(self, _: Token, *arguments: Argument) -> tree.Where:
        conditions: list[Condition] = []
        for argument in arguments:
            if isinstance(argument, tree.Keyword):
                conditions.append(Condition("eq", argument.name, (argument.value,)))
            elif argument == List_(()) or conditions_of(argument):
                conditions += conditions_of(argument)
            else:
                raise ParseError("where takes conditions", expected=('eq(key, "value")', "gt(key, 1)"))
        return tree.Where(tuple(conditions))

    def group(self, _: Token, *keys: str) -> tree.Group:
        return tree.Group(keys)

    def condition(self, token: Token, key: Argument, *values: Argument) -> Condition:
        operator = cast(tree.Operator, {"ne": "neq"}.get(token.lower(), token.lower()))
        if not isinstance(key, Literal_) or not isinstance(key.value, str):
            raise ParseError(f"{operator} takes a key first", expected=(f"{operator}(year, 2010)",))
        if any(isinstance(value, Condition | tree.Keyword | tree.Descending) for value in values):
            raise ParseError(f"{operator} takes a key and values")
        plain = tuple(one for value in values for one in values_of(value))
        needed = VALUES.get(operator, 1)
        if len(plain) < needed:
            raise ParseError(f"{operator} takes a key and {needed} value{'s' if needed > 1 else ''}")
        return Condition(operator, key.value, plain)

    def keyword(self, name: Token, value: tree.Value) -> tree.Keyword:
        return tree.Keyword(str(name), value)

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

    def descending(self, token: Token) -> tree.Descending:
        return tree.Descending(token.lstrip("- ").strip("\"'").lower())

    def bare(self, *tokens: Token) -> Literal_:
        if len(tokens) == 1 and tokens[0].type == "INTEGER":
            return Literal_(int(tokens[0]))
        return Literal_(" ".join(tokens), bare=True)

    def list(self, *items: Argument | None) -> List_:
        return List_(tuple(item for item in items if item is not None))


@dataclass(frozen=True, slots=True)
class _SortAll:
    """`all sort(...)`: a step, where the query is for all rows."""

    step: tree.Step
