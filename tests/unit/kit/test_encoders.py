"""Encoders as data: what ships, what a file of one's own adds, and what stays in memory."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.kit.encoder import Encoder, EncoderUsage, Pooling, fingerprint
from services.kit.encoders import EncoderDefinition, EncoderFailure, EncoderPool, UnknownEncoder, definitions, named
from tests.unit.conftest import FP32
from tests.unit.kit.tiny import tiny_model

TEXTS = ["a short one", "a text with a few more words in it", "and"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def loaded(model: Path, **usage: Any) -> Encoder:
    encoder = Encoder(str(model), precision=FP32, usage=EncoderUsage(**usage))
    encoder.load()
    return encoder


def test_the_published_encoders_ship() -> None:
    shipped = definitions()
    names = """all-MiniLM-L6-v2 all-MiniLM-L6-v2-static all-MiniLM-L12-v2
        bge-base-en-v1.5 bge-large-en-v1.5 bge-m3 gte-large sentence-t5-large
        SFR-Embedding-Mistral Linq-Embed-Mistral bce-embedding-base_v1"""
    assert set(shipped) == set(names.split())
    assert shipped["bge-base-en-v1.5"].pooling == "cls"
    assert shipped["bge-base-en-v1.5"].query_instruction == "Represent this sentence for searching relevant passages: "
    assert shipped["SFR-Embedding-Mistral"].pooling == "lasttoken"
    assert all(item.parameters and item.max_length and item.normalise for item in shipped.values())


def test_a_file_of_ones_own_adds_and_redefines(tmp_path: Path) -> None:
    file = tmp_path / "encoders.yaml"
    file.write_text("own: {model: /models/own, pooling: mean}\nbge-m3: {model: /models/bge-m3, precision: fp32}\n")
    encoders = definitions(file)
    assert encoders["own"] == EncoderDefinition(model="/models/own", pooling="mean")
    assert encoders["bge-m3"].model == "/models/bge-m3"
    assert encoders["all-MiniLM-L6-v2"] == definitions()["all-MiniLM-L6-v2"]


@pytest.mark.parametrize(
    "text", ["own: {model: x, pooling: median}", "own: {models: x}", "- a list", "own: [", "own: {max_length: -1}"]
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "encoders.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"encoders\.yaml"):
        definitions(file)
    with pytest.raises(ValueError, match="cannot be read"):
        definitions(tmp_path / "absent.yaml")


def test_a_setting_names_a_definition_by_hub_name_or_folder() -> None:
    defined = definitions()
    assert named("", defined)[0] == "all-MiniLM-L6-v2"
    for model in ("BAAI/bge-base-en-v1.5", "/models/bge-base-en-v1.5"):
        name, usage = named(model, defined)
        assert (name, usage.pooling) == ("bge-base-en-v1.5", "cls")
    assert named("/models/own", defined) == ("own", EncoderUsage())


@pytest.mark.parametrize(("pooling", "token"), [("cls", 0), ("lasttoken", -1)])
def test_pooling_takes_the_token_that_it_names(tiny: Path, pooling: Pooling, token: int) -> None:
    encoded = loaded(tiny, pooling=pooling).encode(TEXTS, keep_token_states=True)
    assert not np.allclose(encoded.vectors, loaded(tiny).encode(TEXTS).vectors, atol=1e-2), "the files' own is the mean"
    assert encoded.token_states is not None
    for index, vector in enumerate(encoded.vectors):
        assert np.allclose(vector, encoded.token_states.of(index)[0][token], atol=1e-5)


def test_instructions_go_before_queries_and_passages(tiny: Path) -> None:
    encoder = loaded(tiny, query_instruction="find: ", passage_instruction="text: ")
    assert np.allclose(encoder.encode_queries(TEXTS), encoder.encode([f"find: {text}" for text in TEXTS]).vectors)
    assert np.allclose(encoder.encode_passages(TEXTS), encoder.encode([f"text: {text}" for text in TEXTS]).vectors)
    assert np.allclose(encoder.encode_query("a").vectors, encoder.encode_queries(["a"]), atol=1e-6)


def test_lengths_are_cut_and_vectors_left_as_they_are_where_asked(tiny: Path) -> None:
    states = loaded(tiny, max_length=7).encode(["word " * 50], keep_token_states=True).token_states
    assert states is not None
    assert len(states.ids) == 7
    plain = loaded(tiny, normalise=False).encode(TEXTS).vectors
    assert not np.allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-2)


def test_a_fingerprint_tells_models_apart_and_copies_not(tiny: Path, tmp_path: Path) -> None:
    same = tiny_model(tmp_path / "same")
    other = tiny_model(tmp_path / "other", seed=2)
    assert fingerprint(tiny) == fingerprint(same) == loaded(same).fingerprint
    assert fingerprint(tiny) != fingerprint(other)


class Weights(Encoder):
    """An encoder of so many bytes; its model's name is the number, or `broken`."""

    loads: list[str] = []  # noqa: RUF012 - shared on purpose, cleared by the fixture
    seconds = 0.0

    def load(self) -> None:
        time.sleep(self.seconds)
        if self._place == "broken":
            raise OSError("no such\nmodel")
        self.loads.append(self._place)

    @property
    def nbytes(self) -> int:
        return int(self._place)


