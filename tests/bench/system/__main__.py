"""The whole system beside what a user would pick: a question and its pages in, an answer out, nothing else given.

    python -m tests.bench.system --out DIR [--sets freshqa,crag,squad,multihop,graph] [--limit 100]
        [--systems naive-rag,db3,electric-sheep,weknow,adaptive,haystack,langchain] [--concurrency 4] [--judge llm]

FreshQA's questions and CRAG's records come with their pages; SQuAD's and the multi-hop set's articles are collections;
the graph's questions are asked of a mesh into whose graph the rows were loaded, and of a collection of the same rows
as texts, for who has no graph. The strategies are asked through the running mesh, the peers in processes of their own
(`.venv-bench`, else this environment) with the mesh's encoder; all use one generator, at CRAGMESH_GENERATOR_URL. The
same command goes on after a kill, run by run; a smaller sample lies within a larger one, and all systems have the same.
Leaves a run a set and system, `report.md`, `summary.json` and a picture. The data are found through CRAGMESH_EVAL_DATA.
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.evaluator import runs
from lab.evaluator.data import Item, Source
from lab.evaluator.errors import EvaluatorError
from lab.evaluator.settings import EvaluatorSettings
from lab.evaluator.store import Judgement, Prediction, RunFolder
from proto.answer import MAX_BUDGET_S
from services.cli.console import say
from services.cli.eval import ask_judge, ask_questions
from services.cli.progress import counted
from services.cli.services import root
from services.gateway.access import OWNER, current_scope
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.client import http_client
from tests.bench import common
from tests.bench.system import report, stages
from tests.bench.system.sets import SETS, Prepared, prepare
from tests.load.saturation import serving_peer
from tests.ports import free_port

STRATEGIES = tuple(stages.RETRIEVALS)
PEERS = ("haystack", "langchain")
# A peer has no deadline: how long it takes is what is measured.
PEER_BUDGET_S = 120.0
PEER_START_S = 1_800.0
SEED = 7


@dataclass(frozen=True, slots=True)
class Bench:
    """The options of the command line, the settings, and the moment at which time is up."""

    options: argparse.Namespace
    settings: GatewaySettings
    evaluator: EvaluatorSettings
    until: float

    def folder(self, name: str, system: str) -> RunFolder:
        return RunFolder(self.options.out / name / system)

    @property
    def gateway(self) -> str:
        return root("gateway", self.settings)

    async def ask(self, prepared: Prepared, system: str) -> bool:
        """Ask a set's questions of one system, from where an earlier time ended; returns whether it is done."""
        folder = self.folder(prepared.name, system)
        if self._done(folder):
            return True
        selection = runs.Selection(sample=self.options.limit or None, seed=SEED)
        async with self._at(prepared, system) as url:
            order = runs.Order(
                sources=(prepared.questions,),
                folder=folder,
                gateway_url=url,
                api_key=self.evaluator.api_key,
                strategy=system,
                budget_s=PEER_BUDGET_S if system in PEERS else MAX_BUDGET_S,
                concurrency=self.options.concurrency,
                selection=selection,
                keep_contexts=True,
                limit_s=self.until - time.monotonic(),
            )
            progress = await ask_questions(order, self.settings, tokenizer=True)
        return not progress.out_of_time

    def _done(self, folder: RunFolder) -> bool:
        with contextlib.suppress(EvaluatorError):
            info = folder.info()
            return info.finished and info.settings.get("sample") == (self.options.limit or None)
        return False

    @contextlib.asynccontextmanager
    async def _at(self, prepared: Prepared, system: str) -> AsyncIterator[str]:
        if system not in PEERS:
            yield self.gateway
            return
        more = ["--device", self.options.peer_device]
        if prepared.documents:
            more += ["--collection", f"{prepared.collection}={prepared.documents}"]
        url = root("generator", self.settings)
        model = ["--model", self.settings.generator_model] if self.settings.generator_model else []
        async with serving_peer(
            system, free_port(), url, *more, *model, threads=self.options.threads, within_s=PEER_START_S
        ) as address:
            yield address

    async def judged(self, prepared: Prepared, system: str) -> report.Outcomes | None:
        """The outcomes of a run as far as it goes, judged first where they are not; None where there is no run."""
        folder = self.folder(prepared.name, system)
        if not folder.predictions_file.exists():
            return None
        predictions = (await asyncio.to_thread(runs.read, folder)).predictions
        if self.options.judge == "llm":
            judge_url = self.evaluator.judge_url or root("generator", self.settings)
            settings = self.evaluator.model_copy(update={"judge_url": judge_url})
            judgements = await ask_judge(folder, predictions, settings, self.options.concurrency)
        else:
            judgements = await asyncio.to_thread(runs.judge_by_rules, folder, predictions)
        places = await self._places(prepared, folder, predictions, judgements)
        lost = (stages.stage(line, judgements[line.id], places.get(line.id)) for line in predictions)
        return report.Outcomes(
            outcomes={name: line.outcome for name, line in judgements.items()},
            seconds=[line.seconds for line in predictions if not line.error],
            lost=[stage for stage in lost if stage],
            kinds={line.id: line.label_kind for line in predictions},
        )

    async def _places(
        self,
        prepared: Prepared,
        folder: RunFolder,
        predictions: Sequence[Prediction],
        judgements: Mapping[str, Judgement],
    ) -> dict[str, stages.Place]:
        current_scope.set(OWNER)
        items = {item.id: item for item in await asyncio.to_thread(_items, prepared)}
        texts = [row["text"] for row in common.read_rows(prepared.documents)] if prepared.documents else []
        async with http_client() as http:
            finder = stages.Finder(Mesh.connect(self.settings, http), texts)
            with counted(f"looking where {folder.name} lost {prepared.name}") as advance:
                return await stages.find(folder, predictions, judgements, items, finder, lambda: advance(1))


