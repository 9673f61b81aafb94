"""`make eval-reading` without its data: made-up passages as a collection, and their questions asked of it.

    python -m tests.bench.reading_made_up [--prose out/train/prose.jsonl] [--out out/eval/reading-made-up] [--count 400]

Writes `articles.jsonl` for `cragmesh index` and `questions.jsonl` for `cragmesh eval run`: as many questions that the
passages answer as questions that they do not. Passages are whole, so that twins by a cut are left out; of each passage
that is asked about others lie beside it. Without a file of prose the sample in git is read. A reader or an adapter that
was taught on the file knows its passages: ask it about passages of another seed.
"""

import argparse
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from tests.bench.reading import half_of_each, save

COLLECTION = "eval-made-up"
SAMPLE = pathlib.Path("lab/trainer/data/prose/sample.jsonl")


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """Items whose passages are whole."""
    with path.open(encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    return [item for item in items if not item["id"].rpartition("-")[2].startswith("cut")]


def documents(items: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Each passage once, under its brief's id."""
    found = {item["id"].rpartition("-")[0]: item for item in items}
    return [{"id": name, "title": item["title"], "text": item["passage"]} for name, item in found.items()]


def records(items: Sequence[dict[str, Any]], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Questions in an order of their own, half of each kind."""
    for item in half_of_each(items, lambda item: bool(item["answer"]), count, seed):
        yield {
            "id": item["id"],
            "query": item["question"],
            "collection": COLLECTION,
            "domain": "open",
            "label_kind": "answer" if item["answer"] else "idk",
            "answers": [item["answer"]] if item["answer"] else [],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prose", type=pathlib.Path, default=pathlib.Path("out/train/prose.jsonl"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval/reading-made-up"))
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    items = read(args.prose if args.prose.exists() else SAMPLE)
    save(args.out, documents(items), list(records(items, args.count, args.seed)))


if __name__ == "__main__":
    main()
