"""BM25 is bm25s's, on a scale that queries share."""

import bm25s
import numpy as np
import pytest
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


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(tuple)


@settings(max_examples=50, deadline=None)
@given(query=words, documents=st.lists(words, min_size=1, max_size=6))
def test_scores_stay_within_the_bound(query: Stems, documents: list[Stems]) -> None:
    scores = bm25(query, documents)
    assert scores.min() >= 0
    assert scores.max() <= 1
