"""A corpus as a collection: how often the answer stands in what is found, by dense, BM25, hybrid, and hybrid reranked.

    python -m tests.bench.corpus [-n 0] [--seed 7] [--out out/eval-corpus]

The 378 Wikipedia pages that FreshQA's questions name are indexed by the retriever's own code, and asked the questions
whose answer stands on one of their own pages. Answer-hit@k is the share of questions for which one of the k best chunks
holds the answer. Intervals are 95 % intervals of the Bayesian bootstrap over questions (Rubin, 1981); differences are
paired. Writes report.md, summary.json, hits.png and, a line a question, ranks.jsonl. An interrupted run goes on with
what is in the folder; remove it to begin anew. The data are found through CRAGMESH_EVAL_DATA.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import pathlib
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from proto.collections import BM25, CreateCollection, Document, SearchRequest, SearchResponse
from services.cli.progress import counting
from services.gateway.steps.retrieve import CANDIDATES, POOL
from services.reranker.scorers import Pairs, Scorer, build_scorer
from services.retriever.collections.ingest import searched
from services.retriever.collections.service import CollectionService
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings
from tests.bench.ranking import UNTELLING, holds, normal

NAME = "wikipedia"
BATCH_CHARS = 200_000
DEPTHS = (1, 5, 10)
RESAMPLES = 10_000
SYSTEMS = ("dense", "BM25", "hybrid", "hybrid + rerank")

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answers: tuple[str, ...]


def pages(root: pathlib.Path) -> dict[str, str]:
    """The Wikipedia pages that FreshQA's questions name: title to text."""
    with gzip.open(root / "freshqa_wiki_docs.jsonl.gz", "rt", encoding="utf-8") as file:
        return {row["title"]: row["text"] for row in map(json.loads, file)}


def body(text: str) -> str:
    """A page's text without the line that says its title."""
    head, _, rest = text.partition("\n")
    return rest if head.startswith("Title: ") else text


def questions(root: pathlib.Path, documents: Mapping[str, str]) -> list[Question]:
    """Questions with a telling answer that stands on one of their own pages, and with a true premise."""
    found = []
    for row in map(json.loads, (root / "freshqa.jsonl").read_text().splitlines()):
        answers = tuple(normal(str(answer)) for answer in row["answers"])
        answers = tuple(answer for answer in answers if answer and answer not in UNTELLING and len(answer) <= 60)
        own = [title for title in row.get("wiki_docs") or [] if title in documents]
        if not row["false_premise"] and any(holds(documents[title], answers) for title in own):
            found.append(Question(row["question"], answers))
    return found


