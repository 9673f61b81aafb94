"""Downloads of public question files from their owners, checked by size and SHA-256.

A download that was cut goes on where it ended, and is checked as a whole; a right file is not fetched again.
"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import IO

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lab.evaluator.errors import BadSource, Unreachable, WriteFailed

# Silence of a server for so long ends a download; it goes on with the next call.
SILENCE_S = 60.0
CHUNK = 1024 * 1024
PARTIAL = ".partial"

OnBytes = Callable[[int], None]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceFile(_Entry):
    """A file of a set: where it lies below the catalogue's base, its bytes and its digest."""

    path: str
    size: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


class SourceSet(_Entry):
    """Files that belong together; those with `joined` are the parts of one file of that name."""

    summary: str
    files: tuple[SourceFile, ...] = Field(min_length=1)
    joined: str = ""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Catalogue(_Entry):
    """A benchmark's public files."""

    name: str
    licence: str
    base: str
    sets: dict[str, SourceSet]


def catalogues() -> dict[str, Traversable]:
    """The catalogues that ship, by benchmark."""
    folder = files("lab.evaluator") / "sources"
    return {Path(item.name).stem: item for item in folder.iterdir() if item.name.endswith(".yaml")}


def load(item: Traversable) -> Catalogue:
    """A catalogue from its file.

    Raises:
        BadSource: it is none.
    """
    try:
        return Catalogue.model_validate(yaml.safe_load(item.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError, OSError) as error:
        raise BadSource(f"{item.name}: no catalogue of sources: {error}") from error


def is_right(path: Path, file: SourceFile) -> bool:
    """Whether a file has its size and digest; reads all of it."""
    return path.is_file() and path.stat().st_size == file.size and _digest(path) == file.sha256


def fetch(
    source: SourceSet, folder: Path, http: httpx.Client, *, base: str, on_bytes: OnBytes = lambda _: None
) -> list[Path]:
    """Fetch a set into a folder, one file after the other; where each lies, or the one that parts were joined to.

    Args:
        base: address below which the files' paths lie: the owner's, or a mirror's.
        on_bytes: told of bytes as they arrive, those that were there already included.

    Raises:
        Unreachable: a server did not answer, refused, or fell silent.
        BadSource: what came is not what is pinned.
        WriteFailed: the disk took no more.
    """
    joined = folder / source.joined if source.joined else None
    if joined and _is_joined(source, joined):
        on_bytes(source.size)
        return [joined]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _room(folder, source)
        paths = [_fetch_one(file, folder, http, base, on_bytes) for file in source.files]
        if joined is None:
            return paths
        _join(paths, joined)
        return [joined]
    except OSError as error:
        raise WriteFailed(f"{folder}: {error.strerror or error}") from error


def _is_joined(source: SourceSet, joined: Path) -> bool:
    """Whether the parts were joined; each was checked before."""
    return joined.is_file() and joined.stat().st_size == source.size


def _room(folder: Path, source: SourceSet) -> None:
    present = sum(path.stat().st_size for file in source.files for path in folder.glob(f"{file.name}*"))
    needed = source.size * (2 if source.joined else 1) - present
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WriteFailed(f"{folder}: {needed / 1e9:.1f} GB are needed, and {free / 1e9:.1f} GB are free")


def _fetch_one(file: SourceFile, folder: Path, http: httpx.Client, base: str, on_bytes: OnBytes) -> Path:
    target = folder / file.name
    if is_right(target, file):
        on_bytes(file.size)
        return target
    partial = target.with_name(target.name + PARTIAL)
    _download(f"{base.rstrip('/')}/{file.path}", file, partial, http, on_bytes)
    if (digest := _digest(partial)) != file.sha256:
        partial.unlink()
        raise BadSource(f"{file.name}: SHA-256 {digest} came, {file.sha256} is pinned; it is thrown away")
    partial.rename(target)
    return target


def _download(url: str, file: SourceFile, partial: Path, http: httpx.Client, on_bytes: OnBytes) -> None:
    start = partial.stat().st_size if partial.exists() else 0
    if start > file.size:
        partial.unlink()
        start = 0
    on_bytes(start)
    if start == file.size:
        return
    headers = {"range": f"bytes={start}-"} if start else {}
    try:
        with http.stream("GET", url, headers=headers, follow_redirects=True, timeout=SILENCE_S) as reply:
            if reply.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                raise Unreachable(f"{url}: HTTP {reply.status_code}")
            goes_on = reply.status_code == HTTPStatus.PARTIAL_CONTENT
            if start and not goes_on:
                on_bytes(-start)
            with partial.open("ab" if goes_on else "wb") as out:
                _write(reply, out, file.size - (start if goes_on else 0), file.name, on_bytes)
    except httpx.HTTPError as error:
        raise Unreachable(f"{url}: {type(error).__name__}; the same command goes on from here") from error


def _write(reply: httpx.Response, out: IO[bytes], most: int, name: str, on_bytes: OnBytes) -> None:
    written = 0
    for chunk in reply.iter_raw():
        written += len(chunk)
        if written > most:
            raise BadSource(f"{name}: the server sends more than its {most} bytes")
        out.write(chunk)
        on_bytes(len(chunk))


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _join(parts: Sequence[Path], joined: Path) -> None:
    partial = joined.with_name(joined.name + PARTIAL)
    with partial.open("wb") as out:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, out, CHUNK)
    partial.rename(joined)
    for part in parts:
        part.unlink()
