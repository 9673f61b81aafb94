"""People's verdicts on answers, with question and answer, so that the confidence can be fitted on them.

Answers wait for a verdict in this process's memory, for an hour at most; without one they never reach a disk. Judged
ones are lines of a file a day, `YYYY-MM-DD.HOST-PID.jsonl`, which is removed after some days.
"""

import asyncio
import os
import platform
import time
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from proto.answer import AnswerRequest, AnswerResponse
from proto.classify import Classification
from proto.feedback import FeedbackRequest, Verdict
from services.kit.budget import Clock
from services.kit.errors import NotFound, Unavailable
from services.kit.telemetry import log

# Answers that wait for a verdict, and how long.
WAITING = 4_000
WAIT_S = 3_600.0
EXPIRE_S = 3_600.0
CHAT_PREFIX = "chatcmpl-"


class Judged(BaseModel):
    """A question, the gateway's answer and a person's verdict, without names: one line of a file.

    Attributes:
        generator: MODEL, or MODEL+ADAPTER, that answered.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    query: str
    query_time: str
    answer: str
    kind: str
    confidence: float
    source: str
    strategy: str
    signals: dict[str, float]
    classification: Classification | None
    generator: str
    verdict: Verdict = "right"
    right_answer: str = ""


class Feedback:
    """Answers that wait for a verdict, and the folder of judged ones.

    Args:
        folder: None keeps nothing, not even in memory.
        days: that files are kept.
    """

    def __init__(self, folder: Path | None, days: int, *, clock: Clock = time.monotonic) -> None:
        self._folder = folder
        self._days = days
        self._clock = clock
        self._waiting: OrderedDict[tuple[str, str], tuple[float, Judged]] = OrderedDict()
        self._lock = asyncio.Lock()

    def remember(self, caller: str, request: AnswerRequest, response: AnswerResponse, generator: str) -> None:
        """Let an answer wait for its verdict."""
        if self._folder is None:
            return
        asked_at = request.query_time or datetime.now(UTC)
        answer = Judged(
            query=response.query or request.query,
            query_time=asked_at.isoformat(timespec="seconds"),
            generator=response.generator or generator,
            id=response.request_id,
            **response.model_dump(include={"answer", "kind", "confidence", "source", "strategy", "signals"}),
            classification=response.classification,
        )
        self._waiting[caller, response.request_id] = (self._clock(), answer)
        self._waiting.move_to_end((caller, response.request_id))
        while len(self._waiting) > WAITING or self._clock() - next(iter(self._waiting.values()))[0] > WAIT_S:
            self._waiting.popitem(last=False)

    async def judge(self, caller: str, feedback: FeedbackRequest) -> None:
        """Keep a verdict; a later one takes its place.

        Raises:
            NotFound: no answer of that id to this caller waits in this process, or nothing is kept here.
            Unavailable: the folder cannot be written.
        """
        if self._folder is None:
            raise NotFound("no verdicts are kept here: CRAGMESH_FEEDBACK_DIR is not set")
        answered_at, answer = self._waiting.get((caller, feedback.request_id.removeprefix(CHAT_PREFIX)), (0.0, None))
        if answer is None or self._clock() - answered_at > WAIT_S:
            raise NotFound("no answer of that id waits for a verdict")
        line = answer.model_copy(update={"verdict": feedback.verdict, "right_answer": feedback.right_answer.strip()})
        async with self._lock:
            try:
                await asyncio.to_thread(_write, self._folder, line)
            except OSError as error:
                raise Unavailable(f"feedback cannot be written: {error.strerror}") from error

    async def expire(self) -> None:
        """Remove files that are too old, and again every hour."""
        while self._folder is not None:
            today = datetime.now(UTC).date()
            await asyncio.to_thread(_remove_before, self._folder, today - timedelta(days=self._days))
            await asyncio.sleep(EXPIRE_S)


def _write(folder: Path, line: Judged) -> None:
    today = datetime.now(UTC).date()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{today.isoformat()}.{platform.node()}-{os.getpid()}.jsonl"
    # Readable by the gateway's user alone.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as lines:
        lines.write(line.model_dump_json() + "\n")


def _remove_before(folder: Path, first: date) -> None:
    for file in folder.glob("????-??-??.*.jsonl"):
        if file.name[:10] >= first.isoformat():
            continue
        try:
            file.unlink(missing_ok=True)
            log.info("feedback removed", file=file.name)
        except OSError as error:
            log.error("feedback cannot be removed", file=file.name, error=error.strerror)
