"""Keys of a gateway under test: NAME's is `cm_NAME`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from services.gateway.access import ASKER, Scope
from services.gateway.keys import Key, digest


def write_keys(file: Path, keys: Mapping[str, Scope] | Iterable[str], **per_minute: int) -> Path:
    """A file of keys by their names, with their scopes or else those of askers."""
    scopes = keys if isinstance(keys, Mapping) else dict.fromkeys(keys, ASKER)
    lines = (Key(name, digest(f"cm_{name}"), per_minute.get(name), scope).line() for name, scope in scopes.items())
    file.write_text("".join(lines), encoding="utf-8")
    return file


def bearer(name: str) -> dict[str, str]:
    """The header with NAME's key; none for nobody."""
    return {"authorization": f"Bearer cm_{name}"} if name else {}
