"""How likely a model's statement is right, by the probabilities of its tokens.

Kadavath et al. 2022, "Language models (mostly) know what they know": what a model writes with confidence is more often
right. Weights are fitted on questions about tables that it was never taught (`docs/notebook.md`).
"""

import math
from collections.abc import Sequence

from services.kit.llm import Sample

NO_TABLE = "NONE"  # what a model says that finds no table for a question
# From this probability of it on it says so, and a statement that it is made to write all the same is for a reader.
SURE = 0.9
# From this probability on a statement is more likely right than what would be refused for a doubt about its words.
LIKELY = 0.8
_CONSTANT, _MEAN, _NONE = 2.7, 15.6, -1.8


def says_no_table(sample: Sample) -> bool:
    """Whether a reply is that no table answers the question."""
    return sample.text.strip().upper().startswith(NO_TABLE)


def of_no_table(sample: Sample) -> float:
    """The probability that no table answers, by the first token of a reply; 0 without log-probabilities."""
    if not sample.token_logprobs:
        return 0.0
    first = math.exp(sample.token_logprobs[0])
    return first if says_no_table(sample) else 1.0 - first


def certainty(none: float, logprobs: Sequence[float]) -> float | None:
    """The probability that a statement is right; None without log-probabilities.

    Args:
        none: the probability that the model says instead that no table answers, see `of_no_table`.
        logprobs: those of the statement's tokens, in nats.
    """
    if not logprobs:
        return None
    if none >= SURE:
        return 0.0
    score = _CONSTANT + _MEAN * sum(logprobs) / len(logprobs) + _NONE * none
    return 1.0 / (1.0 + math.exp(-score))
