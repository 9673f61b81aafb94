"""The extractive reader on SQuAD 2.0: each question with its own paragraph, whose words it points to or not.

    python -m tests.bench.reader [--count 400] [--seed 3]

The data are found through CRAGMESH_EVAL_DATA.
"""

import pathlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.trainer.score import answer_words, token_f1
from services.kit import reader as kit
from services.kit.reader import Text
from services.reranker.app import load_reader
from services.reranker.settings import RerankerSettings
from tests.bench import common
from tests.bench.corpus import squad_paragraphs, squad_questions

LINES = (0.1, 0.3, 0.5, 0.7, 0.9)
# From this token F1 on a span counts as right.
RIGHT = 0.6


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader's best span for one question: its probability, exact match and token F1."""

    probability: float
    exact: float
    f1: float
    answerable: bool


def measure(root: pathlib.Path, count: int, seed: int) -> list[Reading]:
    """Questions drawn at random."""
    reader, problem = load_reader(RerankerSettings())
    if reader is None:
        raise SystemExit(problem)
    paragraphs = {row["pid"]: row for row in squad_paragraphs(root)}
    rows = random.Random(seed).sample(list(squad_questions(root)), count)
    results = []
    for row in rows:
        paragraph = paragraphs[row["pid"]]
        readings = reader.read(row["question"], [Text(paragraph["context"], paragraph["title"].replace("_", " "))])
        (chances,), _ = kit.shares(readings)
        span = readings[0].spans[0] if readings[0].spans else None
        text = "" if span is None else paragraph["context"][span.start : span.end]
        answers = [] if row["is_impossible"] else row["answers"]
        exact = max((float(answer_words(text) == answer_words(answer)) for answer in answers), default=0.0)
        overlap = max((token_f1(text, answer) for answer in answers), default=0.0)
        results.append(Reading(chances[0] if span else 0.0, exact, overlap, not row["is_impossible"]))
    return results


def show(readings: Sequence[Reading]) -> None:
    answerable = [reading for reading in readings if reading.answerable]
    exact = sum(reading.exact for reading in answerable) / len(answerable)
    overlap = sum(reading.f1 for reading in answerable) / len(answerable)
    print(f"answerable, n = {len(answerable)}: exact match {exact:.3f}, token F1 {overlap:.3f}")
    others = len(readings) - len(answerable)
    print(f"{'from':>6} {'right':>7} {'wrong':>7} of the answerable {'given':>8} of {others} unanswerable")
    for line in LINES:
        answered = [reading for reading in readings if reading.probability >= line]
        right = sum(reading.f1 >= RIGHT for reading in answered if reading.answerable)
        wrong = sum(reading.f1 < RIGHT for reading in answered if reading.answerable)
        false = sum(not reading.answerable for reading in answered)
        shares = right / len(answerable), wrong / len(answerable), false / others
        print(f"{line:6.1f} {shares[0]:7.3f} {shares[1]:7.3f} {'':17} {shares[2]:8.3f}")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    root = common.evaluation_data("eval-reader", "there are no paragraphs")
    show(measure(root, args.count, args.seed))


if __name__ == "__main__":
    main()