def batches(documents: Mapping[str, str]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for title, text in documents.items():
        batch.append(Document(id=title, title=title.replace("_", " "), text=body(text)))
        if sum(len(document.text) for document in batch) >= BATCH_CHARS:
            yield batch
            batch = []
    if batch:
        yield batch


def first_hit(texts: Sequence[str], answers: Sequence[str]) -> int:
    """Rank of the first text that holds an answer, from 1; 0 when none does."""
    return next((rank for rank, text in enumerate(texts, 1) if holds(text, answers)), 0)


def ranked(question: Question, response: SearchResponse, scorer: Scorer) -> dict[str, int]:
    """The rank of the answer in each system's list."""
    texts = {
        {BM25: "BM25"}.get(item.encoder, "dense"): [response.hits[hit].text for hit in item.hits]
        for item in response.lists
    }
    pool = response.hits[: min(response.fused, POOL)]
    texts["hybrid"] = [hit.text for hit in pool]
    # With their titles, as the gateway shows them to the reranker.
    scores = scorer.score(Pairs(question.text, tuple(searched(hit.title, hit.text) for hit in pool))) if pool else []
    order = sorted(range(len(pool)), key=lambda place: -scores[place])
    texts["hybrid + rerank"] = [pool[place].text for place in order]
    return {system: first_hit(texts.get(system, [])[: max(DEPTHS)], question.answers) for system in SYSTEMS}


async def measure(
    settings: RetrieverSettings, documents: Mapping[str, str], asked: Sequence[Question], out: pathlib.Path
) -> tuple[list[dict[str, int]], dict[str, float]]:
    facts: dict[str, float] = {}
    rows: list[dict[str, int]] = []
    known = done(out)
    async with Engine(settings).running() as engine, CollectionService(settings, engine).running() as service:
        await service.create(NAME, CreateCollection())
        began = time.perf_counter()
        with counting() as bar:
            task = bar.add_task("indexing", total=len(documents))
            for batch in batches(documents):
                found = await service.ingest(NAME, batch)
                if found.skipped:
                    print(f"skipped: {found.skipped}", file=sys.stderr)
                bar.advance(task, len(batch))
        info = await service.info(NAME)
        facts |= {"documents": info.documents, "chunks": info.points, "index_s": time.perf_counter() - began}
        scorer = build_scorer("late-interaction", model="", precision=engine.encoder.precision, batch_tokens=16_384)
        await asyncio.to_thread(scorer.load)
        with counting() as bar, (out / "ranks.jsonl").open("w", buffering=1) as file:
            task = bar.add_task("asking", total=len(asked))
            for question in asked:
                row = known.get(question.text)
                if row is None:
                    request = SearchRequest(queries=(question.text,), candidates=CANDIDATES, top_n=POOL, lists=True)
                    response = await service.search(NAME, request)
                    row = await asyncio.to_thread(ranked, question, response, scorer)
                rows.append(row)
                file.write(json.dumps({"question": question.text, **rows[-1]}) + "\n")
                bar.advance(task)
    return rows, facts


def done(out: pathlib.Path) -> dict[str, dict[str, int]]:
    """The ranks of questions that an interrupted run has asked already."""
    path = out / "ranks.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        # The last may be half a line.
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            found[row.pop("question")] = row
    return {question: row for question, row in found.items() if row.keys() == set(SYSTEMS)}


def hit_shares(rows: Sequence[Mapping[str, int]], seed: int) -> dict[str, dict[str, dict[str, list[float]]]]:
    """For each system and depth the share of hits, and what reranking gains over it, each with its interval."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(rows)), RESAMPLES)
    hits = {
        (system, depth): np.asarray([0 < row[system] <= depth for row in rows], np.float64)
        for system in SYSTEMS
        for depth in DEPTHS
    }
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for system in SYSTEMS:
        found[system] = {}
        for depth in DEPTHS:
            gain = hits[SYSTEMS[-1], depth] - hits[system, depth]
            found[system][f"@{depth}"] = {
                "share": _interval(hits[system, depth], weights),
                "rerank_gains": _interval(gain, weights),
            }
    return found


def _interval(values: Shares, weights: Shares) -> list[float]:
    low, high = np.quantile(weights @ values, (0.025, 0.975))
    return [round(float(value), 4) for value in (values.mean(), low, high)]


def report(shares: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]], facts: Mapping[str, float]) -> str:
    head = " | ".join(f"hit@{depth}" for depth in DEPTHS)
    gains = " | ".join(f"reranking's gain @{depth}" for depth in DEPTHS)
    lines = [
        f"# Answers found in a collection of {facts['documents']:,.0f} pages",
        "",
        f"{facts['questions']:,.0f} questions of FreshQA over {facts['chunks']:,.0f} chunks. 95 % intervals in "
        "brackets, Bayesian bootstrap over questions; gains are paired.",
        "",
        f"| | {head} | {gains} |",
        f"|---|{'---|' * 2 * len(DEPTHS)}",
    ]
    for system, depths in shares.items():
        cells = [_words(depths[f"@{depth}"]["share"]) for depth in DEPTHS]
        last = system == SYSTEMS[-1]
        cells += ["" if last else _words(depths[f"@{depth}"]["rerank_gains"], sign=True) for depth in DEPTHS]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _words(values: Sequence[float], *, sign: bool = False) -> str:
    form = "{:+.3f} ({:+.3f} .. {:+.3f})" if sign else "{:.3f} ({:.3f} .. {:.3f})"
    return form.format(*values)


def picture(shares: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> Figure:
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(SYSTEMS)
    for index, (system, depths) in enumerate(shares.items()):
        values = np.asarray([depths[f"@{depth}"]["share"] for depth in DEPTHS])
        places = np.arange(len(DEPTHS)) + (index - (len(SYSTEMS) - 1) / 2) * width
        errors = np.abs(values[:, 1:] - values[:, :1]).T
        bars = axes.bar(places, values[:, 0], width * 0.92, yerr=errors, capsize=2, label=system)
        axes.bar_label(bars, fmt="%.2f", fontsize=7, label_type="center", color="white")
    axes.set_xticks(np.arange(len(DEPTHS)), [f"answer-hit@{depth}" for depth in DEPTHS])
    axes.set_ylim(0, 1.15)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.set_ylabel("share of questions")
    axes.legend(ncols=len(SYSTEMS), loc="upper center", fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=0, help="questions, drawn by the seed; all when 0")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval-corpus"))
    args = parser.parse_args()
    place = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not place:
        print("eval-corpus: CRAGMESH_EVAL_DATA is not set, so there is no corpus; nothing was measured")
        return
    root = pathlib.Path(place)
    documents = pages(root)
    asked = questions(root, documents)
    if args.n:
        asked = random.Random(args.seed).sample(asked, min(args.n, len(asked)))
    args.out.mkdir(parents=True, exist_ok=True)
    settings = RetrieverSettings(qdrant_path=args.out / "collections")
    rows, facts = asyncio.run(measure(settings, documents, asked, args.out))
    facts["questions"] = len(rows)
    shares = hit_shares(rows, args.seed)
    (args.out / "summary.json").write_text(json.dumps({"facts": facts, "systems": shares}, indent=2) + "\n")
    (args.out / "report.md").write_text(text := report(shares, facts))
    FigureCanvasAgg(picture(shares)).print_png(args.out / "hits.png")
    print(text)


if __name__ == "__main__":
    main()
