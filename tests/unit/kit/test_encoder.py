"""Vectors are sentence-transformers' own, whatever the batching and the number format."""

import pathlib

import numpy as np
import pytest

from services.kit import encoder as module
from services.kit.cpu import computes_int8, instruction_set
from services.kit.encoder import Encoder, Floats, TokenStates, bundled_model
from services.kit.precision import Dtype, Precision
from tests.unit.conftest import FP32
from tests.unit.kit.tiny import tiny_model

TEXTS = [
    "K2 was first climbed in 1954 by an Italian expedition.",
    "",
    "a",
    "🏔️",
    "The cat sat on the mat. " * 60,
    "Dividends per share rose by 4 % to $0.24 in the third quarter.",
    "东京是日本的首都",
]


# The bundled model by ONNX Runtime, and by sentence-transformers as any other folder's is.
FORMATS = [
    ("", "fp32", 0.99999, 100),
    ("", "int8", 0.999, 1),
    ("", "int8", 0.999, 4_096),
    ("", "bf16", 0.999, 100),
    ("folder", "fp32", 0.99999, 4_096),
]


@pytest.fixture(scope="module")
def reference() -> Floats:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bundled_model()), device="cpu", local_files_only=True)
    return np.asarray(model.encode(TEXTS, normalize_embeddings=True))


@pytest.mark.parametrize(("place", "dtype", "closeness", "batch_tokens"), FORMATS)
def test_vectors_are_those_of_sentence_transformers(
    reference: Floats, place: str, dtype: Dtype, closeness: float, batch_tokens: int
) -> None:
    if dtype == "int8" and not computes_int8(instruction_set()):
        pytest.skip("this CPU computes no int8")
    model = str(bundled_model()) if place else ""
    encoder = Encoder(model, precision=Precision("cpu", dtype, "test"), batch_tokens=batch_tokens)
    encoder.load()
    runtime = "OnnxBackend" if not place and dtype != "bf16" else "TorchBackend"
    assert type(encoder._backend).__name__ == runtime
    assert (encoder.encode(TEXTS).vectors * reference).sum(axis=1).min() >= closeness


def test_token_states_and_fingerprints_are_those_of_sentence_transformers(encoder: Encoder) -> None:
    other = Encoder(str(bundled_model()), precision=FP32)
    other.load()
    ours, theirs = (each.encode(TEXTS, keep_token_states=True).token_states for each in (encoder, other))
    assert ours is not None
    assert theirs is not None
    assert np.array_equal(ours.ids, theirs.ids)
    assert np.array_equal(ours.offsets, theirs.offsets)
    assert (ours.states * theirs.states).sum(axis=1).min() >= 0.99999
    assert encoder.fingerprint == other.fingerprint
    assert encoder.dimension == other.dimension


def test_a_model_that_needs_torch_says_so_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_torch", lambda: False)
    with pytest.raises(ValueError, match=r"bf16 needs torch: pip install"):
        Encoder(precision=Precision("cpu", "bf16", "test")).load()


def test_another_bert_runs_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    folder = str(tiny_model(tmp_path))
    expected = Encoder(folder, precision=FP32)
    expected.load()
    monkeypatch.setattr(module, "has_torch", lambda: False)
    encoder = Encoder(folder, precision=FP32)
    encoder.load()
    assert type(encoder._backend).__name__ == "OnnxBackend"
    assert np.allclose(encoder.encode(TEXTS).vectors, expected.encode(TEXTS).vectors, atol=1e-5)


def test_vectors_are_unit_float32_in_the_order_given(encoder: Encoder) -> None:
    vectors = encoder.encode(TEXTS).vectors
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = np.concatenate([encoder.encode([text]).vectors for text in TEXTS])
    assert np.allclose(vectors, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("streams", "batches"), [(1, [[1], [3, 0], [2, 4]]), (2, [[1], [3, 0], [2, 4]]), (4, [[1], [3], [0], [2, 4]])]
)
def test_batches_are_bounded_by_tokens_with_padding(streams: int, batches: list[list[int]]) -> None:
    assert list(module._batches([7, 30, 3, 9, 3], 20, streams)) == batches


def test_batches_that_run_at_once_come_back_in_order(encoder: Encoder) -> None:
    several = Encoder(precision=Precision("cpu", "fp32", "test", threads=3), batch_tokens=40)
    several.load()
    texts = [f"text {number} of {'several ' * (number % 7)}" for number in range(40)]
    assert np.abs(several.encode(texts).vectors - encoder.encode(texts).vectors).max() < 1e-5


def test_token_states_come_with_the_vectors(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS, keep_token_states=True)
    states = encoded.token_states
    assert states is not None
    assert len(states) == len(TEXTS)
    assert list(np.diff(states.offsets)[[1, 2, 4]]) == [2, 3, 256], "special tokens count, and long texts are cut"
    assert np.allclose(np.linalg.norm(states.states, axis=1), 1, atol=1e-5)
    assert np.allclose(encoded.vectors, encoder.encode(TEXTS).vectors, atol=1e-6)
    joined = TokenStates.join([states.of(index) for index in range(len(states))])
    assert np.array_equal(joined.states, states.states)
    assert np.array_equal(joined.offsets, states.offsets)
    third, ids = states.of(2)
    assert third.shape == (3, encoder.dimension)
    alone = encoder.encode(["a"], keep_token_states=True).token_states
    assert alone is not None
    assert list(ids) == list(alone.ids)
    assert np.allclose(third, alone.states, atol=1e-5)


def test_nothing_to_encode(encoder: Encoder) -> None:
    encoded = encoder.encode([], keep_token_states=True)
    assert encoded.vectors.shape == (0, encoder.dimension)
    assert encoded.token_states is not None
    assert len(encoded.token_states) == 0


def test_a_query_gets_the_models_query_prompt(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = encoder.encode_query("who climbed it?").vectors
    assert np.allclose(plain, encoder.encode(["who climbed it?"]).vectors, atol=1e-6)
    monkeypatch.setitem(encoder._loaded().prompts, "query", "Represent this: ")
    prompted = encoder.encode_query("who climbed it?").vectors
    assert np.allclose(prompted, encoder.encode(["Represent this: who climbed it?"]).vectors, atol=1e-6)


def test_an_encoder_that_is_not_loaded_says_so() -> None:
    encoder = Encoder(precision=FP32)
    assert encoder.name == "all-MiniLM-L6-v2"
    for use in (lambda: encoder.encode(["text"]), lambda: encoder.dimension):
        with pytest.raises(RuntimeError, match="not loaded"):
            use()


def test_a_folder_without_a_model_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises((OSError, ValueError)):
        Encoder(str(tmp_path), precision=FP32).load()


def test_the_bundled_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUNDLED_PACKAGE", "no_such_package_here")
    with pytest.raises(ValueError, match="not installed"):
        bundled_model()
