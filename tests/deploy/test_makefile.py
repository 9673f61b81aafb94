"""The Makefile's targets: few that people type, all that measure listed in one table."""

import re

from tests.deploy.conftest import ROOT

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
