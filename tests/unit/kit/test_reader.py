"""The extractive reader: windows, spans, probabilities, and what it does with texts that nobody means well with."""

import json
import math
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from services.kit.backend import Floats
from services.kit.encoder import fingerprint
from services.kit.precision import choose_precision
from services.kit.reader import (
    CARD,
    MAX_SPAN_CHARS,
    MAX_SPAN_TOKENS,
    WEIGHTS,
    Card,
    Layout,
    NoReader,
    Reader,
    Reading,
    Span,
    Text,
    Tokens,
    Window,
    reading,
    shares,
)
from tests.unit.kit.tiny import WIDTH, tiny_model

PRECISION = choose_precision("fp32", device="cpu", threads=1)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("base") / "tiny")


def save(folder: Path, base: Path, tensors: dict[str, Any] | None = None, **card: Any) -> Path:
    """Weights of a reader that knows nothing: a random head, and an adapter of one layer."""
    random = np.random.default_rng(3)
    default: dict[str, Any] = {
        "head.weight": random.normal(size=(3, WIDTH)).astype(np.float32),
        "head.bias": np.zeros(3, np.float32),
        "encoder.layer.0.attention.self.query.a": random.normal(size=(2, WIDTH)).astype(np.float16),
        "encoder.layer.0.attention.self.query.b": random.normal(size=(WIDTH, 2)).astype(np.float16),
    }
    folder.mkdir(parents=True)
    safetensors.numpy.save_file(tensors or default, folder / WEIGHTS)
    (folder / CARD).write_text(Card(base=fingerprint(base), **card).model_dump_json())
    return folder


