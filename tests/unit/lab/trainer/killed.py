"""A training that its test kills: `python -m tests.unit.lab.trainer.killed MODEL FOLDER`."""

import sys
import time
from pathlib import Path

from lab.trainer import sft
from lab.trainer.model import load
from lab.trainer.progress import Progress
from tests.unit.lab.trainer.tiny import NAME, examples, recipe

COUNT = 240
# It goes no further than this step.
LAST = 11


def main(model: Path, folder: Path) -> None:
    """Train as the test does that resumes it; every step is told, so that the test knows when to kill."""

    def tell(now: Progress) -> None:
        if now.phase == "training":
            sys.stdout.write(f"{now.done}\n")
            sys.stdout.flush()
            if now.done >= LAST:
                # Whoever kills it may be slow to hear of it.
                time.sleep(600)

    sft.train(load(model, name=NAME, threads=1), examples(COUNT), recipe(), folder, on_progress=tell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
