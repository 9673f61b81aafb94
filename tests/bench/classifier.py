"""How fast the classifier is, on one core.

    python -m tests.bench.classifier [-n 400] [--precision auto]

single: one question after the other through the model: encoder, features, three heads. Batched: batches of 64. The
process is bound to one core. Questions are those of the project's training set: their length is what counts, not their
labels.
"""

import os
import random
import time

import numpy as np

from services.classifier.app import load_model
from services.classifier.examples import read_questions
from services.classifier.settings import ClassifierSettings
from services.kit.telemetry import configure_logging
from tests.bench import common

BATCH = 64
P95_MS, PER_SECOND = 15.0, 300.0


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-n", type=int, default=400)
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16"])
    args = parser.parse_args()
    # A line for each request would be most of what the terminal shows.
    configure_logging("bench", "WARNING")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    settings = ClassifierSettings.model_validate({"precision": args.precision, "classifier_threads": 1})
    questions = random.Random(7).sample([example.question for example in read_questions()], args.n)
    model = load_model(settings)
    precision = model.encoder.precision
    print(f"{model.encoder.name}, {precision.dtype} on one core: {precision.reason}")
    model.run(questions[:BATCH])
    singles = []
    for question in questions:
        began = time.perf_counter()
        model.run([question])
        singles.append((time.perf_counter() - began) * 1000)
    p95 = float(np.percentile(singles, 95))
    print(f"single   p50 {np.median(singles):6.1f} ms   p95 {p95:6.1f} ms   (reach: p95 under {P95_MS:.0f} ms)")
    began = time.perf_counter()
    for start in range(0, len(questions), BATCH):
        model.run(questions[start : start + BATCH])
    rate = len(questions) / (time.perf_counter() - began)
    print(f"batched  {rate:6.0f} questions a second   (reach: {PER_SECOND:.0f})")


if __name__ == "__main__":
    main()
