"""The commands' work on the folder of a run: ask, judge, merge."""

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx
from pydantic import JsonValue

from lab.evaluator import judging
from lab.evaluator.data import COUNTABLE_BYTES, Item, Skip, Source, chosen
from lab.evaluator.drive import Asking, OnProgress, Progress, ask, drive
from lab.evaluator.errors import BadRun
from lab.evaluator.judge import llm as llm_judge
from lab.evaluator.judging import Agreement
from lab.evaluator.mesh import MeshClient
from lab.evaluator.store import AppendLog, Judgement, Prediction, RunFolder, RunInfo
from lab.evaluator.tokens import TokenCutter
from services.kit.client import http_client
from services.kit.errors import ServiceFailure
from services.kit.generator import model_at
from services.kit.llm import LLM
from services.kit.shard import WHOLE, Shard

# Left-out lines that `run.json` names; it counts all.
MAX_SKIPS_KEPT = 50
GENERATOR_S = 5.0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which questions of a source are asked: all, a random sample, the first few; and of those, which share."""

    timed_only: bool = False
    sample: int | None = None
    seed: int = 0
    limit: int | None = None
    shard: Shard = WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Asking):
    """One evaluation: questions, mesh and folder; after `limit_s` seconds it asks no further question."""

    sources: tuple[Path, ...]
    folder: RunFolder
    gateway_url: str
    api_key: str = ""
    selection: Selection = Selection()
    retry_failed: bool = False
    limit_s: float = math.inf
    command: str = ""
    engine: Literal["here", "ray"] = "here"


@dataclass(slots=True)
class Plan:
    """The questions of a run: which of a source, and how many (None when the source is too large to count)."""

    source: Source
    ids: frozenset[str] | None
    total: int | None
    selection: Selection

    def items(self, done: frozenset[str]) -> Iterator[Item]:
        """The questions that are still to be asked."""
        return (item for item in _selected(self.source, self.ids, self.selection) if item.id not in done)


def _selected(source: Source, ids: frozenset[str] | None, selection: Selection) -> Iterator[Item]:
    chosen_items = (item for item in source.items() if ids is None or item.id in ids)
    return selection.shard.of_items(itertools.islice(chosen_items, selection.limit), lambda item: item.id)


def plan(sources: Sequence[Path], selection: Selection, on_skip: Callable[[Skip], None] = lambda _: None) -> Plan:
    """The questions to ask, after a pass over small sources and any with a sample; left-out lines are told on reading.

    Raises:
        BadSource: a file cannot be read.
    """
    quiet = Source(sources, timed_only=selection.timed_only)
    ids = chosen(quiet, selection.sample, selection.seed) if selection.sample is not None else None
    total = None
    if quiet.size <= COUNTABLE_BYTES:
        total = sum(1 for _ in _selected(quiet, ids, selection))
    elif ids is not None:
        total = sum(map(selection.shard.holds, ids))
    elif selection.limit is not None:
        total = selection.limit // selection.shard.count
    return Plan(Source(sources, on_skip=on_skip, timed_only=selection.timed_only), ids, total, selection)


async def run(
    order: Order,
    generator: LLM | None,
    *,
    on_plan: Callable[[Plan, Progress], None] = lambda _plan, _progress: None,
    on_progress: OnProgress = lambda _: None,
    on_skip: Callable[[Skip], None] = lambda _: None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Progress:
    """Ask what is not answered yet; when it ends early, the same order goes on from there.

    Args:
        generator: counts tokens; an estimate does when None.
        on_plan: told once what is to be done, and what was done earlier.
        transport: how the gateway is reached; the network when None.

    Raises:
        EvaluatorError: why it ended before the last question.
    """
    skips: list[Skip] = []

    def skipped(skip: Skip) -> None:
        skips.append(skip)
        on_skip(skip)

    async with MeshClient(order.gateway_url, api_key=order.api_key, transport=transport) as mesh:
        described = await mesh.describe(order.strategy)
        order = replace(order, strategy=str(described["strategy"]))
        planned = await asyncio.to_thread(plan, order.sources, order.selection, skipped)
        cutter = TokenCutter(generator)
        counter = await cutter.probe()
        info = RunInfo(
            settings=_settings(order, planned.source),
            command=order.command,
            mesh=described | {"concurrency": order.concurrency, "generator": await _models(generator)},
            token_counter=counter,
        )
        with order.folder.alone():
            progress = await _ask(order, info, planned, cutter, mesh, on_plan, on_progress)
    kept = tuple((skip.place, skip.why) for skip in skips[:MAX_SKIPS_KEPT])
    finished = info.model_copy(
        update={"finished": not progress.out_of_time, "skipped": kept, "skipped_count": len(skips)}
    )
    await asyncio.to_thread(order.folder.save, finished)
    return progress


async def _ask(
    order: Order,
    info: RunInfo,
    planned: Plan,
    cutter: TokenCutter,
    mesh: MeshClient,
    on_plan: Callable[[Plan, Progress], None],
    on_progress: OnProgress,
) -> Progress:
    """Ask the rest of a plan, and write the answers."""
    earlier = await asyncio.to_thread(order.folder.begin, info)
    before, now = earlier.mesh.get("answers_by") if earlier else "", info.mesh.get("answers_by")
    if earlier and before and now and before != now:
        await asyncio.to_thread(order.folder.save, earlier)
        raise BadRun(f"{order.folder.path} has answers of {before}, and {now} answers now: choose another folder")
    if order.retry_failed:
        await asyncio.to_thread(order.folder.forget_failed)
    log = await asyncio.to_thread(AppendLog, order.folder.predictions_file)
    try:
        progress, done = await asyncio.to_thread(_earlier, order.folder)
        on_plan(planned, progress)
        until = time.monotonic() + order.limit_s
        predict: Callable[[Item], Awaitable[Prediction]] = partial(ask, mesh=mesh, cutter=cutter, asking=order)
        if order.engine == "ray":
            from lab.evaluator.on_ray import asker

            predict = await asyncio.to_thread(asker, order.gateway_url, order.api_key, order)
        items, concurrency = planned.items(done), order.concurrency
        await drive(items, log, predict, progress, on_progress, concurrency=concurrency, until=until)
    finally:
        await asyncio.shield(asyncio.to_thread(log.close))
    return progress


def _settings(order: Order, source: Source) -> dict[str, JsonValue]:
    """Settings as they are compared between runs."""
    selection = order.selection
    settings: dict[str, Any] = {
        "sources": source.fingerprint(),
        "strategy": order.strategy,
        "budget_s": order.budget_s,
        "timed_only": selection.timed_only or None,
        "sample": selection.sample,
        "seed": selection.seed if selection.sample is not None else None,
        "limit": selection.limit,
        "shard": str(selection.shard) if selection.shard.count > 1 else None,
        "every_answer": order.every_answer or None,
        "options": order.options.model_dump(exclude_none=True) or None,
        "keep_contexts": order.keep_contexts or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


async def _models(generator: LLM | None) -> JsonValue:
    """Names of the generator's models; empty when none answers from here."""
    if generator is None:
        return []
    try:
        return list[JsonValue](sorted(await generator.models(allow_s=GENERATOR_S)))
    except ServiceFailure:
        return []


