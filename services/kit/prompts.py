"""Prompts as text files: the static part first, so that vLLM's prefix cache works, the question last."""

from dataclasses import dataclass
from importlib.resources import files
from string import Template

from services.kit.llm import Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system message, and a user message with placeholders."""

    system: str
    user: Template

    def fill(self, **values: str) -> list[Message]:
        """The chat messages; a value is inserted as it is, placeholders inside it included.

        Raises:
            KeyError: a placeholder has no value.
        """
        return [Message("system", self.system), Message("user", self.user.substitute(values))]


@dataclass(frozen=True, slots=True)
class PromptFolder:
    """The files of the folder `prompts` of a package, `services.gateway`, each called by its name without `.txt`."""

    package: str

    def prompt(self, name: str) -> Prompt:
        """A file of a system message and a user message, with a line of three dashes between them."""
        system, _, user = self._read(name).partition("\n---\n")
        return Prompt(system.strip(), Template(user.strip()))

    def template(self, name: str) -> Template:
        """A file of one message with placeholders."""
        return Template(self._read(name).strip())

    def turn(self, name: str) -> Message:
        """A file that is a later user message of a chat."""
        return Message("user", self._read(name).strip())

    def turns(self, name: str) -> list[Message]:
        """A file of messages of the user and the assistant by turns, with a line of three dashes between them."""
        texts = self._read(name).split("\n---\n")
        return [Message("assistant" if index % 2 else "user", text.strip()) for index, text in enumerate(texts)]

    def table(self, name: str) -> dict[str, str]:
        """A file of lines `key: text`, as a mapping."""
        lines = (line.partition(":") for line in self._read(name).splitlines() if line.strip())
        return {key.strip(): text.strip() for key, _, text in lines}

    def _read(self, name: str) -> str:
        return files(self.package).joinpath("prompts", f"{name}.txt").read_text("utf-8")
