"""Rankings order what pages hold, whatever the query and however odd the pages."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from services.kit.encoder import Encoded, Encoder
from services.retriever import ranking
from services.retriever.corpus import SearchablePage
from services.retriever.pages import PageOptions, process_page
from services.retriever.ranking import RANKINGS, Candidates, Hit, rank

K2 = "K2 was first climbed on 31 July 1954 by Lino Lacedelli and Achille Compagnoni."
TEXTS = [
    "Mount Everest was first climbed in 1953 by Edmund Hillary and Tenzing Norgay.",
    K2,
    "The domestic cat sleeps for twelve to sixteen hours of each day, more than most mammals.",
    "Bread is baked from flour, water, salt and yeast; sourdough needs no yeast but patience.",
]
QUERY = "when was K2 first climbed?"


class CountingEncoder(Encoder):
    """The encoder, counting texts that it was asked to encode beside queries."""

    def __init__(self, encoder: Encoder) -> None:
        self.__dict__.update(encoder.__dict__)
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], *, keep_token_states: bool = False) -> Encoded:
        self.encoded += texts
        return super().encode(texts, keep_token_states=keep_token_states)


def page(texts: Sequence[str]) -> SearchablePage:
    html = "<html><body><main>" + "".join(f"<p>{text}</p>" for text in texts) + "</main></body></html>"
    return SearchablePage(process_page(html, PageOptions()))


def texts_of(hits: Sequence[Hit], pages: Sequence[SearchablePage]) -> list[str]:
    return [pages[hit.page].children[hit.child].text for hit in hits]


each_ranking = pytest.mark.parametrize("name", RANKINGS)


@each_ranking
def test_every_ranking_finds_the_answer(name: str, encoder: Encoder) -> None:
    pages = [page(TEXTS[:1] + TEXTS[2:]), page(TEXTS[1:])]
    hits = rank(QUERY, pages, encoder, ranking=name, recall_k=10)
    assert "Lacedelli" in texts_of(hits, pages)[0]
    assert all(first.score >= second.score for first, second in pairwise(hits))


@each_ranking
@pytest.mark.parametrize("query", ["the of and", "🏔️", "?", "x", "K2 " * 400])
def test_odd_queries_are_ranked_all_the_same(name: str, query: str, encoder: Encoder) -> None:
    pages = [page(TEXTS)]
    hits = rank(query, pages, encoder, ranking=name, recall_k=10)
    assert len(hits) == len(pages[0].children)
    assert np.isfinite([hit.score for hit in hits]).all()


@each_ranking
def test_equal_texts_are_one_and_of_none_there_is_none(name: str, encoder: Encoder) -> None:
    hits = rank(QUERY, [page([K2]), page([K2])], encoder, ranking=name, recall_k=10)
    assert [(hit.page, hit.child) for hit in hits] == [(0, 0)]
    assert rank(QUERY, [], encoder, ranking=name, recall_k=10) == []
    assert rank(QUERY, [page([])], encoder, ranking=name, recall_k=10) == []


def test_ties_keep_the_order_of_pages_up_to_recall_k(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RANKINGS, "dense", lambda candidates: np.zeros_like(candidates.dense))
    pages = [page(TEXTS[2:3]), page(TEXTS[3:])]
    for recall_k, order in ((10, [0, 1]), (1, [0])):
        hits = rank("zzzz", pages, encoder, ranking="dense", recall_k=recall_k)
        assert [hit.page for hit in hits] == order


def test_repeated_ranking_embeds_nothing_again(encoder: Encoder) -> None:
    counting = CountingEncoder(encoder)
    pages = [page(TEXTS)]
    first = rank(QUERY, pages, counting, ranking="default", recall_k=10)
    children = len(pages[0].children)
    assert len(counting.encoded) == 1 + children
    again = rank(QUERY, pages, counting, ranking="default", recall_k=10)
    assert len(counting.encoded) == 2 + children
    # Cached token states are in half precision.
    assert [hit.child for hit in again] == [hit.child for hit in first]
    assert np.allclose([hit.score for hit in again], [hit.score for hit in first], atol=2e-3)


def test_late_interaction_embeds_again_only_what_dense_left_without_states(encoder: Encoder) -> None:
    counting = CountingEncoder(encoder)
    pages = [page(TEXTS)]
    rank(QUERY, pages, counting, ranking="dense", recall_k=10)
    assert not pages[0].states
    counting.encoded.clear()
    rank(QUERY, pages, counting, ranking="default", recall_k=10)
    assert sorted(counting.encoded) == sorted([QUERY, *(chunk.text for chunk in pages[0].children)])


def test_the_prefilter_bounds_what_is_embedded(encoder: Encoder) -> None:
    counting = CountingEncoder(encoder)
    pages = [page(TEXTS + [f"{text} Again, {n}." for n in range(8) for text in TEXTS])]
    hits = rank(QUERY, pages, counting, ranking="dense", recall_k=2, prefilter=3)
    assert len(counting.encoded) == 1 + 3
    assert "K2" in texts_of(hits, pages)[0]


def test_where_no_word_matches_the_beginnings_of_all_pages_are_embedded(encoder: Encoder) -> None:
    pages = [page([f"{text} Take {n}." for n in range(9) for text in TEXTS]), page(TEXTS[::-1])]
    rank("zzzz", pages, encoder, ranking="dense", recall_k=4, prefilter=4)
    assert [len(page.vectors) for page in pages] == [2, 2]


def test_fields_of_a_page_match_for_its_chunks(encoder: Encoder) -> None:
    pages = [page(TEXTS[2:3]), page(TEXTS[3:])]
    for fields, best in ((["K2 sourdough", "other"], 0), ([], 1)):
        (hit,) = rank("sourdough K2", pages, encoder, ranking="dense", recall_k=1, prefilter=1, fields=fields)
        assert hit.page == best


def test_hybrid_puts_the_best_of_both_first() -> None:
    count = 40
    dense = np.linspace(1, 0, count, dtype=np.float32)
    lexical = np.linspace(0, 1, count, dtype=np.float32)
    scores = RANKINGS["hybrid"](Candidates(lexical, dense, lambda _: np.zeros(0, np.float32)))
    best = set(np.argsort(-scores)[:25].tolist())
    assert best == {*range(ranking.HYBRID_DENSE), *range(count - ranking.HYBRID_SPARSE, count)}


def test_what_late_interaction_did_not_see_comes_after_what_it_did() -> None:
    count = ranking.LATE_POOL + 5
    dense = np.linspace(1, -1, count, dtype=np.float32)
    pool: list[int] = []

    def late(indexes: Sequence[int]) -> ranking.Scores:
        pool.extend(indexes)
        return np.full(len(indexes), -1, np.float32)

    scores = RANKINGS["default"](Candidates(np.zeros(count, np.float32), dense, late))
    assert pool == list(range(ranking.LATE_POOL))
    assert scores[: ranking.LATE_POOL].min() > scores[ranking.LATE_POOL :].max()
