"""`closed-book`: a baseline that asks the model alone."""

from services.gateway import prompts
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.generate import generate
from services.gateway.strategies.base import Strategy


class ClosedBook(Strategy):
    name = "closed-book"
    summary = "Baseline: the model's own knowledge, no retrieval; evidence that is given is not read."

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._prompt = prompts.load("closed_book")

    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        return await generate(
            run, mesh, self._prompt, question.query, question.query_time, (), max_tokens=self.settings.max_answer_tokens
        )