@pytest.fixture
def pool() -> EncoderPool:
    Weights.loads.clear()
    Weights.seconds = 0.0
    defined = {name: EncoderDefinition(model=model) for name, model in
               {"a": "40", "b": "40", "c": "40", "large": "90", "gone": "broken"}.items()}  # fmt: skip
    defined["huge"] = EncoderDefinition(model="1000", parameters=1_000)
    return EncoderPool(defined, max_bytes=100, choose=lambda *_: FP32, make=Weights)


def in_memory(pool: EncoderPool) -> list[str]:
    return [*pool._pinned, *pool._loaded]


def test_models_are_loaded_when_asked_for_and_shared(pool: EncoderPool) -> None:
    assert in_memory(pool) == []
    assert pool.get("a") is pool.get("a")
    assert pool.get("a").name == "a"
    assert Weights.loads == ["40"]


def test_what_was_unused_longest_makes_room(pool: EncoderPool) -> None:
    first = pool.get("a")
    pool.get("b")
    pool.get("a")
    pool.get("c")
    assert in_memory(pool) == ["a", "c"]
    assert pool.get("a") is first
    pool.get("large")
    assert in_memory(pool) == ["large"]


def test_what_can_never_fit_is_refused_before_it_is_read(pool: EncoderPool) -> None:
    pool.get("a")
    with pytest.raises(EncoderFailure, match="huge needs"):
        pool.get("huge")
    assert in_memory(pool) == ["a"]
    assert Weights.loads == ["40"]


def test_a_model_that_cannot_be_had_is_named_on_one_line(pool: EncoderPool) -> None:
    with pytest.raises(EncoderFailure, match="gone cannot be loaded: no such model"):
        pool.get("gone")
    with pytest.raises(UnknownEncoder, match="'none'; there are a, b, c"):
        pool.get("none")


def test_a_pinned_encoder_stays_and_is_shared(pool: EncoderPool) -> None:
    own = Weights("500", precision=FP32)
    pool.pin("own", own)
    pool.get("large")
    pool.get("c")
    assert pool.get("own") is own
    assert in_memory(pool) == ["own", "c"]


def test_two_that_want_it_at_once_load_it_once(pool: EncoderPool) -> None:
    Weights.seconds = 0.05
    with ThreadPoolExecutor(4) as threads:
        encoders = list(threads.map(pool.get, ["a"] * 4))
    assert Weights.loads == ["40"]
    assert len({id(encoder) for encoder in encoders}) == 1
