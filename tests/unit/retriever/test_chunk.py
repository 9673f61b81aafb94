"""Text to chunks: slices of the text, whatever the chunker."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from services.retriever.chunk import (
    CHUNKERS,
    Chunker,
    Chunking,
    ParentChild,
    Passages,
    SentenceGroups,
    load_tokenizer,
    sentences,
    windows,
)

steady = settings(derandomize=True, deadline=None, max_examples=100)


def word_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer


FOLDER = TemporaryDirectory()
TOKENIZER = f"{FOLDER.name}/tokenizer.json"
word_tokenizer().save(TOKENIZER)
PIECES = (
    "Dr. Lind rowed home. ", "Why? ", "Is it far? It is.", "\n\n", "\n", "word " * 30, "x" * 450, "日本語です。\t",
)  # fmt: skip
texts = st.one_of(st.text(max_size=500), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
each_chunker = pytest.mark.parametrize("name", CHUNKERS)


def built(name: str, parent_chars: int = 0) -> Chunker:
    return CHUNKERS[name](parent_chars, TOKENIZER)


def covered(text: str, chunking: Chunking) -> str:
    """The text with all that is in a child made blank."""
    characters = list(text)
    for child in chunking.children:
        characters[child.start : child.end] = " " * (child.end - child.start)
    return "".join(characters)


@each_chunker
@steady
@given(text=texts, parent_chars=st.sampled_from([0, 50, 500, 700, 1_000, 2_000]))
def test_chunks_are_slices_in_order_within_their_parents(name: str, text: str, parent_chars: int) -> None:
    chunking = built(name, parent_chars).chunk(text)
    for chunk in (*chunking.children, *chunking.parents):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip() != ""
        assert chunk.kind == "text"
    starts = [child.start for child in chunking.children]
    assert starts == sorted(starts) or name == "parent-child"
    for child in chunking.children:
        if child.parent is None:
            assert chunking.parents == []
        else:
            parent = chunking.parents[child.parent]
            assert parent.start <= child.start < child.end <= parent.end
    assert {child.parent for child in chunking.children} - {None} == set(range(len(chunking.parents)))


@pytest.mark.parametrize("name", ["passages", "parent-child", "tokens"])
@steady
@given(text=texts)
def test_children_cover_all_that_is_not_blank(name: str, text: str) -> None:
    assert covered(text, built(name).chunk(text)).isspace() or text == ""


@steady
@given(text=texts)
def test_sizes_are_bounded_and_passages_never_overlap(text: str) -> None:
    passages = Passages().chunk(text)
    for chunks, size in ((passages.children, 400), (passages.parents, 600)):
        assert all(len(chunk.text) <= size for chunk in chunks)
        assert all(before.end <= after.start for before, after in pairwise(chunks))
    overlapping = ParentChild().chunk(text)
    assert all(len(child.text) <= 200 for child in overlapping.children)
    assert all(len(parent.text) <= 2_000 for parent in overlapping.parents)
    assert all(len(group.text) <= 600 for group in SentenceGroups().chunk(text).children)


@each_chunker
@pytest.mark.parametrize("text", ["", " \n\t\n "])
def test_blank_texts_have_no_chunks(name: str, text: str) -> None:
    assert built(name).chunk(text) == Chunking([], [])


def test_passages_pack_whole_sentences() -> None:
    sentence = "The keeper of the lighthouse rowed home at dusk, and Dr. Lind went along. "
    text = (sentence * 30).strip()
    chunking = Passages().chunk(text)
    assert all(child.text.startswith("The keeper") and child.text.endswith("along.") for child in chunking.children)
    assert all(150 <= len(child.text) <= 240 for child in chunking.children[:-1])
    assert [parent.text.count("keeper") for parent in chunking.parents] == [6, 6, 6, 6, 6]


def test_a_passage_ends_with_its_paragraph_when_nearly_full() -> None:
    full, short = "word " * 32 + "end.", "Short one."
    chunking = Passages().chunk(f"{full}\n\n{short}\n\n{short}")
    assert [child.text for child in chunking.children] == [full, f"{short}\n\n{short}"]


def test_by_paragraphs_none_is_torn_that_fits_into_a_passage_of_its_own() -> None:
    lending = "What we lend is listed at the desk. " * 8
    broken = "I have broken my lamp. Tell the keeper. " + "You pay nothing the first time. " * 9
    text = f"{lending}\n\n{broken}If it was stolen, ring Marta.\n\nSmoking\n\nNowhere on the pier."
    torn, whole = (chunker.chunk(text).parents for chunker in (Passages(), Passages().by_paragraphs()))
    assert not any("broken" in parent.text and "Marta" in parent.text for parent in torn)
    assert [parent.text.startswith(("What we", "I have broken")) for parent in whole] == [True, True]
    assert whole[1].text.endswith("Smoking\n\nNowhere on the pier.")


def test_by_paragraphs_one_that_fits_into_no_passage_fills_what_there_is() -> None:
    text = "The lamp is lit at dusk. " * 12 + "\n\n" + "The keeper rowed home along the coast. " * 30
    chunking = Passages().by_paragraphs().chunk(text)
    assert all(len(parent.text) > 240 for parent in chunking.parents[:-1])


def test_a_giant_sentence_is_cut_between_words() -> None:
    children = Passages().chunk("word " * 200).children
    assert all(set(child.text.split()) == {"word"} for child in children)
    assert [len(child.text) for child in Passages().chunk("x" * 1_000).children] == [200] * 5


def test_parent_child_windows_overlap() -> None:
    text = " ".join(f"word{number:04}" for number in range(1_000))
    chunking = ParentChild().chunk(text)
    for chunks, size, overlap in ((chunking.parents, 2_000, 400), (chunking.children[:5], 200, 50)):
        for before, after in pairwise(chunks):
            assert size - 9 <= len(before.text) <= size
            assert overlap - 9 <= before.end - after.start <= overlap
            assert after.text.startswith("word")
    assert ParentChild.sized(700) == ParentChild(700, 140, 200, 50)


def test_sentences_longer_than_the_limit_are_truncated_and_end_their_group() -> None:
    text = "One. Two. " + "long " * 60 + "end. Four. Five. Six. Seven."
    groups = [child.text for child in SentenceGroups().chunk(text).children]
    assert groups == ["One. Two. " + ("long " * 40).strip(), "Four. Five. Six.", "Seven."]


def test_questions_are_joined_with_what_follows() -> None:
    text = "First. Second. Where is it? Here. There. Over there. Everywhere. Did it move? No. Never. Not once. At all."
    assert [child.text for child in SentenceGroups().chunk(text).children] == [
        "First. Second.",
        "Where is it? Here. There. Over there. Everywhere.",
        "Did it move? No. Never. Not once. At all.",
    ]
    long = "What is it? " + "A sentence of about fifty characters goes in here. " * 20
    first, second, *_ = SentenceGroups().chunk(long).children
    assert first.text.startswith("What is it?")
    assert 550 < len(first.text) <= 600
    assert second.text.count("goes") == 3


def test_tokens_are_counted_by_the_tokenizer() -> None:
    text = " ".join(["word"] * 1_201)
    chunks = built("tokens").chunk(text).children
    assert [len(chunk.text.split()) for chunk in chunks] == [500, 500, 201]
    assert len(built("tokens", 400).chunk(text).children[0].text.split()) == 100


def test_a_loaded_tokenizer_takes_texts_of_any_length(tmp_path: Path) -> None:
    limited = word_tokenizer()
    limited.enable_truncation(8)
    limited.enable_padding(length=16)
    path = tmp_path / "tokenizer.json"
    limited.save(str(path))
    assert len(load_tokenizer(str(path)).encode("word " * 20).ids) == 20


def test_sentences_end_at_line_breaks_and_not_at_abbreviations() -> None:
    text = "Dr. Lind left at 5 p.m. on Monday. He rowed\n  home \n\nHeading\nNo. 5 is next."
    assert [text[start:end] for start, end in sentences(text)] == [
        "Dr. Lind left at 5 p.m. on Monday.",
        "He rowed",
        "home",
        "Heading",
        "No. 5 is next.",
    ]
    assert [end for _, end in sentences("東京だ。京都だ。", "ja")] == [4, 8]
    assert list(sentences("Any. Thing.", "zz")) == [(0, 4), (5, 11)]


@steady
@given(text=texts, size=st.integers(1, 60), overlap=st.integers(0, 20))
def test_windows_cover_and_progress(text: str, size: int, overlap: int) -> None:
    spans = list(windows(text, 0, len(text), size, min(overlap, size // 2)))
    assert all(0 < end - start <= size for start, end in spans)
    assert all(before[0] < after[0] and before[1] <= after[1] for before, after in pairwise(spans))
    reached = 0
    for start, end in spans:
        assert text[reached:start].strip() == ""
        reached = max(reached, end)
    assert text[reached:].strip() == ""


@each_chunker
@pytest.mark.parametrize(
    "make",
    [lambda: "x" * 500_000, lambda: "a. " * 100_000, lambda: "a\n\n" * 100_000, lambda: " \n" * 200_000 + "x"],
    ids=["word", "sentences", "lines", "blanks"],
)
def test_megabytes_are_chunked_in_time(name: str, make: Callable[[], str]) -> None:
    start = time.process_time()
    built(name).chunk(make())
    # A quarter of a second at most; were it the square of the length it would be a minute.
    assert time.process_time() - start < 10
