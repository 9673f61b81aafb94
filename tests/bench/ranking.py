"""The retriever's rankings beside each other, with the retriever's own modules.

    python -m tests.bench.ranking [--sets fresh,squad] [--seeds 7,11] [-n 60] [--parents 600,1200]

fresh: FreshQA questions, each with the Wikipedia page that answers it and four others, as HTML. Answer-hit: the share
of questions whose answer stands in the ranked passages, cut at 500 and at 1,000 tokens of the encoder.
squad: SQuAD 2.0's answerable questions over all paragraphs, one passage each. R@1, R@5 and MRR of the right one.
Each share comes with its standard error. Milliseconds are medians: cold embeds, warm has the pages in the cache.
The data are found through CRAGMESH_EVAL_DATA.
"""

import argparse
import gzip
import html
import json
import math
import os
import pathlib
import random
import re
import string
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from proto.retrieve import PREFILTER
from services.kit.encoder import Encoder, bundled_model
from services.kit.precision import choose_precision
from services.retriever.chunk import Chunk, Chunking
from services.retriever.corpus import SearchablePage
from services.retriever.pages import PageOptions, ProcessedPage, process_page
from services.retriever.ranking import RANKINGS, Candidates, Scores, rank

BUDGETS = (500, 1_000)
# Questions whose time is taken.
TIMED = 15
# Shorter answers and plain yes or no stand on any page.
UNTELLING = {"yes", "no", "nan", "true", "false", "none", "invalid question", "i don t know"}


def _spread(scores: Scores) -> Scores:
    return np.asarray((scores - scores.min()) / (np.ptp(scores) + 1e-9), np.float32)


def _standard(scores: Scores) -> Scores:
    return np.asarray((scores - scores.mean()) / (scores.std() + 1e-9), np.float32)


def by_min_max(candidates: Candidates) -> Scores:
    return _spread(candidates.dense) + _spread(candidates.lexical)


def by_z_sum(candidates: Candidates) -> Scores:
    return _standard(candidates.dense) + _standard(candidates.lexical)


# Those that lost, to show that they did.
CONTENDERS: dict[str, Callable[[Candidates], Scores]] = {
    **{name: ranking for name, ranking in RANKINGS.items() if name != "default"},
    "min-max": by_min_max,
    "z-sum": by_z_sum,
}


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    pages: tuple[str, ...]
    answers: tuple[str, ...]


def normal(text: str) -> str:
    """Lower-case words without punctuation and articles, the form in which answers are looked for."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    text = re.sub(r"(?<=\d),(?=\d)", "", text)
    words = "".join(" " if c in string.punctuation + "–—“”‘’" else c for c in text).split()
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def holds(text: str, answers: Sequence[str]) -> bool:
    padded = f" {normal(text)} "
    return any(f" {answer} " in padded for answer in answers)


def telling(answers: Sequence[object]) -> tuple[str, ...]:
    """The normal forms of those answers by which a text can be told to hold them."""
    found = (normal(str(answer)) for answer in answers)
    return tuple(answer for answer in found if answer and answer not in UNTELLING and len(answer) <= 60)


def as_html(title: str, text: str) -> str:
    """A plain page around an article's text; short lines without an end of sentence are headings."""
    name = html.escape(title.replace("_", " "))
    lines = [line.strip() for line in text.split("\n")]
    body = "\n".join(
        f"<h2>{html.escape(line)}</h2>"
        if len(line) < 60 and line[-1] not in '.!?:;,"'
        else f"<p>{html.escape(line)}</p>"
        for line in lines
        if line and not line.startswith("Title: ")
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>'
        f"<body><main><article><h1>{name}</h1>\n{body}\n</article></main></body></html>"
    )


def fresh_questions(root: pathlib.Path, seed: int, limit: int) -> list[Question]:
    """Questions whose answer stands on one of their own pages, each with that page and four of other questions."""
    with gzip.open(root / "freshqa_wiki_docs.jsonl.gz", "rt") as file:
        documents = {row["title"]: row["text"] for row in map(json.loads, file)}
    candidates = []
    for row in map(json.loads, (root / "freshqa.jsonl").read_text().splitlines()):
        answers = telling(row["answers"])
        own = [title for title in row.get("wiki_docs") or [] if title in documents]
        answering = next((title for title in own if holds(documents[title], answers)), None)
        if answering and not row["false_premise"]:
            candidates.append((row, answering, answers))
    rng = random.Random(seed)
    questions = []
    for row, answering, answers_of in rng.sample(candidates, min(limit, len(candidates))):
        others = [title for title in sorted(documents) if title not in set(row["wiki_docs"])]
        titles = [answering, *rng.sample(others, 4)]
        rng.shuffle(titles)
        pages = tuple(as_html(title, documents[title]) for title in titles)
        questions.append(Question(row["question"], pages, answers_of))
    return questions


