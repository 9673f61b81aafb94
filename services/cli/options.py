"""Options that several commands share, and what they mean."""

from collections.abc import Iterable
from typing import Annotated, Literal

import typer
from pydantic import ValidationError

from proto.options import Options
from services.cli.console import fail
from services.cli.ending import USAGE, settings_of, wrong
from services.cli.settings import CliSettings
from services.kit.filters import parse_value
from services.kit.shard import Shard

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Concurrency = Annotated[int, typer.Option("-c", min=1, max=256, help="Questions in flight at once.")]
Judge = Annotated[Literal["rules", "llm"], typer.Option(help="Whose verdicts count.")]
Knobs = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A knob of the strategy, such as kg=off; `GET /strategies`."),
]
QueryTime = Annotated[str, typer.Option(help="When it is asked: `02/28/2024, 10:04:54 PT` or ISO 8601.")]
ShardOption = Annotated[
    str,
    typer.Option("--shard", metavar="I/N", help="Do share I of N, from 0, by hashes of ids; an Indexed Job says N."),
]
Strategy = Annotated[str, typer.Option(help="How to answer; the gateway's default when not given.")]


def parse_options(texts: Iterable[str]) -> Options:
    """The knobs that `--option NAME=VALUE` sets; an unknown name or a value out of bounds ends the command."""
    values = {name: parse_value(value) for name, _, value in (text.partition("=") for text in texts)}
    if unknown := sorted(values.keys() - Options.model_fields.keys()):
        fail(f"--option: no knob is named {unknown[0]!r}; there are {', '.join(Options.model_fields)}", USAGE)
    try:
        return Options.model_validate(values)
    except ValidationError as error:
        fail(wrong(error, "--option "), USAGE)


def parse_shard(text: str) -> Shard:
    """The command's share of its work, from `--shard I/N`, for Indexed Jobs, Slurm or two shells.

    A malformed share ends the command.
    """
    try:
        return Shard.of(text, settings_of(CliSettings).job_completion_index)
    except ValueError as error:
        fail(f"--shard: {error}", USAGE)
