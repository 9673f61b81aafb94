"""The values of metrics' labels that services export, as their code says them, so that no alert waits for one that
never comes."""

import json
import re
from dataclasses import dataclass
from functools import cache

from services.cli.contracts import APPS, OPENAPI_DIR
from services.gateway.access import QUESTIONS
from tests.deploy.conftest import ROOT

SERVICES = ROOT / "services"
# Stands for every word.
ANY = "*"
# `Metrics.took("rank", queue=.., inference=..)`.
_TOOK = re.compile(r'\.took\(\s*(?:"(\w+)"|\w+),([^)]*)\)')
_TITLE = re.compile(r'^    title(?:: [^=]+)? = "([^"]+)"', re.MULTILINE)
_CUT_SHORT = re.compile(r'cut_short\.labels\([^)"]*"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one observation of a stage; a stage that the code does not name is `ANY`."""

    service: str
    stage: str
    part: str


@cache
def _sources() -> dict[str, str]:
    """The code of each folder of `services`."""
    return {
        folder.name: "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
        for folder in SERVICES.iterdir()
        if folder.is_dir()
    }


def routes() -> set[str]:
    """Templates of all routes that a client may call; the page's are not among them."""
    # `/mcp` is in no OpenAPI.
    found = {"unmatched", *QUESTIONS}
    for service in APPS:
        found |= json.loads((ROOT / OPENAPI_DIR / f"{service}.json").read_text(encoding="utf-8"))["paths"].keys()
    return found


def causes() -> set[str]:
    """Why a request may be cut short: the titles of errors, and what the middleware writes itself."""
    code = "\n".join(_sources().values())
    return {title.lower() for title in _TITLE.findall(code)} | set(_CUT_SHORT.findall(code))


@cache
def stages() -> frozenset[Labels]:
    """Every observation of a stage."""
    return frozenset(
        Labels(service, stage or ANY, part)
        for service, code in _sources().items()
        for stage, parts in _TOOK.findall(code)
        for part in re.findall(r"(\w+)=", parts)
    )


def importers(module: str, name: str) -> set[str]:
    """Services that import this name of this module somewhere."""
    line = re.compile(rf"^from {re.escape(module)} import [^\n]*\b{name}\b", re.MULTILINE)
    return {service for service, code in _sources().items() if line.search(code)} & APPS.keys()
