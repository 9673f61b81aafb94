"""The best candidates scored again, by a model that reads question and document together (Onewo, re-ranking)."""

from collections.abc import Sequence

from proto.rerank import MAX_DOCUMENTS, RerankRequest
from services.gateway.context import Context
from services.gateway.papers.candidates import Candidate, Listing, Pool
from services.gateway.papers.query_forms import QUESTION
from services.kit.errors import BadReply

# Three pieces of the late-interaction scorer: an abstract is shorter, and the rest of a page is not worth its time.
READ_CHARS = 2_400


async def rescore(context: Context, pool: Pool, candidates: Sequence[Candidate], *, allow_s: float) -> None:
    """Add the re-scoring model's list to the pool.

    Raises:
        ServiceFailure: the reranker gave no usable reply; `degraded` names it.
    """
    candidates = candidates[:MAX_DOCUMENTS]
    if not candidates:
        return
    async with context.run.stage("rescore") as stage:
        request = RerankRequest(
            query=context.question.query, documents=tuple(item.passage[:READ_CHARS] for item in candidates)
        )
        response = await context.mesh.rerank(request, allow_s=allow_s)
        stage.add(response.timing)
        if sorted(result.index for result in response.results) != list(range(len(candidates))):
            raise BadReply("reranker", "not each document once")
        order = sorted(response.results, key=lambda result: -result.relevance_score)
        scores = {candidates[result.index].id: result.relevance_score for result in order}
        pool.lists.append(Listing(response.model, QUESTION, scores, role="rescore"))
        stage.detail = f"{len(scores)} of {len(pool.candidates)}"
