"""Pickles of plain data and of pandas tables, and of nothing else.

A pickle is a program that imports and calls what it likes. Here it can name only containers, dates, numbers of NumPy
and the parts of a table; one that names anything else is refused before anything is called.
"""

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy._core.multiarray import scalar
from pandas import DataFrame
from pandas.compat import pickle_compat

from services.kg.load.errors import LoadError

_NUMPY_1 = "numpy.core."
_INDEXES = {"Index", "RangeIndex", "Int64Index", "Float64Index", "UInt64Index", "MultiIndex", "DatetimeIndex"}
# Without bytes, which called with a number take that much memory.
_CONTAINERS = {"set", "frozenset", "slice", "list", "dict", "tuple", "str", "int", "float"}
_PLAIN: Mapping[str, set[str]] = {
    "builtins": _CONTAINERS,
    # Python 2's.
    "__builtin__": _CONTAINERS,
    "collections": {"defaultdict", "OrderedDict"},
    "datetime": {"datetime", "date", "time", "timedelta", "timezone"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}
_TABLES: Mapping[str, set[str]] = {
    **_PLAIN,
    "pandas.core.frame": {"DataFrame"},
    "pandas.core.internals": {"BlockManager"},
    "pandas.core.internals.managers": {"BlockManager"},
    "pandas.core.internals.blocks": {"new_block"},
    "pandas._libs.internals": {"_unpickle_block", "BlockPlacement"},
    "pandas._libs.arrays": {"__pyx_unpickle_NDArrayBacked"},
    "pandas.core.arrays.datetimes": {"DatetimeArray"},
    "pandas.core.arrays.string_": {"StringArray", "StringDtype"},
    "pandas.core.indexes.base": {"_new_Index", *_INDEXES},
    "pandas.core.indexes.datetimes": {"_new_DatetimeIndex", *_INDEXES},
    **{f"pandas.core.indexes.{module}": _INDEXES for module in ("range", "numeric", "multi")},
    "pandas.core.indexes.frozen": {"FrozenList"},
}


class UnsafePickle(LoadError):
    """A pickle names a class or function outside the list; none was called."""


def _plain_scalar(*state: Any) -> Any:
    value = scalar(*state)
    return value.item() if hasattr(value, "item") else value


def _allowed(module: str, name: str, names: Mapping[str, set[str]]) -> str:
    """The module that has the name in the installed NumPy.

    Raises:
        UnsafePickle: the name is not on the list.
    """
    if module.startswith(_NUMPY_1):
        module = "numpy._core." + module.removeprefix(_NUMPY_1)
    if name not in names.get(module, ()):
        raise UnsafePickle(f"a pickle asks for {module[:60]}.{name[:60]}, which is no plain data")
    return module


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = _allowed(module, name, _PLAIN)
        return _plain_scalar if name == "scalar" else super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafePickle("a pickle refers to something outside itself")


class _TableUnpickler(pickle_compat.Unpickler):  # type: ignore[misc] # pandas has no types
    """Of tables, which pandas since 1.0 wrote."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_allowed(module, name, _TABLES), name)


def read_pickle(content: bytes) -> Any:
    """The plain data of a pickle.

    Raises:
        UnsafePickle: it names something that is not on the list; nothing was called.
        LoadError: it is no pickle, or is cut short.
    """
    return _read(_Unpickler(io.BytesIO(content)))


def read_pickle_file(path: Path) -> Any:
    """The plain data of a pickle file, whole in memory.

    Raises:
        LoadError: as `read_pickle`.
    """
    with path.open("rb") as file:
        return _read(_Unpickler(file), f"{path}: ")


def read_table_file(path: Path) -> list[dict[str, Any]]:
    """Rows of a pickled table by column name; levels of its index are columns too. What is missing is null.

    Raises:
        LoadError: as `read_pickle_file`, and for what is no table.
    """
    with path.open("rb") as file:
        table = _read(_TableUnpickler(file), f"{path}: ")
    if not isinstance(table, DataFrame):
        raise LoadError(f"{path} is no table of pandas")
    table = table.reset_index().astype(object)
    rows = table.where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _read(unpickler: Any, place: str = "") -> Any:
    try:
        return unpickler.load()
    except UnsafePickle as error:
        raise UnsafePickle(f"{place}{error}") from None
    except MemoryError:
        raise LoadError(f"{place}a pickle claims more than fits in memory") from None
    except Exception as error:
        # Broken pickles raise about anything.
        raise LoadError(f"{place}not a pickle of plain data: {type(error).__name__}: {str(error)[:100]}") from None
