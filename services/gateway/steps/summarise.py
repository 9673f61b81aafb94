"""Step `summarise`: the answer in reasoning that broke its frame (ElectricSheep, section 4.7)."""

from services.gateway.context import Context
from services.gateway.normalize import Normalized, normalize_sample
from services.gateway.steps.ask import Request, ask
from services.kit.prompts import Prompt
from services.kit.untrusted import fence, one_line

MAX_TOKENS = 40
MIN_TOKENS = 6
# The last of the notes, which conclude them.
MAX_NOTES_CHARS = 1_500


async def summarise(context: Context, prompt: Prompt, notes: str) -> Normalized | None:
    """The answer that the notes arrive at; None when the generator gave no reply."""
    messages = prompt.fill(
        documents=fence(notes[-MAX_NOTES_CHARS:], title="notes"), query=one_line(context.question.query)
    )
    completion = await ask(context, Request("summarise", messages, MAX_TOKENS, MIN_TOKENS))
    return None if completion is None else normalize_sample(completion.samples[0])
