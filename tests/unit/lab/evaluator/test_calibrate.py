"""The fitted confidence: its thresholds earn what they can, and nothing is reported on what it was fitted on."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lab.evaluator.calibrate import (
    MIN_ANSWERS,
    MIN_SCALE,
    Fitted,
    Half,
    Table,
    TooLittle,
    apply,
    beside,
    best_threshold,
    best_thresholds,
    earned,
    fit,
    halves,
    probabilities,
    table,
)
from lab.evaluator.judge.verdict import Outcome
from lab.evaluator.reliability import draw
from lab.evaluator.store import Judgement, Prediction, RunFolder, RunInfo
from services.cli.main import app
from services.kit.caution import COSTS

pytestmark = pytest.mark.usefixtures("few_folds")
NAMES = ("telling", "noise", "constant", "false_premise")


@pytest.fixture(autouse=True)
def few_invalid_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of tests are small."""
    monkeypatch.setattr("lab.evaluator.calibrate.MIN_INVALID", 10)


def made(questions: int = 240) -> Table:
    """Answers that are right as a logistic of one signal says; another tells false questions; two say nothing."""
    chance = np.random.default_rng(0)
    signals = np.column_stack([chance.normal(size=questions) for _ in NAMES])
    signals[:, 2] = 1
    invalid = (signals[:, 3] > 1.2).astype(np.int64)
    right = (chance.random(questions) < 1 / (1 + np.exp(-2 * signals[:, 0]))).astype(np.int64) * (1 - invalid)
    ids = np.array([f"q{i}" for i in range(questions)])
    domains = np.array(["movie" if i % 3 else "music" for i in range(questions)])
    ones, none = np.ones(questions, np.int64), np.zeros(questions, np.int64)
    return Table(NAMES, signals, ones, none, right, invalid, ids, domains, none, ones == 1)


def answer(name: str, *, kind: str = "answer", label: str = "answer", **signals: float) -> Prediction:
    signals = {"support": 1.0} | signals
    return Prediction(id=name, query="q", gold=("a",), label_kind=label, kind=kind, signals=signals)


def judged(line: Prediction, outcome: Outcome) -> tuple[Prediction, Judgement]:
    return line, Judgement(id=line.id, outcome=outcome, by="rules")


@cache
def fitted_table() -> tuple[Table, Fitted]:
    data = made()
    return data, fit(data)


@cache
def many() -> tuple[Table, tuple[Half, Half]]:
    data = made(480)
    return data, halves(data)


def test_the_fit_finds_the_signals_that_tell() -> None:
    data, fitted = fitted_table()
    weights = dict(zip(fitted.answer["names"], fitted.answer["weights"], strict=True))
    assert weights["telling"] > 1 > abs(weights["noise"])
    assert "constant" not in weights
    assert fitted.invalid is not None
    named = dict(zip(fitted.invalid["names"], fitted.invalid["weights"], strict=True))
    assert named["false_premise"] == max(named.values())
    assert abs(float(fitted.right.mean()) - float(data.right.mean())) < 0.05


def test_abstaining_and_naming_false_questions_earn_on_questions_that_were_not_fitted_on() -> None:
    data, both = many()
    for half in both:
        assert half.earned.score > half.earned.ungated + 0.2
    _, fitted = fitted_table()
    assert apply(fitted, data).score > apply(replace(fitted, invalid=None), data).score


def test_halves_are_compared_with_another_run_on_the_questions_that_both_have() -> None:
    _, both = many()
    assert set(both[0].outcomes) | set(both[1].outcomes) == {f"q{i}" for i in range(480)}
    score = sum(half.earned.score * len(half.outcomes) for half in both) / 480
    silent = [judged(answer(f"q{i}"), "missing") for i in range(500)]
    found = beside(both, silent)
    assert found.questions == 480
    assert found.score.value == pytest.approx(score)
    assert found.score.low < score < found.score.high
    with pytest.raises(TooLittle, match="no question"):
        beside(both, [judged(answer("other"), "right")])


