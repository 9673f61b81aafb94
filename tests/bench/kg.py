"""How fast programs are parsed, compiled and executed over a graph of a million rows, on one core.

    python -m tests.bench.kg [--rows 1000000] [--seconds 20]

The graph is invented, the same for the same seed: films with casts and crews, companies with daily prices, artists with
works, NBA games. It is kept under `out/` and made again when the number of rows changes.
"""

import contextlib
import json
import os
import random
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.progress import Progress
from rich.table import Table as View
from sqlalchemy import Connection, Table, create_engine, insert

from lab.capacity import percentile
from services.cli.progress import counting
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.errors import ParseError
from services.kg.execute import Executor
from services.kg.language.bind import Binder
from services.kg.language.decoding import decoding_grammar
from services.kg.language.parse import parse_each
from services.kg.language.tree import Query
from services.kg.store import names
from services.kg.store.engine import open_store
from services.kg.store.tables import METADATA
from tests.bench import common
from tests.unit.kg.test_language import mutated

SEED = 20_240_228
ASKED = datetime(2024, 2, 28, 8, 12, tzinfo=ZoneInfo("America/Los_Angeles"))
SYLLABLES = ("ka", "lo", "mi", "ren", "sta", "vel", "dor", "an", "thi", "bro", "qua", "sel", "nor", "pia", "gus", "tem")
BATCH = 20_000


def word(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3))).capitalize()


def phrase(chance: random.Random, words: int) -> str:
    return " ".join(word(chance) for _ in range(words))


