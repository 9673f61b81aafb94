"""The functions of a domain as tables in a prompt, with some of the values that they hold."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from services.kg.errors import KgError
from services.kg.language.catalogue import Catalogue, Function, Key
from services.kg.rows import view_of
from services.kg.store.engine import deadline
from services.kit.untrusted import one_line

# Up to so many values of a column are all shown; of more only the first ones.
FEW_VALUES, SOME_VALUES = 6, 2
MAX_VALUE_CHARS = 30
LOOK_S = 0.5
_TYPES = {"integer": "INTEGER", "number": "REAL", "money": "REAL", "percent": "REAL", "date": "DATE"}
FLAG = "yes, no"


def table_name(function: Function) -> str:
    """What a prompt calls a function: `van` of `get_van`."""
    return function.name.removeprefix("get_")


def tables_text(catalogue: Catalogue, domain: str, engine: Engine) -> str:
    """A CREATE TABLE for each function of a domain. Blocks for some milliseconds a column."""
    return "\n".join(_table(function, engine) for function in catalogue.domains[domain].shown)


def _table(function: Function, engine: Engine) -> str:
    columns = [
        f"  {key.name} {_TYPES.get(key.kind, 'TEXT')}, -- {_comment(function, key, engine)}" for key in function.keys
    ]
    return "\n".join((f"CREATE TABLE {table_name(function)} (", *columns, ");"))


def _comment(function: Function, key: Key, engine: Engine) -> str:
    label = [key.label] if key.label else []
    if key.kind == "flag":
        return "; ".join((*label, FLAG))
    values = _values(function, key, engine)
    few = values if len(values) <= FEW_VALUES else [*values[:SOME_VALUES], "..."]
    return "; ".join((*label, *([key.unit] if key.unit else []), ", ".join(few)))


def _values(function: Function, key: Key, engine: Engine) -> Sequence[str]:
    """The first distinct values of a key, harmless and short; none where finding them takes too long."""
    column = view_of(function.view).c[key.name]
    statement = select(column).where(column.is_not(None)).distinct().limit(FEW_VALUES + 1)
    try:
        with deadline(LOOK_S), engine.connect() as connection:
            return list(_shortened(connection.execute(statement).scalars()))
    except (KgError, SQLAlchemyError):
        return []


def _shortened(values: Iterator[object]) -> Iterator[str]:
    for value in values:
        yield one_line(str(value))[:MAX_VALUE_CHARS]
