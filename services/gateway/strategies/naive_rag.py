"""`naive-rag`: a baseline that shows the model the nearest chunks and asks."""

from services.gateway import prompts
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.generate import read_and_answer
from services.gateway.steps.retrieve import retrieve
from services.gateway.strategies.base import Strategy


class NaiveRag(Strategy):
    name = "naive-rag"
    summary = "Baseline: 500-token chunks, dense ranking, the top 5 with a basic prompt; no reranking, no abstention."

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._prompt = prompts.load("basic")

    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        settings = self.settings
        evidence = list(question.evidence) or await retrieve(
            run,
            mesh,
            question.query,
            question.search_results,
            range(len(question.search_results)),
            collection=question.collection,
            allow_s=self.web_allowance(run, settings.retrieve_cap_s),
            chunker="tokens",
            ranking="dense",
            tables=False,
            recall_k=5,
            top_n=5,
        )
        return await read_and_answer(
            run,
            mesh,
            self._prompt,
            question.query,
            question.query_time,
            evidence,
            max_context_tokens=settings.max_context_tokens,
            max_tokens=settings.max_answer_tokens,
        )
