"""The Makefile's targets: few that people type, all that measure listed in one table."""

import re
from pathlib import Path

from tests.deploy.conftest import ROOT, run, tool
from tests.deploy.known import defaults

PLAIN = re.compile(r"^([a-z0-9-]+):.*## \S", re.MULTILINE)
MAX_TYPED = 18


def test_a_person_reads_few_targets() -> None:
    assert 10 <= len(PLAIN.findall((ROOT / "Makefile").read_text())) <= MAX_TYPED


def test_each_target_that_measures_is_in_the_table_and_nothing_else_is() -> None:
    table = (ROOT / "docs" / "measurements.md").read_text().partition("## Which command measures what")[2]
    rows = re.findall(r"^\| ([a-z0-9-]+) \| `", table.partition("\n## ")[0], re.MULTILINE)
    assert rows == PLAIN.findall((ROOT / "tests" / "bench" / "measure.mk").read_text())


def test_a_module_that_a_target_runs_exists() -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests/bench/measure.mk", ROOT / "deploy/checks.mk"))
    modules = set(re.findall(r"-m ((?:tests|lab)\.[a-z_.]+)", text))
    assert modules
    for module in modules:
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_cleaning_keeps_what_people_made_and_says_so(tmp_path: Path) -> None:
    kept = {"models/mine/config.json", "models/adapters/mine/manifest.json", "out/eval/run.jsonl"}
    # Where services keep things when they are told no other place.
    places = {str(default).removeprefix("sqlite:///") for default in defaults().values()}
    kept |= {f"{place}/kept" for place in places if place.startswith("models/")}
    assert {"models/collections/kept", "models/confidence/kept", "models/kg.sqlite/kept"} <= kept
    removed = {"models/small/manifest.json", "models/.cache/a.lock", ".venv/a", ".venv-ray/a", ".run/a", "build/a"}
    for name in kept | removed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = run(tool("make"), "-C", str(tmp_path), "-I", str(ROOT), "-f", str(ROOT / "Makefile"), "distclean")
    assert done.returncode == 0, done.stderr
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == kept
    for name in kept:
        assert f"kept: {'/'.join(name.split('/')[:2])}" in done.stdout
