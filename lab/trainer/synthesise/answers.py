"""Examples of the subtask `answer`, in the shares that real questions come in."""

import random
from collections.abc import Iterator
from dataclasses import replace

from lab.trainer.dataset import Kind
from lab.trainer.errors import BadDataset
from lab.trainer.synthesise.engine import Engine, every_domain
from lab.trainer.synthesise.evidence import MAX_CHARS, SECTIONS, Evidence
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.pages import PATTERNS
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.record import Record

# Shares of records, and of web pages, which the mesh reads where its graph does not answer.
RECORDS, PAGES, PROSE = 0.65, 0.31, 0.04
# Shares of the kinds of reply: among the contest's questions with a time, abstentions are a third.
KINDS: dict[Kind, float] = {"answer": 0.55, "unknown": 0.33, "invalid_question": 0.12}
# Draws until a record of the right kind comes that is new; of pages one in two hundred has a false premise.
TRIES = 4_000


def generate(count: int, seed: int, domain: str = "") -> Iterator[Record]:
    """So many records, no question twice; the same for the same seed.

    Args:
        domain: looked-up records of this domain alone.

    Raises:
        BadDataset: a phrasebook cannot be read, or its patterns give no more that is new.
    """
    rng = random.Random(f"answer:{seed}")  # noqa: S311 - reproducible, not secret
    phrasing = Phrasing(rng)
    names = Names(phrasing)
    queries: set[str] = set()
    with Engine(phrasing, every_domain(domain)) as engine:
        evidence = Evidence(engine)
        kinds = {kind: share for kind, share in KINDS.items() if SECTIONS[kind] in engine.sections}
        for _ in range(count):
            kind = phrasing.weighted(kinds)
            source = "records" if domain else phrasing.weighted({"records": RECORDS, "web": PAGES, "prose": PROSE})
            for _ in range(TRIES):
                if source == "records":
                    record = evidence.record(kind)
                else:
                    pattern = phrasing.weighted(PATTERNS[source])
                    record = replace(pattern(phrasing, names), pattern=f"{source}.{pattern.__name__}")
                if record is None or record.kind != kind or record.query.lower() in queries:
                    continue
                if sum(map(len, record.passages)) <= MAX_CHARS:
                    queries.add(record.query.lower())
                    yield record
                    break
            else:
                raise BadDataset(f"no new question that is to be {kind} could be made of {source} in {TRIES} tries")