def _earlier(folder: RunFolder) -> tuple[Progress, frozenset[str]]:
    progress = Progress()
    done = set()
    for line in folder.predictions():
        done.add(line.id)
        progress.earlier += 1
        progress.failed += bool(line.error)
        progress.count(line)
    return progress, frozenset(done)


@dataclass(frozen=True, slots=True)
class Read:
    """A run's predictions, and how many lines of them could not be read."""

    info: RunInfo
    predictions: list[Prediction]
    unread: int


def read(folder: RunFolder, on_bad: Callable[[str], None] = lambda _: None) -> Read:
    """A run's predictions, the last of each question.

    Raises:
        BadRun: the folder holds no run, or no prediction yet.
    """
    info = folder.info()
    bad: list[str] = []
    predictions = list({line.id: line for line in folder.predictions(bad.append)}.values())
    for message in bad:
        on_bad(message)
    if not predictions:
        raise BadRun(f"{folder.predictions_file}: holds no predictions")
    return Read(info, predictions, len(bad))


def merge(folders: Sequence[RunFolder], into: RunFolder, on_bad: Callable[[str], None] = lambda _: None) -> None:
    """Join the shards of a run into one, by the order of ids; what one shard lacks can be joined again later.

    Raises:
        BadRun: they are not all the shards of one run.
    """
    runs = [read(folder, on_bad) for folder in folders]
    shards = [Shard.of(str(run.info.settings.get("shard") or "")) for run in runs]
    expected = {Shard(index, shards[0].count) for index in range(shards[0].count)}
    if len(shards) != len(expected) or set(shards) != expected:
        raise BadRun(f"these are the shards {', '.join(map(str, shards))}, not those of one run, each once")
    unfinished = [folder for folder, run in zip(folders, runs, strict=True) if not run.info.finished]
    for folder in unfinished:
        on_bad(f"{folder.path}: the run is not finished")
    first, *others = [{key: value for key, value in run.info.settings.items() if key != "shard"} for run in runs]
    if any(settings != first for settings in others):
        raise BadRun("the runs have other settings: they are not shards of one")
    with into.alone():
        into.begin(runs[0].info.model_copy(update={"settings": first, "finished": not unfinished}))
        into.replace(sorted((line for run in runs for line in run.predictions), key=lambda line: line.id))


