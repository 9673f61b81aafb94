"""Which confidence weighs whose answers: files of a folder before shipped ones, one's own before the generic."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from services.gateway import calibration, confidence
from services.gateway.calibration import ENOUGH, MAX_FILE_BYTES, NEUTRAL, RECENT, Calibration, digest_of
from services.gateway.confidence import Confidence
from services.kit.caution import COSTS

pytestmark = pytest.mark.anyio


def heads(line: float = 0.5, **change: Any) -> dict[str, Any]:
    head = {
        "names": ["support"], "means": [0.5], "scales": [0.5], "weights": [2.0], "intercept": 0.0,
        "thresholds": dict.fromkeys(COSTS, line),
    }  # fmt: skip
    return {"answer": head | change, "invalid": None, "fitted_on": "200 answers"}


ANSWER = heads()["answer"]
OF_THE_FIRST_VERSION = {"answer": {name: ANSWER[name] for name in ANSWER if name != "thresholds"} | {"threshold": 0.5}}


def put(folder: Path, name: str, content: dict[str, Any] | str) -> bytes:
    """A file as `cragmesh calibrate` writes it: whole, in the place of the last."""
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    draft = folder / f".{name}"
    draft.write_text(text)
    draft.replace(folder / name)
    return text.encode()


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> dict[str, Confidence]:
    models: dict[str, Confidence] = {"shipped": Confidence.model_validate(heads(0.2))}
    monkeypatch.setattr(confidence, "load", lambda: models)
    return models


def line(model: Confidence | None) -> float:
    assert model is not None
    return model.answer.thresholds["balanced"]


def test_ones_own_comes_before_the_generic_and_a_file_before_what_is_shipped(
    tmp_path: Path, shipped: dict[str, Confidence]
) -> None:
    put(tmp_path, "mine+answer.json", heads(0.3))
    models = Calibration(tmp_path)
    assert line(models.choose("org/shipped")) == 0.2
    assert line(models.choose("mine", "answer")) == 0.3
    assert models.choose("mine") is None
    shipped["generic"] = Confidence.model_validate(heads(0.7))
    assert line(models.choose("mine")) == 0.7
    assert models.own("mine") is None
    put(tmp_path, "shipped.json", heads(0.4))
    assert line(Calibration(tmp_path).choose("shipped")) == 0.4


def test_the_last_good_version_of_a_file_stays_until_the_file_goes(tmp_path: Path) -> None:
    """That a running gateway looks is held in `tests/mesh/test_calibration.py`."""
    models = Calibration(tmp_path / "later")
    for threshold in (0.3, 0.4):
        written = put(tmp_path / "later", "shipped.json", heads(threshold))
        models._read()
        assert line(models.choose("shipped")) == threshold
        assert models.health("shipped").digest == digest_of(written)
    put(tmp_path / "later", "shipped.json", "{torn")
    models._read()
    assert models.problems == ("shipped.json: not JSON",)
    assert line(models.choose("shipped")) == 0.4
    (tmp_path / "later" / "shipped.json").unlink()
    models._read()
    assert line(models.choose("shipped")) == 0.2
    assert not models.problems


async def test_what_cannot_be_foreseen_ends_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "LOOK_S", 0.001)
    models = Calibration(tmp_path)
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fails() -> None:
        loop.call_soon_threadsafe(called.set)
        raise ZeroDivisionError

    monkeypatch.setattr(models, "_read", fails)
    watching = asyncio.create_task(models.watch())
    for _ in range(2):
        await asyncio.wait_for(called.wait(), 240)
        called.clear()
    assert not watching.done()
    watching.cancel()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "the whole"),
        ("{}", "answer: Field required"),
        (heads(weights=[]), "not of one length"),
        (heads(scales=[0]), "greater than 0"),
        (heads(line=7), "less than or equal to 1"),
        (heads(thresholds={"balanced": 0.5}), "thresholds lack high, low"),
        (OF_THE_FIRST_VERSION, "answer.thresholds: Field required"),
        (json.dumps(heads()).replace("2.0", "NaN"), "finite number"),
        (json.dumps(heads()).replace("2.0", "1e999"), "finite number"),
        (heads(names=["moonlight"]), "unknown signals: moonlight"),
        # Of an earlier version.
        (heads(names=["check"]), "unknown signals: check"),
        (heads(names=["logprob_mean"]) | {"generator": "generic"}, "something else for each generator: logprob_mean"),
        (" " * MAX_FILE_BYTES + json.dumps(heads()), "larger than"),
    ],
)
def test_a_broken_file_is_left_out_and_named(tmp_path: Path, content: Any, why: str) -> None:
    put(tmp_path, "broken.json", content)
    put(tmp_path, "good.json", heads())
    models = Calibration(tmp_path)
    (problem,) = models.problems
    assert problem.startswith("broken.json: ")
    assert why in problem
    assert models.choose("broken") is None
    assert models.choose("good") is not None
    assert problem in models.health("good").detail


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_of_another_editor_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(heads()), encoding)
    assert Calibration(tmp_path).choose("mine") is not None


def test_a_file_is_called_as_its_generator_says_and_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    put(tmp_path, "key-of-a-config-map.json", heads() | {"generator": "org/mine+answer"})
    (tmp_path / "folder.json").mkdir()
    models = Calibration(tmp_path)
    assert models.own("mine", "answer")
    assert [problem.partition(":")[0] for problem in models.problems] == ["folder.json"]


@pytest.mark.parametrize(
    ("older", "newer", "used"),
    [("mine.json", "mine.old.json", "mine.json"), ("old.json", "anew.json", "anew.json")],
    ids=["called-as-its-generator", "the-newest"],
)
def test_of_two_files_of_one_generator_one_is_used_and_the_other_named(
    tmp_path: Path, older: str, newer: str, used: str
) -> None:
    for number, name in enumerate((older, newer)):
        put(tmp_path, name, heads(0.3) | {"generator": "org/mine", "fitted_on": name})
        os.utime(tmp_path / name, (number, number))
    models = Calibration(tmp_path)
    (other,) = {older, newer} - {used}
    assert models.health("mine").fitted_on == used
    assert models.problems == (f"{other}: also says it is of mine; {used} is used",)
    assert models.problems[0] in models.health("mine").detail
    (tmp_path / other).unlink()
    models._read()
    assert not models.problems


def test_it_is_said_whose_confidence_there_is_and_what_to_do_without(shipped: dict[str, Confidence]) -> None:
    models = Calibration()
    own, none, nobody = models.health("org/shipped"), models.health("org/other", "answer"), models.health("")
    assert (own.whose, own.generator, own.fitted_on, own.detail) == ("own", "shipped", "200 answers", "")
    assert (none.whose, none.generator) == ("none", "other+answer")
    assert "every answer is given" in none.detail
    assert "`cragmesh calibrate --made-up` fits one in about 10 minutes" in none.detail
    assert (nobody.whose, nobody.detail) == ("unknown", "")
    shipped["generic"] = Confidence.model_validate(heads())
    other = models.health("other")
    assert (other.whose, other.fitted_on) == ("generic", "200 answers")
    assert "a generic one weighs its answers" in other.detail


def test_ranks_are_neutral_until_enough_was_seen_and_then_shares_of_the_latest() -> None:
    models = Calibration()
    for number in range(ENOUGH):
        assert models.ranks("one", {"logprob_mean": -1.0}) == {"logprob_mean_rank": NEUTRAL}
        models.observe("one", {"logprob_mean": -number / ENOUGH})
    for value, rank in ((-2.0, 0.0), (0.5, 1.0), (-0.49, 0.5)):
        assert models.ranks("one", {"logprob_mean": value})["logprob_mean_rank"] == pytest.approx(rank, abs=0.02)
    assert models.ranks("two", {"logprob_mean": -2.0}) == {"logprob_mean_rank": NEUTRAL}, "of another generator"
    assert models.ranks("one", {}) == {}
    for _ in range(RECENT):
        models.observe("one", {"logprob_mean": -3.0})
    assert models.ranks("one", {"logprob_mean": -2.0}) == {"logprob_mean_rank": 1.0}, "the first are forgotten"
    assert models.ranks("one", {"logprob_mean": -3.0}) == {"logprob_mean_rank": 0.5}, "equals count by half"


def test_names_that_come_and_go_do_not_add_up() -> None:
    models = Calibration()
    for number in range(100):
        models.observe(f"model-{number}", {"logprob_mean": -1.0})
    assert len(models._latest) <= calibration.MAX_GENERATORS
