"""A graph is made of what a BERT's files say, and of nothing else."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from services.kit import bert
from services.kit.backend import EncoderUsage
from services.kit.bert import NoBert
from services.kit.encoder import bundled_model
from services.kit.onnx_backend import OnnxBackend
from tests.unit.conftest import FP32


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The bundled model's folder, to be changed."""
    return Path(shutil.copytree(bundled_model(), tmp_path / "model", copy_function=shutil.copyfile))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_tensors_are_read_as_the_file_has_them() -> None:
    from safetensors.numpy import load_file

    path = bundled_model() / "model.safetensors"
    expected, tensors = load_file(path), bert.read_safetensors(path)
    assert tensors.keys() == expected.keys()
    assert all(np.array_equal(tensors[name], expected[name]) for name in expected)


def test_int8_takes_a_third_of_the_layers_memory() -> None:
    full, small = bert.read(bundled_model()), bert.read(bundled_model(), "int8")
    tables = full.words.nbytes + full.positions.nbytes
    assert small.nbytes - tables < (full.nbytes - tables) * 0.36


def test_pairs_of_int8_weights_fit_the_16_bits_in_which_a_cpu_without_vnni_sums_them() -> None:
    weights = [tensor for tensor in bert.read(bundled_model(), "int8").tensors.values() if tensor.dtype == np.int8]
    assert weights
    for weight in weights:
        pairs = weight.astype(int).reshape(-1, 2, weight.shape[1]).sum(axis=1)
        assert 100 < np.abs(pairs).max() <= 128


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"model_type": "mpnet"}, "its model_type is 'mpnet', not 'bert'"),
        ({"hidden_act": "relu"}, "its hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, "its position_embedding_type"),
        ({"num_hidden_layers": 7}, r"has no tensor 'encoder\.layer\.6"),
    ],
)
def test_another_architecture_is_refused(copy: Path, values: dict[str, object], reason: str) -> None:
    change(copy / "config.json", **values)
    with pytest.raises(NoBert, match=reason):
        bert.read(copy)


@pytest.mark.parametrize("content", [b"", b"\x00" * 8, b"\xff" * 40, (2).to_bytes(8, "little") + b"[]"])
def test_a_damaged_file_is_refused(copy: Path, content: bytes) -> None:
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(NoBert):
        bert.read(copy)


def test_modules_that_torch_alone_can_run_are_refused(copy: Path) -> None:
    modules = json.loads((copy / "modules.json").read_text())
    dense = {"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"}
    (copy / "modules.json").write_text(json.dumps([*modules, dense]))
    with pytest.raises(NoBert, match="has the modules Dense"):
        OnnxBackend(copy, FP32, EncoderUsage())


def test_pooling_is_the_files_own_or_the_usages(copy: Path) -> None:
    ids, mask = np.array([[101, 2023, 102, 0]]), np.array([[1, 1, 1, 0]])
    mean = OnnxBackend(copy, FP32, EncoderUsage()).run(ids, mask, keep_states=True)
    assert mean.states is not None
    assert np.allclose(mean.vectors[0], mean.states[0, :3].mean(axis=0), atol=1e-6)
    first = OnnxBackend(copy, FP32, EncoderUsage(pooling="cls")).run(ids, mask, keep_states=False)
    assert first.states is None
    assert np.allclose(first.vectors[0], mean.states[0, 0], atol=1e-6)
    change(copy / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    assert np.allclose(OnnxBackend(copy, FP32, EncoderUsage()).run(ids, mask, keep_states=False).vectors, first.vectors)
    change(copy / "1_Pooling" / "config.json", pooling_mode_max_tokens=True)
    with pytest.raises(NoBert, match="pools by"):
        OnnxBackend(copy, FP32, EncoderUsage())
