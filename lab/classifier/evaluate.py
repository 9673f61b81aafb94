"""Measure the classifier on real questions that it was not trained on, and write a report (`classifier evaluate`).

The data are those of CRAGMESH_EVAL_DATA: CRAG questions with a domain, CRAG records with dynamism and type, and
the half of FreshQA that `train --calibrate` never reads. With a generator the LLM is measured too, on a sample, and so
is `auto`: the SVM where its certainty clears the card's threshold, else the LLM.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

from lab.classifier.measure import Scores, picture, score
from lab.classifier.readers import held_back, normal, read
from services.classifier.app import Model, connect, load_model
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
    """Questions with one kind of label.

    Args:
        name: in the report.
        head: whose labels they are.
        examples: with a label of that head each.
        view: a prediction as probabilities of `labels`.
    """

    name: str
    head: str
    examples: Sequence[Example]
    labels: tuple[str, ...]
    truth: Sequence[str]
    view: Callable[[Prediction], list[float]]

    def sample(self, size: int) -> "Task":
        """A part of it, the same at every run."""
        keys = [hashlib.sha256(normal(example.question).encode()).digest() for example in self.examples]
        order = sorted(range(len(keys)), key=keys.__getitem__)[:size]
        return replace(self, examples=[self.examples[i] for i in order], truth=[self.truth[i] for i in order])

    def score(self, predictions: Sequence[Prediction]) -> Scores:
        return score(self.truth, np.array([self.view(prediction) for prediction in predictions]), self.labels)


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


def _label(head_labels: Sequence[str]) -> Callable[[Prediction], list[float]]:
    return lambda prediction: [prediction.probabilities.get(label, 0.0) for label in head_labels]


def _collapse(dynamic: frozenset[str]) -> Callable[[Prediction], list[float]]:
    def view(prediction: Prediction) -> list[float]:
        probability = min(1.0, prediction.of(dynamic))
        return [1 - probability, probability]

    return view


def tasks(root: Path) -> list[Task]:
    """The tasks to measure.

    Raises:
        DataError: a file cannot be read.
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
        _collapsed("static (or slow) / dynamic, FreshQA held back", fresh, DYNAMIC),
        _collapsed("static / changing at all, FreshQA held back", fresh, changing),
        labelled("dynamism, CRAG records", "dynamism", records),
        _collapsed("static (or slow) / dynamic, CRAG records", records, DYNAMIC),
        labelled("question type, CRAG", "question_type", typed),
    ]


def _unique(examples: Sequence[Example], head: str) -> list[Example]:
    return list({normal(example.question): example for example in examples if example.label(head)}.values())


def labelled(name: str, head: str, examples: Sequence[Example]) -> Task:
    """The examples with a label of a head as a task."""
    part = [example for example in examples if example.label(head)]
    labels = tuple(HEADS[head])
    return Task(name, head, part, labels, [example.label(head) for example in part], _label(labels))


def _collapsed(name: str, examples: Sequence[Example], dynamic: frozenset[str]) -> Task:
    part = [example for example in examples if example.dynamism]
    truth = [DYNAMIC_LABELS[example.dynamism in dynamic] for example in part]
    return Task(name, "dynamism", part, DYNAMIC_LABELS, truth, _collapse(dynamic))


def leaked(examples: Sequence[Example]) -> list[str]:
    """Evaluation questions that stand in our own training set, by their words; there must be none."""
    own = {normal(example.question) for example in read_questions()}
    return sorted({normal(example.question) for example in examples} & own)


def evaluate(
    root: Path,
    out: Path,
    *,
    settings: ClassifierSettings | None = None,
    generator: str = "",
    sample: int = 40,
    say: Say = print,
) -> Report:
    """Measure, print and write `report.md`, `report.json` and a picture for each task.

    Args:
        generator: root of an OpenAI-compatible server; empty measures the SVM alone.
        sample: questions of a task that the LLM is asked.

    Raises:
        DataError: a file cannot be read.
        ModelError: the model cannot be loaded.
        ValueError: an evaluation question is in the training set.
    """
    settings = settings or ClassifierSettings()
    model = load_model(settings)
    chosen = tasks(root)
    if leaks := leaked([example for task in chosen for example in task.examples] + read(root / "freshqa.jsonl")):
        raise ValueError(f"{len(leaks)} evaluation questions are in the training set, such as {leaks[0]!r}")
    report = Report()
    out.mkdir(parents=True, exist_ok=True)
    for task in chosen:
        scores = task.score(_by_svm(model, task))
        report.rows.append(Row(task.name, "svm", scores))
        picture(scores, out / f"{_slug(task.name)}.png", f"{task.name}, svm")
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
    return [item.labels.heads[task.head] for item in model.run([example.question for example in task.examples])]


def _false_premises(model: Model, examples: Sequence[Example]) -> list[str]:
    """F1 of false premises on FreshQA's held-back half, at a threshold chosen on the other half."""
    items = model.run([example.question for example in examples])
    probabilities = np.array([item.labels.heads["question_type"].probabilities["false_premise"] for item in items])
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
    in_context: InContext, model: Model, head: str, questions: Sequence[str], say: Say
) -> list[Prediction | None]:
    """The LLM's predictions, two questions at a time; None where it failed."""
    items = model.run(questions)
    gate = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def ask(index: int) -> Prediction | None:
        nonlocal done
        async with gate:
            try:
                labels = await in_context.classify(questions[index], items[index].vector, allow_s=ASK_S, heads=(head,))
            except ServiceFailure as failure:
                say(f"the generator failed: {failure}")
                return None
            finally:
                done += 1
                if done % 20 == 0:
                    say(f"{done} of {len(questions)}")
            return labels.heads[head]

    return await asyncio.gather(*(ask(index) for index in range(len(questions))))


async def _with_llm(
    report: Report, chosen: Sequence[Task], model: Model, settings: ClassifierSettings, sample: int, say: Say
) -> None:
    async with http_client() as http:
        llm = connect(settings, http)
        for name in ("domain, CRAG", "dynamism, FreshQA held back", "question type, CRAG"):
            base = next(task for task in chosen if task.name == name).sample(sample)
            views = [base]
            if base.head == "dynamism":
                views.append(_collapsed("static (or slow) / dynamic, FreshQA held back", base.examples, DYNAMIC))
            by_svm = _by_svm(model, base)
            for view in views:
                report.rows.append(Row(f"{view.name}, sample", "svm", view.score(by_svm)))
            for how, consistency in VARIANTS:
                say(f"{name}: in-context, {how} demonstrations, {consistency}")
                in_context = InContext(llm, model.demonstrations, how=how, consistency=consistency)
                questions = [example.question for example in base.examples]
                replies = await ask_all(in_context, model, base.head, questions, say)
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


def _slug(name: str) -> str:
    return "-".join("".join(character if character.isalnum() else " " for character in name.lower()).split())
