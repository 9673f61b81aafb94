"""Questions of our own in the evaluator's format: on records, long pages, prose and scenes, half without an answer."""

import html
import random
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.trainer import near, scenes
from lab.trainer.dataset import LABEL_KINDS
from lab.trainer.pairs import Pair, read
from lab.trainer.synthesise import answers
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.reading.articles import SAMPLE, article, cut, original, swapped, telling, way
from lab.trainer.synthesise.record import Record
from services.gateway.normalize import UNKNOWN

# Of the questions about web pages so many come with the whole pages, which the mesh then splits and ranks itself.
WHOLE_PAGES = 0.5
# Passages of other pages that stand around those of the question's own.
AROUND = (12, 30)
PAGES = (1, 3)
# Of all questions so many are about prose that a model wrote, and about scenes, as long as the shipped ones last.
PROSE, SCENES = 0.3, 0.3
# Its passages come among so many others.
BESIDE = (2, 5)
# Other organisations whose pages stand beside those of a question on documents.
ORGANISATIONS = (2, 6)
# Of the lines without an answer in which a model was silent when they were written.
SILENT = 0.3
# What the patterns of web pages are called by.
WEB = "web."
ASKED_ON = "2024-03-01T12:00:00"
# Passages that are kept to be put around later ones.
KEPT = 120


def generate(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """So many lines for `cragmesh eval run`; the same for the same seed."""
    rng = random.Random(f"questions:{seed}")  # noqa: S311 - reproducible, not secret
    others: deque[str] = deque(maxlen=KEPT)
    written = ((PROSE, prose(rng)), (PROSE + SCENES, scenes.questions(rng)))
    for number, record in enumerate(answers.generate(count, seed)):
        drawn = rng.random()
        source = next((lines for share, lines in written if drawn < share), iter(()))
        yield {"id": f"made-up-{seed}-{number:06d}"} | (next(source, None) or _about(rng, record, others))
        if record.pattern.startswith(WEB):
            others.extend(record.passages)


def of_documents(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """So many lines about organisations' documents, or as many as there are, each with pages of other organisations
    beside its own, which the mesh splits and ranks.

    Those for a short answer are of taught scenes too: `yes-no` was taught them, and it is not asked such.
    """
    rng = random.Random(f"documents:{seed}")  # noqa: S311 - reproducible, not secret
    short = (scene for scene in scenes.scenes(scenes.DOCUMENTS) if not scene.wants_yes_or_no)
    found = [*scenes.scenes(scenes.DOCUMENTS_FITTED), *short]
    asked = [(scene, question) for scene in found for question in scene.questions]
    pages_of = sorted(scene.contexts for scene in found)
    for number, (scene, question) in enumerate(rng.sample(asked, len(asked))[:count]):
        strangers = [contexts for contexts in pages_of if contexts != scene.contexts]
        others = rng.sample(strangers, rng.randint(*ORGANISATIONS))
        results = {"search_results": _pages(rng.sample([scene.contexts, *others], len(others) + 1))}
        yield {"id": f"documents-{seed}-{number:06d}"} | scenes.line(scene, question) | results


def _about(rng: random.Random, record: Record, others: Sequence[str]) -> dict[str, Any]:
    """A record as a line without an id, its passages in whole pages now and then."""
    line = {
        "query": record.query,
        "query_time": record.query_time.isoformat(),
        "domain": record.domain,
        "question_type": record.question_type,
        "label": record.answer,
        "label_kind": LABEL_KINDS[record.kind],
    }
    if record.pattern.startswith(WEB) and len(others) >= AROUND[1] and rng.random() < WHOLE_PAGES:
        return line | {"search_results": pages(rng, record, others)}
    return line | {"contexts": list(record.passages)}


def prose(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Questions about the shipped prose, their passages among others of the article and of other things.

    An answered one comes again as an unchecked twin: over the passage without the answer's sentence, or about another
    name or number. A confidence learns from them whether a model answers all the same; of the lines for which the
    writing model was silent a share will do. As many more are on dense passages, which answer half of them.
    """
    lines = read([Path(str(SAMPLE))])
    names = Names(Phrasing(rng))
    answered = [line for line in lines if line.answer]
    twins = [_twin(rng, names, line) for line in answered]
    silent = [line for line in lines if not line.answer and rng.random() < SILENT]
    dense = rng.sample(near.pairs(), len(answered))
    gold = [(line, line.answer) for line in (*answered, *(twin for twin in twins if twin), *silent, *dense)]
    whole = {line.passage: line for line in lines if way(line) != "cut"}
    answers_of = {line.id: line.answer for line in lines}
    rng.shuffle(gold)
    for line, label in gold:
        answer = label or answers_of.get(original(line), "")
        same = [other.passage for other in telling(line, list(whole.values()), answer)]
        strangers = [
            passage
            for passage, other in whole.items()
            if article(other) != article(line) and not (answer and answer in passage)
        ]
        contexts = [line.passage, *same, *rng.sample(strangers, rng.randint(*BESIDE))]
        rng.shuffle(contexts)
        yield {
            "query": line.question,
            "query_time": ASKED_ON,
            "domain": "open",
            "question_type": "simple",
            "label": label or UNKNOWN,
            "label_kind": "answer" if label else "idk",
            "contexts": contexts,
        }


def _twin(rng: random.Random, names: Names, line: Pair) -> Pair | None:
    """A twin of an answered line by one of two ways, by the other where the first does not apply."""
    twins = [cut(line), swapped(line, (str(rng.randint(3, 9)), names.coined()))]
    rng.shuffle(twins)
    return next((twin for twin in twins if twin), None)


def pages(rng: random.Random, record: Record, others: Sequence[str]) -> list[dict[str, str]]:
    """Pages that hold the record's passages somewhere, each among many that have nothing to do with it."""
    count = rng.randint(*PAGES)
    contents = [rng.sample(list(others), rng.randint(*AROUND) // count) for _ in range(count)]
    for passage in record.passages:
        content = rng.choice(contents)
        content.insert(rng.randint(0, len(content)), passage)
    return _pages(contents)


def _pages(contents: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    return [
        {
            "page_name": f"Page {number}",
            "page_url": f"https://example.org/{number}",
            "page_snippet": "",
            "page_result": f"<!DOCTYPE html><html><head><title>Page {number}</title></head>"
            f"<body><main>{''.join(map(_block, content))}</main></body></html>",
            "page_last_modified": "",
        }
        for number, content in enumerate(contents, 1)
    ]


def _block(passage: str) -> str:
    """A passage as HTML: lines as paragraphs, a Markdown table as a table."""
    blocks: list[str] = []
    rows: list[str] = []
    for line in passage.splitlines():
        if not line.startswith("|"):
            blocks.append(f"<p>{html.escape(line)}</p>")
        elif set(line) - set("|- "):
            cells = (cell.strip() for cell in line.strip("|").split("|"))
            name = "td" if rows else "th"
            rows.append("<tr>" + "".join(f"<{name}>{html.escape(cell)}</{name}>" for cell in cells) + "</tr>")
    return "".join(blocks) + (f"<table>{''.join(rows)}</table>" if rows else "")
