"""The questions of `make eval-system`, each with what a user would have: pages, or a collection of documents."""

import html
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.evaluator.judge.protocol import INVALID
from tests.bench import answers, kg_eval
from tests.bench.common import read_rows, write_rows
from tests.bench.corpus import articles, body, squad_questions

SEED = 5
# Whole pages of FreshQA's questions: those that the question names among others, and questions with a false premise.
PAGES = 5
FALSE_PREMISES = 30
SNIPPET_CHARS = 200
# FreshQA's answers are those of late 2023.
QUERY_TIME = "12/01/2023, 12:00:00 PT"

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


def _freshqa(root: Path) -> Iterator[Record]:
    """FreshQA's questions as CRAG records, in an order of their own."""
    documents = answers.pages(root)

    def own_pages(row: Record) -> list[str]:
        return [title for title in row.get("wiki_docs") or [] if title in documents][: PAGES - 1]

    answered = {question.text for question in answers.questions(root, documents)}
    named = [row for row in read_rows(root / "freshqa.jsonl") if own_pages(row)]
    chosen = [row for row in named if row["question"] in answered]
    chosen += [row for row in named if row["false_premise"]][:FALSE_PREMISES]
    chance = random.Random(SEED)
    chance.shuffle(chosen)
    for row in chosen:
        own = own_pages(row)
        titles = own + chance.sample([title for title in documents if title not in own], PAGES - len(own))
        chance.shuffle(titles)
        gold = [INVALID] if row["false_premise"] else row["answers"]
        yield {
            "interaction_id": f"freshqa-{row['id']}",
            "query": row["question"],
            "query_time": QUERY_TIME,
            "domain": "open",
            "question_type": "false_premise" if row["false_premise"] else "simple",
            "answer": gold[0],
            "alt_ans": gold[1:],
            "search_results": [_page(title, documents[title]) for title in titles],
        }


def _page(title: str, text: str) -> dict[str, str]:
    """A search result around a Wikipedia page."""
    paragraphs = [line for line in body(text).split("\n") if line.strip()]
    name = html.escape(title.replace("_", " "))
    content = "".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in paragraphs)
    return {
        "page_name": title.replace("_", " "),
        "page_url": f"https://en.wikipedia.org/wiki/{title}",
        "page_snippet": paragraphs[0][:SNIPPET_CHARS] if paragraphs else "",
        "page_result": f"<html><head><title>{name}</title></head><body><h1>{name}</h1>{content}</body></html>",
    }


def _squad(root: Path) -> Iterator[Record]:
    """All of SQuAD's questions in an order of their own, half of them without an answer."""
    chance = random.Random(SEED)
    chosen = []
    for impossible in (False, True):
        kind = [row for row in squad_questions(root) if row["is_impossible"] == impossible]
        chosen += chance.sample(kind, len(kind))
    chance.shuffle(chosen)
    for row in chosen:
        yield {
            "id": row["id"],
            "query": row["question"],
            "domain": "open",
            "label_kind": "idk" if row["is_impossible"] else "answer",
            "answers": [] if row["is_impossible"] else list(dict.fromkeys(row["answers"])),
        }


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
    "freshqa": QuestionSet(_freshqa),
    "crag": QuestionSet(lambda root: read_rows(root / "crag_pages.jsonl.gz")),
    "squad": QuestionSet(_squad, articles),
    "multihop": QuestionSet(_multihop, _paragraphs),
    "graph": QuestionSet(_graph, _rows),
}
