"""Training data: one `Example` a line of JSON, read strictly, split by group."""

import codecs
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab.trainer import files
from lab.trainer.errors import BadDataset, faults
from services.kit import jsonl
from services.kit.files import whole
from services.kit.llm import Message

Item = TypeVar("Item")
Line = TypeVar("Line", bound=BaseModel)
Task = Literal["answer", "kg-api", "sql"]
Kind = Literal["answer", "unknown", "invalid_question"]
# What the evaluator calls the same.
LABEL_KINDS: dict[Kind, str] = {"answer": "answer", "unknown": "idk", "invalid_question": "invalid"}

# One line of a file; a prompt of the longest context that any model here reads is far below it.
MAX_LINE_BYTES = 4 * 1024 * 1024


class Turn(BaseModel):
    """One message of a prompt."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=1_000_000)


def turns(messages: Iterable[Message]) -> list[Turn]:
    """A prompt's messages as fields of an example."""
    return [Turn(role=message.role, content=message.content) for message in messages]


class Example(BaseModel):
    """A prompt and the reply that the model shall give.

    Args:
        id: unique within a file.
        task: the subtask, which is the adapter's name too.
        messages: the prompt exactly as the serving side renders it; the last turn is the user's.
        completion: the whole reply, without the template's end mark.
        domain: CRAG's domain.
        kind: what the reply is: an answer, an abstention, or the refusal of a false premise.
        question_type: one of CRAG's eight; empty when unknown.
        source: where it comes from: `synthetic:SEED`, `labels:RUN`.
        query: the bare question.
        group: examples of one group never lie on both sides of a split; empty groups by the query.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: str = Field(min_length=1, max_length=200)
    task: Task
    messages: list[Turn] = Field(min_length=1, max_length=64)
    completion: str = Field(min_length=1, max_length=20_000)
    domain: str = Field(max_length=32)
    kind: Kind
    question_type: str = Field("", max_length=32)
    source: str = Field(max_length=200)
    query: str = Field(min_length=1, max_length=20_000)
    group: str = Field("", max_length=200)

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        if not self.completion.strip():
            raise ValueError("the completion is blank")
        return self


def lines(paths: Iterable[Path], kind: type[Line]) -> Iterator[tuple[str, Line]]:
    """The lines of files, each with its place, `file:line`.

    Raises:
        BadDataset: a file cannot be read, or a line of it is of another kind.
    """
    try:
        for path in paths:
            for number, line in jsonl.lines(path, max_bytes=MAX_LINE_BYTES):
                try:
                    yield f"{path}:{number}", kind.model_validate_json(line.removeprefix(codecs.BOM_UTF8))
                except ValidationError as error:
                    raise BadDataset(f"{path}:{number}: {faults(error)}") from None
    except jsonl.BadLine as error:
        raise BadDataset(str(error)) from error


def read(paths: Sequence[Path], *, task: Task | None = None) -> list[Example]:
    """All examples of the files, in order; those of other tasks are left out where one is named.

    Raises:
        BadDataset: a file cannot be read, a line is no example, an id comes twice in a file, or nothing is left.
    """
    examples: list[Example] = []
    ids: set[tuple[str, str]] = set()
    for place, example in lines(paths, Example):
        own = place.rpartition(":")[0], example.id
        if own in ids:
            raise BadDataset(f"{place}: id: {example.id!r} comes twice in this file")
        ids.add(own)
        if task is None or example.task == task:
            examples.append(example)
    if not examples:
        of_task = f" of the task {task!r}" if task else ""
        raise BadDataset(f"{', '.join(map(str, paths))}: no example{of_task}")
    return examples


def write(path: Path, examples: Iterable[Example]) -> Counter[str]:
    """Replace a file by these examples, whole or not at all; returns how many of each kind.

    Raises:
        WriteFailed: the disk took no more; what was there before still is.
    """
    kinds: Counter[str] = Counter()
    with files.naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            for example in examples:
                file.write(example.model_dump_json().encode() + b"\n")
                kinds[example.kind] += 1
    return kinds


def fingerprint(examples: Iterable[Example]) -> str:
    """SHA-256 of the examples in their order, in hexadecimal."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.model_dump_json().encode())
        digest.update(b"\n")
    return digest.hexdigest()


def sample(examples: list[Item], count: int, seed: int) -> list[Item]:
    """So many of the examples at random, in their order; all of them for 0."""
    if not 0 < count < len(examples):
        return examples
    chosen = random.Random(seed).sample(range(len(examples)), count)  # noqa: S311 - repeatable is the point
    return [examples[index] for index in sorted(chosen)]


def group_of(example: Example) -> str:
    """The group of an example: its own, else its query."""
    return example.group or " ".join(example.query.lower().split())


def split(
    items: Iterable[Item], group: Callable[[Item], str], *, share: float, seed: int
) -> tuple[list[Item], list[Item]]:
    """Items to learn from, and about a share of the groups that only measures; the same for a seed.

    A group's side depends on its name and the seed alone, so that more data moves none to the other side.
    """
    train: list[Item] = []
    held_out: list[Item] = []
    for item in items:
        digest = hashlib.sha256(f"{seed}:{group(item)}".encode(errors="replace")).digest()
        (held_out if int.from_bytes(digest[:8], "big") / 2**64 < share else train).append(item)
    return train, held_out
