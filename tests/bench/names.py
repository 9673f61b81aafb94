"""Entity resolution: how often it is right, how often it refuses what it does not know, and how fast it is.

    python -m tests.bench.names [--names 1000000] [--seed 7]

Right and wrong are measured on real names, which CRAGMESH_EVAL_DATA holds: four fifths of them are indexed, and asked
for as they are, shortened, without punctuation and with typos; the fifth that is held out is asked for as well, and
must be refused. `ACCEPT` of `services/kg/entities.py` was chosen on one half of the names, figures are for the other.
Speed is measured over synthetic names, the same for the same seed, beside the real ones.
"""

import csv
import os
import pathlib
import random
import resource
import statistics
import string
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine

from services.cli.progress import counting
from services.kg.domains import CATALOGUE
from services.kg.domains.finance.company_names import company_names
from services.kg.entities import NameIndex, Resolution
from services.kg.store.names import Surface, create_index, normalise, refresh, replace_names
from tests.bench import common

CONSOLE = Console(width=120)

Row = dict[str, Any]


def half(text: str) -> int:
    """0 for names that thresholds may be chosen on, 1 for those that figures are of."""
    return zlib.crc32(text.encode()) % 2


def held_out(text: str) -> bool:
    return zlib.crc32(b"held out " + text.encode()) % 5 == 0


def typo(name: str, rng: random.Random, edits: int = 1) -> str:
    """A name with letters dropped, doubled, exchanged or swapped, in words of more than four letters."""
    words = name.split(" ")
    for _ in range(edits):
        long = [index for index, word in enumerate(words) if len(word) > 4 and word.isalpha()]
        if not long:
            return ""
        index = rng.choice(long)
        word, at = words[index], rng.randrange(len(words[index]) - 1)
        letter = rng.choice(string.ascii_lowercase)
        words[index] = rng.choice(
            (
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            )
        )
    return " ".join(words)


@dataclass
class Real:
    """Names of one kind: surfaces by entity, and those that are not indexed."""

    kind: str
    indexed: dict[str, list[tuple[str, float]]]
    absent: list[str]


def companies(root: pathlib.Path) -> Real:
    with (root / "public_tables" / "company_name_ticker.csv").open(encoding="utf-8") as lines:
        rows = {row["Symbol"]: row["Name"] for row in csv.DictReader(lines)}
    indexed: dict[str, list[tuple[str, float]]] = {}
    absent = []
    for ticker, full in rows.items():
        surfaces = company_names(full, ticker)
        # All securities of a company are held out together.
        issuer = normalise(full)[:12]
        if held_out(issuer):
            if surfaces[0][1] == 1.0:
                absent += [surface for surface, _ in surfaces[1:3]]
        else:
            indexed[ticker] = surfaces
    return Real("company", indexed, absent)


def titled(root: pathlib.Path, file: str, kind: str, names_in: Callable[[Row], list[str]]) -> Real:
    names: dict[str, str] = {}
    for row in common.read_rows(root / "kg_rows" / file):
        for name in names_in(row):
            names.setdefault(normalise(name), name)
    indexed = {norm: [(name, 1.0)] for norm, name in names.items() if norm and not held_out(norm)}
    return Real(kind, indexed, [name for norm, name in names.items() if norm and held_out(norm)])


def entity_of(*kinds: str) -> Callable[[Row], list[str]]:
    """A function that takes the entity of a row of those kinds; of any row where none is given."""
    return lambda row: [str(row["entity"])] if not kinds or row["kind"] in kinds else []


def people(row: Row) -> list[str]:
    """The person of a row, and the cast and crew of a film."""
    credits = [item for key in ("cast", "directors", "producers") for item in row["attrs"].get(key) or ()]
    names = [str(item.get("name", "")) if isinstance(item, dict) else str(item) for item in credits]
    return names + entity_of("person")(row)


