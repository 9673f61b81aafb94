"""The values of metrics' labels that services export, read from their code, so that no alert waits for one that never
comes.

What a service writes as a word is known; what it takes from elsewhere, as the gateway its stages, is any word.
"""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from services.cli.contracts import APPS, OPENAPI_DIR
from tests.deploy.conftest import ROOT

SERVICES = ROOT / "services"
# Stands for every word.
ANY = "*"
# Counts the milliseconds of a stage's parts, which are its keywords.
TOOK = "took"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one observation of a stage; each may be `ANY`."""

    service: str
    stage: str
    part: str


@cache
def _modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SERVICES.rglob("*.py"))}


def routes() -> set[str]:
    """Templates of all routes that a client may call; the page's are not among them."""
    found = {"unmatched"}
    for service in APPS:
        found |= json.loads((ROOT / OPENAPI_DIR / f"{service}.json").read_text(encoding="utf-8"))["paths"].keys()
    return found


def causes() -> set[str]:
    """Why a request may be cut short: the title of every error with a status, and what the middleware writes itself."""
    titles: dict[str, str] = {}
    bases: dict[str, set[str]] = {}
    for tree in _modules().values():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
            for line in node.body:
                target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
                if isinstance(target, ast.Name) and target.id == "title":
                    titles[node.name] = "".join(_words(line))
    errors = {"MeshError"}
    while more := {name for name, named in bases.items() if named & errors} - errors:
        errors |= more
    literal = {word for _, call, _ in _observations("cut_short") for word in _words(call.args[1])}
    return {titles[name].lower() for name in errors & titles.keys()} | literal


@cache
def stages() -> frozenset[Labels]:
    """Every observation of a stage: by the metric itself, and by `Metrics.took`, whose own body is none."""
    observed = {
        Labels(*(_word(argument, bound, path) for argument in call.args))
        for path, call, function in _observations("stage")
        if getattr(function, "name", "") != TOOK
        for bound in _bindings(function)
    }
    taken = {
        Labels(path.relative_to(SERVICES).parts[0], _word(call.args[0], {}, path), str(part.arg))
        for path, tree in _modules().items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == TOOK
        for part in call.keywords
    }
    return frozenset(observed | taken)


def importers(module: str, name: str) -> set[str]:
    """Services that import this name of this module somewhere."""
    return {
        path.relative_to(SERVICES).parts[0]
        for path, tree in _modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module and name in {alias.name for alias in node.names}
    } & APPS.keys()


def _observations(metric: str) -> Iterator[tuple[Path, ast.Call, ast.AST]]:
    """Calls `....METRIC.labels(...)`, each with the function that it stands in."""
    for path, tree in _modules().items():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                metrics = node.func.value
                if node.func.attr == "labels" and isinstance(metrics, ast.Attribute) and metrics.attr == metric:
                    yield path, node, function


def _word(argument: ast.expr, bound: dict[str, str], path: Path) -> str:
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if isinstance(argument, ast.Attribute) and argument.attr == "service":
        folder = path.relative_to(SERVICES).parts[0]
        return folder if folder in APPS else ANY
    return bound.get(argument.id, ANY) if isinstance(argument, ast.Name) else ANY


def _bindings(function: ast.AST) -> list[dict[str, str]]:
    """The words that names are bound to by the loops of a function, one entry for each turn; {} where none are."""
    found: list[dict[str, str]] = [{}]
    for loop in ast.walk(function):
        if isinstance(loop, ast.For):
            turns = [_matched(loop.target, element) for element in _elements(loop.iter, function)] or [{}]
            found = [bound | turn for bound in found for turn in turns]
    return found


def _matched(target: ast.AST, element: ast.AST | None) -> dict[str, str]:
    if isinstance(target, ast.Tuple) and isinstance(element, ast.Tuple):
        pairs = zip(target.elts, element.elts, strict=True)
        return {name: word for inner in pairs for name, word in _matched(*inner).items()}
    if isinstance(target, ast.Name) and isinstance(element, ast.Constant) and isinstance(element.value, str):
        return {target.id: element.value}
    return {}


def _elements(node: ast.expr, function: ast.AST) -> list[ast.expr]:
    """What a loop goes over, where it is written down in the same function."""
    if isinstance(node, ast.Tuple | ast.List):
        return node.elts
    if isinstance(node, ast.Name):
        assigned = (line for line in ast.walk(function) if isinstance(line, ast.Assign))
        values = [line.value for line in assigned if any(_is(target, node.id) for target in line.targets)]
        return [element for value in values for element in _elements(value, function)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "items":
        return _elements(node.func.value, function)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [ast.Tuple(elts=[key, value]) for key, value in pairs if key is not None]
    return []


def _is(target: ast.AST, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _words(node: ast.AST) -> set[str]:
    return {found.value for found in ast.walk(node) if isinstance(found, ast.Constant) and isinstance(found.value, str)}
