"""The functions of a domain as tables in a prompt, with some of the values that they hold."""

from services.kg.generate.rules.values import Values
from services.kg.language.catalogue import Catalogue, Function, Key
from services.kg.selects import FLAGS, table_name
from services.kit.untrusted import one_line

# Up to so many values of a column are all shown; of more only the first ones.
FEW_VALUES, SOME_VALUES = 6, 2
MAX_VALUE_CHARS = 30
_TYPES = {"integer": "INTEGER", "number": "REAL", "money": "REAL", "percent": "REAL", "date": "DATE"}


def tables_text(catalogue: Catalogue, domain: str, values: Values) -> str:
    """A CREATE TABLE for each function of a domain. Blocks for some milliseconds a column."""
    return "\n".join(_table(function, values) for function in catalogue.domains[domain].shown)


def _table(function: Function, values: Values) -> str:
    columns = [
        f"  {key.name} {_TYPES.get(key.kind, 'TEXT')}, -- {_comment(function, key, values)}" for key in function.keys
    ]
    return "\n".join((f"CREATE TABLE {table_name(function)} (", *columns, ");"))


def _comment(function: Function, key: Key, values: Values) -> str:
    label = [key.label] if key.label else []
    if key.kind == "flag":
        return "; ".join((*label, ", ".join(FLAGS)))
    texts = [one_line(text)[:MAX_VALUE_CHARS] for text in values.first(function, key.name, FEW_VALUES + 1)]
    few = texts if len(texts) <= FEW_VALUES else [*texts[:SOME_VALUES], "..."]
    return "; ".join((*label, *([key.unit] if key.unit else []), ", ".join(few)))
