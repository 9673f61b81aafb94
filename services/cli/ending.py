"""The end of a command: its exit code and its last message."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from services.cli.console import fail, say

ANSWERED, PROBLEM, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
MOST_ERRORS = 5

Result = TypeVar("Result")
Settings = TypeVar("Settings", bound=BaseSettings)
Errors = tuple[type[Exception], ...]


@contextmanager
def ends(
    *, usage: Errors = (), unreachable: Errors = (), problem: Errors = (), hint: str = "", again: str = ""
) -> Iterator[None]:
    """End the program in words where the work inside fails or is interrupted.

    Args:
        usage, unreachable, problem: errors by the exit code that they end with; the first that fits counts.
        hint: follows the message of an `unreachable` error, with its own separator.
        again: how an interrupted command goes on.
    """
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(f"interrupted; {again}" if again else "interrupted", "yellow")
        raise typer.Exit(INTERRUPTED) from None
    except usage as error:
        fail(str(error), USAGE)
    except unreachable as error:
        fail(f"{error}{hint}", UNREACHABLE)
    except problem as error:
        fail(str(error), PROBLEM)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, or until Ctrl-C, SIGTERM or a closed terminal cancels it and it has cleaned up."""

    async def main() -> Result:
        task = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel if task else lambda: None)
        return await work

    return asyncio.run(main())


def settings_of(kind: type[Settings]) -> Settings:
    """Settings from the environment; wrong values end the program."""
    try:
        return kind()
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        fail(wrong(error, prefix, str.upper), USAGE)


def wrong(error: ValidationError, prefix: str = "", spelled: Any = str) -> str:
    """The message of a validation error: the first few fields, as users spell them, each with its problem."""
    errors = error.errors()[:MOST_ERRORS]
    parts = ((".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, ")) for item in errors)
    return "; ".join(f"{prefix}{spelled(name)}: {message}" if name else message for name, message in parts)