def test_too_few_false_questions_make_no_head() -> None:
    data, _ = fitted_table()
    fitted = fit(replace(data, invalid=np.zeros(240, np.int64)))
    assert fitted.invalid is None
    assert not fitted.false.any()


def test_abstentions_of_the_model_cost_nothing() -> None:
    data = replace(fitted_table()[0], answered=np.array([0, 1] * 120))
    fitted = fit(data)
    reached = earned(fitted, data, fitted.right, fitted.false)
    assert reached.right + reached.wrong < 0.8


@pytest.mark.parametrize(
    ("probability", "right", "threshold"),
    [
        ([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0], 0.5),
        # One answer below the half that is right may be luck; nine are not.
        ([0.9, 0.4, 0.3], [1, 1, 0], 0.5),
        ([0.9] + [0.4] * 9 + [0.1], [1] * 10 + [0], 0.25),
        ([0.9, 0.1], [0, 0], 1.0),
    ],
)
def test_the_threshold_earns_most_and_is_not_drawn_by_luck(
    probability: list[float], right: list[int], threshold: float
) -> None:
    assert best_threshold(np.array(probability), np.array(right)) == pytest.approx(threshold)


def test_probabilities_are_found_by_the_names_of_columns() -> None:
    data, fitted = fitted_table()
    head = fitted.answer
    turned = probabilities(head, data.signals[:, ::-1], data.names[::-1])
    assert np.allclose(turned, probabilities(head, data.signals, data.names))


def test_pictures_are_drawn(tmp_path: Path) -> None:
    data, fitted = fitted_table()
    draw(fitted, data, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"calibration.png", "risk_coverage.png"}


def test_a_run_without_signals_is_refused() -> None:
    with pytest.raises(TooLittle, match="0 answers"):
        table([judged(answer("q").model_copy(update={"signals": {}}), "right")])


def test_the_table_knows_what_was_answered_and_what_should_not_have_been() -> None:
    labels = [("unknown" if i % 3 == 0 else "answer", "invalid" if i % 4 == 0 else "answer") for i in range(60)]
    lines = [answer(f"q{i}", kind=kind, label=label) for i, (kind, label) in enumerate(labels)]
    found = table([judged(line, "right") for line in lines])
    assert [int(one.sum()) for one in (found.answered, found.invalid, found.right)] == [40, 15, 40]


def test_what_a_rule_settled_counts_and_is_no_matter_of_heads() -> None:
    data, _ = fitted_table()
    fixed = np.arange(240) % 10 == 0
    settled = replace(
        data, settled=fixed.astype(np.int64), weighed=~fixed, answered=data.answered * ~fixed, right=data.right * ~fixed
    )
    fitted = fit(settled)
    reached = earned(fitted, settled, fitted.right, fitted.false)
    silent = earned(fitted, replace(settled, settled=0 * settled.settled), fitted.right, fitted.false)
    assert reached.score == pytest.approx(silent.score + 0.1)
    assert not fitted.right[fixed].any()
    assert not fitted.false[fixed].any()


def test_each_run_keeps_its_own_judgements_of_the_same_questions() -> None:
    first = [judged(answer(f"q{i}"), "right") for i in range(MIN_ANSWERS)]
    second = [judged(line, "wrong") for line, _ in first]
    found = table([*first, *second])
    assert found.right.tolist() == [1] * MIN_ANSWERS + [0] * MIN_ANSWERS


def test_a_signal_that_was_not_asked_for_counts_as_average() -> None:
    lines = [answer(f"q{i}", echo=0.25 + 0.5 * (i % 2)) for i in range(MIN_ANSWERS)]
    found = table([judged(line, "right") for line in [*lines, answer("bare")]])
    assert found.signals[-1, found.names.index("echo")] == pytest.approx(0.5)
    head = {"names": ["echo"], "means": [0.5], "scales": [0.5], "weights": [3.0], "intercept": 0.0}
    assert probabilities(head, np.zeros((2, 1)), ("other",)).tolist() == [0.5, 0.5]


