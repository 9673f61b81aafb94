"""A corpus as a collection: how often the answer stands in what is found, by dense, BM25, hybrid, and hybrid reranked.

    python -m tests.bench.corpus [-n 400] [--seed 7] [--encoder NAME] [--out out/eval-corpus]

The 378 Wikipedia pages that FreshQA's questions name are indexed by the retriever's own code, and asked the questions
whose answer stands on one of their own pages. Then SQuAD's articles are added, and its answerable questions asked of
all; their wording is nearer to the pages'. The reranker's weights were fitted on a few hundred of SQuAD's. Answer-hit@k
is the share of questions for which one of the k best chunks holds the answer; a text that several pages hold counts
once in every list. Intervals are 95 % intervals of the Bayesian bootstrap over questions (Rubin, 1981); differences are
paired. Writes
report.md, hits.png and, a line a question, ranks.jsonl. An interrupted run goes on with what is in the
folder; remove it to begin anew. The data are found through CRAGMESH_EVAL_DATA.
"""

import asyncio
import contextlib
import json
import math
import pathlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lab.evaluator.report import markdown
from lab.evaluator.report.pictures import png
from lab.evaluator.report.tables import Table, signed
from lab.evaluator.score import Estimate
from lab.papers.measures import difference, mean
from proto.collections import BM25, CreateCollection, Document, SearchRequest, SearchResponse
from services.cli.progress import counted
from services.gateway.steps.retrieve import CANDIDATES, POOL
from services.kit.precision import choose_precision
from services.reranker.app import load_reader
from services.reranker.definitions import chosen
from services.reranker.scorers import Pairs, QueryLikelihood, Scorer, build_scorer
from services.reranker.settings import RerankerSettings
from services.retriever.collections.pipeline import search_text
from services.retriever.collections.service import CollectionService
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings
from tests.bench import common
from tests.bench.answers import Question, holds, pages, questions, telling

NAME = "wikipedia"
BATCH_CHARS = 200_000
DEPTHS = (1, 5, 10)
# The embedded mesh's reranker without and with the reader's say, and the one that asks its language model too.
READING = "reranked + reader"
SCORERS = {"reranked": "", READING: "", "reranked + likelihood": "SmolLM2-135M-Instruct"}
SYSTEMS = ("dense", "BM25", "hybrid", *SCORERS)

Floats = NDArray[np.float64]
# System to depth to one value a question.
Hits = dict[str, dict[int, Floats]]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Documents that are added to the collection, title to text, and what it is asked then."""

    name: str
    documents: Mapping[str, str]
    questions: Sequence[Question]


def body(text: str) -> str:
    """A page's text without the line that says its title."""
    head, _, rest = text.partition("\n")
    return rest if head.startswith("Title: ") else text


def articles(root: pathlib.Path) -> dict[str, str]:
    """SQuAD's articles, put together from their paragraphs: title to text."""
    paragraphs: dict[str, list[str]] = {}
    for row in squad_paragraphs(root):
        paragraphs.setdefault(row["title"], []).append(row["context"])
    return {title: "\n\n".join(texts) for title, texts in paragraphs.items()}


def squad_paragraphs(root: pathlib.Path) -> Iterator[dict[str, Any]]:
    return common.read_rows(root / "squad" / "squad_v2_dev_half.paragraphs.jsonl")


def squad_questions(root: pathlib.Path) -> Iterator[dict[str, Any]]:
    return common.read_rows(root / "squad" / "squad_v2_dev_half.questions.jsonl")


def answerable(root: pathlib.Path) -> list[Question]:
    """SQuAD's questions with a telling answer."""
    rows = (row for row in squad_questions(root) if not row["is_impossible"])
    candidates = (Question(row["question"], telling(row["answers"])) for row in rows)
    return [question for question in candidates if question.answers]


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


def ranked(question: Question, response: SearchResponse, scorers: Mapping[str, Scorer]) -> dict[str, int]:
    """The rank of the answer in each system's list."""
    texts = {
        {BM25: "BM25"}.get(item.encoder, "dense"): [response.hits[hit].text for hit in item.hits]
        for item in response.lists
    }
    pool = response.hits[: response.fused]
    texts["hybrid"] = [hit.text for hit in pool]
    # With their titles, as the gateway shows them to the reranker.
    passages = tuple(search_text(hit.title, hit.text) for hit in pool)
    for system, scorer in scorers.items():
        scores = scorer.score(Pairs(question.text, passages, reading=system == READING)) if pool else []
        texts[system] = [pool[place].text for place in sorted(range(len(pool)), key=lambda place: -scores[place])]
    return {system: first_hit(texts.get(system, [])[: max(DEPTHS)], question.answers) for system in SYSTEMS}


async def measure(
    settings: RetrieverSettings, sets: Sequence[QuestionSet], out: pathlib.Path, encoders: tuple[str, ...] = ()
) -> dict[str, tuple[list[dict[str, int]], dict[str, float]]]:
    """For each set the ranks of its answers, and how large the collection was then."""
    results: dict[str, tuple[list[dict[str, int]], dict[str, float]]] = {}
    earlier = ranks_of(out)
    async with Engine(settings).running() as engine, CollectionService(settings, engine).running() as service:
        await service.create(NAME, CreateCollection(encoders=encoders))
        scorers = {system: load(name) for system, name in SCORERS.items()}
        with (out / "ranks.jsonl").open("w", buffering=1) as file:
            for item in sets:
                await index(service, item)
                info = await service.info(NAME)
                facts: dict[str, float] = {
                    "documents": info.documents,
                    "chunks": info.points,
                    "questions": len(item.questions),
                }
                rows = []
                with counted(f"asking {item.name}", len(item.questions)) as advance:
                    for question in item.questions:
                        row = earlier.get(question.text) or await ask(service, question, scorers)
                        rows.append(row)
                        file.write(json.dumps({"question": question.text, **row}) + "\n")
                        advance(1)
                results[item.name] = rows, facts
    return results


