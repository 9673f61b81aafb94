"""`cragmesh train`: training data, labels from evaluation runs, and adapters of the generator's model."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from services.cli.console import err, fail, plain, say, write
from services.cli.ending import PROBLEM, USAGE, ends, settings_of, wrong
from services.cli.options import Judge
from services.cli.progress import ProgressLog, bar_of, counted
from services.cli.prose import prose
from services.cli.synthesise import questions, synthesise
from services.gateway.settings import GatewaySettings
from services.generator.errors import GeneratorError
from services.generator.launch import base_model
from services.generator.settings import GeneratorSettings

if TYPE_CHECKING:
    from lab.trainer.dataset import Example
    from lab.trainer.recipe import Recipe
    from lab.trainer.run import Progress as RunProgress

AnyRecipe = TypeVar("AnyRecipe", bound=BaseModel)
# oneDNN and torch cache a primitive for each shape of a product, 1,024 of them by default: gigabytes, since hardly any
# two batches are of one length. A batch has about forty shapes, the same in all layers.
SHAPE_CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128", "LRU_CACHE_CAPACITY": "128"}
# Between two lines of JSON where no terminal shows a bar.
LOG_S = 10.0
# A prompt for an answer without its passages: instruction, question, fences.
FRAME_TOKENS = 256
AGAIN = "the same command with --resume goes on from the last checkpoint"

app = typer.Typer(name="train", help="Make training data and teach adapters.", no_args_is_help=True)

app.command()(synthesise)
app.command()(questions)
app.command()(prose)

Task = Literal["answer", "kg-api", "sql"]


def _set_libraries() -> None:
    """Set the environment of libraries that read it when torch is imported."""
    # Threads that spin while they wait take the core that the others need to go on.
    for name, value in {"OMP_WAIT_POLICY": "PASSIVE", **SHAPE_CACHES}.items():
        os.environ.setdefault(name, value)


def _recipe(kind: type[AnyRecipe], options: Mapping[str, object]) -> AnyRecipe:
    """A recipe of the options that have a field's name and a value, with its own defaults for the rest."""
    try:
        return kind.model_validate(
            {name: value for name, value in options.items() if name in kind.model_fields and value is not None}
        )
    except ValidationError as error:
        fail(wrong(error), USAGE)


def _served_lengths(recipe: "type[Recipe]") -> dict[str, int]:
    """Lengths for the prompts that the gateway's settings make, where these are longer than the embedded mesh's."""
    served = settings_of(GatewaySettings).max_context_tokens
    longer = served > GatewaySettings.model_fields["max_context_tokens"].default
    return recipe.reading(served + FRAME_TOKENS) if longer else {}


