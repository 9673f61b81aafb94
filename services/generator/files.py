"""Checksums, and the manifest of a prepared model."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.kit.files import write_whole

MANIFEST = "manifest.json"
CHUNK_BYTES = 1 << 20


class ManifestFile(BaseModel):
    """One file of a model: its name within the folder, its size in bytes."""

    # Earlier manifests have a checksum too.
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(pattern=r"^[^/\x00]+$")
    size: int = Field(ge=0)


class Manifest(BaseModel):
    """What a prepared model was made from and what it consists of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    source_sha256: str
    files: tuple[ManifestFile, ...] = Field(min_length=1)


def sha256(path: Path, advance: Callable[[int], None]) -> str:
    """A file's checksum in hexadecimal; `advance` is told of the bytes read since it was last called."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            advance(len(chunk))
    return digest.hexdigest()


def write_manifest(folder: Path, source: str, source_sha256: str) -> None:
    """Describe every file of a folder in its manifest, which is written last."""
    files = tuple(
        ManifestFile(name=path.name, size=path.stat().st_size)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != MANIFEST
    )
    manifest = Manifest(source=source, source_sha256=source_sha256, files=files)
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")


def read_manifest(folder: Path) -> Manifest | None:
    """A folder's manifest; None when it has none that can be read."""
    try:
        return Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None


def problems(folder: Path, manifest: Manifest) -> list[str]:
    """What is missing or has another size than in the manifest, in words."""
    damages = []
    for expected in manifest.files:
        path = folder / expected.name
        if not path.is_file():
            damages.append(f"{expected.name} is missing")
        elif (size := path.stat().st_size) != expected.size:
            damages.append(f"{expected.name} has {size} bytes, not {expected.size}")
    return damages
