"""Imports point one way: contracts, then the kit, then each service for itself, then the lab, then the command line."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"lab", "proto", "services", "tests"}
FILES = sorted(path.relative_to(ROOT) for top in ("lab", "proto", "services") for path in (ROOT / top).rglob("*.py"))

SERVICES = sorted(path.name for path in (ROOT / "services").iterdir() if path.is_dir() and path.name != "cli")


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(source: str, path: Path) -> Iterator[str]:
    """Names of the modules that a file imports; `from a import b` counts as `a.b`, which may be one too."""
    package = path.with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) + 1 - node.level]] if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def allowed(module: str) -> list[str] | None:
    """What of ours a module may import; None when all of it but the tests."""
    top, _, rest = module.partition(".")
    service = rest.partition(".")[0]
    if top == "proto":
        return ["proto"]
    if top == "lab":
        return ["proto", "lab", *(f"services.{name}" for name in SERVICES)]
    if service == "cli":
        return None
    return ["proto", "services.kit", f"services.{service}"] if service else []


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def trespasses(source: str, path: Path) -> list[str]:
    packages = allowed(module_of(path))
    names = [name for name in imported(source, path) if name.partition(".")[0] in OURS]
    if packages is None:
        return [name for name in names if within(name, "tests")]
    return [name for name in names if not any(within(name, package) for package in packages)]


def test_imports_point_one_way() -> None:
    found = {str(path): trespasses((ROOT / path).read_text(encoding="utf-8"), path) for path in FILES}
    assert len(found) > 300
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("path", "source", "trespass"),
    [
        ("proto/base.py", "import services.kit", ["services.kit"]),
        ("proto/answer.py", "from proto.base import Contract", []),
        ("services/kit/app.py", "from services.gateway.app import create_app", ["services.gateway.app.create_app"]),
        ("services/kit/app.py", "from .budget import Budget\nfrom proto import base", []),
        ("services/gateway/steps/web.py", "from services import retriever", ["services.retriever"]),
        ("services/gateway/steps/web.py", "from ...kit import app\nfrom .. import mesh", []),
        ("services/gateway/steps/web.py", "from ...retriever import app", ["services.retriever.app"]),
        ("services/gateway/app.py", "def f():\n    import services.cli.main", ["services.cli.main"]),
        ("services/gateway/app.py", "from services.gateway_two import x", ["services.gateway_two.x"]),
        ("services/reranker/app.py", "from tests.mesh import fakes", ["tests.mesh.fakes"]),
        ("services/kg/execute.py", "from lab.goldens import records", ["lab.goldens.records"]),
        ("lab/goldens/graph.py", "from services.kg.execute import Executor\nfrom services.kit import llm", []),
        ("lab/goldens/graph.py", "from services.cli import contracts", ["services.cli.contracts"]),
        ("lab/goldens/graph.py", "from tests.mesh import fakes", ["tests.mesh.fakes"]),
        ("services/cli/main.py", "import services.gateway.app\nimport proto.base", []),
        ("services/cli/main.py", "import tests.mesh", ["tests.mesh"]),
        ("services/__init__.py", "from services.kit import app", ["services.kit.app"]),
    ],
)
def test_the_rule_sees(path: str, source: str, trespass: list[str]) -> None:
    assert trespasses(source, Path(path)) == trespass
