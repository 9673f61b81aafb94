"""The evaluator's reports below some folders.

No path ever comes from a request: a report is named by the digest of its place, one of its files by a name that was
listed there. Links are not followed. Files are Markdown, numbers and pictures, which hold no question and no answer.
Everything here touches the disk and belongs into a thread.
"""

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from services.gateway.page.assets import MEDIA_TYPES, TEXT

REPORT = "report.md"
SUMMARY = "summary.json"
# Levels below a root at which a report may lie: model, run, `report`.
MAX_DEPTH = 4
MAX_REPORTS = 200
MAX_FOLDERS = 2_000
MAX_FILE_BYTES = 4 * 1024 * 1024
# Between two looks into the folders.
LOOK_S = 3.0
PNG = b"\x89PNG\r\n\x1a\n"
_PICTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.png")

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Interval(BaseModel):
    """A value with its 95 % interval."""

    value: Finite
    low: Finite
    high: Finite


class Numbers(BaseModel):
    """The part of a run's summary that the page shows; shares are of all questions."""

    finished: bool = Field(True, validation_alias=AliasPath("info", "finished"))
    questions: int = Field(0, validation_alias=AliasPath("overall", "questions"))
    score: Interval | None = Field(None, validation_alias=AliasPath("overall", "score"))
    accuracy: Interval | None = Field(None, validation_alias=AliasPath("overall", "accuracy"))
    hallucination: Interval | None = Field(None, validation_alias=AliasPath("overall", "hallucination"))
    missing: Interval | None = Field(None, validation_alias=AliasPath("overall", "missing_rate"))
    median_s: Finite | None = Field(None, validation_alias=AliasPath("latency", "percentiles", "50"))


class ReportInfo(Numbers):
    """A report as the page lists it."""

    model_config = ConfigDict(validate_by_name=True)

    id: str
    group: str
    name: str
    pictures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Root:
    """A folder of reports, and its title on the page."""

    title: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Report:
    """A report, and the paths of its files."""

    info: ReportInfo
    files: dict[str, Path]


@dataclass(slots=True)
class Reports:
    """All reports below some folders.

    Args:
        roots: searched in this order; one that does not exist holds nothing.
    """

    roots: Sequence[Root]
    _reports: dict[str, Report] = field(default_factory=dict)
    _looked_at: float | None = None

    def listed(self) -> list[ReportInfo]:
        """All reports, as of the last few seconds."""
        self._look()
        return [report.info for report in self._reports.values()]

    def read(self, id: str, name: str) -> tuple[bytes, str] | None:
        """A file of a report and its media type; None where there is none of that name."""
        self._look()
        report = self._reports.get(id)
        path = report.files.get(name) if report else None
        content = _content(path) if path else None
        if content is None:
            return None
        if name.endswith(".png"):
            return (content, MEDIA_TYPES["png"]) if content.startswith(PNG) else None
        return content, TEXT

    def _look(self) -> None:
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at > LOOK_S:
            self._reports = {report.info.id: report for root in self.roots for report in _reports(root)}
            self._looked_at = now


def _reports(root: Root) -> Iterator[Report]:
    count = 0
    for folder in _folders(root.folder):
        files = _files(folder)
        if REPORT in files and count < MAX_REPORTS:
            count += 1
            yield Report(_info(root, folder, files), files)


def _folders(top: Path) -> Iterator[Path]:
    for visited, (folder, below, _) in enumerate(os.walk(top, followlinks=False)):
        if visited >= MAX_FOLDERS:
            return
        deep = len(Path(folder).relative_to(top).parts) >= MAX_DEPTH
        below[:] = [] if deep else sorted(name for name in below if not name.startswith("."))
        yield Path(folder)


def _files(folder: Path) -> dict[str, Path]:
    with os.scandir(folder) as entries:
        return {
            entry.name: Path(entry.path)
            for entry in sorted(entries, key=lambda entry: entry.name)
            if entry.name in (REPORT, SUMMARY) or _PICTURE.fullmatch(entry.name)
            if entry.is_file(follow_symlinks=False)
        }


def _info(root: Root, folder: Path, files: dict[str, Path]) -> ReportInfo:
    place = folder.relative_to(root.folder)
    # The evaluator writes a run's report into its folder `report`.
    run = place.parent if place.name == "report" else place
    digest = hashlib.sha256(f"{root.title}\0{place.as_posix()}".encode()).hexdigest()
    numbers = Numbers()
    if content := _content(files[SUMMARY]) if SUMMARY in files else None:
        with contextlib.suppress(ValidationError):
            numbers = Numbers.model_validate_json(content)
    return ReportInfo(
        id=digest[:20],
        group=root.title,
        name=run.as_posix() if run.parts else root.folder.name,
        pictures=tuple(name for name in files if name.endswith(".png")),
        **dict(numbers),
    )


def _content(path: Path) -> bytes | None:
    """A plain file's bytes; None where it is a link, has gone, or is too large to be shown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        return file.read(MAX_FILE_BYTES + 1)
