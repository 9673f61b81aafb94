"""Reports are reports_of where they lie, and nothing else is."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from services.gateway.page import reports as module
from services.gateway.page.reports import PNG, Reports, Root

PICTURE = PNG + b"not much of a picture"


def interval(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


SUMMARY: dict[str, Any] = {
    "name": "mine",
    "overall": {
        "questions": 40,
        "score": interval(0.2),
        "accuracy": interval(0.5),
        "hallucination": interval(0.3),
        "missing_rate": interval(0.2),
    },
    "latency": {"percentiles": {"50": 2.5}},
    "info": {"finished": True},
}


def write(folder: Path, *, summary: object = SUMMARY, report: str = "# Mine\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(report, encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (folder / "outcomes.png").write_bytes(PICTURE)
    return folder


def reports_of(folder: Path) -> Reports:
    return Reports((Root("Here", folder),))


def test_a_run_is_listed_with_its_numbers(tmp_path: Path) -> None:
    write(tmp_path / "a-model" / "mine" / "report")
    reports = reports_of(tmp_path)
    [listed] = reports.listed()
    assert (listed.group, listed.name) == ("Here", "a-model/mine")
    assert (listed.questions, listed.median_s, listed.finished) == (40, 2.5, True)
    assert listed.score is not None
    assert listed.score.low == pytest.approx(0.1)
    assert reports.read(listed.id, "report.md") == (b"# Mine\n", "text/plain; charset=utf-8")
    assert reports.read(listed.id, "outcomes.png") == (PICTURE, "image/png")


@pytest.mark.parametrize(
    "summary",
    [None, [], {"overall": {}}, SUMMARY | {"overall": SUMMARY["overall"] | {"score": interval(float("nan"))}}],
)
def test_numbers_that_are_none_leave_the_report(tmp_path: Path, summary: object) -> None:
    write(tmp_path / "mine", summary=summary)
    [listed] = reports_of(tmp_path).listed()
    assert (listed.name, listed.questions, listed.score) == ("mine", 0, None)


def test_only_what_was_found_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = write(tmp_path / "reports" / "mine")
    for other in ("secret.txt", "run.json", ".hidden.png"):
        (folder / other).write_text("secret")
    # Markup under a picture's name is no picture.
    (folder / "disguised.png").write_text("<script>secret</script>")
    (folder / "link.png").symlink_to(tmp_path / "secret.txt")
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    reports = reports_of(tmp_path / "reports")
    [listed] = reports.listed()
    assert reports.read(listed.id, "report.md") is not None
    there = ["secret.txt", "run.json", "link.png", "pipe.png", "folder.png", ".hidden.png", "disguised.png"]
    for name in ("../secret.txt", "../../secret.txt", "..", ".", "", "/etc/passwd", "report.md\0.png", *there):
        assert reports.read(listed.id, name) is None, name
    for report in ("", "..", "../..", "mine", "0" * 20, "/"):
        assert reports.read(report, "report.md") is None, report


def test_links_are_not_followed_and_a_file_that_becomes_one_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    write(tmp_path / "elsewhere" / "theirs")
    folder = write(tmp_path / "reports" / "mine")
    (tmp_path / "reports" / "link").symlink_to(tmp_path / "elsewhere")
    reports = reports_of(tmp_path / "reports")
    [listed] = reports.listed()
    assert listed.name == "mine"
    (folder / "report.md").unlink()
    (folder / "report.md").symlink_to(tmp_path / "secret.txt")
    assert reports.read(listed.id, "report.md") is None


def test_what_is_too_large_or_too_deep_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10_000)
    write(tmp_path / "large", report="x" * 10_001)
    write(tmp_path / "a" / "b" / "c" / "d" / "e")
    reports = reports_of(tmp_path)
    [listed] = reports.listed()
    assert listed.name == "large"
    assert reports.read(listed.id, "report.md") is None


def test_a_bounded_number_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REPORTS", 3)
    for number in range(5):
        write(tmp_path / f"run{number}")
    assert len(reports_of(tmp_path).listed()) == 3


def test_a_new_report_is_found_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = reports_of(tmp_path / "nowhere")
    assert reports.listed() == []
    write(tmp_path / "nowhere" / "mine")
    assert reports.listed() == [], "looked a moment ago"
    monkeypatch.setattr(module, "LOOK_S", -1.0)
    assert [listed.name for listed in reports.listed()] == ["mine"]
