"""Test collections: documents, questions, and judgements of which documents answer them.

There are two layouts. AQA's own (KDD Cup 2024): `qa_train.txt`, JSON lines of `question`, `body` and `pids`,
beside `pid_to_title_abs*.json`, one object of `pid` to `title` and `abstract`. And the plain one: `docs.jsonl`,
`queries.jsonl` and `qrels.*`, which are TREC's four columns, or a table with a head (as BEIR's and Cranfield's).
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.evaluator.errors import BadSource
from services.kit import jsonl

AQA_QUESTIONS, AQA_DOCUMENTS = "qa_train.txt", "pid_to_title_abs*.json"
DOCUMENTS, QUESTIONS, QRELS = "docs.jsonl", "queries.jsonl", "qrels.*"

_IDS = ("doc_id", "query_id", "docid", "qid", "_id", "id")
_QUERY_COLUMNS = ("query_id", "query-id", "qid", "topic")
_DOCUMENT_COLUMNS = ("doc_id", "corpus-id", "docid", "docno")
_GRADE_COLUMNS = ("grade", "score", "relevance", "rel")
# Qrels of one question: document id to grade, more is better, 0 and less is not relevant; a fraction counts as the next
# whole grade.
Grades = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Text:
    """A title, and a document's abstract or a question's body."""

    title: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A test collection.

    Attributes:
        questions: those with at least one relevant document in the collection.
        left_out: the number of the others.
    """

    name: str
    documents: Mapping[str, Text]
    questions: Mapping[str, Text]
    qrels: Mapping[str, Grades]
    left_out: int = 0


def read(folder: Path, *, documents: bool = True) -> Benchmark:
    """The test collection in a folder, in either layout.

    Args:
        documents: whether to read the documents; without them all judged ones count as existing.

    Raises:
        BadSource: a file is missing or holds something else.
    """
    with _naming_lines():
        if (folder / AQA_QUESTIONS).is_file():
            return _read_aqa(folder, documents=documents)
        texts = _texts(folder / DOCUMENTS, ("title",), ("abstract", "text")) if documents else {}
        questions = _texts(folder / QUESTIONS, ("query", "question", "title", "text"), ("body", "description"))
        return _benchmark(folder.name, texts, questions, read_qrels(_only(folder, QRELS)), documents=documents)


@contextmanager
def _naming_lines() -> Iterator[None]:
    """A line that is none becomes a `BadSource` with its place."""
    try:
        yield
    except jsonl.BadLine as error:
        raise BadSource(str(error)) from error


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Question id to document id to grade.

    Raises:
        BadSource: the file is missing, or a line of it is no judgement.
    """
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    columns: tuple[int, int, int] | None = None
    with _naming_lines():
        for number, line in jsonl.lines(path):
            try:
                text = line.decode().rstrip("\n")
                cells = text.split("\t") if "\t" in text else text.split()
                if columns is None and (columns := _columns(cells)) is not None:
                    continue
                # TREC: question, iteration, document, grade.
                columns = columns or (0, 2, 3)
                query, document, grade = (cells[column].strip() for column in columns)
                qrels[query][document] = math.ceil(float(grade))
            except (IndexError, OverflowError, ValueError):
                raise BadSource(f"{path}:{number}: no judgement of question, document and grade") from None
    return dict(qrels)


def halves(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Every other question: neighbours in a file are often of one author."""
    return list(ids[::2]), list(ids[1::2])


def _read_aqa(folder: Path, *, documents: bool) -> Benchmark:
    texts: dict[str, Text] = {}
    if documents:
        path = _only(folder, AQA_DOCUMENTS)
        try:
            papers = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise BadSource(f"{path}: {error}") from error
        if not isinstance(papers, dict):
            raise BadSource(f"{path}: no object of papers")
        texts = {str(pid): _text(paper, ("title",), ("abstract",)) for pid, paper in papers.items()}
    questions: dict[str, Text] = {}
    qrels: dict[str, dict[str, int]] = {}
    path = folder / AQA_QUESTIONS
    for place, record in jsonl.objects(path):
        pids = record.get("pids")
        if not isinstance(pids, list):
            raise BadSource(f"{place}: a question without `pids`")
        # A question's number is that of its line.
        number = place.rpartition(":")[2]
        questions[number] = _text(record, ("question",), ("body",))
        qrels[number] = {str(pid): 1 for pid in pids}
    return _benchmark(folder.name, texts, questions, qrels, documents=documents)


def _benchmark(
    name: str, texts: dict[str, Text], questions: dict[str, Text], qrels: dict[str, dict[str, int]], *, documents: bool
) -> Benchmark:
    def is_answered(query: str) -> bool:
        relevant = (document for document, grade in qrels.get(query, {}).items() if grade > 0)
        return any(not documents or document in texts for document in relevant)

    answered = {query: text for query, text in questions.items() if text.title and is_answered(query)}
    if not answered:
        raise BadSource(f"{name}: no question has a relevant document")
    left_out = len(questions) - len(answered)
    return Benchmark(name, texts, answered, {query: qrels[query] for query in answered}, left_out)


def _texts(path: Path, titles: Sequence[str], bodies: Sequence[str]) -> dict[str, Text]:
    texts: dict[str, Text] = {}
    for place, record in jsonl.objects(path):
        name = next((str(record[key]) for key in _IDS if record.get(key) not in (None, "")), "")
        if not name:
            raise BadSource(f"{place}: a record without an id")
        texts[name] = _text(record, titles, bodies)
    return texts


def _text(record: Any, titles: Sequence[str], bodies: Sequence[str]) -> Text:
    def first(keys: Sequence[str]) -> str:
        return next((value for key in keys if isinstance(value := record.get(key), str) and value.strip()), "")

    return Text(first(titles), first(bodies)) if isinstance(record, dict) else Text("")


def _columns(cells: Sequence[str]) -> tuple[int, int, int] | None:
    names = [cell.strip().lower() for cell in cells]
    query, document, grade = (
        next((names.index(name) for name in aliases if name in names), -1)
        for aliases in (_QUERY_COLUMNS, _DOCUMENT_COLUMNS, _GRADE_COLUMNS)
    )
    return (query, document, grade) if min(query, document, grade) >= 0 else None


def _only(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        raise BadSource(f"{folder}: {len(paths) or 'no'} files are named {pattern}; there must be one")
    return paths[0]
