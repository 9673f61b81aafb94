"""Step `rerank`: the best of the retrieved passages, by a model that reads query and passage together."""

from collections.abc import Sequence
from dataclasses import replace

from proto.base import MAX_PASSAGE_CHARS
from proto.rerank import MAX_DOCUMENTS, RerankRequest
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.kit.errors import BadReply, ServiceFailure


async def rerank(
    context: Context, evidence: Sequence[Evidence], *, top_n: int, reading: bool = False
) -> list[Evidence]:
    """The `top_n` most relevant passages, scored, also by the extractive reader where `reading` says so.

    Without a reranker they are the retriever's first.
    """
    if not evidence or context.options.rerank is False:
        return list(evidence[:top_n])
    texts = [_text(item) for item in evidence[:MAX_DOCUMENTS]]
    try:
        order = await _order(context, "rerank", texts, top_n=top_n, reading=reading)
    except ServiceFailure:
        return list(evidence[:top_n])
    return [replace(evidence[index], score=score) for index, score in order]


def _text(item: Evidence) -> str:
    """A passage for the reranker, one of a collection under its title.

    A question's own pages are few and all about it; a collection's chunk says "it" of what only its title names.
    """
    if not item.document or not item.page_name or item.text.startswith(item.page_name):
        return item.text
    return f"{item.page_name}\n{item.text}"[:MAX_PASSAGE_CHARS]


async def best_pages(context: Context, *, top_n: int) -> list[int]:
    """Indexes of the `top_n` best pages by their snippets (db3, section 2.2); of the first without a reranker."""
    results = context.question.search_results
    pages = list(range(len(results)))
    if len(pages) <= top_n or context.options.rerank is False:
        return pages[:top_n]
    described = [index for index in pages if results[index].page_snippet or results[index].page_name]
    if not described:
        return pages[:top_n]
    texts = [f"{results[index].page_name}\n{results[index].page_snippet}"[:MAX_PASSAGE_CHARS] for index in described]
    try:
        order = await _order(context, "rerank_snippets", texts, top_n=top_n)
    except ServiceFailure:
        return pages[:top_n]
    best = [described[index] for index, _ in order]
    return [*best, *(index for index in pages if index not in best)][:top_n]


async def _order(
    context: Context, stage_name: str, texts: Sequence[str], *, top_n: int, reading: bool = False
) -> list[tuple[int, float]]:
    allow_s = context.before_generation(context.settings.rerank_cap_s)
    async with context.run.stage(stage_name) as stage:
        request = RerankRequest(
            query=context.question.query, documents=tuple(texts), top_n=min(top_n, MAX_DOCUMENTS), reading=reading
        )
        response = await context.mesh.rerank(request, allow_s=allow_s)
        stage.add(response.timing)
        stage.detail = f"{len(response.results)} of {len(texts)}"
        context.run.degrade_all(response.degraded, stage=stage_name)
        indexes = [result.index for result in response.results]
        if len(set(indexes)) != len(indexes) or any(index >= len(texts) for index in indexes):
            raise BadReply("reranker", "indexes out of range or repeated")
        return [(result.index, result.relevance_score) for result in response.results]
