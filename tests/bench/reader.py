"""The extractive reader on SQuAD 2.0: each question with its own paragraph, whose words it points to or not.

    python -m tests.bench.reader [--count 400] [--seed 3]

The data are found through CRAGMESH_EVAL_DATA.
"""

import argparse
import json
import os
import pathlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.trainer.score import answer_words, token_f1
from services.kit import reader as kit
from services.kit.reader import Text
from services.reranker.reading import load
from services.reranker.settings import RerankerSettings
from tests.bench.corpus import squad_questions

LINES = (0.1, 0.3, 0.5, 0.7, 0.9)
# From this token F1 on a span counts as right.
RIGHT = 0.6


@dataclass(frozen=True, slots=True)
class Read:
    """What the reader said of one question: exact match and token F1 are of its best span."""

    probability: float
    exact: float
    f1: float
    answerable: bool


def measure(root: pathlib.Path, count: int, seed: int) -> list[Read]:
    """Questions drawn at random."""
    reader = load(RerankerSettings())
    lines = (root / "squad" / "squad_v2_dev_half.paragraphs.jsonl").read_text().splitlines()
    paragraphs = {row["pid"]: row for row in map(json.loads, lines)}
    rows = random.Random(seed).sample(list(squad_questions(root)), count)
    found = []
    for row in rows:
        paragraph = paragraphs[row["pid"]]
        readings = reader.read(row["question"], [Text(paragraph["context"], paragraph["title"].replace("_", " "))])
        (chances,), _ = kit.shares(readings)
        span = readings[0].spans[0] if readings[0].spans else None
        said = "" if span is None else paragraph["context"][span.start : span.end]
        answers = [] if row["is_impossible"] else row["answers"]
        exact = max((float(answer_words(said) == answer_words(answer)) for answer in answers), default=0.0)
        overlap = max((token_f1(said, answer) for answer in answers), default=0.0)
        found.append(Read(chances[0] if span else 0.0, exact, overlap, not row["is_impossible"]))
    return found


def show(found: Sequence[Read]) -> None:
    answerable = [one for one in found if one.answerable]
    exact = sum(one.exact for one in answerable) / len(answerable)
    overlap = sum(one.f1 for one in answerable) / len(answerable)
    print(f"answerable, n = {len(answerable)}: exact match {exact:.3f}, token F1 {overlap:.3f}")
    others = len(found) - len(answerable)
    print(f"{'from':>6} {'right':>7} {'wrong':>7} of the answerable {'given':>8} of {others} unanswerable")
    for line in LINES:
        given = [one for one in answerable if one.probability >= line]
        right = sum(one.f1 >= RIGHT for one in given)
        wrongly = sum(one.probability >= line for one in found if not one.answerable)
        shares = right / len(answerable), (len(given) - right) / len(answerable), wrongly / others
        print(f"{line:6.1f} {shares[0]:7.3f} {shares[1]:7.3f} {'':17} {shares[2]:8.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    place = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not place:
        print("eval-reader: CRAGMESH_EVAL_DATA is not set, so there are no paragraphs; nothing was measured")
        return
    show(measure(pathlib.Path(place), args.count, args.seed))


if __name__ == "__main__":
    main()
