"""`cragmesh train synthesise` and `questions`: data of our own, each prompt exactly as the serving side renders it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.console import err, show_table, write
from services.cli.ending import ends, settings_of
from services.cli.options import ShardOption, parse_shard
from services.cli.progress import counted

if TYPE_CHECKING:
    from lab.trainer.dataset import Example

FOLDER = Path("out/train")
TASKS = ("answer", "kg-api", "sql")


def synthesise(
    task: Annotated[str, typer.Option(help="Subtask: answer, kg-api or sql.")] = "answer",
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
    documents_share: Annotated[
        float, typer.Option(min=0, max=1, help="Of the examples so many are about organisations' documents.")
    ] = 0.0,
    shard: ShardOption = "",
) -> None:
    """Make up questions with facts, answers and programs to learn from; none of them comes from a benchmark."""
    from lab.evaluator.settings import EvaluatorSettings
    from lab.trainer import dataset, labelling
    from lab.trainer.errors import BadDataset, BadLabels, WriteFailed
    from lab.trainer.synthesise.examples import examples
    from services.kg.settings import KgSettings

    if task not in TASKS:
        raise typer.BadParameter(f"{task!r} is none of {', '.join(TASKS)}", param_hint="--task")
    if prose and task != "answer":
        raise typer.BadParameter("is for --task answer", param_hint="--prose")
    if prose and domain:
        raise typer.BadParameter("is of no domain", param_hint="--prose")
    if domain and task == "sql":
        raise typer.BadParameter("is not for --task sql, whose tables are organisations'", param_hint="--domain")
    written = (("--near-share", near_share), ("--scene-share", scene_share), ("--documents-share", documents_share))
    for option, wanted in written:
        if wanted and (task != "answer" or domain):
            raise typer.BadParameter("is for --task answer, and of no domain", param_hint=option)
    if near_share + scene_share + documents_share + (prose_share if prose else 0) > 1:
        raise typer.BadParameter("the shares are more than all", param_hint="--scene-share")
    share = parse_shard(shard)
    # Where the domains are, which the generators read again.
    settings_of(KgSettings)
    with ends(problem=(BadDataset, BadLabels)):
        labelling.allowed([prose] if prose else [], settings_of(EvaluatorSettings).eval_data)
        shares = {"prose_share": prose_share, "near_share": near_share}
        shares |= {"scene_share": scene_share, "documents_share": documents_share}
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

        def tallied() -> "Iterator[Example]":
            for example in source:
                types[example.question_type] += 1
                domains[example.domain] += 1
                sources[example.source] += 1
                advance(1)
                yield example

        kinds = dataset.write(path, tallied())
    total = sum(kinds.values())
    counted_by = {"kind": kinds, "question type": types, "domain": domains, "source": sources}
    rows = (
        (name, ", ".join(f"{key} {number / total:.1%}" for key, number in counts.most_common()))
        for name, counts in counted_by.items()
    )
    show_table(("what", "shares"), rows, title=f"{task}: {total:,} examples, seed {seed}")
    write(str(path))


def questions(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many questions.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Another than that of the examples: these are to be new.")] = 7_777,
    to: Annotated[Path, typer.Option("--out", help="File to write.")] = FOLDER / "questions.jsonl",
    documents: Annotated[bool, typer.Option("--documents", help="On organisations' documents instead.")] = False,
) -> None:
    """Make up questions with contexts and pages for `cragmesh eval run`, to fit on a run when `adaptive` abstains."""
    from lab.evaluator.errors import WriteFailed
    from lab.trainer.errors import BadDataset

    with ends(problem=(BadDataset, WriteFailed)):
        write_questions(to, count, seed, documents=documents)
    write(str(to))


def write_questions(to: Path, count: int, seed: int, *, documents: bool = False) -> None:
    """A file of made-up questions, or of some on organisations' documents.

    Raises:
        WriteFailed: it cannot be written.
    """
    from lab.evaluator.store import write_whole
    from lab.trainer.synthesise import questions as made_up
    from services.kg.settings import KgSettings

    settings_of(KgSettings)
    with err.status("making up questions"):
        lines = (made_up.of_documents if documents else made_up.generate)(count, seed)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_whole(to, text.encode())
