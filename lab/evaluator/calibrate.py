"""Fits the gateway's confidence on judged runs, and reports what it earns on held-out questions.

Two logistic regressions over the signals of `services/gateway/confidence.py`, written as the JSON that it reads: that
an answer is right, and that a question is invalid. Thresholds, one for each caution, maximise the share right less what
the share wrong costs, on predictions for held-out folds, never on the fit.
"""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from lab.evaluator.judge.verdict import WEIGHTS, Outcome
from lab.evaluator.score import Difference, difference
from lab.evaluator.store import Judgement, Prediction
from services.gateway.confidence import SIGNALS
from services.kit.caution import COSTS, Caution, line

FOLDS = 5
SEED = 0
# Inverses of the regularisation, of which cross-validation chooses.
STRENGTHS = np.logspace(-3, 1, 9)
# Fewer answers than these say nothing about a head. One of invalid questions that was fitted on 46 of them called 27 of
# 121 real ones so, 19 wrongly: it knew what made-up ones are like.
MIN_ANSWERS = 30
MIN_INVALID = 60
GAINS: dict[str, int] = {str(outcome): gain for outcome, gain in WEIGHTS.items()}
OUTCOMES: dict[int, Outcome] = {gain: outcome for outcome, gain in WEIGHTS.items()}
# Fewer questions answered right than these, or answered wrong, say that most are the other and not which.
MIN_OF_A_KIND = 2 * FOLDS
# Of the rarer kind so many answers for each signal that is weighed: with fewer the weights are those of chance (Peduzzi
# et al., A simulation study of the number of events per variable in logistic regression analysis, 1996).
FOR_A_SIGNAL = 10
ORDER = {name: at for at, name in enumerate(SIGNALS)}
# Signals that vary less tell nothing: float32 steps of a log-probability that is always the same.
MIN_SCALE = 1e-5

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Texts = NDArray[np.str_]
Folds = list[tuple[Ints, Ints]]


class TooLittle(ValueError):
    """A run has too few answers with signals to fit anything on."""


@dataclass(frozen=True, slots=True)
class Table:
    """Questions with the signals of what the model said to them.

    Attributes:
        names: the signals.
        signals: shape (questions, signals).
        answered: 1 where the model gave an answer, 0 where it abstained or called the question invalid.
        called: 1 where the model called the question invalid.
        right: 1 where the answer is right.
        invalid: 1 where "invalid question" would be right.
        ids: the questions.
        domains: their domains.
        settled: 1 or -1 for a reply that came without signals, by a rule or for want of time, and was right or wrong:
            no head has a say in it, and it counts all the same. Its signals are averages.
        weighed: whether a reply has signals.
    """

    names: tuple[str, ...]
    signals: Floats
    answered: Ints
    called: Ints
    right: Ints
    invalid: Ints
    ids: Texts
    domains: Texts
    settled: Ints
    weighed: NDArray[np.bool_]

    @property
    def questions(self) -> int:
        """How many questions there are; several generators may have answered each."""
        return len(set(self.ids))

    def only(self, rows: NDArray[np.bool_]) -> "Table":
        """The questions where `rows` is true."""
        columns = [field.name for field in fields(self) if field.name != "names"]
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def without(self, names: Collection[str]) -> "Table":
        """The table without some signals."""
        return self.of_signals([name for name in self.names if name not in names])

    def of_signals(self, names: Collection[str]) -> "Table":
        """The table with some of its signals only."""
        kept = [at for at, name in enumerate(self.names) if name in names]
        return replace(self, names=tuple(self.names[at] for at in kept), signals=self.signals[:, kept])


@dataclass(frozen=True, slots=True)
class Earned:
    """What a confidence earns: the share right less what wrong ones cost (at 1 the CRAG score), and the shares."""

    score: float
    right: float
    wrong: float
    ungated: float


