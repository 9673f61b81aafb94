"""Step `knowledge`: the model's own answer, written without references, as one reference more.

ElectricSheep, section 4.4: with references in its prompt a model copies from them even where they lack the answer;
without them it often knows what is stable. The step that reasons over all references reads this one marked as memory.
"""

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.evidence import MEMORY_TITLE, Evidence
from services.gateway.normalize import normalize
from services.gateway.steps.ask import Allowance, Request, ask, fill

PROMPT = prompts.load("knowledge")
# Two sentences and a line.
MAX_TOKENS = 90
MIN_TOKENS = 40


async def closed_book(context: Context, allowance: Allowance) -> Evidence | None:
    """The model's answer without references; None when the request excludes it, the call failed, or it abstains."""
    question = context.question
    if context.options.closed_book is False:
        context.run.plan("knowledge", "not asked: the request says so")
        return None
    messages = fill(PROMPT, question.query, question.query_time)
    completion = await ask(context, Request("knowledge", messages, MAX_TOKENS, MIN_TOKENS), allowance)
    if completion is None:
        return None
    text = completion.text.strip()
    if normalize(text).kind == "unknown":
        context.run.decide("knowledge", "the model knows nothing of it: no reference")
        return None
    return Evidence(text=text, page=0, page_name=MEMORY_TITLE, source="model")