@app.command()
def sft(
    data: Annotated[list[Path], typer.Argument(help="Files of examples (.jsonl), as `synthesise` and `labels` write.")],
    folder: Annotated[Path, typer.Option("--out", "-o", help="The run's folder: checkpoints, and the adapter.")],
    task: Annotated[Task, typer.Option(help="Which of the examples; also the adapter's name.")] = "answer",
    base: Annotated[Path | None, typer.Option(help="Folder of the base model; the embedded one by default.")] = None,
    base_name: Annotated[str, typer.Option(help="The base model's name at the hub, which the adapter will say.")] = "",
    adapter: Annotated[
        Path | None,
        typer.Option(help="Where the adapter is written, in place of one that is there; OUT/adapter by default."),
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="An adapter to go on from, with new data.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in OUT.")] = False,
    time_limit: Annotated[float, typer.Option(min=0, help="Minutes for all of it; 0 sets no limit.")] = 0,
    limit: Annotated[int, typer.Option(min=0, help="Only so many examples, at random; 0 takes all.")] = 0,
    epochs: Annotated[float | None, typer.Option(help="Times that all examples are read.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its height.")] = None,
    rank: Annotated[int | None, typer.Option(help="Of the adapter; vLLM's profile admits 8.")] = None,
    alpha: Annotated[int | None, typer.Option(help="Scale of the adapter, divided by its rank.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share of the adapter's inputs that are left out.")] = None,
    accumulation: Annotated[int | None, typer.Option(help="Batches of one step.")] = None,
    max_batch_tokens: Annotated[int | None, typer.Option(help="Tokens of one batch: bounds memory.")] = None,
    max_prompt_tokens: Annotated[int | None, typer.Option(help="Longer prompts are left out and counted.")] = None,
    validation_steps: Annotated[int | None, typer.Option(help="Steps between two validation losses.")] = None,
    score_examples: Annotated[int | None, typer.Option(help="Examples that the task score is taken of.")] = None,
    patience: Annotated[int | None, typer.Option(help="Validation losses without a better one; 0 never stops.")] = None,
    checkpoint_steps: Annotated[int | None, typer.Option(help="Steps between two checkpoints.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the split, the order, the dropout and the new adapter.")] = None,
    threads: Annotated[int | None, typer.Option(help="Of the CPU.")] = None,
    four_bit: Annotated[bool, typer.Option("--four-bit", help="The base model in 4 bits; on CUDA alone.")] = False,
) -> None:
    """Teach an adapter (LoRA). A kill loses nothing but the steps since the last checkpoint: --resume goes on."""
    options = locals() | {"time_limit_s": time_limit * 60 or None}
    _set_libraries()
    # torch and transformers take seconds to import, which no other command should wait for.
    from lab.evaluator.settings import EvaluatorSettings
    from lab.trainer import adapter as adapters
    from lab.trainer import card, dataset, labelling, model
    from lab.trainer import sft as training
    from lab.trainer.errors import BadDataset, BadTarget, TrainerError
    from lab.trainer.recipe import Recipe

    if task == "answer":
        # What is served is learnt: an adapter that never read so long a context does not know what to do with it.
        options |= {name: length for name, length in _served_lengths(Recipe).items() if options[name] is None}
    recipe = _recipe(Recipe, options)
    path, name = _base(base, base_name)
    target = adapter or folder / "adapter"
    with ends(usage=(BadDataset, BadTarget), problem=(TrainerError,), again=AGAIN):
        # Hours before it is written.
        adapters.check_target(target, folder)
        labelling.allowed(data, settings_of(EvaluatorSettings).eval_data)
        examples = dataset.sample(dataset.read(data, task=task), limit, recipe.seed)
        say(f"{len(examples)} examples; reading {path}", "dim")
        loaded = model.load(path, name=name, threads=recipe.threads, four_bit=four_bit)
        say(f"{name} in {loaded.precision}", "dim")
        with _progress() as show:
            result = training.train(loaded, examples, recipe, folder, resume=resume, start=start, on_progress=show)
        adapters.write(target, result.learner, result.best, card.files(target.name, result))
    say(card.summary(result), "dim")
    write(str(target))


