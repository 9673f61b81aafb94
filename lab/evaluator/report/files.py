"""Writes reports: of one run, and of several side by side."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.evaluator.errors import BadRun
from lab.evaluator.report import markdown, pictures, tables
from lab.evaluator.report.summary import Summary
from lab.evaluator.report.tables import Table
from lab.evaluator.score import Difference, difference, scores
from lab.evaluator.store import Judgement, Prediction, write_whole

# Questions listed a pair of runs, each way.
MAX_LISTED = 200


def write_run(summary: Summary, folder: Path) -> list[Path]:
    """`report.md`, `summary.json` and the pictures. None of them holds a question or an answer.

    Raises:
        WriteFailed: the disk took no more.
    """
    images = pictures.draw_all(summary)
    title = f"Evaluation of {summary.name}"
    text = markdown.write(title, tables.facts(summary), tables.tables(summary), list(images))
    numbers = json.dumps(summary.as_json(), indent=1, sort_keys=True) + "\n"
    return write(folder, {"report.md": text.encode(), "summary.json": numbers.encode()} | images)


@dataclass(frozen=True, slots=True)
class Judged:
    """A run with its verdicts, by question id."""

    name: str
    predictions: Mapping[str, Prediction]
    judgements: Mapping[str, Judgement]

    def outcome(self, name: str) -> str:
        return self.judgements[name].outcome


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs over the questions that all of them have."""

    runs: tuple[Judged, ...]
    ids: tuple[str, ...]
    differences: tuple[tuple[Judged, Judged, Difference], ...]

    def only_right(self, winner: Judged, loser: Judged) -> list[str]:
        """Questions that one run got right and the other did not."""
        return [name for name in self.ids if winner.outcome(name) == "right" != loser.outcome(name)]


def compare(runs: Sequence[Judged], *, with_first: bool = False) -> Comparison:
    """Pair the runs, question by question.

    Args:
        with_first: pair each with the first alone, as an ablation does.

    Raises:
        BadRun: no question is part of all of them, or a question's gold answer differs.
    """
    ids = tuple(sorted(set.intersection(*(set(run.judgements) & set(run.predictions) for run in runs))))
    if not ids:
        raise BadRun("the runs have no question in common")
    first = runs[0]
    for run in runs[1:]:
        other = [name for name in ids if run.predictions[name].gold != first.predictions[name].gold]
        if other:
            raise BadRun(
                f"{first.name} and {run.name} have other gold answers for {len(other)} questions, as {other[0]}"
            )
    pairs = tuple(
        (one, two, difference([one.outcome(name) for name in ids], [two.outcome(name) for name in ids]))
        for one, two in itertools.combinations(runs, 2)
        if one is first or not with_first
    )
    return Comparison(tuple(runs), ids, pairs)


def compared_tables(comparison: Comparison) -> list[Table]:
    """Scores of each run, and the paired differences."""
    runs = tuple(
        tables.scores_row(run.name, scores([run.outcome(name) for name in comparison.ids])) for run in comparison.runs
    )
    rows = tuple(tables.differences(one.name, two.name, item) for one, two, item in comparison.differences)
    note = "Paired over the questions; `sure` says that the 95 % interval of the score's difference leaves out zero."
    return [Table("Runs", tables.SCORE_HEAD, runs), Table("Paired differences", tables.DIFFERENCE_HEAD, rows, note)]


def only_right_tables(comparison: Comparison, *, texts: bool) -> list[Table]:
    """Questions that one run got right and another did not; with `texts` also the questions and answers themselves."""
    listings = []
    for one, two, _ in comparison.differences:
        for winner, loser in ((one, two), (two, one)):
            names = comparison.only_right(winner, loser)
            listings.append(
                Table(
                    f"Right in {winner.name}, not in {loser.name}: {len(names)}",
                    ("id", "question", winner.name, loser.name) if texts else ("id", "type", "domain", loser.name),
                    tuple(_row(name, winner, loser, texts=texts) for name in names[:MAX_LISTED]),
                    f"The first {MAX_LISTED} of them." if len(names) > MAX_LISTED else "",
                )
            )
    return listings


def _row(name: str, winner: Judged, loser: Judged, *, texts: bool) -> tuple[str, ...]:
    line = winner.predictions[name]
    if texts:
        return name, line.query, line.prediction, loser.predictions[name].prediction
    return name, line.question_type, line.domain, loser.outcome(name)


def write_comparison(comparison: Comparison, folder: Path, *, command: str, texts: bool) -> list[Path]:
    """`compare.md` and its picture.

    Raises:
        WriteFailed: the disk took no more.
    """
    rows = [scores([run.outcome(name) for name in comparison.ids]) for run in comparison.runs]
    names = [run.name for run in comparison.runs]
    images = pictures.in_themes("compare", partial(pictures.compare_scores, names, rows))
    facts = (("command", command), ("questions", f"{len(comparison.ids)}, those that all runs have"))
    all_tables = [*compared_tables(comparison), *only_right_tables(comparison, texts=texts)]
    text = markdown.write("Comparison of " + ", ".join(names), facts, all_tables, list(images))
    return write(folder, {"compare.md": text.encode()} | images)


def write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write each file whole; returns the paths of all but the pictures.

    Raises:
        WriteFailed: the disk took no more.
    """
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files if not name.endswith(".png")]
