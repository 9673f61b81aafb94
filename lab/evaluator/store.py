"""The files of a run, from which it goes on after a kill.

A run is a folder: `run.json` (its settings and the mesh), `predictions.jsonl` (one line a question, in the order of the
answers), `judgements-<judge>.jsonl`, and `report/`. Lines are appended whole and synced in batches; a line that a kill
tore is cut off when the run goes on, and its question asked again.
"""

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from lab.evaluator.errors import BadRun, WriteFailed
from proto.answer import CitationSource
from proto.classify import Classification
from services.kit import files

SYNC_LINES = 16
SYNC_S = 5.0

RUN, PREDICTIONS, REPORT, LOCK = "run.json", "predictions.jsonl", "report", ".lock"

Line = TypeVar("Line", bound=BaseModel)


class Stored(BaseModel):
    """Base of what is written: unknown fields of other versions are read over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Passage(Stored):
    """A passage that an answer rests on, as the generator saw it."""

    text: str
    page_name: str = ""
    source: CitationSource = "web"


class Prediction(Stored):
    """A question's outcome at the mesh: one line of `predictions.jsonl`.

    `prediction` is what is judged; `answer` is the gateway's, when that was longer. `seconds` is the caller's wall
    time with all waiting; `attempts` counts the requests. `error` says why there is no answer. `shown` holds passages
    where the run keeps contexts.
    """

    id: str
    query: str
    gold: tuple[str, ...]
    label_kind: str
    prediction: str = ""
    answer: str | None = None
    error: str = ""
    query_time: str = ""
    domain: str = ""
    question_type: str = ""
    dynamism: str = ""
    popularity: str = ""
    kind: str = ""
    confidence: float = 0.0
    source: str = ""
    strategy: str = ""
    generator: str = ""
    citations: int = 0
    citation_scores: tuple[float, ...] = ()
    shown: tuple[Passage, ...] = ()
    support: float = 0.0
    classification: Classification | None = None
    signals: dict[str, float] = Field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    timings: dict[str, float] = Field(default_factory=dict)
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1


class Judgement(Stored):
    """One line of `judgements-<judge>.jsonl`; `by` is `protocol` where no judge was needed.

    `of` is a digest of what was judged; empty in the lines of earlier versions.
    """

    id: str
    outcome: str
    by: str
    reason: str = ""
    of: str = ""


class RunInfo(Stored):
    """`run.json`. `settings` must be the same for a run to go on; the rest is for the report."""

    settings: dict[str, JsonValue]
    command: str = ""
    mesh: dict[str, JsonValue] = Field(default_factory=dict)
    token_counter: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    skipped_count: int = 0
    finished: bool = False


def _lock(file: int, path: Path) -> None:
    """Lock an open file until it is closed; raises BadRun, which names the path, where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BadRun(f"{path}: another process is writing it") from error