def test_questions_that_the_model_itself_calls_invalid_count_when_every_answer_is_given() -> None:
    lines = [judged(answer(f"q{i}"), "right" if i % 2 else "wrong") for i in range(MIN_ANSWERS)]
    lines.append(judged(answer("invalid", kind="invalid_question", label="invalid"), "right"))
    data = table(lines)
    nothing = np.zeros(len(data.ids))
    fitted = Fitted({"thresholds": {"balanced": 0.5}}, None, nothing, nothing)
    assert earned(fitted, data, nothing, nothing).ungated == pytest.approx(1 / len(data.ids))


@pytest.mark.parametrize(
    ("cost", "threshold"),
    # In theory from 1/3, 1/2 and 2/3 on.
    [(0.5, 0.3333), (1.0, 0.5), (2.0, 0.6667)],
)
def test_a_dearer_wrong_answer_moves_the_line(cost: float, threshold: float) -> None:
    chance = np.random.default_rng(0)
    probability = chance.random(2_000)
    right = (chance.random(2_000) < probability).astype(np.int64)
    assert best_threshold(probability, right, cost) == pytest.approx(threshold, abs=0.05)


def test_lines_grow_with_caution_and_what_they_earn_is_told_at_its_cost() -> None:
    data, fitted = fitted_table()
    lines = fitted.answer["thresholds"]
    assert lines["low"] <= lines["balanced"] <= lines["high"]
    reached = {name: earned(fitted, data, fitted.right, fitted.false, name) for name in COSTS}
    assert reached["low"].wrong >= reached["balanced"].wrong >= reached["high"].wrong
    for name, cost in COSTS.items():
        assert reached[name].score == pytest.approx(reached[name].right - cost * reached[name].wrong)
    assert best_thresholds(np.array([0.9, 0.1]), np.array([0, 0])) == dict.fromkeys(COSTS, 1.0)


def test_answers_that_are_nearly_all_right_have_a_head_that_says_so() -> None:
    data = replace(fitted_table()[0], right=np.array([0] * 5 + [1] * 235))
    fitted = fit(replace(data, invalid=np.zeros(240, np.int64)))
    assert fitted.answer["names"] == []
    assert probabilities(fitted.answer, data.signals, data.names) == pytest.approx(np.full(240, 236 / 242), abs=1e-5)
    assert apply(fitted, data).right == pytest.approx(235 / 240)


def test_the_answers_of_several_generators_to_a_question_are_in_one_fold() -> None:
    data, _ = fitted_table()
    # Two generators that say the same: were one's answer to a question in the fold that the other's is told from, a
    # signal that only names the question would tell.
    names = np.random.default_rng(1).normal(size=(120, 40))
    coin = np.random.default_rng(2).integers(0, 2, 120)
    twice = replace(
        data,
        names=tuple(f"name-{at}" for at in range(40)),
        signals=np.vstack([names, names]),
        right=np.tile(coin, 2),
        invalid=np.zeros(240, np.int64),
        ids=np.array([f"q{at % 120}" for at in range(240)]),
    )
    fitted = fit(twice)
    held_out = fitted.right
    assert abs(held_out[twice.right == 1].mean() - held_out[twice.right == 0].mean()) < 0.1
    # Nor is the strength chosen by such a fold: names are to have next to no weight.
    assert max(np.abs(fitted.answer["weights"])) < 0.3
    assert twice.questions == 120


@pytest.mark.parametrize(
    ("wrong", "weighed"),
    [(5, set()), (19, {"logprob_mean"}), (29, {"logprob_mean", "support"}), (60, {"logprob_mean", "support", "echo"})],
)
def test_of_few_answers_few_signals_are_weighed(wrong: int, weighed: set[str]) -> None:
    data = fitted_table()[0]
    few = replace(
        data,
        names=("echo", "logprob_mean", "support"),
        signals=np.random.default_rng(5).normal(size=(240, 3)),
        right=(np.arange(240) >= wrong).astype(np.int64),
        invalid=np.zeros(240, np.int64),
    )
    assert set(fit(few).answer["names"]) == weighed


