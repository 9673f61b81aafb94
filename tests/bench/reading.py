"""SQuAD 2.0 as a user would meet it: its articles as documents of a collection, its questions asked of that collection.

    python -m tests.bench.reading [--out out/eval/reading] [--count 400] [--seed 3]

Writes `articles.jsonl` for `cragmesh index` and `questions.jsonl` for `cragmesh eval run`: as many questions that the
articles answer as questions that they do not. The data are found through CRAGMESH_EVAL_DATA.
"""

import pathlib
import random
from collections.abc import Iterator
from typing import Any

from tests.bench import common
from tests.bench.corpus import articles, squad_questions

COLLECTION = "eval-articles"


def records(root: pathlib.Path, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """So many questions in an order of their own, half of them answerable where there are enough of each."""
    rows = list(squad_questions(root))
    chance = random.Random(seed)
    chosen = []
    for impossible in (False, True):
        kind = [row for row in rows if row["is_impossible"] == impossible]
        chosen += chance.sample(kind, min(count // 2, len(kind)))
    chance.shuffle(chosen)
    for row in chosen:
        yield {
            "id": row["id"],
            "query": row["question"],
            "collection": COLLECTION,
            "domain": "open",
            "label_kind": "idk" if row["is_impossible"] else "answer",
            "answers": [] if row["is_impossible"] else list(dict.fromkeys(row["answers"])),
        }


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval/reading"))
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    root = common.evaluation_data("eval-reading", "there are no articles")
    texts = articles(root).items()
    documents = [{"id": title, "title": title.replace("_", " "), "text": text} for title, text in texts]
    for name, rows in (("articles", documents), ("questions", list(records(root, args.count, args.seed)))):
        path = args.out / f"{name}.jsonl"
        common.write_rows(path, rows)
        print(path, len(rows), "lines")


if __name__ == "__main__":
    main()
