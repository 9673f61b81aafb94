"""PDFs as a collection: how fast and in how much memory they are indexed, and whether answers are found on their page.

    python -m tests.bench.documents FOLDER [--out out/eval-documents]

FOLDER holds the PDFs of `debian_pdfs.txt` (`apt-get download` their packages, `dpkg-deb -x`). They are indexed by the
retriever's own code, as `cragmesh index` does it; an interrupted run goes on. The questions of `debian_questions.tsv`
were written before anything was tuned, from pages drawn by chance. A question is a hit at k where one of the k best
chunks, reranked as the gateway has it, is of the right file and says the answer; its page is right where that chunk's
number is one of the pages on which the answer stands. Writes summary.json and, a line a question, hits.jsonl.
"""

import asyncio
import json
import pathlib
import re
import time
from typing import Any

import psutil

from proto.collections import CreateCollection, SearchRequest
from services.cli.corpus import Keys, files_in, read
from services.gateway.steps.retrieve import CANDIDATES, POOL
from services.reranker.scorers import Pairs, Scorer
from services.retriever.collections.documents import File
from services.retriever.collections.pipeline import search_text
from services.retriever.collections.service import CollectionService
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings
from tests.bench import common
from tests.bench.corpus import load

NAME = "debian"
HERE = pathlib.Path(__file__).parent
# The context of `adaptive` is the best 5 in the embedded mesh, the best 20 where 4,000 tokens are shown.
DEPTHS = (1, 5, 10, 20)


def questions() -> list[tuple[str, str, dict[str, set[int]]]]:
    """Question, words of the right passage, and file to the pages that hold them."""
    rows = []
    for line in (HERE / "debian_questions.tsv").read_text().splitlines():
        if not line.startswith("#"):
            question, answer, places = line.split("\t")
            split = (place.rsplit(":", 1) for place in places.split())
            rows.append((question, answer, {file: set(map(int, pages.split(","))) for file, pages in split}))
    return rows


def plain(text: str) -> str:
    return re.sub(r"\s+", "", text).casefold()


async def index(service: CollectionService, folder: pathlib.Path) -> dict[str, Any]:
    began, peak, failed = time.monotonic(), 0, []
    process = psutil.Process()
    for item in read(files_in(folder), folder, Keys()):
        upload = item.upload
        if upload is None:
            continue
        file = File(upload.path.read_bytes(), "pdf", upload.id, url=upload.url, source=upload.source)
        response = await service._ingested(NAME, [file])
        failed += [f"{item.name}: {problem.detail}" for problem in response.skipped]
        peak = max(peak, sum(one.memory_info().rss for one in (process, *process.children(recursive=True))))
    info = await service.info(NAME)
    return {
        "files": info.documents,
        "chunks": info.points,
        "seconds": round(time.monotonic() - began, 1),
        "peak_mib": peak // 2**20,
        "failed": failed,
    }


async def ask(service: CollectionService, question: str, scorer: Scorer) -> list[tuple[str, str, int]]:
    """File, text and page of the best chunks."""
    response = await service.search(NAME, SearchRequest(queries=(question,), candidates=CANDIDATES, top_n=POOL))
    texts = [search_text(hit.title, hit.text) for hit in response.hits]
    scores = await asyncio.to_thread(scorer.score, Pairs(question, tuple(texts), reading=True))
    order = sorted(range(len(texts)), key=lambda place: -scores[place])
    hits = [response.hits[place] for place in order]
    return [(pathlib.PurePosixPath(hit.url).name, hit.text, hit.page_number) for hit in hits]


async def measure(folder: pathlib.Path, out: pathlib.Path) -> dict[str, Any]:
    settings = RetrieverSettings(qdrant_path=out / "collections")
    async with Engine(settings).running() as engine, CollectionService(settings, engine).running() as service:
        await service.create(NAME, CreateCollection())
        indexing = await index(service, folder)
        print(json.dumps(indexing), flush=True)
        scorer = load("")
        ranks, pages = [], []
        with (out / "hits.jsonl").open("w") as file:
            for question, answer, places in questions():
                rank, right = 0, False
                for number, (name, text, page) in enumerate(await ask(service, question, scorer), 1):
                    if name in places and plain(answer) in plain(text):
                        rank, right = number, page in places[name]
                        break
                ranks.append(rank)
                pages.append(right)
                file.write(json.dumps({"question": question, "rank": rank, "page_right": right}) + "\n")
    hits = {f"@{depth}": round(sum(0 < rank <= depth for rank in ranks) / len(ranks), 3) for depth in DEPTHS}
    return {
        "indexing": indexing,
        "questions": len(ranks),
        "hit": hits,
        "page_right": sum(pages) / max(1, sum(map(bool, ranks))),
    }


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/eval-documents"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    summary = asyncio.run(measure(args.folder, args.out))
    common.write_json(args.out / "summary.json", summary)
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
