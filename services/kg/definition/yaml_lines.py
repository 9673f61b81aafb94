"""YAML with the line of every key and value, for the places of errors.

Scalars are YAML 1.2's: only `true` and `false` are booleans and a date is text; `on`, `no` and `2003-04-21` are words.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import yaml

# Nodes of a file with its anchors written out; the largest of the bundled ones has some thousands.
MAX_NODES = 200_000

_COLLECTIONS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
}

Path = tuple[str | int, ...]


class BrokenYaml(ValueError):
    """The text is no YAML for a domain; `line` counts from 1."""

    def __init__(self, reason: str, line: int, key: Path = ()) -> None:
        super().__init__(f"line {line}: {reason}")
        self.reason = reason
        self.line = line
        self.key = key


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file's keys and values by path, `("functions", "get_film", "keys")`; list items by number."""

    lines: Mapping[Path, int]

    def of(self, path: Path) -> int:
        """The line of a path, or of the nearest place around it."""
        return self.lines[self.nearest(path)]

    def nearest(self, path: Path) -> Path:
        """The path without the steps that the file lacks."""
        place: Path = ()
        for step in path:
            if (*place, step) in self.lines:
                place = (*place, step)
        return place


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=e))(?:e[-+]?[0-9]+)?", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def load(text: str) -> tuple[Any, Lines]:
    """The content of one document and its lines. Anchors are written out, `<<` where it stands.

    Raises:
        BrokenYaml: the text cannot be read, has a key twice, a tag of its own, or too many nodes.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BrokenYaml(error.problem or "cannot be read", mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise BrokenYaml(str(error), 1) from None
    finally:
        loader.dispose()
    reader = _Reader()
    data = None if node is None else reader.read(node, (), 1)
    return data, Lines(reader.lines)


class _Reader:
    def __init__(self) -> None:
        self.lines: dict[Path, int] = {(): 1}
        self._open: set[int] = set()
        self._nodes = 0

    def read(self, node: yaml.Node, path: Path, line: int) -> Any:
        self._nodes += 1
        if id(node) in self._open or self._nodes > MAX_NODES:
            raise BrokenYaml("too much in it, or an anchor within itself", line, path)
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return _SCALARS[node.tag](node.value)
        if isinstance(node, yaml.ScalarNode) or node.tag not in _COLLECTIONS:
            at = node.start_mark.line + 1 if isinstance(node, yaml.ScalarNode) else line
            raise BrokenYaml(f"{node.tag} is no tag of such a file", at, path)
        self._open.add(id(node))
        try:
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        own: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise BrokenYaml("a key must be a word", line, path)
            if key.value == "<<":
                merged = self.read(value, path, line)
                if not isinstance(merged, dict):
                    raise BrokenYaml("<< takes a mapping", line, path)
                # The mapping's own values win.
                data |= {name: value for name, value in merged.items() if name not in data}
                continue
            name = str(key.value)
            place = (*path, name)
            if name in own:
                raise BrokenYaml(f"{name} stands here twice", line, place)
            own.add(name)
            self.lines[place] = line
            data[name] = self.read(value, place, line)
        return data

    def _sequence(self, node: yaml.Node, path: Path) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self.lines[(*path, index)] = item.start_mark.line + 1
            items.append(self.read(item, (*path, index), item.start_mark.line + 1))
        return items
