"""The tables of a report, as cells of text: what Markdown writes."""

from collections.abc import Iterable
from dataclasses import dataclass

from lab.evaluator.report.summary import SLICES, Summary
from lab.evaluator.score import Difference, Estimate, Scores

SCORE_HEAD = ("", "questions", "score", "accuracy", "hallucination", "missing")
DIFFERENCE_HEAD = (*SCORE_HEAD[:5], "both right", "only the first", "only the second", "sure")


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, a head and rows; the first column is text, the others are numbers. `note` stands below."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def signed(estimate: Estimate, digits: int = 3) -> str:
    return f"{estimate.value:+.{digits}f} [{estimate.low:+.{digits}f}, {estimate.high:+.{digits}f}]"


def share(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} [{estimate.low:.1%}, {estimate.high:.1%}]"


def scores_row(name: str, item: Scores) -> tuple[str, ...]:
    return (
        name,
        str(item.questions),
        signed(item.score),
        share(item.accuracy),
        share(item.hallucination),
        share(item.missing_rate),
    )


def facts(summary: Summary) -> tuple[tuple[str, str], ...]:
    """How the run was made."""
    info = summary.info
    settings = ", ".join(f"{key} {_words(value)}" for key, value in sorted(info.settings.items()))
    entries: list[tuple[str, str]] = [
        ("questions", str(summary.overall.questions) + ("" if info.finished else " (the run is not finished)")),
        ("settings", settings),
        ("judge", f"{summary.judge}; {summary.exact} exact matches needed none"),
        ("tokens", f"answers are cut at 75, counted by {info.token_counter or 'nobody'}; {summary.cut} were cut"),
        ("intervals", "95 %, Bayesian bootstrap over questions, 4,000 resamples, fixed seed"),
    ]
    if info.command:
        entries.insert(0, ("command", info.command))
    if info.skipped_count:
        entries.append(("left out", f"{info.skipped_count} lines of the source that are no usable question"))
    if summary.unread:
        entries.append(("unread", f"{summary.unread} damaged lines of the predictions"))
    if summary.unjudged:
        entries.append(("unjudged", f"{summary.unjudged} answers got no usable verdict and count as wrong"))
    return tuple(entries)


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def tables(summary: Summary) -> Iterable[Table]:
    """All tables of a run's report, in order."""
    yield Table("All questions", SCORE_HEAD, (scores_row("all", summary.overall),))
    for name, slices in summary.slices.items():
        yield Table(SLICES[name], SCORE_HEAD, tuple(scores_row(key, item) for key, item in slices.items()))
    yield _latency(summary)
    if summary.stages:
        yield Table(
            "Stages",
            ("", "questions", "median", "95th percentile"),
            tuple(
                (name, str(n), f"{mid:,.0f} ms", f"{high:,.0f} ms") for name, (n, mid, high) in summary.stages.items()
            ),
        )
    yield Table(
        "Cost of a question",
        ("", "mean"),
        tuple((name.replace("_", " "), f"{value:,.1f}") for name, value in summary.usage.items()),
    )
    yield Table(
        "Degraded",
        ("", "times"),
        tuple((name, str(count)) for name, count in summary.reasons.items()),
        note=f"{summary.degraded:.1%} of the answers lacked something.",
    )
    if summary.failures:
        yield Table(
            "Questions without an answer",
            ("", "times"),
            tuple((name, str(count)) for name, count in summary.failures.items()),
            note="They count as missing.",
        )
    yield _confidence(summary)
    if summary.agreements:
        yield Table(
            "Agreement of the judges",
            ("", "answers", "same", "Cohen's kappa", "right to both", f"only to {summary.judge}", "only to the other"),
            tuple(
                (f"{summary.judge} and {name}", str(item.pairs), f"{item.share:.1%}", f"{item.kappa:.2f}",
                 str(item.both_right), str(item.only_first), str(item.only_second))
                for name, item in summary.agreements.items()
            ),
            note="Over the answers that the protocol does not decide.",
        )  # fmt: skip


def _latency(summary: Summary) -> Table:
    item = summary.latency
    rows = [("answered", str(item.answered)), ("mean", f"{item.mean:.2f} s")]
    rows += [(f"{level}th percentile", f"{value:.2f} s") for level, value in item.percentiles.items()]
    rows += [("longest", f"{item.longest:.2f} s"), ("inside 30 s", f"{item.inside_limit:.1%}")]
    return Table("Latency", ("", "wall time"), tuple(rows))


def _confidence(summary: Summary) -> Table:
    rows = [
        ("area under risk-coverage", f"{summary.curve.area:.3f}"),
        ("expected calibration error", f"{summary.calibration_error:.3f}"),
        ("right surer than wrong (AUC)", f"{summary.separation:.3f}"),
    ]
    note = "Over the answers that were given."
    if len(summary.curve.score):
        best = int(summary.curve.score.argmax())
        if summary.curve.score[best] > 0:
            gain = f"{summary.curve.score[best]:+.3f} at {summary.curve.threshold[best]:.3f}"
        else:
            gain = "+0.000 by withholding all"
        rows.append(("best score by a threshold", gain))
        note += " The threshold is chosen on the same answers, so its score flatters itself."
    return Table("Confidence", ("", "value"), tuple(rows), note)


def differences(first: str, second: str, item: Difference) -> tuple[str, ...]:
    """A row of the table of paired differences."""
    sure = item.score.low > 0 or item.score.high < 0
    return (
        f"{second} less {first}",
        str(item.questions),
        signed(item.score),
        signed(item.accuracy),
        signed(item.hallucination),
        str(item.both),
        str(item.only_first),
        str(item.only_second),
        "yes" if sure else "no",
    )
