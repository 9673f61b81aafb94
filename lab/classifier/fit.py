"""The whole of training: read, embed, train, temper, choose thresholds, and write the model beside its card."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.classifier import evaluate
from lab.classifier.measure import picture
from lab.classifier.readers import held_back, normal, read
from lab.classifier.train import ASSUMED, Progress, Trained, best_threshold, card, fit_temperature, train
from services.classifier.app import Model, in_context
from services.classifier.examples import QUESTIONS, Example, read_questions
from services.classifier.in_context import Demonstrations, InContext, candidates
from services.classifier.settings import ClassifierSettings
from services.classifier.svm import CARD, MODEL, Questions
from services.classifier.taxonomy import HEADS, Prediction
from services.kit.client import http_client
from services.kit.encoder import Encoder
from services.kit.files import write_whole
from services.kit.precision import choose_precision


def fit(
    folder: Path,
    settings: ClassifierSettings,
    *,
    data: Sequence[Path],
    calibrate: Sequence[Path],
    generator: str,
    sample: int,
    progress: Progress,
) -> dict[str, Any]:
    """The card of a model that this trains and writes into a folder, with card and pictures; it takes a minute.

    Args:
        data: labelled questions to train on beside our own.
        calibrate: labelled real questions, not trained on, to fit the temperature on.
        generator: an LLM whose accuracy on validation questions decides the thresholds of `auto`.
        sample: validation questions of a head to ask it.

    Raises:
        BadLine: a file cannot be read.
        ValueError: there are too few labels.
        OSError: the folder cannot be written.
    """
    examples = [*read_questions(), *(example for path in data for example in _trainable(path))]
    # Of a question that comes twice the first counts.
    examples = list({normal(example.question): example for example in reversed(examples)}.values())[::-1]
    # Exact vectors: those of another number format differ in the fourth digit, which a served model bears.
    encoder = Encoder(
        settings.classifier_encoder, precision=choose_precision("fp32", model=settings.classifier_encoder)
    )
    encoder.load()
    progress(f"embedding {len(examples)} questions")
    vectors = encoder.encode([example.question for example in examples]).vectors
    trained = train(examples, vectors, encoder=encoder.name, progress=progress)
    sources = [QUESTIONS.name, *(path.name for path in data)]
    for head in HEADS:
        real = [example for path in calibrate for example in _trainable(path) if example.label(head)]
        if len({example.label(head) for example in real}) > 1:
            questions = [example.question for example in real]
            embedded = Questions(questions, encoder.encode(questions).vectors)
            temperature = fit_temperature(trained.svm.heads[head], head, embedded, [e.label(head) for e in real])
            trained.svm.heads[head].temperature = trained.validator.heads[head].temperature = temperature
            progress(f"{head}: temperature {temperature} by {len(real)} real questions")
    sources += [f"{path.name} (temperature only)" for path in calibrate]
    thresholds, by = _thresholds(trained, encoder, settings, generator, sample, progress)
    content = card(trained, examples, sources=sources, thresholds=thresholds, thresholds_by=by)
    folder.mkdir(parents=True, exist_ok=True)
    for head, scores in trained.scores.items():
        picture(scores, folder / f"confusion-{head}.png", f"{head}, validation")
    write_whole(folder / "card.md", _markdown(content).encode())
    # What is served comes last: a full disk has ended it before.
    trained.svm.save(folder / MODEL.name)
    write_whole(folder / CARD, json.dumps(content, indent=1).encode() + b"\n")
    return content


def _trainable(path: Path) -> list[Example]:
    """A file's examples without those of FreshQA that are held back for evaluation."""
    examples = read(path)
    fresh = all(not example.domain for example in examples)
    return [example for example in examples if not (fresh and held_back(example.question))]