def real_names(root: pathlib.Path) -> list[Real]:
    return [
        companies(root),
        titled(root, "movie.jsonl", "movie", entity_of("movie")),
        titled(root, "movie.jsonl", "movie_person", people),
        titled(root, "music.jsonl", "song", entity_of("work", "song")),
        titled(root, "music.jsonl", "artist", entity_of("band", "lifespan", "artist", "grammy_best_artist")),
        titled(root, "open.jsonl", "open", entity_of()),
    ]


def questions(real: Real, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """(way of asking, text, entity that is meant)."""
    for entity, surfaces in real.indexed.items():
        if real.kind == "company" and surfaces[0][1] < 1.0:
            continue
        name = surfaces[min(2, len(surfaces) - 1)][0] if real.kind == "company" else surfaces[0][0]
        lower = name.lower()
        yield "lower case", lower, entity
        yield "no punctuation", lower.translate(str.maketrans("", "", string.punctuation)), entity
        yield "no spaces", lower.replace(" ", ""), entity
        if (one := typo(lower, rng)) and normalise(one) != normalise(lower):
            yield "one typo", one, entity
        if (two := typo(lower, rng, 2)) and normalise(two) != normalise(lower):
            yield "two typos", two, entity
        words = lower.split()
        if len(words) > 2:
            yield "last word left out", " ".join(words[:-1]), entity
            yield "last word first", " ".join([words[-1], *words[:-1]]), entity


def quality(root: pathlib.Path, rng: random.Random) -> None:
    table = Table("kind", "asked", "n", "right", "wrong", "refused", title="Real names, the half that was not tuned on")
    for real in real_names(root):
        index = built([(real.kind, [(e, s, w) for e, surfaces in real.indexed.items() for s, w in surfaces])])
        shares: dict[str, list[int]] = {}
        for way, text, entity in questions(real, rng):
            if half(entity):
                match = index.resolve(text, (real.kind,))
                right = entity in match.entities or (match.status == "ok" and same_name(match, real, entity))
                tally(shares, way, 0 if right else 1 if match.status == "ok" else 2)
        for name in real.absent:
            if half(name):
                for way, text in (("absent", name.lower()), ("absent, one typo", typo(name.lower(), rng))):
                    if text:
                        tally(shares, way, 1 if index.resolve(text, (real.kind,)).status == "ok" else 2)
        for way, counts in shares.items():
            n = sum(counts)
            table.add_row(real.kind, way, str(n), *(f"{count / n:.1%}" for count in counts))
    CONSOLE.print(table)


def same_name(match: Resolution, real: Real, entity: str) -> bool:
    """Whether the match is a homonym of the entity."""
    names = {normalise(surface) for surface, _ in real.indexed[entity]}
    return any(normalise(surface) in names for e in match.entities for surface, _ in real.indexed[e])


def tally(shares: dict[str, list[int]], way: str, outcome: int) -> None:
    shares.setdefault(way, [0, 0, 0])[outcome] += 1


def built(kinds: list[tuple[str, list[tuple[str, str, float]]]], path: str = "") -> NameIndex:
    engine = create_engine(f"sqlite:///{path}" if path else "sqlite://")
    with counting() as bar, engine.begin() as connection:
        task = bar.add_task("names")
        create_index(connection)
        for kind, names in kinds:
            replace_names(connection, kind, (Surface(*name) for name in names))
        refresh(
            connection,
            [kind for kind, _ in kinds],
            progress=lambda step, done, total: bar.update(task, description=step, completed=done, total=total),
        )
    return NameIndex(engine, CATALOGUE)


SYLLABLES = tuple(f"{a}{b}{c}" for a in "bdfghklmnprstvz" for b in "aeiou" for c in ("", "n", "r", "l", "s"))
COMMON = (
    "the", "of", "and", "a", "in", "love", "to", "my", "you", "me", "night", "day", "man", "world", "life", "time",
    "heart", "dark", "story", "one", "girl", "house",
)  # fmt: skip


def synthetic(count: int, seed: int) -> Iterator[tuple[str, str, str, float]]:
    """(kind, entity, name, weight): words by Zipf's law, common ones English, so that some are in a tenth of names."""
    rng = random.Random(seed)
    coined = ("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(max(1_000, count // 4)))
    words = [*COMMON, *dict.fromkeys(coined)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    bounds = list(accumulate(weights))
    for number in range(count):
        kind = rng.choices(("song", "movie", "movie_person", "artist", "open"), (50, 15, 15, 10, 10))[0]
        length = 2 if kind == "movie_person" else rng.choices((1, 2, 3, 4, 5, 7), (15, 30, 25, 15, 10, 5))[0]
        chosen = rng.choices(words, cum_weights=bounds, k=length)
        yield kind, str(number), " ".join(chosen).title(), rng.paretovariate(1.2)


def timings(index: NameIndex, names: list[tuple[str, str]], rng: random.Random) -> None:
    """`names` are (kind, name) that are indexed."""

    def sample(count: int) -> list[tuple[str, str]]:
        return rng.sample(names, min(count, len(names)))

    def subset(name: str) -> str:
        words = name.split()
        return " ".join(words[:-1]) if len(words) > 1 else name + " suite"

    syntax = [
        "'; DROP TABLE name; --",
        '" OR 1=1 --',
        "love* OR night NEAR day",
        'surface:love AND "night',
        "%' OR '1'='1",
        "(((((((",
        "^love - night",
        "{love night} : heart",
    ]
    queries: dict[str, list[tuple[str, str]]] = {
        "exact": sample(400),
        "alias": [(kind, name.lower().replace(" ", "")) for kind, name in sample(400)],
        "typo": [(kind, typo(name.lower(), rng) or name) for kind, name in sample(400)],
        "token subset": [(kind, subset(name.lower())) for kind, name in sample(400)],
        "absent": [(kind, f"{typo(name.lower(), rng, 3)} qwzx") for kind, name in sample(400)],
        "common words": [("song", " ".join(rng.sample(COMMON, rng.randint(1, 4)))) for _ in range(200)],
        "one character": [("song", letter) for letter in string.ascii_lowercase],
        "2,000 characters": [("song", ("love night " * 200)[:2_000])] * 50,
        "300 characters": [("song", ("love night " * 30)[:300])] * 50,
        "syntax": [("song", text) for text in syntax] * 10,
    }
    table = Table("asked", "n", "p50 ms", "p95 ms", "p99 ms", "max ms", "ok", title="Speed")
    everything: list[float] = []
    for way, texts in queries.items():
        spent, ok = [], 0
        for kind, text in texts:
            began = time.perf_counter()
            ok += index.resolve(text, (kind,)).status == "ok"
            spent.append((time.perf_counter() - began) * 1000)
        everything += spent
        table.add_row(way, str(len(spent)), *percentiles(spent), f"{ok / len(spent):.0%}")
    table.add_row("all", str(len(everything)), *percentiles(everything), "")
    CONSOLE.print(table)


def percentiles(spent: list[float]) -> list[str]:
    cuts = statistics.quantiles(spent, n=100)
    return [f"{value:.2f}" for value in (cuts[49], cuts[94], cuts[98], max(spent))]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    root = os.environ.get("CRAGMESH_EVAL_DATA")
    kinds: dict[str, list[tuple[str, str, float]]] = {}
    if root:
        quality(pathlib.Path(root), rng)
        real = companies(pathlib.Path(root))
        kinds["company"] = [(e, s, w) for e, surfaces in real.indexed.items() for s, w in surfaces]
    else:
        print("bench: CRAGMESH_EVAL_DATA is not set, so nothing was measured on real names")
    if not options.names:
        return
    for kind, entity, name, weight in synthetic(options.names, options.seed):
        kinds.setdefault(kind, []).append((entity, name, weight))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "names.sqlite"
        began = time.monotonic()
        index = built(list(kinds.items()), str(path))
        size = path.stat().st_size / 2**20
        count = sum(map(len, kinds.values()))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform == "linux" else 2**20)
        print(f"{count:,} names in {time.monotonic() - began:.0f} s; {size:.0f} MiB on disk; peak RSS {peak:.0f} MiB")
        timings(index, [(kind, name) for kind, rows in kinds.items() for _, name, _ in rows], rng)


if __name__ == "__main__":
    main()
