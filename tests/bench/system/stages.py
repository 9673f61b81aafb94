"""Where a question was lost, by how far its gold answer came: the sources, what retrieval kept, what was shown.

An answer is looked for as words. One that is written otherwise there (a rounded number, a list in another order) counts
as missing, so that the early stages are counted from above; yes and no, which stand everywhere, are not looked for.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from lab.evaluator.data import Item
from lab.evaluator.store import AppendLog, Judgement, Prediction, RunFolder, read_lines
from proto.answer import SearchResult
from services.cli.console import say
from services.gateway.mesh import Mesh
from services.gateway.steps.retrieve import Retrieval, collection_request, pages_request
from services.gateway.strategies import adaptive, db3, electric_sheep, naive_rag, weknow
from services.kit.errors import ServiceFailure
from services.retriever.extract import ExtractionError
from services.retriever.pages import PageOptions, process_page
from tests.bench.answers import normal, telling

Place = Literal["shown", "retrieved", "in the sources", "nowhere", "untelling"]

# The loss that a place means for a question that got an answer, and not the right one.
LOST: Mapping[Place, str] = {
    "nowhere": "not on the pages",
    "in the sources": "not retrieved",
    "retrieved": "not ranked",
    "shown": "not read",
    "untelling": "not told apart",
}
LATE, NOT_GIVEN = "no answer in time", "not given"
NO_EVIDENCE, PREMISE = "answered without evidence", "premise not refused"
STAGES = (LATE, *list(LOST.values())[:4], NOT_GIVEN, NO_EVIDENCE, PREMISE, LOST["untelling"])
RETRIEVALS: Mapping[str, Retrieval] = {
    "naive-rag": naive_rag.WEB,
    "db3": db3.WEB,
    "electric-sheep": electric_sheep.WEB,
    "weknow": weknow.WEB,
    "adaptive": adaptive.WEB,
}
REACHABLE: frozenset[Place] = frozenset({"in the sources", "retrieved"})
PLACES = "places.jsonl"
RETRIEVE_S = 30.0
AT_ONCE = 4


class Placed(BaseModel):
    """How far a question's answer came: one line of `places.jsonl`."""

    id: str
    place: Place


def stage(prediction: Prediction, judgement: Judgement, place: Place | None) -> str:
    """The stage at which the question was lost; empty where it was not."""
    if judgement.outcome == "right" or (prediction.label_kind == "idk" and judgement.outcome == "missing"):
        return ""
    if prediction.error:
        return LATE
    if prediction.label_kind == "idk":
        return NO_EVIDENCE
    if prediction.label_kind == "invalid":
        return PREMISE
    # Some strategies abstain before they show anything.
    if prediction.kind != "answer" and (place == "shown" or (place in REACHABLE and not prediction.shown)):
        return NOT_GIVEN
    return LOST[place or "untelling"]


class Finder:
    """Looks for answers.

    Args:
        mesh: whose retriever is asked what a strategy's retrieval keeps.
        documents: of the set's collection.
    """

    def __init__(self, mesh: Mesh, documents: Iterable[str] = ()) -> None:
        self._mesh = mesh
        self._documents = _joined(documents)

    async def place(self, item: Item, prediction: Prediction) -> Place:
        """How far the answer came.

        Raises:
            ServiceFailure: the retriever did not say.
        """
        answers = telling(item.gold)
        if not answers:
            return "untelling"

        def stands(text: str) -> bool:
            return any(f" {answer} " in text for answer in answers)

        if stands(_joined(passage.text for passage in prediction.shown)):
            return "shown"
        pages = [SearchResult.model_validate(page) for page in item.body.get("search_results", ())]
        retrieval = RETRIEVALS.get(prediction.strategy)
        if retrieval and stands(_joined(await self._retrieved(item, pages, retrieval))):
            return "retrieved"
        if stands(self._documents) or stands(_joined(await asyncio.to_thread(_texts, pages))):
            return "in the sources"
        return "nowhere"

    async def _retrieved(self, item: Item, pages: Sequence[SearchResult], retrieval: Retrieval) -> list[str]:
        texts: list[str] = []
        if pages:
            request = pages_request(item.query, pages, retrieval)
            response = await self._mesh.retrieve(request, allow_s=RETRIEVE_S)
            texts += [passage.text for passage in response.passages]
        if collection := item.body.get("collection"):
            search = collection_request(item.query, retrieval.recall_k)
            hits = (await self._mesh.search(collection, search, allow_s=RETRIEVE_S)).hits
            texts += [hit.text for hit in hits]
        return texts


def _joined(texts: Iterable[str]) -> str:
    return f" {normal(' '.join(texts))} "


def _texts(pages: Iterable[SearchResult]) -> list[str]:
    texts = []
    for page in pages:
        texts.append(page.page_snippet)
        try:
            processed = process_page(page.page_result, PageOptions(), page.page_name)
        except ExtractionError:
            continue
        texts += (processed.text, processed.tables_markdown)
    return texts


def places(folder: RunFolder) -> dict[str, Place]:
    """The places of a run's questions as far as they are known."""
    return {line.id: line.place for line in read_lines(folder.path / PLACES, Placed)}


async def find(
    folder: RunFolder,
    predictions: Sequence[Prediction],
    judgements: Mapping[str, Judgement],
    items: Mapping[str, Item],
    finder: Finder,
    on_done: Callable[[], Any] = lambda: None,
) -> dict[str, Place]:
    """The places of the questions that were not answered right, those known from an earlier time not looked for again.

    Without those of which the retriever did not say in time what it keeps.
    """
    placed = places(folder)
    gate = asyncio.Semaphore(AT_ONCE)
    lost = [
        line
        for line in predictions
        if line.label_kind == "answer" and judgements[line.id].outcome != "right" and line.id not in placed
    ]
    with AppendLog(folder.path / PLACES) as log:

        async def one(line: Prediction) -> None:
            try:
                async with gate:
                    placed[line.id] = await finder.place(items[line.id], line)
            except ServiceFailure as failure:
                say(f"{folder.path}: where {line.id} was lost: {failure}", "yellow")
                return
            await asyncio.to_thread(log.append, Placed(id=line.id, place=placed[line.id]))
            on_done()

        await asyncio.gather(*(one(line) for line in lost))
    return placed
