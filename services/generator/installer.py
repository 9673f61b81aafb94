"""Packages put into an environment by uv, which takes what pip is configured to take, and by pip where uv cannot.

`python -m services.generator.installer ARGUMENTS...` does what `pip install` does, for the interpreter that runs it. It
imports the standard library alone, since it runs before anything is installed. Two environments share the files of what
they have in common, and modules are compiled when they are first imported.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# What pip is told by its configuration, in uv's environment variables, and what separates several values there.
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "retries": ("UV_HTTP_RETRIES", " "),
}
# What changes nothing of what is installed.
_COSMETIC = {
    "cache-dir", "disable-pip-version-check", "no-cache-dir", "no-color", "no-input", "progress-bar", "quiet",
    "require-virtualenv", "root-user-action", "verbose",
}  # fmt: skip


class Command(NamedTuple):
    """A command that is ready to run: its words, the program's path first, and its environment."""

    argv: tuple[str, ...]
    env: dict[str, str]


def by_pip(python: str, arguments: Sequence[str]) -> Command:
    """`pip install` by the environment's own pip."""
    install = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    return Command((*install, *arguments), dict(os.environ))


def by_uv(python: str, arguments: Sequence[str]) -> Command | None:
    """The same by the uv beside this interpreter; None where there is none, or pip is told what uv cannot be told."""
    uv = Path(sys.executable).parent / "uv"
    translated = translate(pip_settings()) if os.access(uv, os.X_OK) else None
    if translated is None:
        return None
    # As pip does: the best version of all indexes, not that of the first which has any.
    env = {"UV_INDEX_STRATEGY": "unsafe-best-match", **translated, **os.environ}
    return Command((str(uv), "pip", "install", "--python", python, *arguments), env)


def pip_settings() -> dict[str, str]:
    """What files and variables configure pip to do: values by the names of its options."""
    argv = (sys.executable, "-m", "pip", "config", "list")
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own arguments
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        sections.setdefault(section, {})[option] = str(ast.literal_eval(value))
    return sections["global"] | sections["install"] | sections[":env:"]


def translate(settings: Mapping[str, str]) -> dict[str, str] | None:
    """uv's environment variables that say what pip's settings say; None where one has no counterpart."""
    env: dict[str, str] = {}
    for option, value in settings.items():
        if option in _VARIABLES:
            name, separator = _VARIABLES[option]
            env[name] = separator.join(value.split())
        elif option not in _COSMETIC:
            return None
    return env


def _execute(command: Command) -> bool:
    return subprocess.run(command.argv, env=command.env, check=False).returncode == 0  # noqa: S603 - our own arguments


def install(python: str, arguments: Sequence[str], execute: Callable[[Command], bool] = _execute) -> bool:
    """Install by uv, or by pip where uv cannot or does not succeed; returns whether it was done."""
    command = by_uv(python, arguments)
    return (command is not None and execute(command)) or execute(by_pip(python, arguments))


if __name__ == "__main__":
    sys.exit(not install(sys.executable, sys.argv[1:]))
