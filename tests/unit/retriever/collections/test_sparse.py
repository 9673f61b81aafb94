"""Dot products of sparse vectors are BM25's scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from services.kit.lexical import bm25, stems
from services.retriever.collections.sparse import (
    DOCUMENT_LENGTH,
    MIN_SAMPLE,
    average_length,
    passage_vector,
    query_vector,
    term_index,
)

TEXTS = [
    "The lighthouse stands on the northern mole and was built of granite.",
    "Granite, granite, granite: the quarry sells little else, and the lighthouse keeper knows it.",
    "A bakery sells rye bread and a plum cake that people travel for, and has done so for four generations.",
    "Bread.",
    "Ships with barrels of herring wait in the harbour.",
]


def test_qdrants_scores_are_those_of_bm25() -> None:
    words = stems(TEXTS)
    length = float(np.mean([len(text) for text in words]))
    client = QdrantClient(":memory:")
    client.create_collection(
        "c", vectors_config={}, sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)}
    )
    points = [models.PointStruct(id=i, vector={"bm25": passage_vector(text, length)}) for i, text in enumerate(words)]
    client.upsert("c", points)
    for query in ("who sells granite?", "plum bread", "herring in the harbour"):
        terms = stems([query])[0]
        expected = bm25(terms, words)
        hits = client.query_points("c", query=query_vector(terms), using="bm25", limit=10).points
        assert {int(point.id) for point in hits} == set(np.flatnonzero(expected))
        scores = np.asarray([point.score for point in hits])
        # Ours is divided by a bound that is the same for all passages.
        ratio = scores / np.asarray([expected[int(point.id)] for point in hits])
        assert ratio == pytest.approx(np.full(len(ratio), ratio[0]), rel=1e-4)
    client.close()


def test_a_repeated_word_of_the_query_counts_again() -> None:
    once, twice = query_vector(("granit", "bread")), query_vector(("granit", "bread", "granit"))
    weights = dict(zip(twice.indices, twice.values, strict=True))
    assert once.indices == twice.indices
    assert weights == {term_index("granit"): 2.0, term_index("bread"): 1.0}
    assert query_vector(()).indices == []


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.text(min_size=1, max_size=8), max_size=40), st.floats(1, 1_000))
def test_values_are_shares_of_distinct_terms(words: list[str], length: float) -> None:
    vector = passage_vector(tuple(words), length)
    assert len(vector.indices) == len(set(vector.indices)) == len({term_index(word) for word in words})
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert all(0 < value < 1 for value in vector.values)


def test_terms_keep_their_index_for_ever() -> None:
    # Collections on disk hold these.
    assert term_index("granit") == 487111252
    assert term_index("") == 634351890


def test_few_documents_say_little_of_the_average() -> None:
    assert average_length([10] * (MIN_SAMPLE - 1)) == DOCUMENT_LENGTH
    assert average_length([10] * MIN_SAMPLE) == 10
    assert average_length([0] * MIN_SAMPLE) == 1
