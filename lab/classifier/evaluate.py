"""Measure the classifier on real questions that it was not trained on, and write a report (`classifier evaluate`).

The data are those of CRAGMESH_EVAL_DATA: CRAG questions with a domain, CRAG records with dynamism and type, and
the half of FreshQA that `train --calibrate` never reads. With a generator the LLM is measured too, on a sample, and so
is `auto`: the SVM where its certainty clears the card's threshold, else the LLM.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

from lab.classifier.measure import Scores, picture, score
from lab.classifier.readers import held_back, normal, read
from services.classifier.app import Model, in_context, load_model
from services.classifier.examples import Example, read_questions
from services.classifier.in_context import Choice, Consistency, InContext
from services.classifier.settings import ClassifierSettings
from services.classifier.taxonomy import DYNAMIC, HEADS, Prediction
from services.kit.client import http_client
from services.kit.errors import ServiceFailure

Say = Callable[[str], None]

DYNAMIC_LABELS = ("static", "dynamic")
# One question of a small model on a CPU; a hung server ends the measurement instead of hanging it.
ASK_S = 60.0
AT_ONCE = 2
# In-context classifiers that are compared: how demonstrations are chosen, and how certainty is measured.
VARIANTS: tuple[tuple[Choice, Consistency], ...] = (("nearest", "logprob"), ("nearest", "vote"), ("random", "logprob"))


@dataclass(frozen=True, slots=True)
class Task:
    """Questions with a label of one head.

    Args:
        name: in the report.
        dynamic: the degrees of dynamism that count as dynamic, where no others are told apart.
    """

    name: str
    head: str
    examples: Sequence[Example]
    dynamic: frozenset[str] = frozenset()

    @property
    def questions(self) -> list[str]:
        return [example.question for example in self.examples]

    @property
    def truth(self) -> list[str]:
        labels = [example.label(self.head) for example in self.examples]
        return [DYNAMIC_LABELS[label in self.dynamic] for label in labels] if self.dynamic else labels

    def sample(self, size: int) -> "Task":
        """A part of it, the same at every run."""

        def digest(example: Example) -> bytes:
            return hashlib.sha256(normal(example.question).encode()).digest()

        return replace(self, examples=sorted(self.examples, key=digest)[:size])

    def score(self, predictions: Sequence[Prediction]) -> Scores:
        if self.dynamic:
            shares = [min(1.0, prediction.of(self.dynamic)) for prediction in predictions]
            return score(self.truth, np.array([[1 - share, share] for share in shares]), DYNAMIC_LABELS)
        labels = tuple(HEADS[self.head])
        rows = [[prediction.probabilities.get(label, 0.0) for label in labels] for prediction in predictions]
        return score(self.truth, np.array(rows), labels)


@dataclass(slots=True)
class Row:
    """One line of the report."""

    task: str
    mode: str
    scores: Scores
    note: str = ""


@dataclass(slots=True)
class Report:
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [
            "# The classifier on real questions",
            "",
            "| questions | mode | n | accuracy | majority | macro-F1 | ECE | coverage at 0.9 | accuracy there |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for row in self.rows:
            scores = row.scores
            sure = "-" if np.isnan(scores.sure_accuracy) else f"{scores.sure_accuracy:.3f}"
            lines.append(
                f"| {row.task} | {row.mode} | {scores.questions} | {scores.accuracy:.3f} | {scores.majority:.3f} | "
                f"{scores.macro_f1:.3f} | {scores.ece:.3f} | {scores.coverage:.2f} | {sure} |"
            )
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes)]) + "\n"

    def json(self) -> str:
        rows = [{"task": row.task, "mode": row.mode, "note": row.note, **row.scores.summary()} for row in self.rows]
        return json.dumps({"rows": rows, "notes": self.notes}, indent=1, allow_nan=True) + "\n"


def tasks(root: Path) -> list[Task]:
    """The tasks to measure.

    Raises:
        BadLine: a file cannot be read.
    """
    domains = read(root / "crag_kg_qa.jsonl")
    types = read(root / "crag_question_types.jsonl")
    fresh = [example for example in read(root / "freshqa.jsonl") if held_back(example.question)]
    records = _unique([*read(root / "crag_pages.jsonl.gz"), *types, *domains], "dynamism")
    typed = _unique([*types, *read(root / "crag_pages.jsonl.gz"), *domains], "question_type")
    changing = DYNAMIC | {"slow-changing"}
    return [
        labelled("domain, CRAG", "domain", domains),
        labelled("dynamism, FreshQA held back", "dynamism", fresh),
        labelled("static (or slow) / dynamic, FreshQA held back", "dynamism", fresh, DYNAMIC),
        labelled("static / changing at all, FreshQA held back", "dynamism", fresh, changing),
        labelled("dynamism, CRAG records", "dynamism", records),
        labelled("static (or slow) / dynamic, CRAG records", "dynamism", records, DYNAMIC),
        labelled("question type, CRAG", "question_type", typed),
    ]


def _unique(examples: Sequence[Example], head: str) -> list[Example]:
    return list({normal(example.question): example for example in examples if example.label(head)}.values())


def labelled(name: str, head: str, examples: Sequence[Example], dynamic: frozenset[str] = frozenset()) -> Task:
    """The examples with a label of a head as a task."""
    return Task(name, head, [example for example in examples if example.label(head)], dynamic)


def evaluate(root: Path, out: Path, settings: ClassifierSettings, *, generator: str, sample: int, say: Say) -> Report:
    """Measure, print and write `report.md`, `report.json` and a picture for each task.

    Args:
        generator: root of an OpenAI-compatible server; empty measures the SVM alone.
        sample: questions of a task that the LLM is asked.

    Raises:
        BadLine: a file cannot be read.
        ModelError: the model cannot be loaded.
        ValueError: an evaluation question is in the training set.
    """
    model = load_model(settings)
    chosen = tasks(root)
    own = {normal(example.question) for example in read_questions()}
    examples = [example for task in chosen for example in task.examples] + read(root / "freshqa.jsonl")
    if leaks := sorted({normal(example.question) for example in examples} & own):
        raise ValueError(f"{len(leaks)} evaluation questions are in the training set, such as {leaks[0]!r}")
    report = Report()
    out.mkdir(parents=True, exist_ok=True)
    for task in chosen:
        scores = task.score(_by_svm(model, task))
        report.rows.append(Row(task.name, "svm", scores))
        slug = "-".join(re.findall(r"\w+", task.name.lower()))
        picture(scores, out / f"{slug}.png", f"{task.name}, svm")
        say(f"{task.name}: accuracy {scores.accuracy:.3f}, ECE {scores.ece:.3f}")
    report.notes += _false_premises(model, read(root / "freshqa.jsonl"))
    if generator:
        configured = settings.model_copy(update={"generator_url": generator})
        asyncio.run(_with_llm(report, chosen, model, configured, sample, say))
    else:
        report.notes.append("No generator was given: in-context and auto were not measured.")
    report.notes.append(f"Thresholds of auto: {json.dumps(model.thresholds)}.")
    report.notes.append("No question of these sets is in the training set (compared by their words).")
    (out / "report.md").write_text(report.markdown(), "utf-8")
    (out / "report.json").write_text(report.json(), "utf-8")
    return report


def _by_svm(model: Model, task: Task) -> list[Prediction]:
    return [item.labels[task.head] for item in model.run(task.questions)]


def _false_premises(model: Model, examples: Sequence[Example]) -> list[str]:
    """F1 of false premises on FreshQA's held-back half, at a threshold chosen on the other half."""
    items = model.run([example.question for example in examples])
    probabilities = np.array([item.labels["question_type"].probabilities["false_premise"] for item in items])
    truth = np.array([example.question_type == "false_premise" for example in examples])
    back = np.array([held_back(example.question) for example in examples])
    best = max(np.arange(0.02, 0.6, 0.02), key=lambda at: f1_score(truth[~back], probabilities[~back] >= at))
    share = float(truth[back].mean())
    predicted = probabilities[back] >= best
    return [
        f"False premises on FreshQA held back ({int(back.sum())} questions, {share:.2f} of them false): "
        f"F1 {f1_score(truth[back], predicted):.3f} at a probability of {best:.2f} (chosen on the other half), "
        f"{f1_score(truth[back], probabilities[back] >= 0.5):.3f} at 0.5; "
        f"the majority class has 0.000, saying always `false` {2 * share / (1 + share):.3f}."
    ]


