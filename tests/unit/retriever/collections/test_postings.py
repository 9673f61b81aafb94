"""Postings find what Qdrant's local mode finds, whatever was replaced and removed before."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from services.retriever.collections.postings import Postings

WORDS = st.dictionaries(st.integers(0, 12), st.floats(0.125, 1, width=16), min_size=1, max_size=6)
QUERY = st.dictionaries(st.integers(0, 14), st.sampled_from([1.0, 2.0]), min_size=1, max_size=5)
STEPS = st.lists(st.tuples(st.integers(0, 7), st.none() | WORDS), min_size=1, max_size=30)


def sparse(words: dict[int, float]) -> models.SparseVector:
    return models.SparseVector(indices=sorted(words), values=[words[index] for index in sorted(words)])


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, query=QUERY)
def test_scores_are_qdrants(steps: list[tuple[int, dict[int, float] | None]], query: dict[int, float]) -> None:
    postings = Postings()
    client = QdrantClient(":memory:")
    client.create_collection(
        "c", vectors_config={}, sparse_vectors_config={"w": models.SparseVectorParams(modifier=models.Modifier.IDF)}
    )
    for point, words in steps:
        if words is None:
            client.delete("c", models.PointIdsList(points=[point]))
            postings.drop(str(point))
        else:
            client.upsert("c", [models.PointStruct(id=point, vector={"w": sparse(words)})])
            postings.put(str(point), sparse(words))
    expected = {
        str(point.id): point.score
        for point in client.query_points("c", query=sparse(query), using="w", limit=20).points
    }
    client.close()
    hits = postings.search(sparse(query), 20)
    assert dict(hits) == pytest.approx(expected, rel=1e-4)
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    assert len(postings) == len({point for point, _ in steps} - _gone(steps))


def _gone(steps: list[tuple[int, dict[int, float] | None]]) -> set[int]:
    last = dict(steps)
    return {point for point, words in last.items() if words is None}


def test_the_best_are_kept_and_ties_stay_in_order() -> None:
    postings = Postings()
    for number in range(50):
        postings.put(f"p{number}", sparse({1: 0.25 + (number % 5) / 8}))
    assert [point for point, _ in postings.search(sparse({1: 1.0}), 12)] == [
        *(f"p{number}" for number in range(4, 50, 5)),
        "p3",
        "p8",
    ]
    assert postings.search(sparse({2: 1.0}), 5) == []


def test_what_is_dead_is_counted() -> None:
    postings = Postings()
    for _ in range(3):
        postings.put("a", sparse({1: 1.0}))
    postings.drop("a")
    postings.drop("never there")
    assert (len(postings), postings.dead) == (0, 3)
    assert postings.search(sparse({1: 1.0}), 5) == []
