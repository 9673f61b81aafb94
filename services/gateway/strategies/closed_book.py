"""`closed-book`: a baseline that asks the model alone."""

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.run import Draft
from services.gateway.steps.generate import Generation, generate
from services.gateway.strategies.base import Strategy

PROMPT = prompts.load("closed_book")


class ClosedBook(Strategy):
    name = "closed-book"
    summary = "Baseline: the model's own knowledge, no retrieval; evidence that is given is not read."
    options = frozenset()

    async def answer(self, context: Context) -> Draft:
        return await generate(context, Generation(PROMPT), ())
