"""Records: JSON that is the same on every machine, with long values once each, and the differences of two of them."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

# By name. Values are JSON.
Records = dict[str, Any]
# Longer values, as JSON, stand once, under their digest: strategies share pages and requests.
LONG_CHARS = 100
MARK = "="
# CPUs compute logistic functions differently in the last places.
DECIMALS = 4
# Where long lines are broken for people to read.
_WRAP = re.compile(r".{1,100}(?:\s|$)|.{1,100}")
# Of one difference.
MAX_LINES = 40


@dataclass(slots=True)
class Shared:
    """Long values by their digest."""

    by_digest: dict[str, Any] = field(default_factory=dict)

    def fold(self, value: Any) -> Any:
        """A value with its floats rounded and its long parts replaced by their digests."""
        match value:
            case float():
                return round(value, DECIMALS)
            case dict():
                return {key: self._shared(self.fold(one)) for key, one in value.items()}
            case list() | tuple():
                return [self._shared(self.fold(one)) for one in value]
            case _:
                return value

    def unfold(self, value: Any) -> Any:
        """The value with its parts in place of their digests."""
        match value:
            case str() if value.startswith(MARK) and value.removeprefix(MARK) in self.by_digest:
                return self.unfold(self.by_digest[value.removeprefix(MARK)])
            case dict():
                return {key: self.unfold(one) for key, one in value.items()}
            case list():
                return [self.unfold(one) for one in value]
            case _:
                return value

    def _shared(self, folded: Any) -> Any:
        line = _line(folded)
        if len(line) <= LONG_CHARS:
            return folded
        key = hashlib.sha256(line.encode()).hexdigest()[:12]
        self.by_digest[key] = folded
        return MARK + key


def dump(records: Mapping[str, Any]) -> str:
    """Records as a file: a line for each record and each long value, so that git shows which ones changed."""
    shared = Shared()
    lines = [f"{json.dumps(name)}: {_line(shared.fold(value))}" for name, value in records.items()]
    long_lines = [f"{json.dumps(key)}: {_line(value)}" for key, value in sorted(shared.by_digest.items())]
    return '{"records": {\n' + ",\n".join(lines) + '\n}, "shared": {\n' + ",\n".join(long_lines) + "\n}}\n"


def load(path: Path) -> Records:
    """Records of a file.

    Raises:
        FileNotFoundError: nothing was recorded there.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    shared = Shared(content["shared"])
    return {name: shared.unfold(value) for name, value in content["records"].items()}


def plain(records: Mapping[str, Any]) -> Records:
    """Records as they are after being written and read."""
    shared = Shared()
    return {name: shared.unfold(json.loads(_line(shared.fold(value)))) for name, value in records.items()}


def differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and description of each record that differs, as lines of a unified diff."""
    for name in dict.fromkeys((*recorded, *now)):
        if name not in now:
            yield name, "  no longer there"
        elif name not in recorded:
            yield name, "  new"
        elif recorded[name] != now[name]:
            yield name, "\n".join(_diff(_readable(recorded[name]), _readable(now[name])))


def _diff(before: list[str], after: list[str]) -> list[str]:
    lines = [f"  {line}" for line in difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=1)]
    return lines[:MAX_LINES] + ([f"  ... {len(lines) - MAX_LINES} lines more"] if lines[MAX_LINES:] else [])


def _readable(value: Any, path: str = "") -> list[str]:
    """A line for each leaf, named by its path; texts have several."""
    match value:
        case dict() if value:
            return [
                line for key, one in value.items() for line in _readable(one, f"{path}.{key}" if path else str(key))
            ]
        case list() if value:
            return [line for place, one in enumerate(value) for line in _readable(one, f"{path}[{place}]")]
        case str():
            parts = (part for line in value.split("\n") for part in _WRAP.findall(line) or [""])
            return [f"{path}: {part}" for part in parts]
        case _:
            return [f"{path}: {json.dumps(value)}"]


def digest(value: Any) -> str:
    """SHA-256 of a value as JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: Any) -> str:
    """A value as JSON, with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def packaged(name: str) -> Any:
    """The content of a YAML or JSON file beside this one."""
    content = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return json.loads(content) if name.endswith(".json") else yaml.safe_load(content)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
