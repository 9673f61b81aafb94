"""An image holds its service's extra and nothing more, so the extra must bring all that the service imports."""

import ast
import json
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.conftest import ROOT, run

OURS = ("proto", "services", "lab")


def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").is_file() else None


@cache
def _imports(file: Path) -> frozenset[str]:
    """Modules that a file imports when it is imported; what functions import is needed only when they are called."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


@cache
def third_party(module: str) -> set[str]:
    """Top-level packages of others that a module and all of ours that it imports need."""
    seen: set[Path] = set()
    needed: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if top not in OURS:
            needed.add(top)
            continue
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            file = _file(".".join(parts[:length]))
            if file and file not in seen:
                seen.add(file)
                waiting += _imports(file)
    return needed - set(sys.stdlib_module_names)


@cache
def installed(service: str) -> set[str]:
    """Distributions that the core and one extra bring, with theirs."""
    found: set[str] = set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(line) for line in (*project["dependencies"], *project["optional-dependencies"][service])]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if name in found and not requirement.extras:
            continue
        found.add(name)
        for line in distribution(name).requires or ():
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(inner)
    return found


# Of each top-level package the distributions that bring it; a look at all that is installed.
owners = cache(packages_distributions)
SMALL = ("retriever", "reranker", "classifier", "kg")


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        *((f"services.{service}.__main__", service) for service in ("gateway", "searcher", *SMALL)),
        # What runs encoders.
        *(("services.kit.onnx_backend", service) for service in SMALL),
        ("services.kit.torch_backend", "torch"),
        # What commands of the Jobs' images import when they are called.
        *(
            (module, job)
            for job in ("evaluator", "trainer")
            for module in ("lab.trainer.synthesise.questions", "lab.trainer.synthesise.programs", "lab.draft")
        ),
        ("lab.evaluator.calibrate", "evaluator"),
        ("lab.evaluator.ablation", "evaluator"),
        ("lab.evaluator.report.files", "evaluator"),
        ("lab.capacity.pictures", "evaluator"),
        ("lab.classifier.fit", "evaluator"),
        ("lab.papers.report", "evaluator"),
        ("lab.trainer.sft", "trainer"),
        ("lab.trainer.labelling", "trainer"),
        ("lab.trainer.reader", "trainer"),
    ],
)
def test_an_extra_brings_all_that_its_modules_import(module: str, extra: str) -> None:
    for package in third_party(module):
        names = {canonicalize_name(name) for name in owners().get(package, [])}
        assert names & installed(extra), f"{package} is imported by {module}, and {extra} does not bring it"


def test_the_command_line_starts_where_there_is_no_lab() -> None:
    assert "lab" not in third_party("services.cli.main")


def test_only_the_images_of_jobs_hold_the_lab() -> None:
    recipe = (ROOT / "services/Dockerfile").read_text()
    assert "COPY lab" not in recipe
    assert "in evaluator|trainer) cp -r /lab lab" in recipe
    for job in ("evaluator", "trainer"):
        assert (ROOT / "lab" / job / "__init__.py").is_file()


@pytest.mark.parametrize("service", ["searcher", *SMALL])
def test_a_service_brings_no_torch(service: str) -> None:
    heavy = {"torch", "transformers", "sentence-transformers", "pandas", "matplotlib", "scikit-learn", "scipy"}
    assert not installed(service) & heavy


def test_the_bundled_encoder_is_pinned_once_and_reaches_the_images_that_run_it() -> None:
    (pin,) = [line for line in (ROOT / "services/requirements-encoder.txt").read_text().splitlines() if line[0] != "#"]
    assert pin in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["torch"]
    recipe = (ROOT / "services/Dockerfile").read_text()
    assert (
        f"in {'|'.join(SMALL)}) sh install.sh /opt/cragmesh --no-compile --no-deps -r requirements-encoder.txt"
        in recipe
    )


@pytest.mark.slow
def test_services_start_and_answer_without_torch_and_never_try_to_import_it() -> None:
    result = run(sys.executable, "-m", "tests.deploy.start_without_torch")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == {service: [] for service in SMALL}


def test_the_generators_images_hold_what_its_launcher_imports() -> None:
    """Their recipe names the kit's modules one by one: a change of another would make vLLM's layer anew."""
    recipe = (ROOT / "services/generator/Dockerfile").read_text()
    modules = {name for file in (ROOT / "services/generator").glob("*.py") for name in _imports(file)}
    used = {f"{name.replace('.', '/')}.py" for name in modules if name.startswith("services.kit.") and _file(name)}
    assert "services/kit/files.py" in used
    assert {path for path in used if recipe.count(path) != 3} == set()