@pytest.fixture(scope="module")
def reader(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(save(tmp_path_factory.mktemp("reader") / "weights", base), PRECISION, base)


def laid_out(base: Path, text: str, title: str = "", **bounds: int) -> tuple[Tokens, list[Window]]:
    """A passage's tokens, and its windows behind a question."""
    layout = Layout(base, **bounds)
    question, head, passage = layout.tokens(["who is it?", title, text])
    return passage, layout.windows(question, head, passage)


def test_windows_cover_a_passage_and_begin_with_question_and_title(base: Path) -> None:
    words = " ".join(f"word{number}" for number in range(100))
    passage, windows = laid_out(base, words, "A title", max_tokens=64, overlap=16)
    covered = [set(range(one.at, one.at + len(one) - one.first - 1)) for one in windows]
    assert set().union(*covered) == set(range(len(passage)))
    assert all(len(one & other) >= 16 for one, other in pairwise(covered))
    assert all(len(one) <= 64 for one in windows)
    heads = {tuple(one.ids[: one.first]) for one in windows}
    assert len(heads) == 1
    for one in windows:
        assert list(one.ids[one.first : -1]) == list(passage.ids[one.at : one.at + len(one) - one.first - 1])


def test_a_passage_without_words_has_no_window(base: Path, reader: Reader) -> None:
    assert laid_out(base, " \n\t")[1] == []
    assert reader.read("who?", [Text("")]) == [Reading()]
    assert shares([Reading()]) == ([[]], 1.0)


def test_control_tokens_in_a_text_are_letters(base: Path) -> None:
    tokens, (window,) = laid_out(base, "the end [SEP] [CLS] [PAD] of it")
    assert not {window.ids[0], window.ids[-1], 0} & set(tokens.ids)


def values(window: Window, **at: tuple[int, float]) -> Floats:
    """A head's values: nothing but what is said of single tokens of the passage."""
    result = np.full((len(window), 3), -5.0, np.float32)
    result[0, 2] = 0.0
    for name, (token, value) in at.items():
        result[window.first + token - window.at, {"begin": 0, "end": 1}[name]] = value
    return result


def test_a_span_has_its_odds_and_those_that_overlap_it(base: Path) -> None:
    passage, (window,) = laid_out(base, "Marta Lindqvist designed the old tower")
    last = next(index for index in range(len(passage)) if passage.ends[index] == len("Marta Lindqvist"))
    result = reading(passage, [(window, values(window, begin=(0, 6.0), end=(last, 6.0)))], 3, 1.0)
    best = result.spans[0]
    assert (best.start, best.end) == (0, len("Marta Lindqvist"))
    assert best.odds == pytest.approx(12.0, abs=0.05)
    less_sure = reading(passage, [(window, values(window, begin=(0, 6.0), end=(last, 6.0)))], 1, temperature=3.0)
    assert less_sure.spans[0].odds == pytest.approx(4.0, abs=0.5)
    # No two candidates say the same place.
    for one in result.spans[1:]:
        assert one.start >= best.end
    (probabilities,), nothing = shares([result])
    assert sum(probabilities) + nothing <= 1 + 1e-9
    assert probabilities[0] > 0.99


def test_a_span_begins_and_ends_with_words(base: Path) -> None:
    text = "an unbelievably long word"
    passage, (window,) = laid_out(base, text)
    inside = next(index for index in range(len(passage)) if not passage.opens[index])
    result = reading(passage, [(window, values(window, begin=(inside, 9.0), end=(inside, 9.0)))], 5, 1.0)
    assert all(not text[: one.start].strip() or text[one.start - 1] == " " for one in result.spans)


def test_two_windows_do_not_count_a_span_twice(base: Path) -> None:
    passage, windows = laid_out(base, " ".join(["alpha"] * 80), max_tokens=64, overlap=40)
    place = windows[1].at + 2
    both = [
        (one, values(one, begin=(place, 4.0), end=(place, 4.0))) for one in windows[:2] if place < one.at + len(one)
    ]
    assert len(both) == 2
    once = reading(passage, both[:1], 1, 1.0).spans[0]
    twice = reading(passage, both, 1, 1.0).spans[0]
    assert (once.start, once.end) == (twice.start, twice.end)
    assert twice.odds == pytest.approx(once.odds, abs=0.1)


def test_probabilities_are_shared_among_passages() -> None:
    readings = [Reading((Span(0, 1, 3.0),), 3.0), Reading((Span(0, 1, 3.0),), 3.0), Reading()]
    probabilities, nothing = shares(readings)
    assert probabilities[0] == probabilities[1] == pytest.approx([math.exp(3) / (1 + 2 * math.exp(3))])
    assert nothing == pytest.approx(1 / (1 + 2 * math.exp(3)))


def test_a_passage_reads_the_same_alone_and_in_company(reader: Reader) -> None:
    passages = [Text("The tower was built in 1864 by Marta.", "Tower"), Text("Bread " * 60), Text("a")]
    together = reader.read("who built it?", passages)
    for passage, one in zip(passages, together, strict=True):
        (alone,) = reader.read("who built it?", [passage])
        assert [(span.start, span.end) for span in alone.spans] == [(span.start, span.end) for span in one.spans]
        assert alone.odds == pytest.approx(one.odds, abs=1e-3)


def test_the_title_is_read_and_never_answers(reader: Reader) -> None:
    text = "It was built in 1864."
    (plain,), (titled,) = (reader.read("what?", [Text(text, title)]) for title in ("", "The tower of Marta"))
    assert plain.odds != titled.odds
    assert all(span.end <= len(text) for span in titled.spans)


HOSTILE = {
    "nothing": "",
    "controls": "".join(map(chr, range(32))) + "\x7f\u2028\ufeff",
    "right to left": "\u202eולדת בשנת 1864 مرحبا " * 50,
    "one word": "x" * 20_000,
    "no spaces": "為" * 20_000,
    "surrogates": "\U0001f600" * 3_000,
    "tokens": "[CLS] [SEP] [MASK] [UNK] [PAD] " * 400,
    "digits": "1,000.5% " * 2_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_read_as_texts(reader: Reader, text: str) -> None:
    (result,) = reader.read(text[:2_000] or "?", [Text(text, text[:2_000])])
    assert all(0 <= span.start < span.end <= len(text) for span in result.spans)
    assert all(span.end - span.start <= MAX_SPAN_CHARS for span in result.spans)
    (probabilities,), nothing = shares([result])
    assert all(0 <= probability <= 1 for probability in [*probabilities, nothing])


def test_what_there_is_no_time_for_is_not_read(reader: Reader) -> None:
    result = reader.read("who?", [Text("Marta built it.")] * 3, until=time.monotonic() - 1)
    assert [one.complete for one in result] == [False] * 3
    assert shares(result)[1] == 1.0


def test_a_text_of_too_many_windows_is_cut_and_says_so(reader: Reader) -> None:
    long, short = reader.read("who?", [Text("為" * 20_000), Text("short")])
    assert (long.complete, short.complete) == (False, True)


def test_no_span_is_longer_than_it_may_be(reader: Reader) -> None:
    (result,) = reader.read("who?", [Text("a " * 400)], spans=10)
    assert all(span.end - span.start <= 2 * MAX_SPAN_TOKENS for span in result.spans)


def test_missing_damaged_and_foreign_weights_are_named(base: Path, tmp_path: Path) -> None:
    foreign, cut = save(tmp_path / "foreign", base), save(tmp_path / "cut", base)
    card = json.loads((foreign / CARD).read_text())
    (foreign / CARD).write_text(json.dumps(card | {"base": "0" * 16}))
    (cut / WEIGHTS).write_bytes((cut / WEIGHTS).read_bytes()[:100])
    headless = save(tmp_path / "headless", base, {"other": np.zeros(3, np.float32)})
    for weights in (tmp_path / "none", foreign, cut, headless):
        with pytest.raises(NoReader, match="another encoder" if weights is foreign else "cannot be read"):
            Reader(weights, PRECISION, base)


def test_the_adapter_changes_what_is_read(base: Path, reader: Reader, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    head = {"head.weight": random.normal(size=(3, WIDTH)).astype(np.float32), "head.bias": np.zeros(3, np.float32)}
    name = "encoder.layer.1.output.dense"
    adapter = {
        f"{name}.a": random.normal(size=(2, 2 * WIDTH)).astype(np.float32),
        f"{name}.b": random.normal(size=(WIDTH, 2)).astype(np.float32),
    }
    plain = Reader(save(tmp_path / "plain", base, head), PRECISION, base)
    changed = Reader(save(tmp_path / "changed", base, head | adapter), PRECISION, base)
    text = [Text("Marta built the tower.")]
    ((_, one),), ((_, other),) = plain.values("who?", text), changed.values("who?", text)
    assert not np.allclose(one[0][1], other[0][1], atol=0.1)
