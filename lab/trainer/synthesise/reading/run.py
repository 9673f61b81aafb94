"""A run that writes passages until its time is over; after a kill it goes on from the finished passages."""

import asyncio
import fcntl
import hashlib
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lab.trainer import files
from lab.trainer.errors import BadDataset, BadTarget, TrainerError
from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading import articles
from lab.trainer.synthesise.reading.briefs import draw
from lab.trainer.synthesise.reading.writer import Outcome, Writer
from services.kit.concurrency import all_of
from services.kit.errors import BadReply, ServiceFailure

# Briefs that fail one after the other before the server is given up.
MAX_FAILURES = 40
PAUSE_S = 1.0
SAMPLE_LINES = 200
Line = TypeVar("Line", bound=BaseModel)


class ServerGone(TrainerError):
    pass


class Item(Pair):
    """A line of the data: a pair whose id is its brief's, a dash, how the question came about, and a number."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(pattern=rf"^{articles.LINE}$")


class Entry(BaseModel):
    """A line of the journal: a finished brief, its model, and how many items were kept and rejected."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    brief: str = Field(pattern=rf"^{articles.BRIEF}$")
    model: str = ""
    kept: int
    rejected: dict[str, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Args:
        items: in the file, `fresh` of them of this run; it ends at `goal`.
        briefs: finished in this run.
        seconds: since it began; `left_s` until it ends by time or goal, None before an estimate is possible.
    """

    items: int
    fresh: int
    goal: int
    briefs: int
    seconds: float
    left_s: float | None

    @property
    def per_minute(self) -> float:
        return self.fresh / self.seconds * 60 if self.seconds else 0.0


@dataclass(slots=True)
class Files:
    """The data, and beside it the journal of finished briefs.

    Raises:
        BadDataset: a line of the file is no item.
    """

    path: Path
    done: set[str] = field(default_factory=set)
    items: int = 0
    models: set[str] = field(default_factory=set)
    rejected: Counter[str] = field(default_factory=Counter)

    @property
    def journal(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.journal.jsonl")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the files for this process.

        Raises:
            BadTarget: another process writes them.
            WriteFailed: they cannot be written.
        """
        with files.naming(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            journal = self.journal.open("ab")
        with journal:
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BadTarget(f"{self.path}: another process is writing it") from error
            yield

    def open(self) -> None:
        """Read both files, without a last line that a kill cut short."""
        with files.naming(self.path):
            for item in _read(self.path, Item, "item of prose"):
                self.done.add(articles.brief(item))
                self.items += 1
            for entry in _read(self.journal, Entry, "entry of a journal"):
                self._count(entry)

    def add(self, brief: str, model: str, outcome: Outcome) -> None:
        """Append a brief's items, then its entry of the journal.

        Raises:
            WriteFailed: the disk took no more.
        """
        with files.naming(self.path):
            _append(self.path, "".join(item.model_dump_json(exclude={"group"}) + "\n" for item in outcome.items))
            entry = Entry(brief=brief, model=model, kept=len(outcome.items), rejected=dict(outcome.rejected))
            _append(self.journal, entry.model_dump_json() + "\n")
        self.items += len(outcome.items)
        self._count(entry)

    def _count(self, entry: Entry) -> None:
        self.done.add(entry.brief)
        self.models |= {entry.model} - {""}
        self.rejected.update(entry.rejected)


async def write(
    writer: Writer,
    data: Files,
    *,
    seed: int,
    goal: int,
    limit_s: float,
    briefs: int,
    on_progress: Callable[[Progress], None],
) -> None:
    """Append items to the data until there are `goal` of them or `limit_s` seconds are over.

    Briefs under way at the end of the time are still written, which takes a minute or two.

    Args:
        limit_s: 0 sets no limit.
        briefs: how many are under way at once.

    Raises:
        ServerGone: the model gave no usable reply for many briefs in a row.
        WriteFailed: the disk took no more.
    """
    began = time.monotonic()
    before, finished, failures = data.items, 0, 0
    gone: ServiceFailure | None = None
    appending = asyncio.Lock()
    done = {int(name.partition("-")[2]) for name in data.done if name.startswith(f"{seed}-")}
    order = itertools.filterfalse(done.__contains__, itertools.count())

    def over() -> bool:
        late = bool(limit_s) and time.monotonic() - began >= limit_s
        return late or data.items >= goal or gone is not None

    async def work() -> None:
        nonlocal finished, failures, gone
        while not over():
            index = next(order)
            name = f"{seed}-{index}"
            try:
                outcome = await writer.write(name, draw(seed, index))
            except ServiceFailure as error:
                failures += 1
                if failures >= MAX_FAILURES:
                    # The others end by themselves, after writing their briefs.
                    gone = error
                await asyncio.sleep(0 if isinstance(error, BadReply) else PAUSE_S)
                continue
            failures = 0
            async with appending:
                await asyncio.to_thread(data.add, name, writer.model, outcome)
            finished += 1
            seconds = time.monotonic() - began
            fresh = data.items - before
            left = [limit_s - seconds] if limit_s else []
            left += [(goal - data.items) * seconds / fresh] if fresh else []
            on_progress(Progress(data.items, fresh, goal, finished, seconds, max(0.0, min(left)) if left else None))

    await all_of(work() for _ in range(briefs))
    if gone is not None:
        raise ServerGone(f"{gone}; the same command goes on from what is written") from gone


def report(data: Files, command: str) -> dict[str, object]:
    """The counts, sources and digest of the data."""
    items = list(_read(data.path, Item, "item of prose"))
    ways = Counter(map(articles.way, items))
    return {
        "command": command,
        "models": sorted(data.models),
        "sha256": hashlib.sha256(data.path.read_bytes()).hexdigest() if items else "",
        "lines": len(items),
        "answerable": sum(bool(item.answer) for item in items),
        "briefs": len(data.done),
        "passages": len(set(map(articles.brief, items))),
        "ways": dict(ways.most_common()),
        "kinds": dict(Counter(item.kind for item in items).most_common()),
        "first_words": dict(Counter(item.question.split()[0].lower() for item in items).most_common(20)),
        "answer_words": dict(sorted(Counter(len(item.answer.split()) for item in items if item.answer).items())),
        "rejected": dict(data.rejected.most_common()),
    }


def sample(path: Path, lines: int = SAMPLE_LINES) -> bytes:
    """The first lines of the data, in the file's order, of whole articles that their digests choose."""
    by_article: dict[bytes, list[tuple[int, bytes]]] = {}
    for number, line in enumerate(_whole_lines(path)):
        digest = hashlib.sha256(articles.article(Item.model_validate_json(line)).encode()).digest()
        by_article.setdefault(digest, []).append((number, line))
    chosen = [line for digest in sorted(by_article) for line in by_article[digest]][:lines]
    return b"".join(line for _, line in sorted(chosen))


def write_report(path: Path, content: dict[str, object]) -> None:
    files.write(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def _read(path: Path, kind: type[Line], name: str) -> Iterator[Line]:
    for number, line in enumerate(_whole_lines(path), 1):
        try:
            yield kind.model_validate_json(line)
        except ValidationError:
            raise BadDataset(f"{path}:{number}: is no {name}") from None


def _whole_lines(path: Path) -> list[bytes]:
    """Lines of a file, with their ends; what follows the last end is cut off the file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return whole.splitlines(keepends=True)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
