"""`cragmesh eval ablate`: a strategy without each of its parts, paired with the whole, as the papers' tables do."""

from pathlib import Path
from typing import Annotated

import typer

from proto.answer import MAX_BUDGET_S
from proto.options import Options
from services.cli.console import as_typed, fail, say, warn
from services.cli.ending import USAGE
from services.cli.eval import (
    Budget,
    Sample,
    Seed,
    Sources,
    Timed,
    ask_questions,
    compare_runs,
    evaluate,
    evaluator_settings,
)
from services.cli.options import Concurrency, Judge, Knobs, parse_options
from services.cli.services import root

WHOLE = "whole"
WITHOUT = "without-"


def ablate(
    sources: Sources,
    folder: Annotated[Path, typer.Option("--out", "-o", help="A run a part goes below it; it goes on after a kill.")],
    strategy: Annotated[str, typer.Option(help="Whose parts; the gateway's default when not given.")] = "",
    part: Annotated[list[str] | None, typer.Option("--part", help="Leave this one out; each by default.")] = None,
    option: Knobs = None,
    budget: Budget = MAX_BUDGET_S,
    concurrency: Concurrency = 2,
    sample: Sample = None,
    seed: Seed = 0,
    timed: Timed = False,
    judge: Judge = "rules",
) -> None:
    """Ask the questions of the whole strategy, then without each part, and compare question by question."""
    from lab.evaluator import runs
    from lab.evaluator.mesh import MeshClient
    from lab.evaluator.store import RunFolder

    settings, urls = evaluator_settings()
    url, knobs = root("gateway", urls), parse_options(option or ())

    async def ask_all() -> dict[str, Path]:
        async with MeshClient(url, api_key=settings.api_key) as mesh:
            name, parts = await mesh.parts(strategy)
        folders = {}
        for variant, options in variants(name, parts, part, knobs).items():
            say(f"{name}, {variant}")
            order = runs.Order(
                sources=tuple(sources),
                folder=RunFolder(folder / variant),
                gateway_url=url,
                api_key=settings.api_key,
                strategy=name,
                budget_s=budget,
                concurrency=concurrency,
                selection=runs.Selection(timed_only=timed, sample=sample, seed=seed),
                options=options,
                command=as_typed(settings.eval_data),
            )
            progress = await ask_questions(order, urls, tokenizer=True)
            if progress.failed:
                warn(f"{progress.failed} questions got no answer and count as missing")
            folders[variant] = folder / variant
        return folders

    compare_runs(evaluate(ask_all()), folder / "compare", judge, with_first=True)


def variants(strategy: str, parts: dict[str, Options], wanted: list[str] | None, knobs: Options) -> dict[str, Options]:
    """The runs of an ablation by name: the whole strategy under the given knobs, then without each part."""
    if unknown := sorted(set(wanted or ()) - parts.keys()):
        fail(f"{strategy} has no part {unknown[0]!r}; it has {', '.join(parts) or 'none'}", USAGE)
    if not parts:
        fail(f"{strategy} has no parts to leave out", USAGE)
    set_by_caller = knobs.model_dump(exclude_none=True)
    left_out = {f"{WITHOUT}{name}": parts[name] for name in wanted or parts}
    return {WHOLE: knobs} | {
        name: Options.model_validate(set_by_caller | options.model_dump(exclude_none=True))
        for name, options in left_out.items()
    }
