"""The made-up questions that every strategy answers, and the replies of the canned services."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.goldens.records import packaged

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)


@dataclass(slots=True)
class Case:
    """A question with the pages that come with it, and the replies of services to it.

    Args:
        body: of `POST /answer` or `POST /papers`.
        classification: as the classifier has it.
        replies: the generator's, by the kind of request; `answer` is that of the kinds without one.
        span: the reader's candidate, wherever it stands.
        graph: the knowledge graph's reply; None if no program fits.
        records: program -> the graph's reply.
        documents: of the collection, title and text.
        start_s: when the case was sent, by the loop's clock.
    """

    name: str
    body: dict[str, Any]
    classification: dict[str, Any]
    replies: dict[str, str]
    span: str
    graph: dict[str, Any] | None
    records: dict[str, Any]
    documents: tuple[tuple[str, str], ...]
    tags: frozenset[str] = field(default_factory=frozenset)
    start_s: float = 0.0

    def reply(self, kind: str) -> str:
        """The generator's reply to a request of a kind; see `canned.kind_of`."""
        return self.replies.get(kind, self.replies["answer"])


def load() -> list[Case]:
    """All cases of `cases.yaml`."""
    content, graph = packaged("cases.yaml"), packaged("graph.json")
    documents = tuple((one["title"], one["text"]) for one in content["documents"])
    return [_case(one, content, graph, documents) for one in content["cases"]]


def _case(
    one: dict[str, Any], content: dict[str, Any], graph: dict[str, Any], documents: tuple[tuple[str, str], ...]
) -> Case:
    body = {"query": one["query"], "query_time": one.get("time", "02/28/2024, 10:04:54 PT")}
    if "pages" in one:
        body["search_results"] = [_page(name, content["pages"][name]) for name in one["pages"]]
    for key in ("evidence", "collection", "every_answer"):
        if key in one:
            body[key] = one[key]
    dynamic = one.get("dynamism", "static") in ("fast-changing", "real-time")
    classification = {
        "domain": one.get("domain", "open"),
        "domain_certainty": one.get("certainty", 0.95),
        "dynamism": one.get("dynamism", "static"),
        "dynamism_certainty": 0.8,
        "question_type": one.get("type", "simple"),
        "question_type_certainty": 0.7,
        "dynamic_probability": 0.9 if dynamic else 0.1,
        "false_premise_probability": one.get("false_premise", 0.05),
    }
    replies = content["replies"] | {key: str(value) for key, value in one.get("replies", {}).items()}
    frame = {"reasoning": "The references say so.", "false_premise": False, "answer": replies["answer"]}
    reply = graph["queries"].get(one["query"])
    return Case(
        name=one["name"],
        body=body,
        classification=classification,
        replies={"frame": json.dumps(frame)} | replies,
        span=one.get("span", ""),
        graph=reply | {"status": one["graph_status"]} if "graph_status" in one else reply,
        records=graph["programs"],
        documents=documents,
        tags=frozenset(one.get("tags", ())),
    )


def _page(name: str, page: dict[str, Any]) -> dict[str, Any]:
    paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in page["text"])
    return {
        "page_name": page["title"],
        "page_url": f"https://example.org/{name}",
        "page_snippet": page.get("snippet", ""),
        "page_result": f"<html><body><h1>{html.escape(page['title'])}</h1>{paragraphs}</body></html>",
        "page_last_modified": "",
    }


def passages_of(page: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a page, each with its place."""
    for match in _PARAGRAPH.finditer(page):
        yield match.start(1), html.unescape(match[1])
