"""SQuAD 2.0 as a user would meet it: its articles as documents of a collection, its questions asked of that collection.

    python -m tests.bench.reading [--out out/eval/reading] [--count 400] [--seed 3]

Writes `articles.jsonl` for `cragmesh index` and `questions.jsonl` for `cragmesh eval run`: as many questions that the
articles answer as questions that they do not. The data are found through CRAGMESH_EVAL_DATA.
"""

import argparse
import json
import os
import pathlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.bench.corpus import articles, squad_questions

COLLECTION = "eval-articles"


def records(root: pathlib.Path, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Questions in an order of their own, half of each kind."""
    rows = list(squad_questions(root))
    for row in half_of_each(rows, lambda row: not row["is_impossible"], count, seed):
        answers = list(dict.fromkeys(row["answers"]))
        yield {
            "id": row["id"],
            "query": row["question"],
            "collection": COLLECTION,
            "domain": "open",
            "label_kind": "idk" if row["is_impossible"] else "answer",
            "answers": [] if row["is_impossible"] else answers,
        }


def half_of_each(
    rows: Sequence[dict[str, Any]], answerable: Callable[[dict[str, Any]], bool], count: int, seed: int
) -> list[dict[str, Any]]:
    """So many rows in an order of their own, half of them answerable, where there are enough of each."""
    rng = random.Random(seed)
    chosen = []
    for wanted in (True, False):
        kind = [row for row in rows if answerable(row) == wanted]
        chosen += rng.sample(kind, min(count // 2, len(kind)))
    rng.shuffle(chosen)
    return chosen


def save(folder: pathlib.Path, documents: Sequence[dict[str, str]], asked: Sequence[dict[str, Any]]) -> None:
    """Write both files, and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("articles", documents), ("questions", asked)):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
        print(path, len(lines), "lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval/reading"))
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    place = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not place:
        print("eval-reading: CRAGMESH_EVAL_DATA is not set, so there are no articles; nothing was measured")
        return
    root = pathlib.Path(place)
    told = articles(root)
    documents = [{"id": title, "title": title.replace("_", " "), "text": text} for title, text in told.items()]
    save(args.out, documents, list(records(root, args.count, args.seed)))


if __name__ == "__main__":
    main()
