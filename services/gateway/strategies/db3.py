"""`db3`: the web pathway of the winning system (db3, sections 2.2 and 2.4)."""

from services.gateway import prompts
from services.gateway.mesh import Mesh
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.generate import read_and_answer
from services.gateway.steps.rerank import best_pages, rerank
from services.gateway.steps.retrieve import retrieve
from services.gateway.strategies.base import Question, Strategy

PAGES = 5
RECALL_K = 50
TOP_N = 5


class Db3(Strategy):
    name = "db3"
    summary = (
        "Winner of CRAG 2024, web pathway: the 5 best pages by snippet, parent-child chunks, recall 50, rerank 5, "
        "4,000 tokens of context, a prompt that allows for abstention."
    )

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._prompt = prompts.load(settings.db3_prompt)

    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        settings = self.settings
        found = list(question.evidence)
        if not found:
            pages = await best_pages(
                run,
                mesh,
                question.query,
                question.search_results,
                top_n=PAGES,
                allow_s=self.web_allowance(run, settings.rerank_cap_s),
            )
            found = await retrieve(
                run,
                mesh,
                question.query,
                question.search_results,
                pages,
                allow_s=self.web_allowance(run, settings.retrieve_cap_s),
                chunker="parent-child",
                recall_k=RECALL_K,
                top_n=RECALL_K,
            )
            found = await rerank(
                run,
                mesh,
                question.query,
                found,
                top_n=TOP_N,
                allow_s=self.web_allowance(run, settings.rerank_cap_s),
            )
        return await read_and_answer(
            run,
            mesh,
            self._prompt,
            question.query,
            question.query_time,
            found,
            max_context_tokens=settings.max_context_tokens,
            max_tokens=settings.max_answer_tokens,
            adapter=settings.web_answer_adapter,
        )
