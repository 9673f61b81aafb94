"""Examples of the subtask `kg-api`: questions with programs that executing them on a made-up graph bears out."""

import random
from collections.abc import Iterator

from lab.trainer.synthesise.engine import NONE, Engine, Made, Section, every_domain
from lab.trainer.synthesise.phrasing import Phrasing

__all__ = ["NONE", "generate"]
# Of the questions so many are wrong about the facts, which the program must show, and so many nothing answers.
SECTIONS: dict[Section, float] = {"patterns": 0.93, "premises": 0.03, "beyond": 0.04}


def generate(seed: int, domain: str = "") -> Iterator[Made]:
    """Questions without end, no two alike; the same for the same seed.

    Args:
        domain: about this domain alone.

    Raises:
        BadDataset: a phrasebook cannot be read, or none of its patterns makes a question.
    """
    rng = random.Random(f"kg-api:{seed}")  # noqa: S311 - reproducible, not secret
    phrasing = Phrasing(rng)
    seen: set[str] = set()
    with Engine(phrasing, every_domain(domain)) as engine:
        sections = {section: share for section, share in SECTIONS.items() if section in engine.sections}
        while True:
            made = engine.make(phrasing.weighted(sections))
            if made.query.lower() not in seen:
                seen.add(made.query.lower())
                yield made