def table(judged: Sequence[tuple[Prediction, Judgement]]) -> Table:
    """The questions of runs, each of which must have answered whatever it could (`eval run --every-answer`).

    A signal that a reply lacks, because it was not asked for, counts as average, as it does in the gateway.

    Raises:
        TooLittle: there are hardly any.
    """
    lines = [line for line, _ in judged]
    weighed = np.array([bool(line.signals) for line in lines], bool)
    answered = np.array([int(line.kind == "answer" and bool(line.signals)) for line in lines])
    if answered.sum() < MIN_ANSWERS:
        raise TooLittle(f"{answered.sum()} answers with signals; {MIN_ANSWERS} are needed")
    names = tuple(sorted(set().union(*(line.signals for line in lines))))
    gains = np.array([GAINS[judgement.outcome] for _, judgement in judged])
    signals = np.array([[line.signals.get(name, np.nan) for name in names] for line in lines])
    return Table(
        names,
        np.where(np.isnan(signals), np.nanmean(signals, axis=0), signals),
        answered,
        np.array([int(line.kind == "invalid_question" and bool(line.signals)) for line in lines]),
        (gains > 0) * answered,
        np.array([int(line.label_kind == "invalid") for line in lines]),
        np.array([line.id for line in lines], np.str_),
        np.array([line.domain for line in lines], np.str_),
        gains * ~weighed,
        weighed,
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """Both heads as JSON, and what they give for questions of held-out folds; shapes (questions,)."""

    answer: dict[str, Any]
    invalid: dict[str, Any] | None
    right: Floats
    false: Floats


def fit(data: Table) -> Fitted:
    """Heads of all signals of the table."""
    answered, weighed = data.answered == 1, data.only(data.weighed)
    right, false = np.zeros(len(data.ids)), np.zeros(len(data.ids))
    # Thousands of small products: threads would cost more than they compute.
    with threadpool_limits(1):
        head, right[answered] = _head(data.names, data.signals[answered], data.right[answered], data.ids[answered])
        if weighed.invalid.sum() < MIN_INVALID:
            return Fitted(head, None, right, false)
        invalid, false[data.weighed] = _head(data.names, weighed.signals, weighed.invalid, weighed.ids)
    return Fitted(head, invalid, right, false)


def _head(names: Sequence[str], signals: Floats, truth: Ints, ids: Texts) -> tuple[dict[str, Any], Floats]:
    """A head, and the probabilities of held-out folds that its thresholds were chosen on."""
    if min(len(set(ids[truth == kind])) for kind in (0, 1)) < MIN_OF_A_KIND:
        # Nothing tells so few from the rest: every one is as likely as all are.
        head = _constant(truth)
        head["thresholds"] = {caution: round(line(cost), 4) for caution, cost in COSTS.items()}
        return head, probabilities(head, signals, names)
    held_out = np.zeros(len(truth))
    for train, test in _folds(truth, ids):
        held_out[test] = probabilities(_regress(names, signals[train], truth[train], ids[train]), signals[test], names)
    head = _regress(names, signals, truth, ids)
    head["thresholds"] = best_thresholds(held_out, truth)
    return head, held_out


def _folds(truth: Ints, ids: Texts) -> Folds:
    """Folds with a question's answers all in one, where several generators answered it."""
    groups = ids if _repeat(ids) else None
    folds = StratifiedKFold if groups is None else StratifiedGroupKFold
    return list(folds(FOLDS, shuffle=True, random_state=SEED).split(truth, truth, groups))


def _repeat(ids: Texts) -> bool:
    return len(set(ids)) < len(ids)


def outcomes(fitted: Fitted, data: Table, right: Floats, false: Floats, caution: Caution = "balanced") -> list[Outcome]:
    """The gateway's outcome of each question under these probabilities and the heads' thresholds.

    Args:
        right: that each question's answer is right.
        false: that each question is invalid.
    """
    answered = (data.answered == 1) & (right >= fitted.answer["thresholds"][caution])
    called = np.zeros(len(right), bool)
    if fitted.invalid is not None:
        called = data.weighed & (false >= fitted.invalid["thresholds"][caution]) & (false >= right)
    gains = np.where(called, 2 * data.invalid - 1, np.where(answered, 2 * data.right - 1, data.settled))
    return [OUTCOMES[int(gain)] for gain in gains]


def earned(fitted: Fitted, data: Table, right: Floats, false: Floats, caution: Caution = "balanced") -> Earned:
    """What `outcomes` earn in all, at the cost that the caution stands for."""
    reached = outcomes(fitted, data, right, false, caution)
    questions = max(1, len(reached))
    good, bad = reached.count("right") / questions, reached.count("wrong") / questions
    rights = data.right.sum() + (data.settled > 0).sum() + data.invalid @ data.called
    wrongs = (data.answered - data.right).sum() + (data.settled < 0).sum() + (1 - data.invalid) @ data.called
    cost = COSTS[caution]
    return Earned(good - cost * bad, good, bad, float(rights - cost * wrongs) / questions)


def unseen(fitted: Fitted, data: Table) -> tuple[Floats, Floats]:
    """The probabilities, right and invalid, of heads for another table than their own."""
    right = probabilities(fitted.answer, data.signals, data.names) * data.answered
    if fitted.invalid is None:
        return right, np.zeros(len(data.ids))
    return right, probabilities(fitted.invalid, data.signals, data.names)


def apply(fitted: Fitted, data: Table) -> Earned:
    """What heads earn on another table than their own."""
    return earned(fitted, data, *unseen(fitted, data))


def _regress(names: Sequence[str], signals: Floats, right: Ints, ids: Texts) -> dict[str, Any]:
    means, scales = signals.mean(axis=0), signals.std(axis=0)
    kept = scales > MIN_SCALE
    if not kept.any():
        return _constant(right)
    # The first in the list of signals: to choose by what these few answers tell would be chance again.
    ranks = sorted(map(int, np.flatnonzero(kept)), key=lambda at: ORDER.get(names[at], len(ORDER)))
    kept[ranks[max(1, int(np.bincount(right, minlength=2).min()) // FOR_A_SIGNAL) :]] = False
    scaled = (signals[:, kept] - means[kept]) / scales[kept]
    model = LogisticRegressionCV(
        Cs=STRENGTHS,
        cv=_folds(right, ids) if _repeat(ids) else FOLDS,
        scoring=_log_likelihood,
        max_iter=2_000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    ).fit(scaled, right)
    return {
        "names": [name for name, keep in zip(names, kept, strict=True) if keep],
        # Of whatever magnitude: a fixed number of decimals would leave little of a small scale.
        "means": [float(f"{value:.6g}") for value in means[kept]],
        "scales": [float(f"{value:.6g}") for value in scales[kept]],
        "weights": [round(float(value), 6) for value in np.ravel(model.coef_)],
        "intercept": round(float(np.ravel(model.intercept_)[0]), 6),
    }


def _log_likelihood(model: LogisticRegression, signals: Floats, right: Ints) -> float:
    """scikit-learn's `neg_log_loss` without its checks, which took two thirds of a fit."""
    logits = signals @ np.ravel(model.coef_) + model.intercept_
    return -float(np.logaddexp(0, np.where(right > 0, -logits, logits)).mean())


def _constant(right: Ints) -> dict[str, Any]:
    """A head without signals: the share that is right, one right and one wrong more than were seen."""
    odds = (right.sum() + 1) / (len(right) - right.sum() + 1)
    return {"names": [], "means": [], "scales": [], "weights": [], "intercept": round(float(np.log(odds)), 6)}


def probabilities(head: dict[str, Any], signals: Floats, names: Sequence[str]) -> Floats:
    """What a head gives for signals whose columns have these names; a signal that there is not counts as average."""
    if not head["names"]:
        return np.full(len(signals), 1 / (1 + np.exp(-head["intercept"])))
    columns = dict(zip(names, signals.T, strict=True))
    chosen = [
        columns.get(name, np.full(len(signals), mean)) for name, mean in zip(head["names"], head["means"], strict=True)
    ]
    scaled = (np.column_stack(chosen) - np.array(head["means"])) / np.array(head["scales"])
    result: Floats = 1 / (1 + np.exp(-(scaled @ np.array(head["weights"]) + head["intercept"])))
    return result


def best_threshold(probability: Floats, right: Ints, cost: float = 1.0) -> float:
    """The least probability whose replies together earn most: right ones count 1, wrong ones take the cost.

    In theory that is cost / (1 + cost). Another line is drawn only where it earns a standard error more than that: the
    best of many lines is partly luck.
    """
    usual_line = line(cost)
    order = np.argsort(-probability, kind="stable")
    earned_so_far = np.cumsum(np.where(right[order] == 1, 1.0, -cost))
    best = int(np.argmax(earned_so_far))
    if earned_so_far[best] <= 0:
        return 1.0
    at_usual = int((probability >= usual_line).sum())
    usual = float(earned_so_far[at_usual - 1]) if at_usual else 0.0
    between = abs(best + 1 - at_usual)
    # What a reply at the usual line earns has this variance: the cost.
    if earned_so_far[best] - usual <= (cost * between) ** 0.5:
        return round(usual_line, 4)
    following = probability[order[best + 1]] if best + 1 < len(order) else 0.0
    return round(float((probability[order[best]] + following) / 2), 4)


def best_thresholds(probability: Floats, right: Ints) -> dict[str, float]:
    """The best threshold of each caution; a dearer wrong answer never has the lower one."""
    lines: dict[str, float] = {}
    for caution, cost in sorted(COSTS.items(), key=lambda item: item[1]):
        lines[caution] = max([best_threshold(probability, right, cost), *lines.values()])
    return lines


@dataclass(frozen=True, slots=True)
class Half:
    """Heads of one half of the questions, and what they earn and reach on the other."""

    fitted: Fitted
    earned: Earned
    outcomes: dict[str, Outcome]


def halves(data: Table) -> tuple[Half, Half]:
    """Fitted on one half of the questions, reported on the other, both ways; halves by a hash of the question's id."""
    side = sides(data)
    first, second = data.only(side == 0), data.only(side == 1)
    return _half(first, second), _half(second, first)


def sides(data: Table) -> Ints:
    """The half, 0 or 1, that each question is in."""
    return np.array([zlib.crc32(one.encode()) % 2 for one in data.ids])


def _half(own: Table, other: Table) -> Half:
    fitted = fit(own)
    probable = unseen(fitted, other)
    reached = outcomes(fitted, other, *probable)
    return Half(fitted, earned(fitted, other, *probable), dict(zip(other.ids, reached, strict=True)))


def beside(both: tuple[Half, Half], judged: Sequence[tuple[Prediction, Judgement]]) -> Difference:
    """What the halves reach less what another run reached, on the questions that both have.

    Raises:
        TooLittle: they have none in common.
    """
    ours = both[0].outcomes | both[1].outcomes
    theirs = {line.id: judgement.outcome for line, judgement in judged if line.id in ours}
    if not theirs:
        raise TooLittle("no question of the other run is among these")
    return difference(list(theirs.values()), [ours[one] for one in theirs])
