"""Which confidence weighs a generator's answers: its own, else the generic one.

The files of a folder (`CRAGMESH_CONFIDENCE_DIR`, where `cragmesh calibrate` writes them) win over the shipped ones. The
folder is scanned every two seconds beside the requests, none of which waits for the disk. A file that cannot be used is
logged, and named by `/readyz` and `/services`; its last good version stays in use.
"""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from proto.base import Contract
from services.gateway import confidence
from services.gateway.confidence import GENERIC, Confidence, name_of
from services.kit.caution import CALIBRATION_MINUTES, Caution
from services.kit.telemetry import log

LOOK_S = 2.0
MAX_FILES = 200
MAX_FILE_BYTES = 1024 * 1024
# Log-probabilities are ranked among this many of the same generator's latest answers; ranks among fewer than ENOUGH are
# noise.
RECENT = 500
ENOUGH = 50
NEUTRAL = 0.5
# A mesh has one generator and a few adapters; names that come and go must not add up.
MAX_GENERATORS = 8
# The stage in `degraded` where no confidence is fitted.
STAGE = "confidence"

Whose = Literal["own", "generic", "none", "unknown"]


class ConfidenceHealth(Contract):
    """What weighs the answers of the generator that is there."""

    generator: str = Field("", description="MODEL, or MODEL+ADAPTER; empty while the generator cannot be asked.")
    whose: Whose = Field(
        "unknown",
        description="`own`: fitted on this generator's answers. `generic`: on those of others. `none`: every answer is "
        "given. `unknown`: the generator cannot be asked.",
    )
    fitted_on: str = Field("", description="What it was fitted on.")
    digest: str = Field(
        "", description="Begin of the SHA-256 of its file; empty for one that is shipped, and for none."
    )
    caution: Caution = Field("balanced", description="How dear a wrong answer is taken to be.")
    detail: str = Field("", description="What is missing, and what to do about it; empty when nothing is.")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A confidence of the folder, with the digest of its file."""

    name: str
    model: Confidence
    digest: str


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the folder.

    Args:
        stamp: changes with the content; None where the file system refuses.
        fitted: its last good version.
        problem: why the present version cannot be used.
    """

    stamp: tuple[int, int, int] | None
    fitted: Fitted | None
    problem: str = ""


def rank(value: float, latest: Collection[float]) -> float:
    """The share of the latest values that are lower, those that are equal by half; NEUTRAL of too few."""
    if len(latest) < ENOUGH:
        return NEUTRAL
    return sum((one < value) + (one == value) / 2 for one in latest) / len(latest)


