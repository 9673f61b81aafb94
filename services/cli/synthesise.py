"""`cragmesh train synthesise` and `questions`: data of our own, each prompt exactly as the serving side renders it."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from services.cli.console import err, out, write
from services.cli.ending import ends
from services.cli.options import ShardOption, parse_shard
from services.cli.progress import counted
from services.kit.shard import WHOLE, Shard

FOLDER = Path("out/train")
TASKS = ("answer", "kg-api")


def synthesise(
    task: Annotated[str, typer.Option(help="Subtask: answer or kg-api.")] = "answer",
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many examples.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same file.")] = 0,
    to: Annotated[Path | None, typer.Option("--out", help="File to write; out/train/TASK.jsonl by default.")] = None,
    domain: Annotated[str, typer.Option(help="Of this domain alone, without pages and prose.")] = "",
    show: Annotated[int, typer.Option(min=0, help="Print so many examples instead of writing a file.")] = 0,
    prose: Annotated[
        Path | None, typer.Option(help="A file of `cragmesh train prose`, to ask about in answer's examples.")
    ] = None,
    prose_share: Annotated[
        float, typer.Option(min=0, max=1, help="Of the examples so many are about prose, as far as the file reaches.")
    ] = 0.6,
    near_share: Annotated[
        float, typer.Option(min=0, max=1, help="Of the examples so many are on dense passages, answered or seemingly.")
    ] = 0.0,
    scene_share: Annotated[
        float, typer.Option(min=0, max=1, help="Of the examples so many are about scenes, as far as those reach.")
    ] = 0.0,
    shard: ShardOption = "",
) -> None:
    """Make up questions with facts, answers and programs to learn from; none of them comes from a benchmark."""
    from lab.evaluator.settings import EvaluatorSettings
    from lab.trainer import dataset, labelling
    from lab.trainer.errors import BadDataset, BadLabels, WriteFailed

    if task not in TASKS:
        raise typer.BadParameter(f"{task!r} is none of {', '.join(TASKS)}", param_hint="--task")
    if prose and task != "answer":
        raise typer.BadParameter("is for --task answer", param_hint="--prose")
    if prose and domain:
        raise typer.BadParameter("is of no domain", param_hint="--prose")
    for option, wanted in (("--near-share", near_share), ("--scene-share", scene_share)):
        if wanted and (task != "answer" or domain):
            raise typer.BadParameter("is for --task answer, and of no domain", param_hint=option)
    if near_share + scene_share + (prose_share if prose else 0) > 1:
        raise typer.BadParameter("the shares are more than all", param_hint="--scene-share")
    share = parse_shard(shard)
    with ends(problem=(BadDataset, BadLabels)):
        labelling.allowed([prose] if prose else [], EvaluatorSettings().eval_data)
        shares = {"prose_share": prose_share, "near_share": near_share, "scene_share": scene_share}
        source = examples(task, show or count, seed, share, domain=domain, prose=prose, **shares)
        if show:
            for example in source:
                about = f"[{example.kind}, {example.question_type}]"
                write(f"{example.messages[-1].content}\n=> {example.completion}   {about}\n")
            return
    part = f"-{share.index}-of-{share.count}" if share.count > 1 else ""
    path = to or FOLDER / f"{task}{part}.jsonl"
    types, domains, sources = (Counter[str]() for _ in range(3))
    with ends(problem=(BadDataset, WriteFailed)), counted(f"making up {task}", count // share.count) as advance:

        def tallied() -> Iterator[Any]:
            for example in source:
                types[example.question_type] += 1
                domains[example.domain] += 1
                sources[example.source] += 1
                advance(1)
                yield example

        kinds = dataset.write(path, tallied())
    total = sum(kinds.values())
    table = Table("what", "shares", title=f"{task}: {total:,} examples, seed {seed}")
    for name, counts in (("kind", kinds), ("question type", types), ("domain", domains), ("source", sources)):
        table.add_row(name, ", ".join(f"{key} {number / total:.1%}" for key, number in counts.most_common()))
    out.print(table)
    write(str(path))


def questions(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many questions.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Another than that of the examples: these are to be new.")] = 7_777,
    to: Annotated[Path, typer.Option("--out", help="File to write.")] = FOLDER / "questions.jsonl",
) -> None:
    """Make up questions with contexts and pages for `cragmesh eval run`, to fit on a run when `adaptive` abstains."""
    from lab.evaluator.errors import WriteFailed
    from lab.trainer.errors import BadDataset

    with ends(problem=(BadDataset, WriteFailed)):
        write_questions(to, count, seed)
    write(str(to))


def write_questions(to: Path, count: int, seed: int) -> None:
    """A file of made-up questions.

    Raises:
        WriteFailed: it cannot be written.
    """
    from lab.evaluator.report import files
    from lab.trainer.synthesise import questions as made_up

    with err.status("making up questions"):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in made_up.generate(count, seed))
    files.write(to.parent, {to.name: text.encode()})


def examples(
    task: str,
    count: int,
    seed: int,
    share: Shard = WHOLE,
    *,
    domain: str = "",
    prose: Path | None = None,
    prose_share: float = 0.0,
    near_share: float = 0.0,
    scene_share: float = 0.0,
) -> Iterator[Any]:
    """`Example`s of a subtask, in the order in which they are made up.

    Args:
        share: which of them are rendered; `count` is of all shares together.
        domain: looked-up records, or programs, of this domain alone.
        prose: of `answer`, a file of `cragmesh train prose` that a share of them is about.
        near_share, scene_share: of `answer`, so many are on the dense passages and scenes that are there to be taught.

    Raises:
        BadDataset: the file cannot be read, or gives nothing to learn from.
    """
    if task != "answer":
        return _programs(count, seed, domain, share)
    from lab.trainer import pairs
    from lab.trainer.synthesise import answers
    from lab.trainer.synthesise.reading import dense, records, scenes

    reading = dense.generate(round(count * near_share), seed) if near_share else []
    reading += scenes.generate(round(count * scene_share), seed) if scene_share else []
    if prose and (about_prose := round(count * prose_share)):
        reading += records.generate(pairs.read([prose]), about_prose, seed)
    made_up = records.mingled(reading, count, seed) if reading else answers.generate(count, seed, domain)
    return _answers(made_up, seed, share)


def _numbered(share: Shard, prefix: str, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """A share of the items, each after its id."""
    return share.of_items(((f"{prefix}-{number:06d}", item) for number, item in enumerate(items)), itemgetter(0))


def _source(pattern: str) -> str:
    match pattern.split("."):
        case ["reading", "dense"]:
            return "near"
        case ["reading", "scene"]:
            return "scene"
        case ["reading", _]:
            return "prose"
        case _:
            return "synthetic"


def _answers(records: Iterator[Any], seed: int, share: Shard) -> Iterator[Any]:
    from lab.trainer.dataset import Example, turns
    from services.gateway import prompts
    from services.gateway.evidence import Evidence
    from services.gateway.steps.generate import TAUGHT_PROMPT, chat

    prompt = prompts.load(TAUGHT_PROMPT)
    for id, record in _numbered(share, f"answer-{seed}", records):
        titles = record.titles or ("",) * len(record.passages)
        named = zip(record.passages, titles, strict=True)
        evidence = [Evidence(text, page, page_name=title) for page, (text, title) in enumerate(named)]
        messages = chat(prompt, record.query, record.query_time, evidence)
        yield Example(
            id=id,
            task="answer",
            messages=turns(messages),
            completion=record.answer,
            domain=record.domain,
            kind=record.kind,
            question_type=record.question_type,
            source=f"{_source(record.pattern)}:{seed}",
            query=record.query,
            group=record.group,
        )


def _programs(count: int, seed: int, domain: str, share: Shard) -> Iterator[Any]:
    from lab.trainer.dataset import Example, turns
    from lab.trainer.synthesise import programs
    from lab.trainer.synthesise.engine import every_domain
    from services.kg.generate.program import adapter_messages

    domains = every_domain().domains
    for id, pair in _numbered(share, f"kg-api-{seed}", islice(programs.generate(seed, domain), count)):
        messages = adapter_messages(pair.query, query_time=pair.when, domain=domains[pair.domain])
        yield Example(
            id=id,
            task="kg-api",
            messages=turns(messages),
            completion=pair.program,
            domain=pair.domain,
            kind="unknown" if pair.program == programs.NONE else "answer",
            question_type=pair.question_type,
            source=f"synthetic:{seed}",
            query=pair.query,
        )