@app.command()
def reader(
    data: Annotated[
        list[Path] | None, typer.Argument(help="Files of pairs (.jsonl); none where all is made up.")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", "-o", help="The run's folder: checkpoints, and the weights.")] = Path(
        "out/train/reader"
    ),
    weights: Annotated[
        Path | None,
        typer.Option(help="Where the weights are written, in place of those there; OUT/weights by default."),
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="Weights to go on from, with new pairs.")] = None,
    made_up: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Pairs of the generators' prose and pages beside the files.")
    ] = 10_000,
    near: Annotated[
        int, typer.Option(min=0, help="Questions on the dense passages that are there to be taught, at random.")
    ] = 0,
    scene: Annotated[
        int, typer.Option("--scenes", min=0, help="Pairs of the scenes that are there to be taught, at random.")
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in OUT.")] = False,
    minutes: Annotated[float, typer.Option(min=0, help="For all of it; 0 sets no limit.")] = 0,
    limit: Annotated[int, typer.Option(min=0, help="Only so many pairs of the files, at random; 0 takes all.")] = 0,
    epochs: Annotated[float | None, typer.Option(help="Times that all pairs are read.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its height.")] = None,
    rank: Annotated[int | None, typer.Option(help="Of the adapter: 16 are 1.3 MB.")] = None,
    batch: Annotated[int | None, typer.Option(help="Windows of one step.")] = None,
    held_out: Annotated[int | None, typer.Option(help="Pairs that measure, at most.")] = None,
    checkpoint_steps: Annotated[int | None, typer.Option(help="Steps between two checkpoints.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split, the order, the made-up pairs and the new adapter.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Of the CPU.")] = None,
) -> None:
    """Teach the extractive reader. A kill loses nothing but the steps since the last checkpoint: --resume goes on."""
    options = locals() | {"time_limit_s": minutes * 60 or None}
    _set_libraries()
    from lab.evaluator.settings import EvaluatorSettings
    from lab.trainer import dataset, labelling, pairs, scenes
    from lab.trainer import near as dense
    from lab.trainer import reader as teaching
    from lab.trainer.errors import BadDataset, BadTarget, TrainerError
    from lab.trainer.recipe import ReaderRecipe
    from lab.trainer.synthesise.reading import articles

    recipe = _recipe(ReaderRecipe, options)
    target = weights or folder / "weights"
    with ends(usage=(BadDataset, BadTarget), problem=(TrainerError,), again=AGAIN):
        teaching.check_target(target, folder)
        labelling.allowed(data or [], settings_of(EvaluatorSettings).eval_data)
        given = [articles.grouped(pair) for pair in pairs.read(data or [])]
        items = [*dataset.sample(given, limit, seed), *pairs.made_up(made_up, seed)]
        items += dataset.sample(dense.pairs(dense.TAUGHT), near, seed) if near else []
        items += dataset.sample(scenes.pairs(), scene, seed) if scene else []
        counts = ", ".join(f"{count} {kind}" for kind, count in pairs.sources(items).items())
        say(f"{len(items)} pairs: {counts}", "dim")
        with _progress() as show:
            result = teaching.train(items, recipe, folder, target, resume=resume, start=start, on_progress=show)
    for line in teaching.report(result):
        say(line, "dim")
    write(str(target))


@app.command()
def threshold(
    weights: Annotated[Path, typer.Argument(help="Folder of a reader's weights; its card is replaced.")],
) -> None:
    """Fit anew from which probability on a reader answers, on dense passages and scenes that are not taught."""
    _set_libraries()
    from lab.trainer import near
    from lab.trainer.errors import BadModel
    from lab.trainer.reader_measure import refit
    from services.kit.encoder import bundled_model

    with ends(usage=(BadModel,)), _progress() as show:
        card = refit(weights, near.doubtful(), bundled_model(), on_progress=show)
    scores = {name: value for name, value in card.held_out.items() if name.startswith("near_")}
    write(json.dumps({"threshold": card.threshold, **scores}))


