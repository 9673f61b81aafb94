"""The command line's output: results to stdout, progress and errors to stderr."""

import os
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text


class _Results(Console):
    def print(self, *objects: Any, **layout: Any) -> None:
        with _to_stdout():
            super().print(*objects, **layout)


out = _Results(highlight=False)
err = Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """Text from elsewhere without what could steer a terminal: escape sequences, reversals of direction."""
    return "".join(_harmless(character) for character in text)


def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\n\t" or category not in ("Cc", "Cf", "Cs"):
        return character
    return " " if category == "Cc" else ""


def say(message: str, style: str = "") -> None:
    """Print a message for the user, which may quote anything."""
    err.print(Text(plain(message), style=style), soft_wrap=True)


def warn(message: str) -> None:
    """Print what the user ought to know though the work goes on."""
    say(message, "yellow")


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong and end the program."""
    say(f"cragmesh: {message}", "red")
    raise typer.Exit(code)


def show_table(head: Sequence[str], rows: Iterable[Sequence[str]], **layout: Any) -> None:
    """Print a table; `layout` is of rich's `Table`."""
    table = Table(*head, **layout)
    for row in rows:
        table.add_row(*row)
    out.print(table)


def as_typed(eval_data: Path | None) -> str:
    """The command as it was typed, with `$CRAGMESH_EVAL_DATA` in place of that folder's path."""
    data = str(eval_data) if eval_data else ""
    words = ["cragmesh", *sys.argv[1:]]
    marked = [word.replace(data, "$CRAGMESH_EVAL_DATA") if data else word for word in words]
    return " ".join(word if word.startswith("$CRAGMESH_EVAL_DATA") else shlex.quote(word) for word in marked)


def write(text: str) -> None:
    """Write to stdout as it is, for other programs to read."""
    with _to_stdout():
        print(text, flush=True)


def write_json(content: BaseModel | Iterable[BaseModel]) -> None:
    """Write a model as JSON, or several as a list with a line each."""
    if isinstance(content, BaseModel):
        write(content.model_dump_json(indent=2))
    else:
        write("[" + ",\n ".join(item.model_dump_json() for item in content) + "]")


@contextmanager
def _to_stdout() -> Iterator[None]:
    """End the program where stdout takes no more; without a word where its reader has left, as `head` does."""
    try:
        yield
    except OSError as error:
        # It imports this module.
        from services.cli.ending import PROBLEM

        # What is buffered would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(PROBLEM) from None
        fail(f"the output cannot be written: {error.strerror}", PROBLEM)
