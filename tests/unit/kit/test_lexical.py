"""BM25 is bm25s's, on a scale that queries share."""

import unicodedata

import bm25s
import numpy as np
import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from services.kit.lexical import Stems, bm25, stems

DOCUMENTS = [
    "K2 is the second-highest mountain on Earth.",
    "The mountain was first climbed in 1954; climbing it is hard.",
    "Cats sleep for most of the day.",
    "",
]


def test_scores_are_in_proportion_to_those_of_bm25s() -> None:
    documents = stems(DOCUMENTS)
    (query,) = stems(["who first climbed the mountain"])
    index = bm25s.BM25()
    index.index([list(document) for document in documents], show_progress=False)
    reference = index.get_scores([term for term in query if any(term in document for document in documents)])
    ours = bm25(query, documents)
    assert ours[1] > 0
    assert np.allclose(ours / ours[1], reference / reference[1], atol=1e-5)


def test_words_meet_by_their_stems_and_stop_words_do_not_count() -> None:
    (query, document) = stems(["The climbers are climbing", "he climbed"])
    assert "climb" in query
    assert "the" not in query
    assert bm25(query, [document])[0] > 0


@pytest.mark.parametrize("query", ["", "the of and", "🏔️", "?", "zzzz"])
def test_a_query_without_known_words_scores_nothing(query: str) -> None:
    assert list(bm25(stems([query])[0], stems(DOCUMENTS))) == [0, 0, 0, 0]
    assert (stems([]), bm25(("climb",), []).shape) == ([], (0,))


@given(st.text(st.characters(codec="ascii") | st.sampled_from("’“–…\xa0"), max_size=200))
def test_tokens_of_english_are_those_of_bm25s(text: str) -> None:
    stemmer = Stemmer.Stemmer("english")
    reference = bm25s.tokenize([text], stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
    assert stems([text]) == [tuple(reference[0])]


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("Malaga", "the harbour of Málaga"),
        (unicodedata.normalize("NFD", "Málaga"), "the harbour of Málaga"),
        ("office", "the oﬃce"),
        ("2024", "２０２４年の予算"),
        ("カタカナ", "ｶﾀｶﾅ"),
        ("İstanbul", "istanbul"),
        ("οδος", "ΟΔΌΣ"),
        ("ёлка", "елка"),
        ("برج", "بُرْجُ القَاهِرَةِ"),
        ("בראשית", "בְּרֵאשִׁית בָּרָא"),
        ("谁建造了灯塔？", "这座灯塔由玛尔塔于1864年建造。"),
        ("佐々木は誰", "灯台は佐々木が建てた。"),
        ("등대를 누가", "그 등대는 높다"),
        ("दिल्ली", "दिल्ली भारत की राजधानी है"),
        ("ประภาคารอยู่ที่ไหน", "เขาสร้างประภาคาร"),
    ],
)
def test_words_of_other_scripts_meet(query: str, passage: str) -> None:
    question, *passages = stems([query, passage, "", "another harbor", "别的书", "다른 책", "दूसरी किताब", "หนังสือ"])
    scores = bm25(question, passages)
    assert scores[0] > 0
    assert not scores[1:].any()


def test_what_stands_beside_a_word_does_not_grow_into_it() -> None:
    assert stems(["Cragmesh™ needs 12½ cups"]) == stems(["Cragmesh needs 12 cups"])


@pytest.mark.parametrize(("text", "tokens"), [("灯塔很", ("灯塔", "塔很")), ("दिल्ली", ("दिल्ली",)), ("山", ())])
def test_pairs_of_letters_are_the_words_of_unspaced_scripts(text: str, tokens: Stems) -> None:
    assert stems([text]) == [tokens]


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(tuple)


@settings(max_examples=50, deadline=None)
@given(query=words, documents=st.lists(words, min_size=1, max_size=6))
def test_scores_stay_within_the_bound(query: Stems, documents: list[Stems]) -> None:
    scores = bm25(query, documents)
    assert scores.min() >= 0
    assert scores.max() <= 1
