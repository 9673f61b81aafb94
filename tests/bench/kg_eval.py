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
import calendar
import pathlib
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import yaml
from rapidfuzz import fuzz
from sqlalchemy import Engine, select

from lab.evaluator.report import markdown
from lab.evaluator.report.tables import Table
from proto.base import parse_query_time
from services.cli.progress import counted
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
from services.kit.precision import choose_precision
from tests.bench import common

REASONS = ("answered", "no program", "wrong entity", "wrong function", "wrong window", "not in rows", "other")
# Most of the questions of a domain were asked at about this time; it stands in where a record has none.
USUAL_TIME = {"finance": "02/28/2024, 08:00:00 PT", "sports": "03/15/2024, 16:00:00 PT"}
OTHER_TIME = "03/19/2024, 23:30:00 PT"
# Kinds of rows of the evaluation data -> functions that return them.
FUNCTIONS: Mapping[str, list[str]] = yaml.safe_load(pathlib.Path(__file__).with_name("kg_functions.yaml").read_text())
# Kinds whose names may stand for an entity of another kind.
KINDS = ("company", "movie", "movie_person", "artist", "song", "nba_team", "soccer_team", "open")
MONTHS = tuple(name.lower() for name in calendar.month_abbr[1:])
LEAST = re.compile(
    r"\b(?:lower|lowest|fewer|fewest|less|least|smaller|smallest|shorter|cheaper|older|elder|earlier|first|"
    r"longer history|extensive histor\w+|brighter|oldest)\b"
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
    dates: list[Date] = []
    text = text.lower()
    for year, month, day in re.findall(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b", text):
        dates.append((int(year), int(month), int(day) if day else None))
    for month, day, year in re.findall(r"\b(\d{1,2})/(\d{1,2})/(\d{2,4})\b", text):
        dates.append((int(year), int(month), int(day)))
    name = "|".join(MONTHS)
    for month, day, year in re.findall(rf"\b({name})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", text):
        dates.append((int(year), MONTHS.index(month) + 1, int(day)))
    for day, month, year in re.findall(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({name})[a-z]*\.?,? (\d{{4}})\b", text):
        dates.append((int(year), MONTHS.index(month) + 1, int(day)))
    return dates


def same_date(gold: Date, value: Date) -> bool:
    year = gold[0] == value[0] or (
        gold[0] is not None and gold[0] < 100 and value[0] is not None and value[0] % 100 == gold[0]
    )
    return year and all(g is None or g == v for g, v in zip(gold[1:], value[1:], strict=True))


def numbers_of(text: str) -> list[tuple[float, int]]:
    """Numbers of a text with the decimals that they are written with."""
    numbers = []
    for match in re.finditer(r"(?<![\w.])-?\$?-?\d[\d,]*(?:\.\d+)?(?![\w-]*\d)", text):
        plain = match[0].replace("$", "").replace(",", "").rstrip(".")
        numbers.append((float(plain), len(plain.partition(".")[2])))
    return numbers


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
    gold_dates = dates_of(gold)
    if gold_dates:
        return any(same_date(date, one) for date in gold_dates for one in dates_of(str(value)))
    gold_numbers = numbers_of(gold)
    bare = not re.sub(r"[\d.,$%\s-]|watts?|cast members?|members?|years?|million|minutes|\bm\b", "", gold.lower())
    if bare and gold_numbers:
        if isinstance(value, int | float):
            return same_number(*gold_numbers[0], float(value))
        if re.fullmatch(r"\d{4}", gold.strip()) and any(one[0] == int(gold) for one in dates_of(str(value))):
            return True
        return (
            not long
            and not dates_of(str(value))
            and all(any(same_number(*number, one) for one, _ in numbers_of(str(value))) for number in gold_numbers)
        )
    if isinstance(value, int | float):
        return any(same_number(number, decimals, float(value)) for number, decimals in gold_numbers)
    left, right = f" {normalise(gold)} ", f" {normalise(str(value))} "
    if not left.strip() or not right.strip():
        return False
    return (
        left == right
        or (len(left) >= 5 and left in right)
        or (len(right) >= 6 and right in left and len(right.split()) < 12)
        or (len(left) > 8 and not long and fuzz.ratio(left, right) >= 90)
    )


def values_of(outcome: Outcome) -> list[tuple[Any, bool]]:
    """The values that a statement asks for, each with whether it is running text: aggregate, totals, projected keys."""
    values: list[tuple[Any, bool]] = []
    if outcome.summary:
        values.append((_of_summary(outcome), False))
        if outcome.rows and "games" in outcome.rows[0]:
            return values
    if outcome.value is not None:
        values.append((outcome.value, False))
        if outcome.aggregate == "len":
            return values
    for row in outcome.rows:
        is_long = row.get("key") == "summary"
        values += [(row.get(key), is_long and key == "value") for key in outcome.shown if key != "key"]
    return values


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
    values = [one for outcome in outcomes for one in values_of(outcome)]

    def found(text: str) -> bool:
        return any(holds(text, value, long=long) for value, long in values)

    if len(gold) < 600 and (gold.count(",") > 1 or re.search(r"\d, \d{4}-", gold)):
        parts = [part.strip() for part in gold.split(", ")]
        if len(parts) > 1 and sum(map(found, parts)) >= 0.8 * min(len(parts), 50):
            return True
    return found(gold) or _wins(question, outcomes)


def _wins(question: Question, outcomes: Sequence[Outcome]) -> bool:
    """Whether the gold is the side of a comparison that wins by the statements' values."""
    sides = []
    for outcome in outcomes:
        values = [value for value, long in values_of(outcome) if value is not None and not long]
        if not values or not outcome.entities:
            continue
        value = values[0]
        if isinstance(value, str):
            if days := dates_of(value):
                value = (days[0][0] or 0) * 10_000 + (days[0][1] or 0) * 100 + (days[0][2] or 0)
            elif years := re.findall(r"\b[12]\d{3}\b", value):
                value = int(years[0]) * 10_000
            elif numbers := numbers_of(value):
                value = numbers[0][0]
            else:
                continue
        names = {outcome.entities[0].name, outcome.entities[0].surface, *outcome.entities[0].entity_ids}
        sides.append((float(value), names))
    if len(sides) < 2 or len({value for value, _ in sides}) < 2:
        return False
    least = LEAST.search(question.text) and not re.search(r"\byounger\b", question.text)
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
    suitable = set().union(*(FUNCTIONS.get(kind, ()) for kind in question.kinds))
    called = {one.function.name for one in outcomes if one.function is not None}
    if suitable and not called & suitable:
        return "wrong function"
    if any(one.status == "unknown_key" for one in outcomes):
        return "wrong function"
    if any(one.windows for one in outcomes):
        return "wrong window"
    if any(one.status in ("empty", "stale", "no_event") for one in outcomes):
        return "not in rows"
    return "other"


def is_named(engine: Engine, outcome: Outcome, question: str) -> bool:
    """Whether the question holds a name of each entity that facts were found for."""
    if not outcome.rows and outcome.value is None:
        return True
    for entity in outcome.entities:
        statement = select(name_table.c.surface).where(
            name_table.c.entity_id.in_(entity.entity_ids),
            name_table.c.kind.in_((entity.kind, *KINDS)),
        )
        with engine.connect() as connection:
            surfaces = list(connection.execute(statement).scalars())
        if not any(named(surface, question) is not None for surface in (*surfaces, entity.surface)):
            return False
    return True


# Running


def load_questions(folder: pathlib.Path) -> list[Question]:
    times = {row["id"]: row.get("query_time") for row in common.read_rows(folder / "crag_kg_qa.jsonl")}
    kinds: dict[str, set[str]] = defaultdict(set)
    for path in sorted((folder / "kg_rows").glob("*.jsonl")):
        for row in common.read_rows(path):
            for qid in row.get("qids") or ():
                kinds[qid].add(row.get("kind", ""))
    questions = []
    for mark in common.read_rows(folder / "kg_rows" / "ANSWERABILITY.jsonl"):
        id, domain = mark["id"], mark["domain"]
        if mark["status"] == "value_hit" and id in times:
            moment = parse_query_time(times[id] or USUAL_TIME.get(domain, OTHER_TIME))
            questions.append(Question(id, mark["query"], domain, str(mark["label"]), moment, frozenset(kinds[id])))
    return questions


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


@dataclass(frozen=True, slots=True)
class Bench:
    """Writes, runs and judges programs.

    Args:
        writers: by mode.
        engine: of the graph.
        seconds: for writing one program.
    """

    executor: Executor
    writers: Mapping[str, Writer]
    engine: Engine
    seconds: float

    async def ask(self, question: Question, mode: str) -> Result:
        began = time.monotonic()
        prompt = completion = 0
        try:
            draft = await self.writers[mode].write(
                question.text,
                query_time=question.query_time,
                domain=question.domain,
                budget=Budget(self.seconds),
            )
            program, prompt, completion = draft.program, draft.prompt_tokens, draft.completion_tokens
        except ServiceFailure as error:
            program = f"none # {error.reason}"
        seconds = time.monotonic() - began
        outcomes, text = await asyncio.to_thread(self._run, question, program.partition(" #")[0])
        unnamed = not all(is_named(self.engine, one, question.text) for one in outcomes)
        return Result(
            question.id,
            question.domain,
            mode,
            question.text,
            question.gold,
            program,
            verdict(question, program, outcomes, unnamed=unnamed),
            [one.status for one in outcomes],
            text,
            unnamed,
            seconds,
            prompt,
            completion,
            any(one.rows or one.value is not None for one in outcomes),
        )

    def _run(self, question: Question, program: str) -> tuple[list[Outcome], str]:
        try:
            outcomes = self.executor.execute(
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
    questions = stratified(load_questions(folder), arguments.limit, arguments.seed)
    engine = open_store(arguments.database)
    names = NameIndex(engine, CATALOGUE)
    executor = Executor(engine, names, CATALOGUE)
    encoder = None
    modes = common.names(arguments.modes)
    if set(modes) - {"rules"}:
        encoder = Encoder(arguments.encoder, precision=choose_precision(model=arguments.encoder))
        encoder.load()
    if copied := examples_in(folder):
        raise SystemExit(f"worked examples that are evaluation questions: {copied}")
    async with http_client() as http:
        llm = LLM(ServiceClient("generator", arguments.generator, http))
        writers = build_writers(llm, CATALOGUE, names, encoder, examples=arguments.examples)
        bench = Bench(executor, writers, engine, arguments.seconds)

        async def ask_all(mode: str) -> list[Result]:
            gate = asyncio.Semaphore(8 if mode == "rules" else arguments.concurrency)
            with counted(mode, len(questions), line_every=20) as advance:

                async def ask(question: Question) -> Result:
                    async with gate:
                        result = await bench.ask(question, mode)
                    advance(1)
                    return result

                return await asyncio.gather(*(ask(question) for question in questions))

        return [result for mode in modes for result in await ask_all(mode)]


def examples_in(folder: pathlib.Path) -> list[str]:
    """Worked examples whose question, in its normal form, is one of the evaluation data or nearly so."""
    texts = set()
    for path in sorted(folder.glob("crag_*.jsonl")):
        for row in common.read_rows(path):
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


def report(results: Sequence[Result], arguments: argparse.Namespace) -> None:
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
    content = {"summary": summary, "results": [asdict(result) for result in results]}
    common.write_json(common.OUT / f"{arguments.stem}.json", content)
    (common.OUT / f"{arguments.stem}.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    parser = common.parser(__doc__)
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
    folder = common.evaluation_data("eval-kg", "there are no questions", status=1)
    report(asyncio.run(run(arguments, folder)), arguments)


if __name__ == "__main__":
    main()
