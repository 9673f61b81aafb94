"""Knobs of a strategy on the command line: `--option kg=off`."""

from collections.abc import Iterable
from typing import Annotated

import typer
from pydantic import ValidationError

from proto.options import Options
from services.cli.console import fail
from services.cli.ending import USAGE, wrong
from services.kit.filters import parse_value

Knobs = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A knob of the strategy, such as kg=off; `GET /strategies`."),
]


def parse_options(texts: Iterable[str]) -> Options:
    """The knobs that `--option NAME=VALUE` sets; one that is none, or a value out of its bounds, ends the command."""
    given = {name: parse_value(value) for name, _, value in (text.partition("=") for text in texts)}
    if unknown := sorted(given.keys() - Options.model_fields.keys()):
        fail(f"--option: no knob is named {unknown[0]!r}; there are {', '.join(Options.model_fields)}", USAGE)
    try:
        return Options.model_validate(given)
    except ValidationError as error:
        fail(wrong(error, "--option "), USAGE)
