"""How many real questions the knowledge graph answers, by who writes the program and by domain, and why not the rest.

    python -m tests.bench.kg_eval --database sqlite:///out/kg.sqlite [--modes program,rules,function-calling]
        [--generator http://127.0.0.1:8005] [--limit 60] [--seed 1] [--concurrency 2] [--examples 4]

A question counts as answered when the values that its program asked for hold the gold one: numbers to the gold's own
precision, dates in any form, names in their normal form. Other values of the same rows do not count, nor does an entity
that the question does not name. Of a comparison both sides must be there and the right one must win. The database is
one into which the evaluation rows were loaded; the data are found through CRAGMESH_EVAL_DATA. Writes `out/kg_eval.md`
and `.json`.
"""

import argparse
import asyncio
import json
import os
import pathlib
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from rapidfuzz import fuzz
from rich.console import Console
from sqlalchemy import select

from lab.evaluator.report import markdown
from lab.evaluator.report.tables import Table
from proto.base import parse_query_time
from services.cli.progress import counting
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.errors import KgError
from services.kg.execute import Executor
from services.kg.generate import Writer, build_writers
from services.kg.generate.examples import load_library
from services.kg.generate.ground import named
from services.kg.outcome import Outcome
from services.kg.store.engine import open_store
from services.kg.store.names import name_table, normalise
from services.kg.verbalize import verbalize
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.encoder import Encoder
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM

OUT = pathlib.Path("out")
REASONS = ("answered", "no program", "wrong entity", "wrong function", "wrong window", "not in rows", "other")
# Most of the questions of a domain were asked at about this time; it stands in where a record has none.
USUAL_TIME = {"finance": "02/28/2024, 08:00:00 PT", "sports": "03/15/2024, 16:00:00 PT"}
OTHER_TIME = "03/19/2024, 23:30:00 PT"
# Kinds of rows of the evaluation data -> functions that return them.
FUNCTIONS = {
    "price": {"get_stock_price", "get_stock_latest"},
    "price_latest": {"get_stock_price", "get_stock_latest"},
    "dividend": {"get_stock_dividend"},
    "market_cap": {"get_stock_market_cap", "get_stock_info"},
    "pe_ratio": {"get_stock_pe_ratio", "get_stock_info"},
    "eps": {"get_stock_eps", "get_stock_info"},
    "work": {"get_artist_works", "get_song"},
    "work_count": {"get_artist_works"},
    "song": {"get_song"},
    "band": {"get_members"},
    "lifespan": {"get_person"},
    "artist": {"get_person"},
    "grammy_count": {"get_grammy_person"},
    "grammy_song_count": {"get_grammy_song"},
    "grammy_year": {"get_grammy_year"},
    "movie": {"get_movie", "get_movie_person_cast", "get_movie_person_crew"},
    "movie_attr": {"get_movie", "get_movie_person_cast", "get_movie_person_crew"},
    "person": {"get_person", "get_movie_person_cast", "get_movie_person_crew", "get_movie_person_oscar"},
    "oscar": {"get_movie_person_oscar"},
    "oscar_mention": {"get_movie_person_oscar"},
    "oscar_count": {"get_movie_person_oscar"},
    "movie_count": {"get_movie_person_cast", "get_movie_person_crew"},
    "crew_count": {"get_movie_person_crew"},
    "filmography": {"get_movie_person_cast", "get_movie_person_crew"},
    "soccer_match": {"get_soccer_last_game", "get_soccer_next_game", "get_soccer_on_date"},
    "soccer_period": {"get_soccer_on_date"},
    "nba_game": {"get_nba_on_date"},
    "nba_period": {"get_nba_on_date"},
    "wiki": {"get_open"},
}
# Of names by which a question may mean an entity of another kind.
KINDS = ("company", "movie", "movie_person", "artist", "song", "nba_team", "soccer_team", "open")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LEAST = re.compile(
    r"\b(?:lower|lowest|fewer|fewest|less|least|smaller|smallest|shorter|cheaper|older|elder|earlier|"
    r"first|longer history|"
    r"extensive histor\w+|brighter|oldest)\b"
)
Date = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    domain: str
    gold: str
    query_time: datetime
    kinds: frozenset[str]


@dataclass(slots=True)
class Result:
    id: str
    domain: str
    mode: str
    question: str
    gold: str
    program: str
    verdict: str
    statuses: list[str]
    text: str
    unnamed: bool
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    with_facts: bool = field(default=False)


