"""Examples of the subtask `kg-api`: questions with programs that executing them on a made-up graph bears out."""

import random
from collections.abc import Iterator

from lab.trainer.synthesise.engine import Engine, Question, Section, every_domain
from lab.trainer.synthesise.phrasing import Phrasing

# Shares: answered by a program, with a premise that the program refutes, and answered by no program.
SECTIONS: dict[Section, float] = {"patterns": 0.93, "premises": 0.03, "beyond": 0.04}


def generate(seed: int, domain: str = "") -> Iterator[Question]:
    """Questions without end, no two alike; the same for the same seed.

    Args:
        domain: about this domain alone.

    Raises:
        BadDataset: a phrasebook cannot be read, or none of its patterns makes a question.
    """
    rng = random.Random(f"kg-api:{seed}")  # noqa: S311 - reproducible, not secret
    phrasing = Phrasing(rng)
    queries: set[str] = set()
    with Engine(phrasing, every_domain(domain)) as engine:
        sections = {section: share for section, share in SECTIONS.items() if section in engine.sections}
        while True:
            question = engine.make(phrasing.weighted(sections))
            if question.query.lower() not in queries:
                queries.add(question.query.lower())
                yield question