class Graph:
    """Invented rows; a tenth of `rows` are films and people, half their cast, the rest prices, works and games."""

    def __init__(self, rows: int) -> None:
        chance = random.Random(SEED)
        self.films = [(str(i), phrase(chance, chance.randint(1, 3))) for i in range(rows * 4 // 100)]
        self.people = [(str(i), phrase(chance, 2)) for i in range(rows * 6 // 100)]
        self.companies = [(f"T{i}", f"{phrase(chance, 2)} Corp.") for i in range(rows // 1_000)]
        self.artists = [(str(i), phrase(chance, chance.randint(1, 2))) for i in range(rows * 2 // 100)]
        self.teams = [(f"n{i}", f"{word(chance)} {word(chance)}s") for i in range(30)]
        self.chance = chance
        self.rows = rows

    def tables(self) -> Iterator[tuple[Table, Iterator[dict[str, Any]], int]]:
        for name, count, row in self._tables():
            yield CATALOGUE.tables[name], map(row, range(count)), count

    def _tables(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """Tables with how many rows they have and what makes each by its number."""
        chance, rows = self.chance, self.rows
        films, people, companies, artists, teams = self.films, self.people, self.companies, self.artists, self.teams
        days = rows * 20 // 100 // len(companies)

        def day() -> str:
            return (date(1960, 1, 1) + timedelta(days=chance.randrange(23_500))).isoformat()

        def film(n: int) -> dict[str, Any]:
            number, title = films[n]
            language, money = chance.choice(["en", "fr", "ko"]), (chance.randrange(10**8), chance.randrange(10**9))
            return {
                "movie_id": number, "title": title, "original_title": title, "original_language": language,
                "release_date": day(), "budget": money[0], "revenue": money[1], "rating": chance.random() * 10,
                "length": chance.randint(60, 200),
            }  # fmt: skip

        def price(n: int) -> dict[str, Any]:
            when = (date(2024, 2, 27) - timedelta(days=n % days)).isoformat()
            return {
                "ticker": companies[n // days][0], "date": when, "open": chance.random() * 100, "high": 100.0,
                "low": 1.0, "close": chance.random() * 100, "volume": chance.randrange(10**7), "is_partial": False,
            }  # fmt: skip

        def game(n: int) -> dict[str, Any]:
            return {
                "game_id": str(n), "team_id": teams[n % 30][0], "date": day(), "season_type": "Regular Season",
                "opponent": chance.choice(teams)[1], "venue": chance.choice(["Home", "Away"]),
                "result": chance.choice("WL"), "gf": chance.randint(80, 140), "ga": chance.randint(80, 140),
            }  # fmt: skip

        def part(n: int, **more: Any) -> dict[str, Any]:
            return {"movie_id": str(n % len(films)), "person_id": str(chance.randrange(len(people))), **more}

        def cast(n: int) -> dict[str, Any]:
            return part(n, ord=n // 11, character=word(chance), gender=chance.randrange(3))

        def fact(n: int) -> dict[str, Any]:
            return {"ticker": companies[n][0], "key": "marketCap", "value": None, "number": chance.random() * 1e11}

        def artist(n: int) -> dict[str, Any]:
            return _row(artists[n], "artist_id", birth_place="US", begin_date=day(), is_band=False)

        def work(n: int) -> dict[str, Any]:
            return {"work_id": str(n), "title": word(chance), "release_date": day(), "country": "US"}

        jobs = ("Director", "Producer", "Writer")
        yield "movie", len(films), film
        yield "movie_person", len(people), lambda n: _row(people[n], "person_id", birthday=day())
        yield "movie_cast", rows * 46 // 100, cast
        yield "movie_crew", rows * 8 // 100, lambda n: part(n, job=jobs[n // len(films) % 3])
        yield "company", len(companies), lambda n: _row(companies[n], "ticker", currency="USD")
        yield "company_fact", len(companies), fact
        yield "price_daily", len(companies) * days, price
        yield "artist", len(artists), artist
        yield "work", rows * 10 // 100, work
        yield "artist_work", rows * 10 // 100, lambda n: {"artist_id": str(n % len(artists)), "work_id": str(n)}
        yield "team", len(teams), lambda n: _row(teams[n], "team_id", sport="nba")
        yield "nba_game", rows * 2 // 100, game

    def names(self) -> dict[str, list[tuple[str, str]]]:
        return {
            "movie": self.films,
            "movie_person": self.people,
            "company": self.companies + [(ticker, ticker) for ticker, _ in self.companies],
            "artist": self.artists,
            "nba_team": self.teams,
        }


def _row(entity: tuple[str, str], key: str, **more: Any) -> dict[str, Any]:
    return {key: entity[0], "name": entity[1], **more}


def build(path: Path, rows: int) -> None:
    graph = Graph(rows)
    engine = create_engine(f"sqlite:///{path}")
    METADATA.create_all(engine)
    with counting() as bar, engine.begin() as connection:
        for table, lines, total in graph.tables():
            task = bar.add_task(table.name, total=total)
            while batch := list(islice(lines, BATCH)):
                connection.execute(insert(table).prefix_with("OR IGNORE"), batch)
                bar.advance(task, len(batch))
        _names(connection, graph, bar)
        connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def _names(connection: Connection, graph: Graph, bar: Progress) -> None:
    entities = graph.names()
    task = bar.add_task("names", total=len(entities))
    names.create_index(connection)
    for kind, entries in entities.items():
        names.replace_names(connection, kind, [names.Surface(i, text, 1.0) for i, text in entries])
        names.refresh(connection, (kind,))
        bar.advance(task)


def programs(graph: Graph) -> list[tuple[str, str]]:
    """One of each kind, over entities that are there."""
    chance = random.Random(SEED + 1)

    def name_of(entities: list[tuple[str, str]], part: int = 1) -> Callable[[], str]:
        return lambda: chance.choice(entities)[part]

    film, person, company = name_of(graph.films), name_of(graph.people), name_of(graph.companies, 0)
    artist, team = name_of(graph.artists), name_of(graph.teams)
    pairs: list[tuple[str, str]] = []
    for _ in range(40):
        pairs += [
            ("movie", f'get_movie("{film()}")["revenue"]'),
            ("movie", f'get_movie("{film()}")["length"]\nget_movie("{film()}")["length"]'),
            ("movie", f'get_movie_person_cast(None, "{person()}", None) sort(None, -year)["title"][:3]'),
            ("movie", f'get_movie_person_cast(None, ["{person()}", "{person()}"], None)["len"]'),
            (
                "movie",
                f'get_movie_person_crew("{film()}", None, eq(job, "Director"))["name"]\n'
                'get_person(*["name"])["birthday"]',
            ),
            ("movie", f'get_movie_person_crew(None, "{person()}", ge(year, 1990)) sort(None, -revenue)["title"][:5]'),
            ("finance", f'get_stock_price("{company()}", "yesterday")["close"]'),
            ("finance", f'AVG get_stock_price("{company()}", "last month")["high"]'),
            ("finance", f'get_stock_price("{company()}", "past 3 months") where(gt(open, previous_close))["len"]'),
            ("finance", f'get_stock_market_cap("{company()}")\nget_stock_market_cap("{company()}")'),
            ("music", f'get_person("{artist()}")["music"] sort(None, -release_date)["title"][:1]'),
            ("sports", f'get_nba_on_date("{team()}", "2019") where(eq(result, "L"), eq(venue, "home"))["len"]'),
        ]
    return pairs


def percentiles_ms(seconds: Sequence[float]) -> list[float]:
    return [1_000 * percentile(seconds, share) for share in (0.5, 0.95, 0.99)]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    args.out.mkdir(exist_ok=True)
    path = args.out / f"kg-{args.rows}.sqlite"
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        build(partial, args.rows)
        partial.replace(path)
    graph = Graph(args.rows)
    engine = open_store(f"sqlite:///{path}")
    executor = Executor(engine, NameIndex(engine, CATALOGUE), CATALOGUE)
    mix = programs(graph)
    spellings = CATALOGUE.spellings
    parsing: list[float] = []
    for domain, program in mix * 3:
        began = time.perf_counter()
        parsed = parse_each(program, spellings)
        binder = Binder(CATALOGUE, domain)
        for one in parsed:
            if isinstance(one.statement, Query):
                binder.bind(one.statement)
        parsing.append(time.perf_counter() - began)
    fuzzed: list[float] = []
    chance = random.Random(SEED)
    for _ in range(10_000):
        text = mutated(chance.choice(mix)[1], chance)
        began = time.perf_counter()
        with contextlib.suppress(ParseError):
            parse_each(text, spellings)
        fuzzed.append(time.perf_counter() - began)
    for domain, program in mix[: len(mix) // 10]:
        executor.execute(program, domain=domain, query_time=ASKED)
    running: list[float] = []
    statuses: Counter[str] = Counter()
    started = time.perf_counter()
    while time.perf_counter() - started < args.seconds:
        domain, program = mix[len(running) % len(mix)]
        began = time.perf_counter()
        for outcome in executor.execute(program, domain=domain, query_time=ASKED, seconds=5):
            statuses[outcome.status] += 1
        running.append(time.perf_counter() - began)
    rate = len(running) / (time.perf_counter() - started)
    began = time.perf_counter()
    for domain in CATALOGUE.domains:
        decoding_grammar(CATALOGUE, domain)
    grammar_ms = (time.perf_counter() - began) * 1_000
    engine.dispose()
    console = Console()
    table = View(
        "", "p50 ms", "p95 ms", "p99 ms", title=f"{args.rows:,} rows, {path.stat().st_size >> 20} MiB, one core"
    )
    for name, values in (("parse and bind", parsing), ("execute, names and SQL", running)):
        table.add_row(name, *(f"{value:.2f}" for value in percentiles_ms(values)))
    console.print(table)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    console.print(
        f"{rate:.0f} programs a second, mean {1_000 * statistics.mean(running):.2f} ms, {memory} MiB resident"
    )
    console.print(f"10,000 mutated programs parsed or refused, the slowest in {1_000 * max(fuzzed):.1f} ms")
    console.print(f"statuses: {json.dumps(statuses)}; five decoding grammars in {grammar_ms:.1f} ms")
    is_fast = max(fuzzed) < 0.05 and percentile(parsing, 0.95) < 0.005 and percentile(running, 0.95) < 0.02
    sys.exit(0 if is_fast and rate >= 200 else 1)


if __name__ == "__main__":
    main()
