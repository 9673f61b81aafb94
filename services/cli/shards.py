"""`--shard I/N`: a command's share of its work, for Indexed Jobs, Slurm, or two shells."""

from typing import Annotated

import typer

from services.cli.console import fail
from services.cli.ending import USAGE, settings_of
from services.cli.settings import CliSettings
from services.kit.shard import Shard

ShardOption = Annotated[
    str,
    typer.Option("--shard", metavar="I/N", help="Do share I of N, from 0, by hashes of ids; an Indexed Job says N."),
]


def parse_shard(text: str) -> Shard:
    """The share that the option names; one that is none ends the command."""
    try:
        return Shard.of(text, settings_of(CliSettings).job_completion_index)
    except ValueError as error:
        fail(f"--shard: {error}", USAGE)