# Values against the gold


def dates_of(text: str) -> list[Date]:
    """Dates in a text as (year, month, day), unknown parts None; two-digit years stay below 100."""
    found: list[Date] = []
    text = text.lower()
    for year, month, day in re.findall(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b", text):
        found.append((int(year), int(month), int(day) if day else None))
    for month, day, year in re.findall(r"\b(\d{1,2})/(\d{1,2})/(\d{2,4})\b", text):
        found.append((int(year), int(month), int(day)))
    name = "|".join(MONTHS)
    for month, day, year in re.findall(rf"\b({name})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", text):
        found.append((int(year), MONTHS.index(month) + 1, int(day)))
    for day, month, year in re.findall(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({name})[a-z]*\.?,? (\d{{4}})\b", text):
        found.append((int(year), MONTHS.index(month) + 1, int(day)))
    return found


def same_date(gold: Date, value: Date) -> bool:
    year = gold[0] == value[0] or (
        gold[0] is not None and gold[0] < 100 and value[0] is not None and value[0] % 100 == gold[0]
    )
    return year and all(g is None or g == v for g, v in zip(gold[1:], value[1:], strict=True))


def numbers_of(text: str) -> list[tuple[float, int]]:
    """Numbers of a text with the decimals that they are written with."""
    found = []
    for match in re.finditer(r"(?<![\w.])-?\$?-?\d[\d,]*(?:\.\d+)?(?![\w-]*\d)", text):
        plain = match[0].replace("$", "").replace(",", "").rstrip(".")
        found.append((float(plain), len(plain.partition(".")[2])))
    return found


def same_number(gold: float, decimals: int, value: float) -> bool:
    """Equal to the gold's precision, or to a thousandth where the gold is large."""
    return bool(abs(value - gold) <= max(0.5001 * 10**-decimals, abs(gold) * 1e-3 if abs(gold) >= 100_000 else 0))


def holds(gold: str, value: Any, *, long: bool = False) -> bool:
    """Whether a value is the gold one.

    Args:
        long: the value is running text, in which a bare number would be found by accident.
    """
    if value is None or isinstance(value, bool):
        return False
    wanted_dates = dates_of(gold)
    if wanted_dates:
        return any(same_date(wanted, one) for wanted in wanted_dates for one in dates_of(str(value)))
    wanted_numbers = numbers_of(gold)
    bare = not re.sub(r"[\d.,$%\s-]|watts?|cast members?|members?|years?|million|minutes|\bm\b", "", gold.lower())
    if bare and wanted_numbers:
        if isinstance(value, int | float):
            return same_number(*wanted_numbers[0], float(value))
        if re.fullmatch(r"\d{4}", gold.strip()) and any(one[0] == int(gold) for one in dates_of(str(value))):
            return True
        return (
            not long
            and not dates_of(str(value))
            and all(any(same_number(*wanted, one) for one, _ in numbers_of(str(value))) for wanted in wanted_numbers)
        )
    if isinstance(value, int | float):
        return any(same_number(number, decimals, float(value)) for number, decimals in wanted_numbers)
    left, right = f" {normalise(gold)} ", f" {normalise(str(value))} "
    if not left.strip() or not right.strip():
        return False
    return (
        left == right
        or (len(left) >= 5 and left in right)
        or (len(right) >= 6 and right in left and len(right.split()) < 12)
        or (len(left) > 8 and not long and fuzz.ratio(left, right) >= 90)
    )


def shown_values(outcome: Outcome) -> list[tuple[Any, bool]]:
    """What a statement asked for: its aggregate, its totals or the projected keys, with whether it is running text."""
    if outcome.summary:
        found = [(_of_summary(outcome), False)]
        if outcome.rows and set(outcome.rows[0]) & {"games"}:
            return found
    else:
        found = []
    if outcome.value is not None:
        found.append((outcome.value, False))
        if outcome.aggregate == "len":
            return found
    for row in outcome.rows:
        for key in outcome.shown:
            if key == "key":
                continue
            long = key == "value" and row.get("key") == "summary"
            found.append((row.get(key), long))
    return found


def _of_summary(outcome: Outcome) -> Any:
    """The total that a statement over a window of games means."""
    source = outcome.source
    if '"gf"' in source or '"ga"' in source:
        return outcome.summary.get("gf" if '"gf"' in source else "ga")
    side = "home_" if '"Home"' in source else "away_" if '"Away"' in source else ""
    what = "wins" if '"W"' in source else "losses" if '"L"' in source else "draws" if '"D"' in source else "games"
    return outcome.summary.get(f"{side}{what}" if side and what in ("wins", "losses") else what)


def answered(question: Question, outcomes: Sequence[Outcome]) -> bool:
    """Whether the facts hold the gold answer."""
    gold = question.gold.lower().strip()
    parts = (
        [part.strip() for part in re.split(r", (?=\d{4}-)|, ", gold)]
        if gold.count(",") > 1 or re.search(r"\d, \d{4}-", gold)
        else []
    )
    if len(parts) > 1 and len(gold) < 600:
        values = [one for outcome in outcomes for one in shown_values(outcome)]
        hits = sum(any(holds(part, value, long=long) for value, long in values) for part in parts)
        if hits >= 0.8 * min(len(parts), 50):
            return True
    if any(holds(gold, value, long=long) for outcome in outcomes for value, long in shown_values(outcome)):
        return True
    return _wins(question, outcomes)


def _wins(question: Question, outcomes: Sequence[Outcome]) -> bool:
    """Whether the gold is the side of a comparison that wins by the statements' values."""
    sides = []
    for outcome in outcomes:
        values = [value for value, long in shown_values(outcome) if value is not None and not long]
        if not values or not outcome.entities:
            continue
        value = values[0]
        if isinstance(value, str):
            days = dates_of(value)
            numbers = numbers_of(value)
            years = re.findall(r"\b[12]\d{3}\b", value)
            if days:
                value = (days[0][0] or 0) * 10_000 + (days[0][1] or 0) * 100 + (days[0][2] or 0)
            elif years:
                value = int(years[0]) * 10_000
            elif numbers:
                value = numbers[0][0]
            else:
                continue
        names = {outcome.entities[0].name, outcome.entities[0].surface, *outcome.entities[0].entity_ids}
        sides.append((float(value), names))
    if len(sides) < 2 or len({value for value, _ in sides}) < 2:
        return False
    least = bool(LEAST.search(question.text))
    if re.search(r"\byounger\b", question.text):
        least = False
    winner = (min if least else max)(sides, key=lambda side: side[0])
    gold = f" {normalise(question.gold)} "
    return any(
        f" {normalise(name)} " in gold or (len(gold) > 5 and gold in f" {normalise(name)} ") for name in winner[1]
    )


# Why not


def verdict(question: Question, program: str, outcomes: Sequence[Outcome], *, unnamed: bool) -> str:
    """`answered`, or the first reason that fits."""
    if answered(question, outcomes) and not unnamed:
        return "answered"
    if program.strip() in ("", "none") or (
        outcomes and all(one.status in ("no_program", "parse_error") for one in outcomes)
    ):
        return "no program"
    if unnamed or any(one.status in ("no_entity", "ambiguous") for one in outcomes):
        return "wrong entity"
    wanted = set().union(*(FUNCTIONS.get(kind, set()) for kind in question.kinds))
    called = {one.function.name for one in outcomes if one.function is not None}
    if wanted and not called & wanted:
        return "wrong function"
    if any(one.status == "unknown_key" for one in outcomes):
        return "wrong function"
    if any(one.windows for one in outcomes):
        return "wrong window"
    if any(one.status in ("empty", "stale", "no_event") for one in outcomes):
        return "not in rows"
    return "other"


class Surfaces:
    """Whether the question names an entity: some name of it stands there."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def named(self, outcome: Outcome, question: str) -> bool:
        if not outcome.rows and outcome.value is None:
            return True
        for entity in outcome.entities:
            statement = select(name_table.c.surface).where(
                name_table.c.entity_id.in_(entity.entity_ids),
                name_table.c.kind.in_((entity.kind, *KINDS)),
            )
            with self._engine.connect() as connection:
                surfaces = list(connection.execute(statement).scalars())
            if not any(named(surface, question) is not None for surface in (*surfaces, entity.surface)):
                return False
        return True


# Running


def load_questions(folder: pathlib.Path) -> list[Question]:
    rows = {row["id"]: row for row in _lines(folder / "crag_kg_qa.jsonl")}
    kinds: dict[str, set[str]] = defaultdict(set)
    for path in sorted((folder / "kg_rows").glob("*.jsonl")):
        for row in _lines(path):
            for qid in row.get("qids") or ():
                kinds[qid].add(row.get("kind", ""))
    found = []
    for mark in _lines(folder / "kg_rows" / "ANSWERABILITY.jsonl"):
        if mark["status"] != "value_hit" or mark["id"] not in rows:
            continue
        usual = USUAL_TIME.get(mark["domain"], OTHER_TIME)
        asked = parse_query_time(rows[mark["id"]].get("query_time") or usual)
        found.append(
            Question(mark["id"], mark["query"], mark["domain"], str(mark["label"]), asked, frozenset(kinds[mark["id"]]))
        )
    return found


def _lines(path: pathlib.Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def stratified(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    """As many of each domain as its share, at least four; all when there is no limit."""
    if not limit or limit >= len(questions):
        return list(questions)
    chance = random.Random(seed)
    by_domain: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_domain[question.domain].append(question)
    chosen = []
    for group in by_domain.values():
        size = min(len(group), max(4, round(limit * len(group) / len(questions))))
        chosen += chance.sample(group, size)
    chance.shuffle(chosen)
    return chosen


class Bench:
    """Writes, runs and judges."""

    def __init__(self, executor: Executor, writers: Mapping[str, Writer], surfaces: Surfaces, seconds: float) -> None:
        self._executor = executor
        self._writers = writers
        self._surfaces = surfaces
        self._seconds = seconds

    async def ask(self, question: Question, mode: str) -> Result:
        began = time.monotonic()
        prompt = completion = 0
        try:
            written = await self._writers[mode].write(
                question.text,
                query_time=question.query_time,
                domain=question.domain,
                budget=Budget(self._seconds),
            )
            program, prompt, completion = written.program, written.prompt_tokens, written.completion_tokens
        except ServiceFailure as error:
            program = f"none # {error.reason}"
        seconds = time.monotonic() - began
        outcomes, text = await asyncio.to_thread(self._run, question, program.partition(" #")[0])
        named_all = all(self._surfaces.named(one, question.text) for one in outcomes)
        return Result(
            question.id,
            question.domain,
            mode,
            question.text,
            question.gold,
            program,
            verdict(question, program, outcomes, unnamed=not named_all),
            [one.status for one in outcomes],
            text,
            not named_all,
            seconds,
            prompt,
            completion,
            any(one.rows or one.value is not None for one in outcomes),
        )

    def _run(self, question: Question, program: str) -> tuple[list[Outcome], str]:
        try:
            outcomes = self._executor.execute(
                program, domain=question.domain, query_time=question.query_time, seconds=5.0
            )
        except KgError as error:
            return [Outcome(program[:200], error.status, message=str(error))], str(error)
        try:
            texts = verbalize(outcomes, CATALOGUE.domains, question.query_time.date(), max_tokens=1_000)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            # A defect is a result too: the question counts as not answered and its text says why.
            return [], f"{type(error).__name__}: {error}"
        return outcomes, "\n".join(texts)


async def run(arguments: argparse.Namespace, folder: pathlib.Path) -> list[Result]:
    console = Console(stderr=True)
    questions = stratified(load_questions(folder), arguments.limit, arguments.seed)
    engine = open_store(arguments.database)
    names = NameIndex(engine, CATALOGUE)
    executor = Executor(engine, names, CATALOGUE)
    encoder = None
    modes = [mode.strip() for mode in arguments.modes.split(",")]
    if set(modes) - {"rules"}:
        encoder = Encoder(arguments.encoder)
        encoder.load()
    copied = examples_in(folder)
    if copied:
        raise SystemExit(f"worked examples that are evaluation questions: {copied}")
    async with http_client() as http:
        llm = LLM(ServiceClient("generator", arguments.generator, http))
        writers = build_writers(llm, CATALOGUE, names, encoder, examples=arguments.examples)
        bench = Bench(executor, writers, Surfaces(engine), arguments.seconds)
        results: list[Result] = []
        bar = counting(console)
        with bar:
            for mode in modes:
                task = bar.add_task(mode, total=len(questions))
                gate = asyncio.Semaphore(8 if mode == "rules" else arguments.concurrency)

                async def one(question: Question, mode: str = mode, task: Any = task, gate: Any = gate) -> Result:
                    async with gate:
                        result = await bench.ask(question, mode)
                    bar.advance(task)
                    tell(mode, len(questions), bar.tasks[task])
                    return result

                results += await asyncio.gather(*(one(question) for question in questions))
    return results


def tell(mode: str, total: int, task: Any) -> None:
    """A line now and then where no bar can be drawn."""
    done = int(task.completed)
    if not sys.stderr.isatty() and (done % 20 == 0 or done == total):
        left = task.time_remaining
        print(f"{mode}: {done} of {total}, {left or 0:.0f} s left", file=sys.stderr, flush=True)


def examples_in(folder: pathlib.Path) -> list[str]:
    """Worked examples whose question, in its normal form, is one of the evaluation data or nearly so."""
    texts = set()
    for path in sorted(folder.glob("crag_*.jsonl")):
        for row in _lines(path):
            texts |= {normalise(str(row[key])) for key in ("query", "question") if row.get(key)}
    return [
        example.query
        for examples in load_library(CATALOGUE).examples.values()
        for example in examples
        if any(fuzz.ratio(normalise(example.query), text) >= 90 for text in texts)
    ]


# Report


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for mode in dict.fromkeys(result.mode for result in results):
        mine = [result for result in results if result.mode == mode]
        rows = {}
        for domain in (*dict.fromkeys(result.domain for result in mine), "all"):
            part = [result for result in mine if domain in ("all", result.domain)]
            facts = [result for result in part if result.with_facts]
            seconds = sorted(result.seconds for result in part)
            rows[domain] = {
                "questions": len(part),
                "reasons": dict(Counter(result.verdict for result in part)),
                "answered": sum(result.verdict == "answered" for result in part) / len(part),
                "unnamed": sum(result.unnamed for result in facts) / max(1, len(facts)),
                "median_s": seconds[len(seconds) // 2],
                "p90_s": seconds[int(len(seconds) * 0.9)],
                "prompt_tokens": sum(result.prompt_tokens for result in part) / len(part),
                "completion_tokens": sum(result.completion_tokens for result in part) / len(part),
            }
        table[mode] = rows
    return table


def report(results: Sequence[Result], arguments: argparse.Namespace, stem: str) -> None:
    summary = summarise(results)
    head = ("mode", "domain", "n", "answered", *REASONS[1:], "unnamed", "median s", "p90 s", "tokens in/out")
    rows = tuple(
        (
            mode,
            domain,
            str(row["questions"]),
            f"{row['answered']:.1%}",
            *(str(row["reasons"].get(reason, 0)) for reason in REASONS[1:]),
            f"{row['unnamed']:.1%}",
            f"{row['median_s']:.3f}",
            f"{row['p90_s']:.3f}",
            f"{row['prompt_tokens']:.0f}/{row['completion_tokens']:.0f}",
        )
        for mode, domains in summary.items()
        for domain, row in domains.items()
    )
    facts = [("questions", f"{arguments.limit or 'all'}, seed {arguments.seed}")]
    text = markdown.write("KG programs", facts, [Table("Answered, and why not", head, rows)], [])
    OUT.mkdir(exist_ok=True)
    (OUT / f"{stem}.md").write_text(text, encoding="utf-8")
    content = {"summary": summary, "results": [asdict(result) for result in results]}
    (OUT / f"{stem}.json").write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="sqlite:///models/kg.sqlite", help="graph with the evaluation rows")
    parser.add_argument("--modes", default="program,rules,function-calling")
    parser.add_argument("--generator", default="http://127.0.0.1:8005", help="root of an OpenAI-compatible server")
    parser.add_argument("--encoder", default="", help="folder or name of a sentence encoder; empty: the bundled one")
    parser.add_argument("--limit", type=int, default=0, help="questions, stratified by domain; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=4, help="worked examples a question is shown")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120.0, help="for writing one program")
    parser.add_argument("--stem", default="kg_eval", help="name of the files under out/")
    arguments = parser.parse_args()
    place = os.environ.get("CRAGMESH_EVAL_DATA")
    if not place:
        sys.exit("CRAGMESH_EVAL_DATA is not set: there are no questions to measure with")
    results = asyncio.run(run(arguments, pathlib.Path(place)))
    report(results, arguments, arguments.stem)


if __name__ == "__main__":
    main()
