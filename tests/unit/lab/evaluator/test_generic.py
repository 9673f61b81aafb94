"""A confidence for generators that nothing was fitted on, and what each signal earns."""

from functools import cache

import numpy as np
import pytest

from lab.evaluator.ablation import ablate, groups, table
from lab.evaluator.calibrate import TooLittle
from lab.evaluator.generic import Judged, pool, ranked, transfer
from lab.evaluator.store import Judgement, Prediction

pytestmark = pytest.mark.usefixtures("few_folds")
SHARED = frozenset({"support", "logprob_mean_rank"})


@cache
def run(seed: int, *, level: float = 0.0, spread: float = 1.0, questions: int = 160) -> Judged:
    """Answers that are right as support and the log-probability say, the latter on a scale of the generator's own."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(questions):
        support, sure = chance.random(), chance.normal()
        right = chance.random() < 1 / (1 + np.exp(-(4 * (support - 0.5) + 2 * sure)))
        line = Prediction(
            id=f"q{number}",
            query="q",
            gold=("a",),
            label_kind="answer",
            kind="answer",
            signals={"support": support, "logprob_mean": level + spread * sure},
        )
        found.append((line, Judgement(id=line.id, outcome="right" if right else "wrong", by="rules")))
    return found


def test_ranks_are_those_within_a_run_whatever_its_scale() -> None:
    near, far = (
        [line.signals["logprob_mean_rank"] for line, _ in ranked(run(0, level=level, spread=spread))]
        for level, spread in ((0.0, 1.0), (-30.0, 5.0))
    )
    assert near == pytest.approx(far)
    assert (min(near), max(near)) == pytest.approx((0.5 / 160, 1 - 0.5 / 160))
    assert np.mean(near) == pytest.approx(0.5)


def test_a_server_without_log_probabilities_has_no_ranks() -> None:
    bare = [(line.model_copy(update={"signals": {"support": 0.5}}), judged) for line, judged in run(0)]
    assert all(line.signals == {"support": 0.5} for line, _ in ranked(bare))
    data = pool({"one": run(0), "bare": bare}, SHARED)
    # Missing signals count as average.
    assert data.signals[-1, data.names.index("logprob_mean_rank")] == pytest.approx(0.5)


def test_generators_are_pooled_by_what_means_the_same_for_all() -> None:
    data = pool({"one": run(0), "two": run(1, level=-30.0, spread=5.0)}, SHARED)
    assert set(data.names) == SHARED
    assert len(data.ids) == 320
    with pytest.raises(TooLittle, match="runs of 1 generator"):
        pool({"one": run(0)}, SHARED)


def test_what_is_fitted_on_others_earns_on_a_generator_of_another_scale() -> None:
    runs = {"one": run(0), "two": run(1, level=-3.0, spread=0.2), "three": run(2, level=-30.0, spread=5.0)}
    shared = transfer(runs, SHARED)
    for earned in shared.values():
        assert earned.score > earned.ungated + 0.15
        assert earned.score == pytest.approx(earned.right - earned.wrong)
    raw = transfer(runs, {"support", "logprob_mean"})
    assert raw["three"].score < shared["three"].score


def test_the_signals_that_tell_are_missed_most_and_those_that_do_not_are_not() -> None:
    chance = np.random.default_rng(3)
    noisy = [
        (line.model_copy(update={"signals": line.signals | {"echo": chance.random(), "mine": 1.0}}), judged)
        for line, judged in run(4, questions=240)
    ]
    score, rows = ablate(pool({"one": noisy, "two": run(5)}, {"support", "logprob_mean_rank", "echo", "mine"}))
    found = {row.group: row for row in rows}
    assert [row.group for row in rows][:2] == sorted(["support", "their ranks"], key=lambda name: -found[name].nats)
    assert found["support"].nats > 0.02 > abs(found["echo"].nats)
    assert found["support"].lost.value > 0 == pytest.approx(found["mine"].lost.value)
    assert found["echo"].alone < found["support"].alone < score
    assert "echo: echo" in [cells[0] for cells in table(score, rows).rows]


def test_a_signal_that_is_in_no_group_is_one_of_its_own() -> None:
    assert groups(("support", "echo", "new")) == {"support": ("support",), "echo": ("echo",), "new": ("new",)}
