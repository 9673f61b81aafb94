"""A training that its test kills: `python -m tests.unit.trainer.killed MODEL FOLDER`."""

import sys
from pathlib import Path

from services.trainer import sft
from services.trainer.model import load
from tests.unit.trainer.tiny import NAME, examples, recipe

COUNT = 240


def main(model: Path, folder: Path) -> None:
    """Train as the test does that resumes it; every step is told, so that the test knows when to kill."""

    def tell(now: sft.Progress) -> None:
        if now.phase == "training":
            sys.stdout.write(f"{now.done}\n")
            sys.stdout.flush()

    sft.train(load(model, name=NAME, threads=1), examples(COUNT), recipe(), folder, on_progress=tell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
