"""Prompts as text files: the static part first, so that vLLM's prefix cache works, the question last.

A file has a system message and a user message with a line of three dashes between them. `$documents`, `$query_time`
and `$query` are filled in one pass: what is filled in is never looked at again. A file without such a line is a further
turn of a chat, or a table of short texts.
"""

from dataclasses import dataclass
from importlib.resources import files
from string import Template

from services.kit.llm import Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with its holes."""

    system: str
    user: Template

    def fill(self, **values: str) -> list[Message]:
        """The chat messages.

        Raises:
            KeyError: a hole has no value.
        """
        return [Message("system", self.system), Message("user", self.user.substitute(values))]


def load(name: str) -> Prompt:
    """Read `name`.txt beside this module; strategies do so once, when they are made."""
    system, _, user = _read(name).partition("\n---\n")
    return Prompt(system.strip(), Template(user.strip()))


def load_turn(name: str) -> Message:
    """Read `name`.txt as a further turn of the user, in a chat that has begun."""
    return Message("user", _read(name).strip())


def load_table(name: str) -> dict[str, str]:
    """Read `name`.txt as lines of a key, a colon and a text."""
    lines = (line.partition(":") for line in _read(name).splitlines() if line.strip())
    return {key.strip(): text.strip() for key, _, text in lines}


def _read(name: str) -> str:
    return files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
