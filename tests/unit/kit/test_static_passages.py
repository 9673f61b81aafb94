"""Passages as sums of their tokens' vectors find what whole ones find, and cost a look-up."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from services.kit.encoder import Encoder, Floats
from services.kit.encoders import definitions
from services.kit.static_passages import FREQUENT, StaticPassages
from services.retriever.collections.schema import EncoderRecord
from tests.unit.conftest import FP32
from tests.unit.kit.tiny import tiny_model

NAME = "all-MiniLM-L6-v2-static"
PASSAGES = [
    "The lighthouse of Port Ansel was designed by Ada Moor and first lit in 1864.",
    "Herring is sold at the quay from four in the morning on.",
    "The railway across the moor was closed for want of passengers.",
    "Members of the choir elect a treasurer each spring.",
    "Glaze is mixed with water and sieved twice before a pot is dipped.",
]
QUESTIONS = [
    "who was the architect of the lighthouse?",
    "when can I buy fish?",
    "why is there no train any more?",
    "how often do singers choose who keeps the money?",
    "how are pots glazed?",
]


@pytest.fixture(scope="module")
def static() -> Encoder:
    encoder = Encoder("", precision=FP32, usage=definitions()[NAME])
    encoder.load()
    return encoder


@pytest.fixture
def tiny(tmp_path: Path) -> StaticPassages:
    encoder = Encoder(str(tiny_model(tmp_path / "tiny")), precision=FP32)
    encoder.load()
    return StaticPassages(encoder._loaded())


def test_a_question_finds_its_passage(static: Encoder) -> None:
    scores = static.encode_queries(QUESTIONS) @ static.encode_passages(PASSAGES).T
    assert list(scores.argmax(axis=1)) == list(range(len(PASSAGES)))


def test_queries_are_read_whole_and_passages_are_not(static: Encoder, encoder: Encoder) -> None:
    whole, turned = "a dog bites a man", "a man bites a dog"
    assert np.allclose(static.encode_queries([whole]), encoder.encode_queries([whole]), atol=1e-5)
    one, other = static.encode_passages([whole, turned])
    assert np.allclose(one, other, atol=1e-6)
    read = encoder.encode_passages([whole, turned])
    assert not np.allclose(read[0], read[1], atol=1e-3)


def test_a_word_is_its_token_read_alone_less_the_mean_of_frequent_words(static: Encoder, encoder: Encoder) -> None:
    def states(ids: Iterable[int]) -> Floats:
        alone = np.array([[101, id_, 102] for id_ in ids])
        states = encoder._loaded().run(alone, np.ones_like(alone), keep_states=True).states
        assert states is not None
        return states[:, 1]

    frequent = states(range(1996, 1996 + FREQUENT))
    expected = states([encoder._loaded().tokenizer.get_vocab()["lighthouse"]])[0] - frequent.mean(axis=0)
    (vector,) = static.encode_passages(["lighthouse"])
    assert vector @ expected / np.linalg.norm(expected) == pytest.approx(1, abs=1e-4)


def test_a_rare_word_weighs_more_than_a_frequent_one(static: Encoder) -> None:
    both, frequent, rare = static.encode_passages(["the lighthouse", "the", "lighthouse"])
    assert both @ rare > 2 * both @ frequent


def test_texts_without_words_have_vectors(static: Encoder) -> None:
    vectors = static.encode_passages(["", "\u200b", "🏔️", "the " * 2_000])
    assert np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert static.encode_passages([]).shape == (0, static.dimension)


def test_vectors_are_the_same_in_whichever_order_tokens_come(tmp_path: Path, tiny: StaticPassages) -> None:
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: tiny.encode([text])[0], PASSAGES * 4))
    assert np.allclose(rows[: len(PASSAGES)], tiny.encode(PASSAGES), atol=1e-5)
    assert np.allclose(rows[: len(PASSAGES)], rows[-len(PASSAGES) :], atol=1e-5)


def test_a_collection_of_the_one_is_none_of_the_other(static: Encoder, encoder: Encoder) -> None:
    assert static.fingerprint == encoder.fingerprint
    assert not EncoderRecord.of(static).matches(EncoderRecord.of(encoder))
    assert "static" in str(EncoderRecord.of(static))
