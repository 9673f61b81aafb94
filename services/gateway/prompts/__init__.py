"""Prompts as text files: the static part first, so that vLLM's prefix cache works, the question last.

A file has a system message and a user message with a line of three dashes between them. `$documents`, `$query_time`
and `$query` are filled in one pass: what is filled in is never looked at again.
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
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    system, _, user = text.partition("\n---\n")
    return Prompt(system.strip(), Template(user.strip()))