def load(name: str) -> Scorer:
    """A reranker with the reader, in the number format that its service would choose."""
    settings = RerankerSettings(reranker_model=name)
    defined = chosen(settings)
    precision = choose_precision(
        settings.precision, model=defined.model, threads=settings.threads, limit=settings.cpu_isa
    )
    scorer = build_scorer(defined.scorer, model=defined.model, precision=precision, batch_tokens=16_384)
    scorer.load()
    scorer.reader, _ = load_reader(settings)
    if isinstance(scorer, QueryLikelihood):
        # What it finds, not what it finds beside other work.
        scorer.allow_s = math.inf
    return scorer


async def index(service: CollectionService, item: QuestionSet) -> None:
    with counted(f"indexing for {item.name}", len(item.documents)) as advance:
        for batch in batches(item.documents):
            response = await service.ingest(NAME, batch)
            if response.skipped:
                print(f"skipped: {response.skipped}", file=sys.stderr)
            advance(len(batch))


async def ask(service: CollectionService, question: Question, scorers: Mapping[str, Scorer]) -> dict[str, int]:
    request = SearchRequest(queries=(question.text,), candidates=CANDIDATES, top_n=POOL, lists=True)
    response = await service.search(NAME, request)
    return await asyncio.to_thread(ranked, question, response, scorers)


def ranks_of(out: pathlib.Path) -> dict[str, dict[str, int]]:
    """The ranks by question of an interrupted run."""
    path = out / "ranks.jsonl"
    ranks: dict[str, dict[str, int]] = {}
    # The last may be half a line.
    with contextlib.suppress(ValueError):
        for row in common.read_rows(path) if path.is_file() else ():
            ranks[row.pop("question")] = row
    return {question: row for question, row in ranks.items() if row.keys() == set(SYSTEMS)}


def hits_of(rows: Sequence[Mapping[str, int]]) -> Hits:
    """For each system and depth whether the answer was among so many, shape (questions,)."""
    return {
        system: {depth: np.asarray([0 < row[system] <= depth for row in rows], np.float64) for depth in DEPTHS}
        for system in SYSTEMS
    }


def tables(name: str, hits: Hits, facts: Mapping[str, float]) -> Iterator[Table]:
    """The shares of hits of a set, and what each reranker gains over the other systems, with their intervals."""
    head = ("", *(f"hit@{depth}" for depth in DEPTHS))
    note = "{questions:,.0f} questions over {chunks:,.0f} chunks of {documents:,.0f} pages.".format_map(facts)
    shares = ((system, *(_words(mean(hits[system][depth])) for depth in DEPTHS)) for system in SYSTEMS)
    yield Table(name, head, tuple(shares), note)
    for reranker in SCORERS:
        gains = (
            (system, *(signed(difference(hits[reranker][depth], hits[system][depth]), 4) for depth in DEPTHS))
            for system in SYSTEMS
            if system not in SCORERS
        )
        yield Table(f"{name}: what `{reranker}` gains over each", head, tuple(gains))


def _words(share: Estimate) -> str:
    return f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"


def picture(sets: Mapping[str, Hits]) -> Figure:
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    width = 0.8 / len(SYSTEMS)
    for axes, (name, hits) in zip(panels, sets.items(), strict=True):
        for index, system in enumerate(SYSTEMS):
            shares = [mean(hits[system][depth]) for depth in DEPTHS]
            places = np.arange(len(DEPTHS)) + (index - (len(SYSTEMS) - 1) / 2) * width
            errors = np.asarray([(one.value - one.low, one.high - one.value) for one in shares]).T
            heights = [one.value for one in shares]
            bars = axes.bar(places, heights, width * 0.92, yerr=errors, capsize=2, label=system)
            axes.bar_label(bars, fmt="%.2f", fontsize=7, label_type="center", color="white")
        axes.set_xticks(np.arange(len(DEPTHS)), [f"answer-hit@{depth}" for depth in DEPTHS])
        axes.set_ylim(0, 1.05)
        axes.set_yticks(np.linspace(0, 1, 6))
        axes.set_title(name, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of questions")
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=len(SYSTEMS), loc="outside lower center", frameon=False)
    return figure


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-n", type=int, default=400, help="questions of a set at most, drawn by the seed; all when 0")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", help="of `encoders.yaml`; the retriever's own when not given")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval-corpus"))
    args = parser.parse_args()
    root = common.evaluation_data("eval-corpus", "there is no corpus")
    documents = pages(root)

    def sample(candidates: list[Question]) -> list[Question]:
        return random.Random(args.seed).sample(candidates, args.n) if 0 < args.n < len(candidates) else candidates

    sets = [
        QuestionSet("FreshQA", documents, sample(questions(root, documents))),
        QuestionSet("SQuAD", articles(root), sample(answerable(root))),
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    settings = RetrieverSettings(qdrant_path=args.out / "collections")
    results = asyncio.run(measure(settings, sets, args.out, (args.encoder,) if args.encoder else ()))
    hits = {name: hits_of(rows) for name, (rows, _) in results.items()}
    content = [table for name, (_, facts) in results.items() for table in tables(name, hits[name], facts)]
    about = [("intervals", "95 %, Bayesian bootstrap over questions; gains are paired")]
    text = markdown.write("Answers found in a collection", about, content, ["hits.png"])
    (args.out / "report.md").write_text(text)
    (args.out / "hits.png").write_bytes(png(picture(hits)))
    print(text)


if __name__ == "__main__":
    main()