class AppendLog:
    """A JSONL file that only grows, locked for one process, whole after a kill at any moment.

    Raises:
        BadRun: another process writes it.
        WriteFailed: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._unsynced = 0
        self._synced_at = time.monotonic()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise WriteFailed(f"{path}: {error.strerror}") from error
        try:
            _lock(self._file, path)
        except BadRun:
            os.close(self._file)
            raise
        self._end = self._cut_torn_tail()

    def _cut_torn_tail(self) -> int:
        size = os.fstat(self._file).st_size
        end, step = size, 64 * 1024
        while end > 0:
            start = max(0, end - step)
            newline = os.pread(self._file, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._file, end)
        return end

    def append(self, line: BaseModel) -> None:
        """Write one line, whole or not at all.

        Raises:
            WriteFailed: the disk took no more; what was written before stays.
        """
        content = line.model_dump_json(exclude_defaults=True).encode() + b"\n"
        with self._lock:
            try:
                written = 0
                while written < len(content):
                    written += os.write(self._file, content[written:])
                self._end += len(content)
                self._unsynced += 1
                if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at > SYNC_S:
                    self._sync()
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._end)
                raise WriteFailed(f"{self.path}: {error.strerror}; what was written before is kept") from error

    def _sync(self) -> None:
        with contextlib.suppress(OSError):
            # A pipe cannot be synced.
            os.fsync(self._file)
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Sync and let go of the file."""
        with self._lock:
            if self._file >= 0:
                self._sync()
                os.close(self._file)
                self._file = -1

    def __enter__(self) -> "AppendLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_lines(path: Path, model: type[Line], on_bad: Callable[[str], None] = lambda _: None) -> Iterator[Line]:
    """The lines of a JSONL file without a torn last one; a damaged line goes to `on_bad`.

    Raises:
        BadRun: the file cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            # A device can be written to, but holds nothing to read.
            return
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n") or not line.strip():
                    continue
                try:
                    yield model.model_validate_json(line)
                except ValidationError as error:
                    on_bad(f"{path.name}:{number}: {error.error_count()} errors, line left out")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadRun(f"{path}: {error.strerror}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file at once, in its folder, so that a kill leaves the old one or the new one.

    Raises:
        WriteFailed: the folder cannot be made, or the disk took no more; the old file stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, content)
    except OSError as error:
        raise WriteFailed(f"{path}: {error.strerror}") from error


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace a file of lines; see `write_whole`."""
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def predictions_file(self) -> Path:
        return self.path / PREDICTIONS

    @property
    def report_folder(self) -> Path:
        return self.path / REPORT

    def judgements_file(self, judge: str) -> Path:
        return self.path / f"judgements-{judge}.jsonl"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process write the run while the context is open.

        Raises:
            BadRun: another one does.
            WriteFailed: the folder cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("wb")
        except OSError as error:
            raise WriteFailed(f"{self.path}: {error.strerror}") from error
        with lock:
            _lock(lock.fileno(), self.path)
            yield

    def begin(self, info: RunInfo) -> RunInfo | None:
        """Make the folder, or go on in it when it holds a run of the same settings, which is returned.

        Raises:
            BadRun: it holds a run of other settings.
            WriteFailed: it cannot be made.
        """
        earlier = self.info() if (self.path / RUN).exists() else None
        if earlier and earlier.settings != info.settings:
            keys = sorted({*earlier.settings, *info.settings})
            other = [key for key in keys if earlier.settings.get(key) != info.settings.get(key)]
            raise BadRun(f"{self.path} holds a run with another {', '.join(other)}: choose another folder")
        self.save(info)
        return earlier

    def info(self) -> RunInfo:
        """What `run.json` says.

        Raises:
            BadRun: there is none, or it cannot be read.
        """
        try:
            return RunInfo.model_validate_json((self.path / RUN).read_bytes())
        except OSError as error:
            raise BadRun(f"{self.path / RUN}: {error.strerror}: is this the folder of a run?") from error
        except ValidationError as error:
            raise BadRun(f"{self.path / RUN}: {error.error_count()} errors") from error

    def save(self, info: RunInfo) -> None:
        write_whole(
            self.path / RUN, json.dumps(info.model_dump(mode="json"), indent=2, ensure_ascii=False).encode() + b"\n"
        )

    def predictions(self, on_bad: Callable[[str], None] = lambda _: None) -> Iterator[Prediction]:
        return read_lines(self.predictions_file, Prediction, on_bad)

    def judgements(self, judge: str) -> dict[str, Judgement]:
        return {line.id: line for line in read_lines(self.judgements_file(judge), Judgement)}

    def save_judgements(self, judge: str, judgements: Mapping[str, Judgement]) -> None:
        ordered = sorted(judgements.values(), key=lambda line: line.id)
        write_lines(self.judgements_file(judge), (line.model_dump_json() for line in ordered))

    def forget_failed(self) -> int:
        """Remove the questions that got no answer, so that they are asked again; returns how many."""
        predictions = list(self.predictions())
        answered = [line for line in predictions if not line.error]
        if len(answered) < len(predictions):
            self.replace(answered)
        return len(predictions) - len(answered)

    def replace(self, predictions: Iterable[Prediction]) -> None:
        """Write all predictions anew."""
        write_lines(self.predictions_file, (line.model_dump_json(exclude_defaults=True) for line in predictions))
