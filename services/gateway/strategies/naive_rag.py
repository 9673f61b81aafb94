"""`naive-rag`: a baseline that shows the model the nearest chunks and asks."""

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Draft
from services.gateway.steps.generate import Generation, read_and_answer
from services.gateway.steps.retrieve import RETRIEVAL_OPTIONS, Retrieval, retrieve
from services.gateway.steps.search import with_web_pages
from services.gateway.strategies.base import Strategy

WEB = Retrieval(recall_k=5, chunker="tokens", ranking="dense", tables=False)
PROMPT = prompts.load("basic")


class NaiveRag(Strategy):
    name = "naive-rag"
    summary = "Baseline: 500-token chunks, dense ranking, the top 5 with a basic prompt; no reranking, no abstention."
    options = RETRIEVAL_OPTIONS | {"context_tokens"}

    async def answer(self, context: Context) -> Draft:
        evidence = context.question.evidence or await _web(context)
        return await read_and_answer(context, Generation(PROMPT), evidence)


async def _web(context: Context) -> list[Evidence]:
    context = await with_web_pages(context)
    pages = range(len(context.question.search_results))
    return await retrieve(context, pages, WEB)