def _items(prepared: Prepared) -> list[Item]:
    return list(Source([prepared.questions]).items())


def index(prepared: Prepared) -> None:
    """Put a set's documents into its collection; those that are there already cost nothing."""
    command = (sys.executable, "-m", "services.cli", "index", str(prepared.documents), "-c", prepared.collection)
    subprocess.run(command, check=True)  # noqa: S603 - our own command


async def measure(bench: Bench, data: Path) -> bool:
    """Ask all, judge all, report; returns whether every run is done."""
    whole = True
    sets = [prepare(name, data, bench.options.out / "sets") for name in bench.options.sets]
    for prepared in () if bench.options.report_only else sets:
        if prepared.documents and set(bench.options.systems) - set(PEERS):
            await asyncio.to_thread(index, prepared)
        for system in bench.options.systems:
            if time.monotonic() >= bench.until:
                whole = False
                continue
            say(f"{prepared.name}, {system}")
            try:
                whole &= await bench.ask(prepared, system)
            except (EvaluatorError, RuntimeError, TimeoutError) as error:
                # The other runs need not wait for what is wrong with this one.
                say(f"{prepared.name}, {system}: {error}", "red")
                whole = False
    results: dict[str, dict[str, report.Outcomes]] = {}
    for prepared in sets:
        for system in (*STRATEGIES, *PEERS):
            if outcomes := await bench.judged(prepared, system):
                results.setdefault(prepared.name, {})[system] = outcomes
    if results:
        for path in report.write(results, bench.options.out, facts=facts(bench, sets)):
            say(str(path), "dim")
    return whole


def facts(bench: Bench, sets: Sequence[Prepared]) -> list[tuple[str, str]]:
    """The circumstances of the measurement, from the first run that has them."""
    for prepared in sets:
        for system in STRATEGIES:
            with contextlib.suppress(EvaluatorError):
                mesh = bench.folder(prepared.name, system).info().mesh
                generator, concurrency = str(mesh.get("answers_by")), str(mesh.get("concurrency"))
                return [("judge", bench.options.judge), ("generator", generator), ("at once", concurrency)]
    return [("judge", bench.options.judge)]


def names(text: str, choices: Sequence[str]) -> list[str]:
    """Names by commas.

    Raises:
        ArgumentTypeError: one of them is no choice.
    """
    chosen = common.names(text)
    if unknown := sorted(set(chosen) - set(choices)):
        raise argparse.ArgumentTypeError(f"no {unknown[0]!r}; there are {', '.join(choices)}")
    return chosen


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = common.parser(__doc__)
    systems = (*STRATEGIES, *PEERS)
    parser.add_argument("--out", type=Path, default=Path("out/eval-system"))
    parser.add_argument("--sets", type=lambda text: names(text, tuple(SETS)), default=list(SETS))
    parser.add_argument("--systems", type=lambda text: names(text, systems), default=list(systems))
    parser.add_argument("--limit", type=int, default=100, help="questions of a set, drawn by a seed; all when 0")
    parser.add_argument("--concurrency", type=int, default=2, help="questions in flight at once")
    parser.add_argument("--judge", choices=("rules", "llm"), default="rules", help="llm: at CRAGMESH_JUDGE_URL")
    parser.add_argument("--peer-device", default="cpu", help="of the peers' encoder")
    parser.add_argument("--threads", type=int, default=2, help="of the peers' encoder")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds after which none is asked")
    parser.add_argument("--report-only", action="store_true", help="ask nothing: judge and report what is there")
    return parser.parse_args(argv)


def main() -> int:
    options = arguments()
    folder = common.evaluation_data("eval-system", "there are no questions")
    bench = Bench(options, GatewaySettings(), EvaluatorSettings(), time.monotonic() + options.time_limit)
    whole = asyncio.run(measure(bench, folder))
    if not whole:
        say("not all is measured: the same command goes on", "yellow")
    return int(not whole)


if __name__ == "__main__":
    sys.exit(main())