@app.command()
def labels(
    sources: Annotated[
        list[Path], typer.Argument(help="Question files with answers; for `answer` those that the run asked.")
    ],
    to: Annotated[Path, typer.Option("--out", "-o", help="The file of examples.")],
    run: Annotated[Path | None, typer.Option(help="The folder of an evaluation run: answers become labels.")] = None,
    judge: Judge = "rules",
    task: Annotated[Task, typer.Option(help="`kg-api` tries programs against the knowledge graph instead.")] = "answer",
    samples: Annotated[int, typer.Option("-n", min=1, max=64, help="Programs tried for a question.")] = 8,
) -> None:
    """Make examples of an evaluation run by db3's rules, or of programs that find the right answer.

    For `answer` the questions bring their contexts, or the run kept those that were shown (`eval run --keep-contexts`).
    For `kg-api` the generator writes programs under its grammar, and the shortest is kept whose facts hold the answer.
    """
    # Imports most of the services, which no other command should wait for.
    from lab.evaluator.errors import EvaluatorError
    from lab.evaluator.settings import EvaluatorSettings
    from lab.trainer import dataset, labelling
    from lab.trainer.errors import TrainerError
    from services.kit.errors import ServiceFailure

    if task == "answer" and run is None:
        fail("labels of answers come from a run: give --run FOLDER", USAGE)
    tally: labelling.Tally = Counter()
    with ends(unreachable=(ServiceFailure,), problem=(EvaluatorError, TrainerError), hint=": is the mesh up?"):
        labelling.allowed(sources, settings_of(EvaluatorSettings).eval_data)
        if run is not None and task == "answer":
            kinds = dataset.write(to, labelling.from_run(run, sources, judge, tally))
        else:
            kinds = dataset.write(to, asyncio.run(_try_programs(sources, samples, tally)))
    for rule, count in tally.most_common():
        say(f"{count:6}  {rule}", "dim")
    say(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "no example", "dim")
    write(str(to))


async def _try_programs(sources: list[Path], samples: int, tally: Counter[str]) -> list["Example"]:
    from lab.trainer import labelling
    from services.kit.client import ServiceClient, http_client
    from services.kit.deadline import MESH_TOKEN_HEADER
    from services.kit.generator import generator
    from services.kit.settings import KitSettings, MeshUrls

    urls, token = settings_of(MeshUrls), settings_of(KitSettings).mesh_token
    async with http_client() as http:
        ours = {MESH_TOKEN_HEADER: token} if token else None
        kg = ServiceClient("kg", str(urls.kg_url), http, headers=ours)
        trying = labelling.Trying(generator(urls, http), kg, samples)
        with counted("trying programs") as advance:
            return await labelling.from_trying(sources, trying, tally, lambda: advance(1))


def _base(folder: Path | None, name: str) -> tuple[Path, str]:
    """The base model's folder and its name at the hub, the embedded model's by default."""
    if folder and name:
        return folder, name
    settings = settings_of(GeneratorSettings)
    try:
        embedded = base_model(settings)
    except GeneratorError as error:
        fail(str(error), PROBLEM)
    if folder is None:
        name = name or embedded
        return settings.models_dir / name.rpartition("/")[2], name
    if not name and folder.resolve().name == embedded.rpartition("/")[2]:
        name = embedded
    if not name:
        fail(f"what is {folder} called at the hub? Give --base-name: adapters say whom they are for", USAGE)
    return folder, name


@contextmanager
def _progress() -> "Iterator[Callable[[RunProgress], None]]":
    """A function that shows how far a training is."""
    loss_and_left = (TextColumn("{task.fields[loss]}"), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with bar_of(MofNCompleteColumn(), *loss_and_left) as bar:
        log = ProgressLog(bar, LOG_S)

        def show(now: "RunProgress") -> None:
            if now.note and err.is_terminal:
                bar.console.print(Text(plain(now.note)), soft_wrap=True)
                return
            line: dict[str, object] = {"phase": now.phase, "done": now.done, "total": now.total}
            loss = ""
            if now.phase == "training":
                line |= {"epoch": round(now.epoch, 3), "rate": now.rate, "tokens_per_s": round(now.tokens_per_s)}
                line |= {"loss": round(now.loss, 4)} if now.loss == now.loss else {}
                loss = f"epoch {now.epoch:.2f}, loss {now.loss:.3f}, {now.tokens_per_s:,.0f} tokens/s"
            time_left = "" if now.left_s is None else f"{timedelta(seconds=round(now.left_s))} left"
            line |= {"left_s": now.left_s and round(now.left_s), "note": now.note or None}
            at_once = bool(now.note) or now.done >= now.total
            bars = {"description": now.phase, "completed": now.done, "total": now.total}
            log.update(line, at_once=at_once, loss=loss, left=time_left, **bars)

        yield show
