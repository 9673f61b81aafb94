"""`cragmesh papers tune` and `eval`: weights of `POST /papers` tuned, and the strategy measured step by step."""

import asyncio
import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from services.cli.console import as_typed, err, fail, say, show_table, warn, write
from services.cli.ending import USAGE, ends, settings_of
from services.cli.progress import counted

app = typer.Typer(
    name="papers",
    help="Find the documents that answer a question: tune the ensemble's weights, and measure each step.",
    no_args_is_help=True,
)
# In the run's folder: to replace the shipped weights, which everybody asks with, takes a `--to`.
WEIGHTS = "weights.json"
# Items between two lines of progress where no one watches a bar.
LINE_EVERY = 25

Data = Annotated[Path, typer.Argument(help="A test collection: AQA's files, or docs.jsonl, queries.jsonl and qrels.*.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The run's folder; the same one goes on after a kill.")]
To = Annotated[
    Path | None,
    typer.Option(
        "--to", help=f"Where CRAGMESH_PAPERS_WEIGHTS is to find the weights; {WEIGHTS} in --out if not given."
    ),
]
Existing = Annotated[
    str, typer.Option("--collection", help="A collection of the running mesh that holds the documents already.")
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
    data: Path, folder: Path, collection: str, *, enhance: bool, concurrency: int, limit: int | None, to: Path | None
) -> None:
    # matplotlib and the services take seconds to import, which no other command should wait for.
    from lab.evaluator.errors import BadRun, BadSource, EvaluatorError, Unreachable
    from lab.evaluator.settings import EvaluatorSettings
    from lab.evaluator.store import write_whole
    from lab.papers import ablation, report
    from lab.papers import data as reading
    from lab.papers.run import collected
    from services.gateway.papers.query_forms import FORMS
    from services.gateway.settings import GatewaySettings
    from services.reranker.settings import RerankerSettings
    from services.retriever.settings import RetrieverSettings

    command = as_typed(settings_of(EvaluatorSettings).eval_data)
    for kind in (GatewaySettings, RetrieverSettings, RerankerSettings):
        # Of the services in this process.
        settings_of(kind)
    with ends(
        usage=(BadSource, BadRun),
        unreachable=(Unreachable,),
        problem=(EvaluatorError, OSError, ValueError),
        hint="; what was found until then is kept, the same command goes on",
    ):
        with err.status("reading"):
            benchmark = reading.read(data, documents=not collection)
        if limit:
            benchmark = replace(benchmark, questions=dict(islice(benchmark.questions.items(), limit)))
        folder.mkdir(parents=True, exist_ok=True)
        if to is not None and (to.is_dir() or not os.access(to.parent, os.W_OK)):
            fail(f"--to {to}: no file can be written there", USAGE)
        bars = partial(counted, line_every=LINE_EVERY)
        work = collected(benchmark, folder, collection, enhance=enhance, concurrency=concurrency, steps=bars, warn=warn)
        pools, facts = asyncio.run(work)
        with err.status("measuring and tuning"):
            measured = ablation.ablate(pools, benchmark, [("command", command), *facts.items()])
            paths = report.write(measured, folder / "report")
        for content in report.tables(measured):
            show_table(content.head, content.rows, title=content.title, caption=content.note)
        gain = measured.gain
        say(f"over the best single list: {gain.value:+.1%}, 95 % interval {gain.low:+.1%} to {gain.high:+.1%}")
        if to is not None:
            about = (
                f"{benchmark.name}: {len(pools)} questions; {facts['documents']}; enhancement: {facts['enhancement']}"
            )
            with err.status("tuning on all questions"):
                choice = ablation.tune(pools, benchmark, list(pools), tuned_on=about)
            if unweighed := [form for form in FORMS if not choice.weights.counts(form)]:
                warn(f"these forms have no weight, since there was no list of them: {', '.join(unweighed)}")
            write_whole(to, (choice.weights.model_dump_json(indent=1) + "\n").encode())
            paths.append(to)
    for path in paths:
        write(str(path))
