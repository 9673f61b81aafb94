"""`closed-book`: a baseline that asks the model alone."""

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.generate import Generation, generate
from services.gateway.strategies.base import Strategy


class ClosedBook(Strategy):
    name = "closed-book"
    summary = "Baseline: the model's own knowledge, no retrieval; evidence that is given is not read."
    options = frozenset()

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._prompt = prompts.load("closed_book")

    async def answer(self, context: Context) -> Draft:
        settings = self.settings
        generation = Generation(self._prompt, settings.max_context_tokens, settings.max_answer_tokens)
        return await generate(context, generation, ())
