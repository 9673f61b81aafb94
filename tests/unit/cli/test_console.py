"""What becomes of results where stdout takes no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli.ending import PROBLEM

PRINTING = """
import typer
from services.cli.console import out, write
from services.cli.ending import ends

def main(how: str) -> None:
    with ends(problem=(OSError,)):
        for _ in range(100_000):
            {"write": write, "out": out.print}[how]("a line")

typer.run(main)
"""


def run(how: str, stdout: int) -> tuple[int, str]:
    """The exit code and the errors of a command that prints much."""
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", PRINTING, how], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("how", ["write", "out"])
def test_a_reader_that_has_left_ends_the_command_in_silence(how: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert run(how, writer) == (PROBLEM, "")
    finally:
        os.close(writer)


@pytest.mark.parametrize("how", ["write", "out"])
def test_a_full_disk_is_said(how: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, errors = run(how, full.fileno())
    assert (code, errors) == (PROBLEM, "cragmesh: the output cannot be written: No space left on device\n")
