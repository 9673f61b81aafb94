"""Examples of the subtask `answer`, in the shares that real questions come in."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lab.trainer.synthesise import finance, movies, music, prose, sports, web
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.record import Kind, Record
from lab.trainer.synthesise.voice import Voice

Pattern = Callable[[Voice, Names], Record]
# Shares of the domains among questions with a time of the contest, where records were looked up; and web pages, which
# the mesh reads where its graph does not answer.
DOMAINS: tuple[tuple[float, Sequence[tuple[float, Pattern]]], ...] = (
    (26.0, finance.PATTERNS),
    (36.0, movies.PATTERNS),
    (20.0, music.PATTERNS),
    (13.0, sports.PATTERNS),
    (5.0, prose.PATTERNS),
    (45.0, web.PATTERNS),
)
# Shares of what is to be said: among questions with a time of the contest, abstentions are a third.
KINDS: dict[Kind, float] = {"answer": 0.55, "unknown": 0.33, "invalid_question": 0.12}
# Longer prompts would cost more to read than they teach.
MAX_CHARS = 3_600
# Draws until a record of the right kind comes that is new; the rarest kind takes about ten.
TRIES = 400


def generate(count: int, seed: int) -> Iterator[Record]:
    """So many records, no question twice; the same for the same seed."""
    rng = random.Random(f"answer:{seed}")  # noqa: S311 - reproducible, not secret
    voice = Voice(rng)
    names = Names(voice)
    patterns = [(share * weight / sum(w for w, _ in ps), p) for share, ps in DOMAINS for weight, p in ps]
    weights = [weight for weight, _ in patterns]
    seen: set[str] = set()
    for _ in range(count):
        kind = voice.weighted(KINDS)
        for _ in range(TRIES):
            pattern = rng.choices(patterns, weights)[0][1]
            record = pattern(voice, names)
            key = record.query.lower()
            if record.kind == kind and key not in seen and sum(map(len, record.passages)) <= MAX_CHARS:
                break
        seen.add(key)
        yield replace(record, pattern=f"{pattern.__module__.rsplit('.', 1)[-1]}.{pattern.__name__}")
