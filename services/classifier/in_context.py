"""An LLM with a few demonstrations (ElectricSheep, section 4.2; WeKnow-RAG), a constrained decode a head.

A head's certainty is either the share of samples that agree (self-consistency), or the probability that one greedy
decode gave the label. A label is decoded as one of a few strings, so no reply has to be interpreted.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from services.classifier.examples import Example
from services.classifier.svm import Floats
from services.classifier.taxonomy import HEADS, Labels, Prediction
from services.kit.concurrency import all_of
from services.kit.llm import LLM, Completion, Constraint, Message
from services.kit.prompts import PromptFolder
from services.kit.untrusted import one_line

MODE = "in-context"
INSTRUCTIONS = {head: PromptFolder("services.classifier").template(head).template for head in HEADS}
DEMONSTRATIONS = 5
# The longest label has five or six tokens.
MAX_TOKENS = 12
VOTE_TEMPERATURE = 0.7
# Candidates for demonstrations of each group: enough for every kind of question, few enough to embed at start.
PER_GROUP = 3

Choice = Literal["random", "nearest"]
Consistency = Literal["logprob", "vote"]


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """Labelled questions for prompts, and their unit vectors of shape (examples, d)."""

    examples: Sequence[Example]
    vectors: Floats

    def choose(self, head: str, query: str, vector: NDArray[np.float32] | None, how: Choice) -> list[Example]:
        """Five examples with a label of that head, each of another group; the last one is the nearest."""
        labelled = [index for index, example in enumerate(self.examples) if example.label(head)]
        if how == "nearest" and vector is not None:
            similar = self.vectors @ vector
            labelled.sort(key=lambda index: -similar[index])
        else:
            # Seeded by the query, so that its answer can be reproduced.
            random.Random(query).shuffle(labelled)  # noqa: S311 - repeatable, not secret
        chosen: list[Example] = []
        for index in labelled:
            example = self.examples[index]
            if example.group not in {other.group for other in chosen}:
                chosen.append(example)
            if len(chosen) == DEMONSTRATIONS:
                break
        return chosen[::-1]


def candidates(examples: Sequence[Example]) -> list[Example]:
    """The first questions of each group, as candidates for demonstrations."""
    counts: Counter[str] = Counter()
    first = []
    for example in examples:
        if counts[example.group] < PER_GROUP:
            counts[example.group] += 1
            first.append(example)
    return first


@dataclass(frozen=True, slots=True)
class InContext:
    """The classifier of the LLM.

    Attributes:
        how: demonstrations are chosen, random ones or the query's nearest neighbours.
        consistency: how certainty is measured.
        samples: replies of a vote.
    """

    llm: LLM
    demonstrations: Demonstrations
    how: Choice = "nearest"
    consistency: Consistency = "logprob"
    samples: int = 5

    async def classify(
        self, query: str, vector: NDArray[np.float32] | None, *, allow_s: float, heads: Sequence[str] = tuple(HEADS)
    ) -> Labels:
        """The labels of these heads, requested concurrently; the query's unit vector chooses nearest demonstrations.

        Raises:
            ServiceFailure: no usable reply within the allowance.
        """
        predictions = await all_of(self._predict(head, query, vector, allow_s) for head in heads)
        return dict(zip(heads, predictions, strict=True))

    def messages(self, head: str, query: str, vector: NDArray[np.float32] | None) -> list[Message]:
        """The prompt: the static part first, the question last."""
        messages = [Message("system", INSTRUCTIONS[head])]
        for example in self.demonstrations.choose(head, query, vector, self.how):
            messages += [Message("user", example.question), Message("assistant", example.label(head))]
        return [*messages, Message("user", one_line(query))]

    async def _predict(self, head: str, query: str, vector: NDArray[np.float32] | None, allow_s: float) -> Prediction:
        labels = HEADS[head]
        vote = self.consistency == "vote"
        completion = await self.llm.chat(
            self.messages(head, query, vector),
            max_tokens=MAX_TOKENS,
            allow_s=allow_s,
            temperature=VOTE_TEMPERATURE if vote else 0.0,
            n=self.samples if vote else 1,
            logprobs=not vote,
            constraint=Constraint(choice=labels),
        )
        return by_vote(completion, labels, self.samples) if vote else by_logprob(completion, labels)


def by_vote(completion: Completion, labels: Sequence[str], votes: int) -> Prediction:
    """Shares of the votes; those that a server did not give, as some ignore `n`, are all labels' alike."""
    counts = Counter(sample.text for sample in completion.samples)
    missing = max(0, votes - len(completion.samples)) / len(labels)
    total = max(votes, len(completion.samples))
    return Prediction({label: (counts[label] + missing) / total for label in labels}, MODE)


def by_logprob(completion: Completion, labels: Sequence[str]) -> Prediction:
    """The probability of the reply's tokens for its label; the others share the rest.

    Servers give the probabilities before the constraint removes other tokens, so a model that prefers an answer outside
    the labels has a low certainty, as it should.
    """
    sample = completion.samples[0]
    certainty = math.exp(min(0.0, sum(sample.token_logprobs))) if sample.token_logprobs else 1 / len(labels)
    certainty = max(certainty, 1 / len(labels))
    rest = (1 - certainty) / (len(labels) - 1)
    return Prediction({label: certainty if label == sample.text else rest for label in labels}, MODE)


def uncertain(labels: Labels, thresholds: Mapping[str, float]) -> list[str]:
    """Heads whose certainty is below their threshold; `auto` asks the LLM about them."""
    return [head for head, prediction in labels.items() if prediction.certainty < thresholds[head]]
