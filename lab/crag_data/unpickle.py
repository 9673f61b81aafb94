"""Pickles of plain data, and of nothing else.

A pickle is a program that imports and calls what it likes. Here it can name only what is on a list: containers,
dates, numbers of NumPy, and the parts of a pandas table, for which data-only stand-ins are put in place; so a file from
elsewhere is read without pandas, and one that names anything else is refused before a thing of it is called.
"""

import collections
import datetime as dt
import io
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from services.kg.load.errors import LoadError

# Kinds of NumPy types that hold numbers, truth values, moments and references to what the pickle holds anyway.
_DTYPE_KINDS = "biufmMOSU"
MAX_PICKLE_BYTES = 8 * 1024**3


class UnsafePickle(LoadError):
    """A pickle that names a class or function outside the list; nothing of it was run."""


class Dtype:
    """NumPy's dtype as a pickle spells it: a code, and a state of which only the byte order counts."""

    def __init__(self, code: str, *_: object) -> None:
        self.code = str(code)
        self.unit = ""
        self.order = "<"

    def __setstate__(self, state: Sequence[Any]) -> None:
        if len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self.order = state[1]
        if len(state) > 8 and isinstance(state[8], tuple):
            metadata = state[8][-1]
            if isinstance(metadata, tuple) and metadata and isinstance(metadata[0], (bytes, str)):
                unit = metadata[0]
                self.unit = f"[{unit.decode() if isinstance(unit, bytes) else unit}]"

    def numpy(self) -> np.dtype[Any]:
        try:
            found = np.dtype(self.order.replace("|", "") + self.code + self.unit)
        except TypeError:
            raise UnsafePickle(
                f"a pickle names the type {self.code[:20]!r} of NumPy, which holds no plain data"
            ) from None
        if found.kind not in _DTYPE_KINDS or found.fields is not None:
            raise UnsafePickle(f"a pickle names the type {self.code[:20]!r} of NumPy, which holds no plain data")
        return found


class Array:
    """A NumPy array being put together: made empty, filled by its state."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.shape: tuple[int, ...] = (0,)

    def __setstate__(self, state: Sequence[Any]) -> None:
        # Version, shape, type, whether columns come first, and the values as bytes or as a list of objects.
        _, shape, dtype, by_column, raw = state
        self.shape = tuple(int(size) for size in shape)
        if isinstance(raw, list):
            flat: Any = np.empty(len(raw), dtype=object)
            flat[:] = raw
        else:
            flat = np.frombuffer(raw, dtype=dtype.numpy())
        shaped = flat.reshape(self.shape, order="F" if by_column else "C")
        self.values = _plain(shaped)

    def rows(self) -> list[list[Any]]:
        """The values as a list of rows; of one dimension, as one row."""
        return self.values if len(self.shape) == 2 else [self.values]


def _plain(values: Any) -> list[Any]:
    if values.dtype.kind == "M":
        return [_moments(row) for row in values] if values.ndim == 2 else _moments(values)
    return list(values.tolist())


def _moments(values: Any) -> list[str | None]:
    return [None if np.isnat(value) else str(np.datetime_as_string(value, unit="s")) for value in values]


def _scalar(dtype: Dtype, raw: object = None) -> Any:
    if not isinstance(raw, bytes):
        return raw
    return _plain(np.frombuffer(raw, dtype=dtype.numpy()))[0]


def _array(*_: object) -> Array:
    return Array()


def _from_buffer(raw: Any, dtype: Dtype, shape: Any, order: str = "C") -> Array:
    made = Array()
    made.__setstate__((1, shape if isinstance(shape, tuple) else (shape,), dtype, order == "F", bytes(raw)))
    return made


class Part:
    """A piece of a pandas table: what it was made of, and its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Frame(Part):
    """A pandas table. `records` reads it."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Rows by column name; names of index levels are columns too.

        Raises:
            UnsafePickle: the table is of a version of pandas whose layout is not known.
        """
        try:
            columns, index, data = self._read()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise UnsafePickle(f"a pickled table of an unknown layout ({type(error).__name__})") from None
        for place in range(len(next(iter(index.values()), []) or next(iter(data.values()), []))):
            row = {name: values[place] for name, values in index.items()}
            row.update({name: data[name][place] for name in columns})
            yield row

    def _read(self) -> tuple[list[str], dict[str, list[Any]], dict[str, list[Any]]]:
        state = self.state
        manager = state.get("_mgr", state.get("_data"))
        if manager.state is not None:
            parts = manager.state[3]["0.14.1"] if len(manager.state) > 3 else manager.state[-1]
            axes, blocks = parts["axes"], [(one["values"], one["mgr_locs"]) for one in parts["blocks"]]
        else:
            blocks_, axes = manager.arguments[:2]
            blocks = [one.arguments[:2] for one in blocks_]
        columns = [str(name) for name in _labels(axes[0])]
        data: dict[str, list[Any]] = {}
        for values, placement in blocks:
            places = _places(placement)
            for place, row in zip(places, _block_rows(values), strict=True):
                data[columns[place]] = row
        return columns, _index(axes[1]), data


class Index(Part):
    """Labels of rows or columns."""


def _new_index(kind: type, state: dict[str, Any]) -> Index:
    made = Index(kind.__name__)
    made.state = state
    return made


def _labels(index: Any) -> list[Any]:
    state = index.state
    if "start" in state:
        return list(_bounded_range(state["start"], state["stop"], state["step"]))
    return _values(state["data"])


