"""MaxSim finds each word of the query where a passage says it best."""

import numpy as np

from services.kit.encoder import Encoder, TokenStates
from services.kit.late_interaction import maxsim


def states(encoder: Encoder, *texts: str) -> TokenStates:
    token_states = encoder.encode(texts, keep_token_states=True).token_states
    assert token_states is not None
    return token_states


def test_the_passage_that_says_it_scores_best(encoder: Encoder) -> None:
    query = states(encoder, "when was K2 first climbed?")
    passages = states(
        encoder, "Cats sleep a lot.", "K2 was first climbed on 31 July 1954.", "K2 is a mountain in Pakistan."
    )
    scores = maxsim(query, passages)
    assert scores.shape == (3,)
    assert list(np.argsort(-scores)) == [1, 2, 0]
    assert (np.abs(scores) <= 1 + 1e-5).all()


def test_it_is_the_weighted_mean_of_each_tokens_best_cosine() -> None:
    axes = np.eye(4, dtype=np.float32)
    ids = np.array([101, 7, 8, 102])
    query = TokenStates(axes, ids, np.array([0, 4]))
    both = TokenStates(axes[[1, 2, 1]], np.array([7, 8, 7]), np.array([0, 2, 3]))
    rare, common = np.log(1 + 1.5 / 1.5), np.log(1 + 0.5 / 2.5)
    assert np.allclose(maxsim(query, both), [1, common / (rare + common)])


def test_a_query_of_special_tokens_alone_and_no_passages(encoder: Encoder) -> None:
    query = states(encoder, "")
    assert np.isfinite(maxsim(query, states(encoder, "anything", ""))).all()
    empty = encoder.encode([], keep_token_states=True).token_states
    assert empty is not None
    assert maxsim(query, empty).shape == (0,)