def _thresholds(
    trained: Trained, encoder: Encoder, settings: ClassifierSettings, generator: str, sample: int, progress: Progress
) -> tuple[dict[str, float], str]:
    if not generator:
        by = f"taking an LLM to be right {ASSUMED} of the time where the SVM is unsure"
        return dict.fromkeys(HEADS, ASSUMED), by
    validation = {example.question for example in trained.validation}
    demonstrations = [example for example in candidates(read_questions()) if example.question not in validation]
    vectors = encoder.encode([example.question for example in demonstrations]).vectors
    model = Model(encoder, trained.validator, {}, Demonstrations(demonstrations, vectors))
    configured = settings.model_copy(update={"generator_url": generator})

    async def measure() -> dict[str, float]:
        thresholds = {}
        async with http_client() as http:
            llm = in_context(configured, http, model.demonstrations)
            for head in HEADS:
                progress(f"{head}: asking the generator {sample} validation questions")
                thresholds[head] = await _measured(head, llm, model, trained.validation, sample, progress)
        return thresholds

    return asyncio.run(measure()), f"the accuracy of SVM and LLM together on {sample} validation questions a head"


async def _measured(
    head: str, llm: InContext, model: Model, validation: Sequence[Example], sample: int, progress: Progress
) -> float:
    task = evaluate.labelled(head, head, validation).sample(sample)
    svm = [item.labels[head] for item in model.run(task.questions)]
    replies = await evaluate.ask_all(llm, model, head, task.questions, progress)
    both: list[Prediction] = [ours if theirs is None else theirs for ours, theirs in zip(svm, replies, strict=True)]
    threshold, accuracy = best_threshold(
        [prediction.certainty for prediction in svm],
        [prediction.label == label for prediction, label in zip(svm, task.truth, strict=True)],
        [prediction.label == label for prediction, label in zip(both, task.truth, strict=True)],
    )
    alone = task.score(svm).accuracy, task.score(both).accuracy
    progress(f"{head}: SVM {alone[0]:.3f}, LLM {alone[1]:.3f}, together {accuracy:.3f} at {threshold}")
    return threshold


def _markdown(content: Mapping[str, Any]) -> str:
    data = content["data"]
    lines = [
        "# Model card: the classifier's SVM",
        "",
        f"Made on {content['made']} by `cragmesh classifier train` on vectors of {content['encoder']}, with "
        + ", ".join(f"{name} {version}" for name, version in content["versions"].items())
        + ".",
        "",
        f"Trained on {data['questions']} questions in {data['groups']} template groups ({', '.join(data['sources'])}; "
        f"SHA-256 `{data['sha256'][:16]}`). Scores are of {data['validated_on']} questions whose template groups "
        "neither training nor the choice of settings saw, before tempering; the model is then trained on all groups.",
        "",
        "| head | accuracy | majority | macro-F1 | ECE | coverage at 0.9 | temperature | auto asks below |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {head} | {scores['accuracy']:.3f} | {scores['majority']:.3f} | {scores['macro_f1']:.3f} | "
        f"{scores['ece']:.3f} | {scores['coverage_at_90']:.2f} | {content['temperatures'][head]} | "
        f"{content['thresholds'][head]} |"
        for head, scores in content["validation"].items()
    ]
    lines += [
        "",
        f"Thresholds were chosen by {content['thresholds_by']}.",
        "",
        "Settings were chosen by cross-validation over groups (mean of accuracy and macro-F1):",
        "",
        "| head | settings | score |",
        "|---|---|---|",
        *(
            f"| {head} | {words} | {value:.3f} |"
            for head, compared in content["compared"].items()
            for words, value in compared.items()
        ),
        "",
        *(f"![{head}](confusion-{head}.png)" for head in content["validation"]),
        "",
        "Limits: English only; certainty fades into the labels' frequencies for what is like no question it knows. A "
        "false premise is known by its form alone: the classifier has no facts. Dynamism's temperature, where it is "
        "not 1, was fitted on half of FreshQA (Apache-2.0), which the SVM did not learn from.",
    ]
    return "\n".join(lines) + "\n"
