"""One training step of the embedded model: ours beside peft under transformers' own forward pass.

    python -m tests.bench.training [--threads 2] [--rows 9] [--model models/SmolLM2-135M-Instruct]

Rows of random tokens, of which the first 79 are the same, as prompts of the answering step are. The two take turns, the
best of three counts, in seconds of the CPU: those of the clock say little on a machine that is shared. Each runs in a
process of its own, for its peak of memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

PREFIX, REST, REPLY = 79, 145, 6
WAYS = ("ours", "peft")
ROUNDS, REPEATS = 2, 3


def measure(way: str, model: Path, rows: int, threads: int) -> dict[str, float]:
    """CPU seconds and memory of forward and backward pass over one batch."""
    import torch
    from torch.nn.functional import cross_entropy

    from lab.trainer.attention import sharing
    from lab.trainer.batches import collate
    from lab.trainer.dataset import Example, Turn
    from lab.trainer.encode import Encoded
    from lab.trainer.lora import _Forward
    from lab.trainer.measure import batch_loss
    from lab.trainer.model import adapt, load
    from lab.trainer.recipe import Recipe

    warnings.simplefilter("ignore")
    learner = adapt(load(model, name="bench", threads=threads), Recipe())
    learner.adapted.train()
    torch.manual_seed(0)
    tokens = torch.randint(100, 40_000, (rows, PREFIX + REST))
    tokens[:, :PREFIX] = tokens[0, :PREFIX]
    example = Example(
        id="x", task="answer", messages=[Turn(role="user", content="x")], completion="x", domain="open", kind="answer",
        source="bench", query="x",
    )  # fmt: skip
    items = [Encoded(example, tuple(row[:-REPLY]), tuple(row[-REPLY:])) for row in tokens.tolist()]
    batch = collate(items)
    if way == "peft":
        for module in learner.adapted.modules():
            if isinstance(vars(module).get("forward"), _Forward):
                del module.forward

    def step() -> None:
        if way == "ours":
            if learner.masks:
                learner.masks.draw()
            with sharing(learner.plain):
                loss = batch_loss(learner, batch)
        else:
            # As transformers' Trainer does it: the whole vocabulary at every token, what is not learnt masked.
            values = learner.adapted(input_ids=tokens).logits[:, :-1].float()
            labels = torch.full_like(tokens[:, 1:], -100)
            labels[:, -REPLY:] = tokens[:, -REPLY:]
            loss = cross_entropy(values.reshape(-1, values.shape[-1]), labels.reshape(-1))
        loss.backward()

    step()
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        step()
        best = min(best, time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return {"cpu_s": best, "tokens_per_cpu_s": tokens.numel() / best, "peak_mib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--model", type=Path, default=Path("models/SmolLM2-135M-Instruct"))
    parser.add_argument("--way", choices=WAYS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure(given.way, given.model, given.rows, given.threads)))
        return
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for way in WAYS:
            argv = [sys.executable, "-m", "tests.bench.training", *sys.argv[1:], "--way", way]
            out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout  # noqa: S603
            found = json.loads(out.splitlines()[-1])
            if way not in best or found["cpu_s"] < best[way]["cpu_s"]:
                best[way] = found
            print(f"{way}: {found['cpu_s']:.2f} CPU s", file=sys.stderr)
    print(f"{given.rows} rows of {PREFIX} shared and {REST} own tokens, {given.threads} threads\n")
    print("| way | CPU s a batch | prompt tokens a CPU second | peak MiB |\n|---|---|---|---|")
    for way, row in best.items():
        print(f"| {way} | {row['cpu_s']:.2f} | {row['tokens_per_cpu_s']:.0f} | {row['peak_mib']:.0f} |")


if __name__ == "__main__":
    main()
