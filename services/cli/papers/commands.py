"""The commands `cragmesh papers tune` and `cragmesh papers eval`."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from pydantic import ValidationError
from rich.table import Table

from services.cli.console import as_typed, err, fail, out, say, write
from services.cli.ending import PROBLEM, UNREACHABLE, USAGE
from services.cli.progress import counting

if TYPE_CHECKING:
    from lab.papers.data import Benchmark
    from lab.papers.report import Ablation
    from services.gateway.mesh import Mesh
    from services.gateway.papers.candidates import Pool
    from services.gateway.settings import GatewaySettings

app = typer.Typer(
    name="papers",
    help="Find the documents that answer a question: tune the ensemble's weights, and measure each step.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
# Where a run keeps its weights: to replace the shipped ones, which everybody asks with, takes a `--to`.
WEIGHTS = "weights.json"
# Of the services in this process: batches of documents take longer than any request may.
DEADLINE_S = 600.0
# Lines of progress where no one watches a bar.
SAY_EVERY = 25

Data = Annotated[
    Path,
    typer.Argument(help="A test collection: AQA's files, or docs.jsonl, queries.jsonl and qrels.*."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The run's folder; the same one goes on after a kill.")]
To = Annotated[
    Path | None,
    typer.Option(
        "--to", help=f"Where CRAGMESH_PAPERS_WEIGHTS is to find the weights; {WEIGHTS} in --out if not given."
    ),
]
Existing = Annotated[
    str,
    typer.Option("--collection", help="A collection of the running mesh that holds the documents already."),
]
Ask = Annotated[bool, typer.Option("--enhance/--no-enhance", help="Ask the generator for what is not in the folder.")]
Concurrency = Annotated[int, typer.Option("-c", min=1, max=64, help="Questions that the generator works on at once.")]
Limit = Annotated[int | None, typer.Option(min=2, help="The first so many questions.")]


@app.command()
def tune(
    data: Data,
    folder: Out = Path("out/papers"),
    to: To = None,
    collection: Existing = "",
    enhance: Ask = True,
    concurrency: Concurrency = 4,
    limit: Limit = None,
) -> None:
    """Find weights by coordinate search on all questions, after showing what they are worth on questions kept back."""
    _papers(data, folder, collection, enhance=enhance, concurrency=concurrency, limit=limit, to=to or folder / WEIGHTS)


@app.command("eval")
def evaluate(
    data: Data,
    folder: Out = Path("out/papers"),
    collection: Existing = "",
    enhance: Ask = True,
    concurrency: Concurrency = 4,
    limit: Limit = None,
) -> None:
    """Measure each step: retrievers alone, fusion, enhancement, re-scoring, weights tuned on the other half."""
    _papers(data, folder, collection, enhance=enhance, concurrency=concurrency, limit=limit, to=None)


def _papers(
    data: Path,
    folder: Path,
    collection: str,
    *,
    enhance: bool,
    concurrency: int,
    limit: int | None,
    to: Path | None,
) -> None:
    # matplotlib and the services take seconds to import, which no other command should wait for.
    from lab.evaluator.errors import BadRun, BadSource, EvaluatorError, Unreachable
    from lab.evaluator.settings import EvaluatorSettings
    from lab.evaluator.store import write_whole
    from lab.papers import ablation, report
    from lab.papers import data as reading

    try:
        with err.status("reading"):
            benchmark = reading.read(data, documents=not collection)
        if limit:
            kept = dict(list(benchmark.questions.items())[:limit])
            benchmark = reading.Benchmark(
                benchmark.name, benchmark.documents, kept, benchmark.qrels, benchmark.left_out
            )
        folder.mkdir(parents=True, exist_ok=True)
        if to is not None and (to.is_dir() or not os.access(to.parent, os.W_OK)):
            fail(f"--to {to}: no file can be written there", USAGE)
        pools, facts = asyncio.run(_collect(benchmark, folder, collection, enhance=enhance, concurrency=concurrency))
        with err.status("measuring and tuning"):
            found = ablation.ablate(pools, benchmark, [("command", as_typed(EvaluatorSettings().eval_data)), *facts])
            written = report.write(found, folder / "report")
        _show(found)
        if to is not None:
            known = dict(facts)
            documents, enhancement = known["documents"], known["enhancement"]
            about = f"{benchmark.name}: {len(pools)} questions; {documents}; enhancement: {enhancement}"
            with err.status("tuning on all questions"):
                choice = ablation.tune(pools, benchmark, list(pools), tuned_on=about)
            write_whole(to, (choice.weights.model_dump_json(indent=1) + "\n").encode())
            written.append(to)
    except (BadSource, BadRun) as error:
        fail(str(error), USAGE)
    except Unreachable as error:
        fail(f"{error}; what was found until then is kept, the same command goes on", UNREACHABLE)
    except (EvaluatorError, OSError, ValueError, ValidationError) as error:
        fail(str(error), PROBLEM)
    for path in written:
        write(str(path))


def _show(found: "Ablation") -> None:
    from lab.papers import report

    for table in report.tables(found):
        shown = Table(*table.head, title=table.title, caption=table.note)
        for row in table.rows:
            shown.add_row(*row)
        out.print(shown)
    gain = found.gain
    say(f"over the best single list: {gain.value:+.1%}, 95 % interval {gain.low:+.1%} to {gain.high:+.1%}")


async def _collect(
    benchmark: "Benchmark", folder: Path, collection: str, *, enhance: bool, concurrency: int
) -> tuple[dict[str, "Pool"], list[tuple[str, str]]]:
    from lab.papers import collect
    from services.gateway.papers.enhance import Prompts

    prompts = Prompts.read()
    questions = len(benchmark.questions)
    async with _mesh(folder, collection) as (mesh, settings, fingerprints):
        if collection:
            info = await collect.info(mesh, collection)
        else:
            with _told("indexing", len(benchmark.documents)) as step:
                name = collect.collection_name(benchmark.documents)
                info = await collect.index(mesh, name, benchmark.documents, step)
        reranker = await collect.reranker_model(mesh)
        models = {"reranker": reranker, **fingerprints}
        collector = collect.Collector(benchmark, mesh, settings, folder, info, models)
        if enhance and not (await mesh.ready(allow_s=2.0))["generator"]:
            say("the generator does not answer: only enhancements that the folder holds are used", "yellow")
            enhance = False
        with _told("enhancing", questions) as step:
            enhanced = await collector.enhanced(prompts, ask=enhance, concurrency=concurrency, on_step=step)
        with _told("searching and re-scoring", questions) as step:
            pools = await collector.pools(enhanced, prompts, step)
    facts = [
        ("documents", f"{info.documents:,} in {info.name}, indexed by {', '.join(info.encoders)} and BM25"),
        ("questions", f"{questions} ({benchmark.left_out} without a relevant document left out)"),
        ("enhancement", collector.description(enhanced)),
        ("lists", f"{settings.papers_candidates} documents each; {settings.papers_rescored} re-scored by {reranker}"),
        ("intervals", "95 %, Bayesian bootstrap over questions, 4,000 resamples, fixed seed"),
    ]
    return pools, facts


@asynccontextmanager
async def _mesh(folder: Path, collection: str) -> AsyncIterator[tuple["Mesh", "GatewaySettings", dict[str, str]]]:
    """The running mesh for a collection of its own, else retriever and reranker in this process.

    With the fingerprints of encoders by name, which only what runs in this process tells.
    """
    from lab.papers.in_process import mesh_of
    from services.gateway.settings import GatewaySettings
    from services.kit.precision import has_torch
    from services.kit.telemetry import configure_logging
    from services.reranker.app import create_app as create_reranker
    from services.reranker.settings import RerankerSettings
    from services.retriever.app import State
    from services.retriever.app import create_app as create_retriever
    from services.retriever.settings import RetrieverSettings

    configure_logging("papers", "ERROR")
    if has_torch():
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
    # A measurement waits for what a request would go without.
    settings = GatewaySettings(papers_rescore_cap_s=30, retrieve_cap_s=30)
    apps = {}
    if not collection:
        place = folder / "collections"
        apps["retriever"] = create_retriever(
            RetrieverSettings(qdrant_path=place, qdrant_url=None, max_deadline_s=DEADLINE_S)
        )
        apps["reranker"] = create_reranker(RerankerSettings(max_deadline_s=DEADLINE_S))
    async with mesh_of(apps, settings) as (mesh, states):
        encoders = [cast(State, state)["engine"].encoder for name, state in states.items() if name == "retriever"]
        yield mesh, settings, {encoder.name: encoder.fingerprint for encoder in encoders}


@contextmanager
def _told(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar where one is watched, else a line now and then."""
    done = 0
    with counting() as bar:
        task = bar.add_task(what, total=total)

        def step(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            bar.update(task, completed=done)
            if not err.is_terminal and (done // SAY_EVERY > before // SAY_EVERY or done == total):
                say(f"{what}: {done} of {total}")

        yield step
