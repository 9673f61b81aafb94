"""How likely a model's statement is right, by the probabilities of its tokens.

Kadavath et al. 2022, "Language models (mostly) know what they know": what a model writes at every step with
confidence is more often right. Weights are fitted on questions about tables that it was never taught
(`docs/notebook.md`).
"""

import math
from collections.abc import Sequence

from services.kit.llm import Sample

NO_TABLE = "NONE"  # what a model says that finds no table for a question
# Of a probability no more is made of than this many nats.
_MOST = 6.0
_CONSTANT, _MEAN, _LEAST, _NONE = 3.0, 4.0, 1.0, -0.2


def says_no_table(sample: Sample) -> bool:
    """Whether a reply is that no table answers the question."""
    return sample.text.strip().upper().startswith(NO_TABLE)


def of_no_table(sample: Sample) -> float:
    """The probability that no table answers, by the first token of a reply; 0 without log-probabilities."""
    if not sample.token_logprobs:
        return 0.0
    first = math.exp(sample.token_logprobs[0])
    return first if says_no_table(sample) else 1.0 - first


def certainty(none: float, logprobs: Sequence[float]) -> float:
    """The probability that a statement is right; 0 without log-probabilities.

    Args:
        none: the probability that the model says instead that no table answers, see `of_no_table`.
        logprobs: those of the statement's tokens, in nats.
    """
    if not logprobs:
        return 0.0
    odds = math.log(max(none, 1e-9) / max(1.0 - none, 1e-9))
    score = _CONSTANT + _MEAN * sum(logprobs) / len(logprobs) + _LEAST * max(min(logprobs), -_MOST)
    return 1.0 / (1.0 + math.exp(-score - _NONE * max(-_MOST, min(odds, _MOST))))