@pytest.mark.parametrize("step", [1e-7, 1e-4])
def test_a_signal_that_hardly_varies_makes_no_file_that_the_gateway_refuses(step: float) -> None:
    data = fitted_table()[0]
    noise = -step * np.random.default_rng(3).integers(0, 5, 240)
    fitted = fit(replace(data, signals=np.where(np.array(data.names) == "noise", noise[:, None], data.signals)))
    assert ("noise" in fitted.answer["names"]) == (step > MIN_SCALE)
    assert min(fitted.answer["scales"]) > MIN_SCALE
    assert np.isfinite(list(fitted.answer["thresholds"].values())).all()
    assert np.isfinite(fitted.right).all()


def weighed_run(folder: Path, generator: str) -> Path:
    """A run whose support tells which of its answers are right."""
    run = RunFolder(folder)
    run.begin(RunInfo(settings={}, mesh={"answers_by": generator}, finished=True))
    chance = np.random.default_rng(4)
    lines = [
        answer(f"q{at}", support=support).model_copy(update={"prediction": "a" if chance.random() < support else "b"})
        for at, support in enumerate(chance.random(60))
    ]
    run.predictions_file.write_text("".join(line.model_dump_json() + "\n" for line in lines))
    return folder


def calibrate(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["calibrate", *map(str, words)])
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.output


def test_runs_of_two_generators_are_pooled_only_under_a_name_that_is_told(tmp_path: Path) -> None:
    runs = [weighed_run(tmp_path / name, name) for name in ("alpha", "beta")]
    file, report = tmp_path / "both.json", tmp_path / "report"
    assert "the runs saw alpha, beta" in calibrate(*runs, "--out", file, "--report", report, code=1)
    assert not file.exists()
    calibrate(*runs, "--out", file, "--report", report, "--generator", "both")
    assert json.loads(file.read_bytes())["fitted_on"].startswith("120 answers to 60 questions")


def test_of_a_run_that_two_adapters_answered_each_is_fitted_on_its_own_answers(tmp_path: Path) -> None:
    run, file = RunFolder(weighed_run(tmp_path / "run", "alpha+answer")), tmp_path / "fitted.json"
    lines = [Prediction.model_validate_json(line) for line in run.predictions_file.read_text().splitlines()]
    # An earlier version did not say whose a reply is.
    names = ["", "alpha+answer", "alpha+answer", "alpha+yes-no"]
    lines = [line.model_copy(update={"generator": names[at % 4]}) for at, line in enumerate(lines)]
    run.predictions_file.write_text("".join(line.model_dump_json() + "\n" for line in lines))
    for generator, answers in (("", 45), ("maker/alpha+yes-no", 30), ("alpha+other", 60)):
        named = ["--generator", generator] if generator else []
        said = calibrate(run.path, "--out", file, "--report", tmp_path / "report", *named)
        assert json.loads(file.read_bytes())["fitted_on"].startswith(f"{answers} answers")
        assert ("no answer is by alpha+other" in " ".join(said.split())) == (generator == "alpha+other")
    # What is compared counts as it answered, whoever replied.
    other = weighed_run(tmp_path / "other", "alpha+answer")
    said = calibrate(other, "--beside", run.path, "--out", file, "--report", tmp_path / "report")
    assert re.search(r"\brun\s*│\s*60\s*│", said), said


def test_a_fit_is_installed_though_its_pictures_cannot_be_drawn_and_never_one_that_the_gateway_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file, taken = weighed_run(tmp_path / "run", "alpha"), tmp_path / "alpha.json", tmp_path / "taken"
    taken.touch()
    assert "taken" in calibrate(run, "--out", file, "--report", taken, code=1)
    assert "taken" in calibrate(run, "--ablate", "--report", taken, code=1)
    good = file.read_bytes()
    monkeypatch.setattr("lab.evaluator.calibrate.best_thresholds", lambda *_: dict.fromkeys(COSTS, float("nan")))
    assert "the gateway would refuse this fit" in calibrate(run, "--out", file, "--report", tmp_path / "new", code=1)
    assert file.read_bytes() == good
