"""Examples of the subtask `kg-api`: a question, its program, and what executing the program on the world must find."""

import random
from collections.abc import Iterator
from dataclasses import replace

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.programs import artists, films, games, infoboxes, nothing, shares
from lab.trainer.synthesise.programs.drawn import Drawn, Pattern
from lab.trainer.synthesise.voice import Voice
from lab.trainer.synthesise.world import World

# Questions about one world; the next world has other names and another last day.
PER_WORLD = 1_000
TRIES = 60
MODULES = {"finance": shares, "movie": films, "music": artists, "sports": games, "open": infoboxes}
PATTERNS: tuple[tuple[float, str, Pattern], ...] = tuple(
    (weight, domain, pattern)
    for domain, module in MODULES.items()
    for weight, pattern in (*module.PATTERNS, nothing.PATTERNS[domain])
)


def generate(seed: int) -> Iterator[tuple[World, list[Drawn]]]:
    """Worlds without end, with the questions about each; a few of them may not be provable, see `services/cli`."""
    rng = random.Random(f"kg-api:{seed}")  # noqa: S311 - reproducible, not secret
    voice = Voice(rng)
    names = Names(voice)
    weights = [weight for weight, _, _ in PATTERNS]
    seen: set[str] = set()
    while True:
        world = World(voice, names)
        drawn: list[Drawn] = []
        for _ in range(PER_WORLD):
            for _ in range(TRIES):
                _, domain, pattern = rng.choices(PATTERNS, weights)[0]
                one = pattern(world)
                if one is not None and one.record.query.lower() not in seen:
                    seen.add(one.record.query.lower())
                    drawn.append(
                        Drawn(replace(one.record, domain=domain, pattern=f"{domain}.{pattern.__name__}"), one.gold)
                    )
                    break
        yield world, drawn
