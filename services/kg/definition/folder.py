"""A domain's folder: its files, checked by models, with the places of faults."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from services.kg.definition.yaml_lines import BrokenYaml, Lines, Path, load

# Of one file; people write them.
MAX_CHARS = 2_000_000


class Part(BaseModel):
    """Base of all parts of files: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a file: its line, from 1, the key, and the reason."""

    file: str
    line: int
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}{f', {self.key}' if self.key else ''}: {self.reason}"


class BrokenDomain(ValueError):
    """A folder that is no domain, with its `faults`."""

    def __init__(self, domain: str, faults: Iterable[Fault]) -> None:
        self.domain = domain
        self.faults = tuple(faults)
        more = f" (and {len(self.faults) - 5} more)" if len(self.faults) > 5 else ""
        super().__init__(f"the domain {domain} is broken: {'; '.join(map(str, self.faults[:5]))}{more}")


class BrokenPart(ValueError):
    """A fault in a part of a file; `place` leads to it from that part, `line` counts from 0 within its text."""

    def __init__(self, reason: str, *place: str | int, line: int = 0) -> None:
        super().__init__(reason)
        self.place = place
        self.line = line


def check_name(name: str, options: Collection[str], what: str, *place: str) -> None:
    """Check that a name in a file is one of those that there are; BrokenPart if not."""
    if name not in options:
        raise BrokenPart(f"there is no {what} {name}; there are {', '.join(sorted(options)) or 'none'}", *place)


@dataclass(frozen=True, slots=True)
class Content:
    """A file of YAML with its lines."""

    file: str
    data: object
    lines: Lines

    def fault(self, path: Path, reason: str, below: int = 0) -> Fault:
        """A fault at a key, or so many lines below it, within a text."""
        place = self.lines.nearest(path)
        return Fault(self.file, self.lines.of(path) + below, ".".join(map(str, place)), reason)

    def misfit(self, error: ErrorDetails) -> Fault:
        """A value that a model refuses, as a fault."""
        *_, field = ("", *error["loc"])
        reasons = {"missing": f"it needs {field}", "extra_forbidden": f"there is no field {field} here"}
        return self.fault(error["loc"], reasons.get(error["type"], error["msg"].removeprefix("Value error, ")))


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a domain, in the package or anywhere else.

    Reading one raises BrokenDomain where it is missing, too large, no UTF-8, no YAML, or refused by a model.
    """

    place: Traversable

    @property
    def name(self) -> str:
        return self.place.name

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.place / name).is_file()

    def text(self, name: str) -> str:
        """The text of a file."""
        file = self.place / name
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BrokenDomain(self.name, [Fault(str(file), 1, "", reason or "it cannot be read")]) from None
        if len(text) > MAX_CHARS:
            raise BrokenDomain(self.name, [Fault(str(file), 1, "", f"it has more than {MAX_CHARS:,} characters")])
        return text

    def content(self, name: str) -> Content:
        """A file of YAML."""
        file = str(self.place / name)
        try:
            return Content(file, *load(self.text(name)))
        except BrokenYaml as error:
            fault = Fault(file, error.line, ".".join(map(str, error.key)), error.reason)
            raise BrokenDomain(self.name, [fault]) from None

    def model(self, name: str, model: type[M]) -> tuple[M, Content]:
        """A file of YAML as a model, with its lines."""
        content = self.content(name)
        try:
            return model.model_validate(content.data), content
        except ValidationError as error:
            raise BrokenDomain(self.name, dict.fromkeys(map(content.misfit, error.errors()))) from None

    def read(self, name: str, model: type[M]) -> M | None:
        """A file of YAML as a model; None where there is no such file."""
        return self.model(name, model)[0] if self.has(name) else None

    def lines(self, name: str) -> frozenset[str]:
        """The lines of a text file without comments."""
        return frozenset(line for line in self.text(name).splitlines() if line and not line.startswith("#"))


# The files of the service beside its domains.
PACKAGED = Folder(files("services.kg"))
