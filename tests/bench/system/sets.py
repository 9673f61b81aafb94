"""The questions of `make eval-system`, each with what a user would have: pages, or a collection of documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import kg_eval, reading, wiki_pages
from tests.bench.common import read_rows, write_rows
from tests.bench.corpus import articles

SEED = 5
FALSE_PREMISES = 30
# More than are ever asked: a run draws its sample from them.
ENOUGH = 100_000

Record = dict[str, Any]
Documents = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set's questions, and the documents that they are asked of; None where each question has its pages."""

    records: Callable[[Path], Iterable[Record]]
    documents: Callable[[Path], Documents] | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A set as files: questions for `cragmesh eval run`, and for `cragmesh index` the documents of its collection."""

    name: str
    questions: Path
    documents: Path | None

    @property
    def collection(self) -> str:
        return f"eval-{self.name}"


def prepare(name: str, root: Path, folder: Path) -> Prepared:
    """Write a set into the folder, the same each time.

    Args:
        root: of the evaluation data.
    """
    chosen = SETS[name]
    prepared = Prepared(
        name, folder / f"{name}.jsonl", folder / f"{name}-documents.jsonl" if chosen.documents else None
    )
    of_collection = {"collection": prepared.collection} if chosen.documents else {}
    write_rows(prepared.questions, (record | of_collection for record in chosen.records(root)))
    if chosen.documents and prepared.documents:
        texts = chosen.documents(root).items()
        rows = ({"id": title[:200], "title": title.replace("_", " "), "text": text} for title, text in texts)
        write_rows(prepared.documents, rows)
    return prepared


def _multihop(root: Path) -> Iterator[Record]:
    for row in read_rows(root / "multihop" / "hotpotqa_100.jsonl"):
        yield {"id": row["id"], "query": row["question"], "answer": row["answer"], "question_type": row["type"]}


def _paragraphs(root: Path) -> Documents:
    """All questions' paragraphs together, by title."""
    rows = read_rows(root / "multihop" / "hotpotqa_100.jsonl")
    return {item["title"]: " ".join(item["sentences"]) for row in rows for item in row["context"]}


def _graph(root: Path) -> Iterator[Record]:
    """The questions that the rows answer; one without a time has the usual time of its domain."""
    times = {row["id"]: row.get("query_time") for row in read_rows(root / "crag_kg_qa.jsonl")}
    for question in kg_eval.load_questions(root):
        usual = kg_eval.USUAL_TIME.get(question.domain, kg_eval.OTHER_TIME)
        yield {
            "id": question.id,
            "query": question.text,
            "query_time": times[question.id] or usual,
            "domain": question.domain,
            "answer": question.gold,
        }


def _rows(root: Path) -> Documents:
    """The graph's rows as texts, one an entity: for who has no graph."""
    texts: dict[str, list[str]] = {}
    for path in sorted((root / "kg_rows").glob("[!A]*.jsonl")):
        for row in read_rows(path):
            attributes = "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in row["attrs"].items())
            title = f"{row['entity']} ({row['domain']})"
            texts.setdefault(title, []).append(f"{row['kind'].replace('_', ' ')}: {attributes}")
    return {title: "\n".join(dict.fromkeys(lines)) for title, lines in texts.items()}


SETS: Mapping[str, QuestionSet] = {
    "freshqa": QuestionSet(lambda root: wiki_pages.records(root, FALSE_PREMISES, SEED)),
    "crag": QuestionSet(lambda root: read_rows(root / "crag_pages.jsonl.gz")),
    "squad": QuestionSet(lambda root: reading.records(root, ENOUGH, SEED), articles),
    "multihop": QuestionSet(_multihop, _paragraphs),
    "graph": QuestionSet(_graph, _rows),
}
