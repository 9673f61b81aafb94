"""Pickles may hold data and nothing else."""

import datetime as dt
import pathlib
import pickle
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest

from lab.crag_data.unpickle import UnsafePickle, read_pickle, read_table_file
from services.kg.load import LoadError

DATA = pathlib.Path(__file__).parent / "data"


class Evil:
    """What pickles into a program that writes a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return pathlib.Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_code_is_refused_and_runs_nothing(tmp_path: pathlib.Path, protocol: int) -> None:
    proof = tmp_path / "proof"
    evil = pickle.dumps({"a": [Evil(proof)]}, protocol)
    with pytest.raises(UnsafePickle, match="no plain data"):
        read_pickle(evil)
    assert not proof.exists()
    pickle.loads(evil)  # noqa: S301 - that it would have run
    assert proof.exists()


@pytest.mark.parametrize(
    "opcodes",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\ngetattr\n(S'1'\nS'x'\ntR.",
        b"cbuiltins\nbytes\n(I99999999999\ntR.",
        b"clab.crag_data.unpickle\n_read\n(tR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.",
        b"P1\n.",
        b"ccollections\ndefaultdict\n(cos\ngetcwd\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct.__globals__\n(tR.",
    ],
)
def test_opcodes_that_reach_for_more_are_refused(opcodes: bytes) -> None:
    with pytest.raises(UnsafePickle):
        read_pickle(opcodes)


@pytest.mark.parametrize("broken", [b"", b"no pickle", b"\x80\x04", b"(lp0\n", pickle.dumps([1, 2, 3])[:-3], b"h\x05."])
def test_broken_pickles_are_refused(broken: bytes) -> None:
    with pytest.raises(LoadError):
        read_pickle(broken)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_read(protocol: int) -> None:
    data = {
        "a": [1, 2.5, None, True, "é", b"x", (1, 2), {3}, frozenset({4})],
        "b": defaultdict(list, {"k": [1]}),
        "c": OrderedDict([("x", 1)]),
        "d": [dt.date(2024, 2, 28), dt.datetime(2024, 2, 28, 10, 52, tzinfo=dt.UTC)],
    }
    if protocol < 3:
        # Bytes need a function of codecs there.
        data["a"] = [one for one in data["a"] if not isinstance(one, bytes)]
        data["d"] = []
    assert read_pickle(pickle.dumps(data, protocol)) == data


def test_numbers_of_numpy_are_read_as_plain_ones() -> None:
    value = read_pickle(pickle.dumps([np.float64(1.5), np.int64(7), np.array([1, 2]), np.bool_(True)]))
    assert value[:2] == [1.5, 7]
    assert value[2].tolist() == [1, 2]
    assert value[3] is True


def test_a_table_is_read(tmp_path: pathlib.Path) -> None:
    rows = read_table_file(DATA / "soccer_team_match_stats.pkl")
    assert [row["team"] for row in rows] == ["Kestrel Town", "Öland City", "Öland City"]
    assert [row["date"] for row in rows] == [dt.datetime(2024, 2, 21), dt.datetime(2024, 2, 21), None]
    assert rows[2]["league"] is None
    assert (rows[0]["xG"], rows[0]["GF"], rows[0]["GA"]) == (1.2, "1 (4)", 1)
    proof = tmp_path / "proof"
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil(proof)))
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(UnsafePickle, match="no plain data"):
        read_table_file(tmp_path / "evil.pkl")
    assert not proof.exists()
    with pytest.raises(LoadError, match="no table of pandas"):
        read_table_file(tmp_path / "plain.pkl")