def judge_by_rules(folder: RunFolder, predictions: Sequence[Prediction]) -> dict[str, Judgement]:
    """Judge a run with `rules`, and keep the verdicts in its folder."""
    judgements = judging.by_rules(predictions)
    folder.save_judgements("rules", judgements)
    return judgements


async def judge_by_model(
    folder: RunFolder,
    predictions: Sequence[Prediction],
    *,
    url: str,
    model: str,
    api_key: str,
    allow_s: float,
    concurrency: int,
    on_done: Callable[[], None] = lambda: None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> dict[str, Judgement]:
    """Judge a run with a model, and keep the verdicts; those of an unfinished earlier judging are reused.

    Raises:
        Unreachable: the model's server is gone.
    """
    cache = await asyncio.to_thread(AppendLog, folder.path / "judge-cache.jsonl")
    try:
        async with http_client(transport) as http:
            judge = llm_judge.LlmJudge(
                model_at(url, http, model=model, api_key=api_key, name="judge"), cache, allow_s=allow_s
            )
            await judge.connect()
            judgements = await judging.by_model(predictions, judge.judge, concurrency=concurrency, on_done=on_done)
    finally:
        await asyncio.shield(asyncio.to_thread(cache.close))
    await asyncio.to_thread(folder.save_judgements, llm_judge.NAME, judgements)
    return judgements


def verdicts(folder: RunFolder, predictions: Sequence[Prediction], judge: str) -> dict[str, Judgement]:
    """The verdicts of a judge on a run: `rules` judges anew, other judges' are read from the folder.

    Raises:
        BadRun: that judge has not judged all of the run.
    """
    if judge == "rules":
        return judge_by_rules(folder, predictions)
    digests = {line.id: judging.digest_of(line) for line in predictions}
    # A question that was asked again has another answer than was judged.
    judgements = {
        line.id: line for line in folder.judgements(judge).values() if not line.of or line.of == digests.get(line.id)
    }
    if lacking := sum(line.id not in judgements for line in predictions):
        raise BadRun(
            f"{folder.judgements_file(judge)} lacks {lacking} of {len(predictions)} verdicts: "
            f"run `cragmesh eval judge {folder.path} --judge {judge}` first"
        )
    return {line.id: judgements[line.id] for line in predictions}


def agreements(folder: RunFolder, judge: str, judgements: dict[str, Judgement]) -> dict[str, Agreement]:
    """How the judge agrees with the others that have judged this run."""
    others = {other: folder.judgements(other) for other in judging.JUDGES if other != judge}
    return {other: judging.agreement(judgements, lines) for other, lines in others.items() if lines}