async def ask_all(
    llm: InContext, model: Model, head: str, questions: Sequence[str], say: Say
) -> list[Prediction | None]:
    """The LLM's predictions, two questions at a time; None where it failed."""
    items = model.run(questions)
    gate = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def ask(index: int) -> Prediction | None:
        nonlocal done
        async with gate:
            try:
                labels = await llm.classify(questions[index], items[index].vector, allow_s=ASK_S, heads=(head,))
            except ServiceFailure as failure:
                say(f"the generator failed: {failure}")
                return None
            finally:
                done += 1
                if done % 20 == 0:
                    say(f"{done} of {len(questions)}")
            return labels[head]

    return await asyncio.gather(*(ask(index) for index in range(len(questions))))


async def _with_llm(
    report: Report, chosen: Sequence[Task], model: Model, settings: ClassifierSettings, sample: int, say: Say
) -> None:
    async with http_client() as http:
        for name in ("domain, CRAG", "dynamism, FreshQA held back", "question type, CRAG"):
            base = next(task for task in chosen if task.name == name).sample(sample)
            views = [base]
            if base.head == "dynamism":
                views.append(replace(base, name="static (or slow) / dynamic, FreshQA held back", dynamic=DYNAMIC))
            by_svm = _by_svm(model, base)
            for view in views:
                report.rows.append(Row(f"{view.name}, sample", "svm", view.score(by_svm)))
            for how, consistency in VARIANTS:
                say(f"{name}: in-context, {how} demonstrations, {consistency}")
                variant = {"classifier_demonstrations": how, "classifier_consistency": consistency}
                llm = in_context(settings.model_copy(update=variant), http, model.demonstrations)
                replies = await ask_all(llm, model, base.head, base.questions, say)
                if missing := sum(prediction is None for prediction in replies):
                    report.notes.append(f"{name}, {how}, {consistency}: no usable reply to {missing} questions.")
                _compare(report, views, by_svm, replies, f"{how}, {consistency}", model.thresholds)


def _compare(
    report: Report,
    views: Sequence[Task],
    by_svm: Sequence[Prediction],
    replies: Sequence[Prediction | None],
    variant: str,
    thresholds: Mapping[str, float],
) -> None:
    """Add rows for the LLM alone (where it failed, the SVM stands in, as in the service) and for `auto`."""
    for view in views:
        llm = [ours if theirs is None else theirs for ours, theirs in zip(by_svm, replies, strict=True)]
        limit = thresholds[view.head]
        both = [ours if ours.certainty >= limit else theirs for ours, theirs in zip(by_svm, llm, strict=True)]
        share = sum(ours.certainty < limit for ours in by_svm) / len(by_svm)
        report.rows.append(Row(f"{view.name}, sample", f"in-context ({variant})", view.score(llm)))
        report.rows.append(
            Row(f"{view.name}, sample", f"auto ({variant})", view.score(both), f"asks the LLM {share:.2f}")
        )