def _bounded_range(start: int, stop: int, step: int) -> range:
    made = range(int(start), int(stop), int(step))
    if len(made) > 50_000_000:
        raise UnsafePickle("a pickled table claims more rows than a table can have")
    return made


def _index(index: Any) -> dict[str, list[Any]]:
    """Columns of an index: one a level, by name; a plain numbering is none."""
    state = index.state
    if "levels" in state:
        levels = [_labels(level) for level in state["levels"]]
        codes = [_values(code) for code in state.get("codes", state.get("labels"))]
        return {
            str(name): [level[code] if code >= 0 else None for code in coded]
            for name, level, coded in zip(state["names"], levels, codes, strict=True)
        }
    labels = _labels(index)
    return {str(state.get("name") or "index"): labels}


def _unwrapped(data: Any) -> Any:
    """Of arrays of pandas the one of NumPy that they wrap: the first among their arguments and in their state."""
    while isinstance(data, Part):
        parts = [*data.arguments, *(data.state if isinstance(data.state, (tuple, list)) else [data.state])]
        parts += [value for part in parts if isinstance(part, dict) for value in part.values()]
        data = next(part for part in parts if isinstance(part, (Array, Part)) and not isinstance(part, Frame))
    return data


def _values(data: Any) -> list[Any]:
    data = _unwrapped(data)
    if isinstance(data, Array):
        return data.values if len(data.shape) == 1 else data.rows()[0]
    return list(data)


def _block_rows(values: Any) -> list[list[Any]]:
    inner = _unwrapped(values)
    return inner.rows() if isinstance(inner, Array) else [list(inner)]


def _places(placement: Any) -> list[int]:
    if isinstance(placement, Part):
        placement = placement.arguments[0]
    if isinstance(placement, slice):
        return list(_bounded_range(placement.start or 0, placement.stop, placement.step or 1))
    return [int(place) for place in _values(placement)]


class _Kind:
    """A class of pandas that is only named, never made."""


_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
_INDEXES = (
    "Index", "RangeIndex", "Int64Index", "Float64Index", "UInt64Index", "NumericIndex", "MultiIndex", "DatetimeIndex",
)  # fmt: skip
# No bytes: called with a number they take that much memory.
ALLOWED: dict[tuple[str, str], Any] = {
    # By their names of Python 2 too; as default factories of dictionaries as well.
    **{
        (module, one.__name__): one
        for module in ("builtins", "__builtin__")
        for one in (set, frozenset, slice, list, dict, tuple, str, int, float)
    },
    ("collections", "defaultdict"): collections.defaultdict,
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{("datetime", one.__name__): one for one in (dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone)},
    ("numpy", "dtype"): Dtype,
    ("numpy", "ndarray"): _Kind,
    **{(module, "scalar"): _scalar for module in _NUMPY[:2]},
    **{(module, "_reconstruct"): _array for module in _NUMPY[:2]},
    **{(module, "_frombuffer"): _from_buffer for module in _NUMPY[2:]},
    ("pandas.core.frame", "DataFrame"): Frame,
    ("pandas.core.internals.managers", "BlockManager"): type("Manager", (Part,), {}),
    ("pandas.core.internals", "BlockManager"): type("Manager", (Part,), {}),
    ("pandas._libs.internals", "_unpickle_block"): type("Block", (Part,), {}),
    ("pandas._libs.internals", "BlockPlacement"): type("Placement", (Part,), {}),
    ("pandas.core.internals.blocks", "new_block"): type("Block", (Part,), {}),
    ("pandas.core.indexes.base", "_new_Index"): _new_index,
    ("pandas.core.indexes.datetimes", "_new_DatetimeIndex"): _new_index,
    ("pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked"): type("Wrapped", (Part,), {}),
    ("pandas.core.arrays.datetimes", "DatetimeArray"): type("Datetimes", (Part,), {}),
    ("pandas.core.arrays.string_", "StringArray"): type("Strings", (Part,), {}),
    ("pandas.core.arrays.string_", "StringDtype"): type("StringType", (Part,), {}),
    **{
        (f"pandas.core.indexes.{module}", name): type(name, (_Kind,), {})
        for module in ("base", "range", "numeric", "multi", "datetimes")
        for name in _INDEXES
    },
    ("pandas.core.indexes.frozen", "FrozenList"): type("FrozenList", (list,), {}),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise UnsafePickle(f"a pickle asks for {module[:60]}.{name[:60]}, which is no plain data") from None

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafePickle("a pickle refers to something outside itself")


def read_pickle(source: IO[bytes] | bytes) -> Any:
    """The data of a pickle; a pandas table comes as a `Frame`.

    Raises:
        UnsafePickle: it names what is not on the list. Nothing of it has run.
        LoadError: it is no pickle, or is cut short.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        return _Unpickler(file).load()
    except LoadError:
        raise
    except MemoryError:
        raise LoadError("a pickle claims more than fits in memory") from None
    except Exception as error:
        # Broken pickles raise about anything.
        raise LoadError(f"not a pickle of plain data: {type(error).__name__}: {str(error)[:100]}") from None


def read_pickle_file(path: Path) -> Any:
    """The data of a pickle file, whole in memory.

    Raises:
        LoadError: as `read_pickle`, and for a file beyond 8 GiB.
    """
    if path.stat().st_size > MAX_PICKLE_BYTES:
        raise LoadError(f"{path} is larger than 8 GiB")
    with path.open("rb") as file:
        try:
            return read_pickle(file)
        except LoadError as error:
            raise type(error)(f"{path}: {error}") from None
