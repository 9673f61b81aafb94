"""Records: JSON that compares equal on every machine, long values once each, and what differs between two of them."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# By name. Values are JSON.
Records = dict[str, Any]
# What is longer as JSON is kept once, under its digest: strategies show the same pages and ask the same things.
LONG_CHARS = 100
MARK = "="
# Logistic functions differ between CPUs in the last places.
DECIMALS = 4
# Where long lines are broken for people to read.
_WRAP = re.compile(r".{1,100}(?:\s|$)|.{1,100}")
# A difference is shown up to here; the first lines say what it is about.
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
                return {key: self._kept(self.fold(one)) for key, one in value.items()}
            case list() | tuple():
                return [self._kept(self.fold(one)) for one in value]
            case _:
                return value

    def unfold(self, value: Any) -> Any:
        """The value again, for people to read."""
        match value:
            case str() if value.startswith(MARK) and value.removeprefix(MARK) in self.by_digest:
                return self.unfold(self.by_digest[value.removeprefix(MARK)])
            case dict():
                return {key: self.unfold(one) for key, one in value.items()}
            case list():
                return [self.unfold(one) for one in value]
            case _:
                return value

    def _kept(self, folded: Any) -> Any:
        line = _line(folded)
        if len(line) <= LONG_CHARS:
            return folded
        digest = hashlib.sha256(line.encode()).hexdigest()[:12]
        self.by_digest[digest] = folded
        return MARK + digest


def dump(records: Mapping[str, Any]) -> str:
    """Records as a file: a line a record and a line a long value, so that git shows which ones changed."""
    shared = Shared()
    lines = [f"{json.dumps(name)}: {_line(shared.fold(value))}" for name, value in records.items()]
    kept = [f"{json.dumps(digest)}: {_line(value)}" for digest, value in sorted(shared.by_digest.items())]
    return '{"records": {\n' + ",\n".join(lines) + '\n}, "shared": {\n' + ",\n".join(kept) + "\n}}\n"


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
    """A line a leaf, named by its path; texts have several."""
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


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
