"""Texts in lower case in the database: SQLite's own `lower` knows the letters of ASCII alone."""

from typing import Any

from sqlalchemy import ColumnElement, Text, func
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

# The function that the engine gives SQLite.
LOWERED = "lowered"


class _Lowered(GenericFunction[str]):
    """A text in lower case, whatever its alphabet."""

    name = LOWERED
    inherit_cache = True
    type = Text()


@compiles(_Lowered, "postgresql")
def _by_database(element: _Lowered, compiler: Any, **options: Any) -> str:
    return f"lower{compiler.process(element.clause_expr, **options)}"


def lowered(column: Any, *texts: str) -> ColumnElement[str]:
    """A column in lower case, to be compared with these texts: by SQLite's own function, which is faster, for ASCII."""
    return func.lower(column) if all(map(str.isascii, texts)) else _Lowered(column)