class Calibration:
    """The confidences, and the distributions of the generators' log-probabilities.

    Args:
        folder: of files that win over the shipped ones; one that does not exist holds none.

    Attributes:
        problems: the folder and the files that are not used, each with the reason.
    """

    problems: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._shipped = confidence.load()
        self._files: dict[str, _File] = {}
        self._installed: dict[str, Fitted] = {}
        self._latest: dict[str, dict[str, deque[float]]] = {}
        self._read()

    def own(self, generator: str, adapter: str = "") -> Confidence | None:
        """The model that was fitted on the answers of this generator, or of its adapter; None where there is none."""
        return self._find(name_of(generator, adapter))

    def choose(self, generator: str, adapter: str = "") -> Confidence | None:
        """The generator's own model, else the generic one; None where there is neither."""
        return self.own(generator, adapter) or self._find(GENERIC)

    def _find(self, name: str) -> Confidence | None:
        fitted = self._installed.get(name)
        return fitted.model if fitted else self._shipped.get(name)

    def ranks(self, name: str, logprobs: Mapping[str, float]) -> dict[str, float]:
        """Ranks of an answer's log-probabilities among this generator's latest, by the names of their signals."""
        latest = self._latest.get(name, {})
        return {f"{signal}_rank": rank(value, latest.get(signal, ())) for signal, value in logprobs.items()}

    def observe(self, name: str, logprobs: Mapping[str, float]) -> None:
        """Add an answer's log-probabilities to the latest."""
        if name not in self._latest and len(self._latest) == MAX_GENERATORS:
            del self._latest[next(iter(self._latest))]
        latest = self._latest.setdefault(name, {})
        for signal, value in logprobs.items():
            latest.setdefault(signal, deque(maxlen=RECENT)).append(value)

    def health(self, generator: str, adapter: str = "", caution: Caution = "balanced") -> ConfidenceHealth:
        """The confidence of this generator's answers, for people; the generator is empty while it cannot be asked."""
        if not generator:
            return ConfidenceHealth(caution=caution, detail="; ".join(self.problems))
        name = name_of(generator, adapter)
        whose: Whose = "own" if self._find(name) else "generic" if self._find(GENERIC) else "none"
        used = name if whose == "own" else GENERIC
        model, fitted = self._find(used), self._installed.get(used)
        missing = [] if whose == "own" else [self.missing(generator, adapter)]
        return ConfidenceHealth(
            generator=name,
            whose=whose,
            fitted_on=model.fitted_on if model else "",
            digest=fitted.digest if fitted else "",
            caution=caution,
            detail="; ".join([*missing, *self.problems]),
        )

    def missing(self, generator: str, adapter: str = "") -> str:
        """The message that this generator has no confidence of its own, with the consequence and the remedy."""
        instead = "a generic one weighs its answers" if self._find(GENERIC) else "every answer is given"
        return (
            f"no confidence is fitted for {name_of(generator, adapter)}: {instead}; "
            f"`cragmesh calibrate --made-up` fits one in about {CALIBRATION_MINUTES} minutes"
        )

    async def watch(self) -> None:
        """Scan the folder every LOOK_S, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await asyncio.to_thread(self._read)
            except Exception as error:
                # Whatever the folder holds, the confidences read before stay in use.
                log.error("confidences cannot be read", error=type(error).__name__, exc_info=error)

    def _read(self) -> None:
        """Scan the folder; what cannot be read becomes a problem, never an error."""
        if self._folder is None:
            return
        problems: list[str] = []
        paths: list[Path] = []
        try:
            paths = sorted(self._folder.glob("*.json"))
        except OSError as error:
            problems.append(f"{self._folder}: {error.strerror}")
        if len(paths) > MAX_FILES:
            problems.append(f"{self._folder}: only {MAX_FILES} of its {len(paths)} files are read")
        files = {path.name: file for path in paths[:MAX_FILES] if (file := self._read_file(path))}
        installed, ignored = _choose(files)
        problems += [f"{name}: {file.problem}" for name, file in files.items() if file.problem]
        problems += ignored
        for problem in problems:
            if problem not in self.problems:
                report = log.warning if problem in ignored else log.error
                report("a problem of confidences", folder=str(self._folder), detail=problem)
        # One assignment each: requests read them meanwhile.
        self._files, self._installed, self.problems = files, installed, tuple(problems)

    def _read_file(self, path: Path) -> _File | None:
        earlier = self._files.get(path.name)
        last_good = earlier.fitted if earlier else None
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            return _File(None, last_good, error.strerror or "cannot be read")
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if earlier and earlier.stamp == stamp:
            return earlier
        parsed = parse(path)
        if isinstance(parsed, str):
            return _File(stamp, last_good, parsed)
        log.info("confidence read", file=path.name, generator=parsed.name, fitted_on=parsed.model.fitted_on)
        return _File(stamp, parsed)


def _choose(files: Mapping[str, _File]) -> tuple[dict[str, Fitted], list[str]]:
    """The confidence of each generator, and what is wrong with other files of its name.

    The file that is called as its generator wins, else the newest: a backup beside it keeps the generator's name.
    """
    fitted = {name: file.fitted for name, file in files.items() if file.fitted}
    ranked = sorted(fitted, key=lambda name: (name == f"{fitted[name].name}.json", files[name].stamp or (), name))
    chosen = {fitted[name].name: name for name in ranked}
    ignored = [
        f"{name}: also says it is of {one.name}; {chosen[one.name]} is used"
        for name, one in fitted.items()
        if chosen[one.name] != name
    ]
    return {generator: fitted[name] for generator, name in chosen.items()}, ignored


def parse(path: Path) -> Fitted | str:
    """A file's confidence, or why it cannot be used. Its name is its `generator`, else the file's name.

    A generator's name may have characters that a file's may not, as the keys of a ConfigMap.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return error.strerror or "cannot be read"
    if len(content) > MAX_FILE_BYTES:
        return f"larger than {MAX_FILE_BYTES // 1024} KiB"
    try:
        model = Confidence.model_validate_json(content.decode(json.detect_encoding(content)))
    except UnicodeDecodeError:
        return "not JSON"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return "not JSON"
        return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
    if unknown := model.names - confidence.SIGNALS.keys():
        return f"unknown signals: {', '.join(name[:40] for name in sorted(unknown)[:5])}"
    name = model.generator.rpartition("/")[2] or path.name.removesuffix(".json")
    if name == GENERIC and (own := model.names - confidence.GENERIC_SIGNALS):
        return f"these signals mean something else for each generator: {', '.join(sorted(own)[:5])}"
    return Fitted(name, model, digest_of(content))


def digest_of(content: bytes) -> str:
    """The digest that identifies a version of a file."""
    return hashlib.sha256(content).hexdigest()[:16]