class Paragraphs(ProcessedPage):
    """Texts as they are, each a chunk without a parent."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__("")
        object.__setattr__(self, "_texts", texts)

    def chunking(self) -> Chunking:
        texts: Sequence[str] = self._texts  # type: ignore[attr-defined]
        return Chunking([Chunk(text, 0, len(text)) for text in texts], [])


def passages(
    query: str, pages: Sequence[SearchablePage], encoder: Encoder, ranking: str, prefilter: int
) -> Iterator[str]:
    """What the generator would be shown, best first, each passage once."""
    seen: set[tuple[int, str, int]] = set()
    for hit in rank(query, pages, encoder, ranking=ranking, recall_k=100, prefilter=prefilter):
        shown = pages[hit.page].shown(hit.child)
        if (place := (hit.page, shown.kind, shown.start)) not in seen:
            seen.add(place)
            yield shown.text


def cut(tokenizer: Tokenizer, text: str, tokens: int) -> str:
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return text if len(offsets) <= tokens else text[: offsets[tokens - 1][1]]


def share(values: Sequence[float] | NDArray[np.float64 | np.bool_]) -> str:
    array = np.asarray(values, np.float64)
    return f"{array.mean():.3f} ±{array.std() / math.sqrt(len(array)):.3f}"


def measure_fresh(
    root: pathlib.Path, encoder: Encoder, seed: int, limit: int, parents: Sequence[int], prefilter: int
) -> None:
    questions = fresh_questions(root, seed, limit)
    tokenizer = Tokenizer.from_file(str(bundled_model() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    print(f"\nFreshQA, seed {seed}, {len(questions)} questions, 5 pages each")
    print(f"{'ranking':18} {'parents':>7} {'hit at 500':>13} {'hit at 1,000':>13} {'cold ms':>8} {'warm ms':>8}")
    for size in parents:
        options = PageOptions(parent_chars=size)
        processed = [[process_page(page, options) for page in question.pages] for question in questions]
        # Vectors are the same for all rankings: only what is timed computes them anew.
        shared = [[SearchablePage(page, encoder.dimension) for page in pages] for pages in processed]
        for name in CONTENDERS:
            hits: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
            cold, warm = [], []
            for index, question in enumerate(questions):
                context = "\n".join(passages(question.text, shared[index], encoder, name, prefilter))
                if index < TIMED:
                    began = time.perf_counter()
                    anew = [SearchablePage(page, encoder.dimension) for page in processed[index]]
                    list(passages(question.text, anew, encoder, name, prefilter))
                    cold.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    list(passages(question.text, anew, encoder, name, prefilter))
                    warm.append(time.perf_counter() - began)
                for budget in BUDGETS:
                    hits[budget].append(holds(cut(tokenizer, context, budget), question.answers))
            shares = " ".join(f"{share(hits[budget]):>13}" for budget in BUDGETS)
            print(f"{name:18} {size:7} {shares} {_ms(cold):8.0f} {_ms(warm):8.0f}", flush=True)


def measure_squad(root: pathlib.Path, encoder: Encoder, seed: int, limit: int) -> None:
    folder = root / "squad"
    paragraphs = [json.loads(line) for line in next(folder.glob("*.paragraphs.jsonl")).read_text().splitlines()]
    rows = [json.loads(line) for line in next(folder.glob("*.questions.jsonl")).read_text().splitlines()]
    rows = [row for row in rows if not row["is_impossible"]]
    sample = random.Random(seed).sample(rows, min(limit, len(rows)))
    texts = [paragraph["context"] for paragraph in paragraphs]
    place = {paragraph["pid"]: index for index, paragraph in enumerate(paragraphs)}
    page = SearchablePage(Paragraphs(texts), encoder.dimension)
    print(f"\nSQuAD, seed {seed}, {len(sample)} questions, {len(texts)} paragraphs")
    print(f"{'ranking':18} {'R@1':>13} {'R@5':>13} {'MRR':>13} {'warm ms':>8}")
    for name in CONTENDERS:
        found, warm = [], []
        for row in sample:
            began = time.perf_counter()
            hits = rank(row["question"], [page], encoder, ranking=name, recall_k=len(texts), prefilter=len(texts))
            warm.append(time.perf_counter() - began)
            order = [hit.child for hit in hits]
            found.append(order.index(place[row["pid"]]) + 1 if place[row["pid"]] in order else math.inf)
        ranks = np.asarray(found)
        shares = " ".join(f"{share(values):>13}" for values in (ranks <= 1, ranks <= 5, 1 / ranks))
        print(f"{name:18} {shares} {_ms(warm):8.0f}", flush=True)


def _ms(seconds: Sequence[float]) -> float:
    return float(np.median(seconds)) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="fresh,squad")
    parser.add_argument("--seeds", default="7")
    parser.add_argument("--parents", default="600,1200", help="characters of a passage, for fresh")
    parser.add_argument("-n", type=int, default=60, help="questions of fresh")
    parser.add_argument("--squad-n", type=int, default=500, help="questions of squad")
    parser.add_argument("--prefilter", type=int, default=PREFILTER, help="chunks embedded for a question of fresh")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "fp16", "bf16", "int8"])
    args = parser.parse_args()
    place = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not place:
        print("bench-ranking: CRAGMESH_EVAL_DATA is not set, so there are no questions; nothing was measured")
        return
    RANKINGS.update(CONTENDERS)
    encoder = Encoder(precision=choose_precision(args.precision, threads=args.threads))
    encoder.load()
    encoder.warm_up()
    print(f"{encoder.name}, {encoder.precision.dtype} on {encoder.precision.device}: {encoder.precision.reason}")
    root = pathlib.Path(place)
    for seed in map(int, args.seeds.split(",")):
        if "fresh" in args.sets:
            measure_fresh(root, encoder, seed, args.n, [int(size) for size in args.parents.split(",")], args.prefilter)
        if "squad" in args.sets:
            measure_squad(root, encoder, seed, args.squad_n)


if __name__ == "__main__":
    main()
