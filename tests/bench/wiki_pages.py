"""FreshQA's questions as CRAG records: five Wikipedia pages each, those that the question names among others.

    python -m tests.bench.wiki_pages [--out out/eval/freshqa-pages.jsonl] [--false-premises 30] [--seed 5]

Long pages of the real web, for `cragmesh eval run`: questions whose answer stands on one of their own pages, and some
with a false premise, whose answer is "invalid question". The data are found through CRAGMESH_EVAL_DATA.
"""

import html
import pathlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

from lab.evaluator.judge.protocol import INVALID
from tests.bench import common
from tests.bench.answers import pages, questions
from tests.bench.corpus import body

PAGES = 5
SNIPPET_CHARS = 200
# FreshQA's answers are those of late 2023.
QUERY_TIME = "12/01/2023, 12:00:00 PT"


def page(title: str, text: str) -> dict[str, str]:
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


def records(root: pathlib.Path, false_premises: int, seed: int) -> Iterator[dict[str, Any]]:
    """The records in an order of their own."""
    documents = pages(root)
    answered = {question.text for question in questions(root, documents)}
    named = [row for row in common.read_rows(root / "freshqa.jsonl") if own_pages(row, documents)]
    true = [row for row in named if row["question"] in answered]
    false = [row for row in named if row["false_premise"]][:false_premises]
    rng = random.Random(seed)
    chosen = [*true, *false]
    rng.shuffle(chosen)
    for row in chosen:
        own = own_pages(row, documents)
        titles = own + rng.sample([title for title in documents if title not in own], PAGES - len(own))
        rng.shuffle(titles)
        answers = [INVALID] if row["false_premise"] else row["answers"]
        yield {
            "interaction_id": f"freshqa-{row['id']}",
            "query": row["question"],
            "query_time": QUERY_TIME,
            "domain": "open",
            "question_type": "false_premise" if row["false_premise"] else "simple",
            "answer": answers[0],
            "alt_ans": answers[1:],
            "search_results": [page(title, documents[title]) for title in titles],
        }


def own_pages(row: Mapping[str, Any], documents: Mapping[str, str]) -> list[str]:
    return [title for title in row.get("wiki_docs") or [] if title in documents][: PAGES - 1]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval/freshqa-pages.jsonl"))
    parser.add_argument("--false-premises", type=int, default=30)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    root = common.evaluation_data("eval-pages", "there are no pages")
    rows = list(records(root, args.false_premises, args.seed))
    common.write_rows(args.out, rows)
    print(args.out, len(rows), "records")


if __name__ == "__main__":
    main()
