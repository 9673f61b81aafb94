"""Step `knowledge`: the model's own answer, written without references, as one reference more.

ElectricSheep, section 4.4: with references in its prompt a model copies from them even where they lack the answer;
without them it often knows what is stable. So it is asked alone, with a little reasoning, and what it says is shown
to the step that reasons over everything, marked as what it is.
"""

from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.normalize import normalize
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.steps.ask import ask, asked_on
from services.kit.prompts import Prompt
from services.kit.untrusted import one_line

TITLE = "answer from memory, perhaps made up"
# Two sentences and a line.
MAX_TOKENS = 90
MIN_TOKENS = 40


async def knowledge(
    run: Run, mesh: Mesh, prompt: Prompt, question: Question, *, cap_s: float, reserve_s: float
) -> Evidence | None:
    """What the model says without references; None when it was not asked, failed, or knows nothing.

    Args:
        cap_s: seconds for it at most.
        reserve_s: seconds left to what comes after it.
    """
    messages = prompt.fill(query=one_line(question.query), query_time=asked_on(question.query_time))
    completion = await ask(
        run,
        mesh,
        "knowledge",
        messages,
        max_tokens=MAX_TOKENS,
        min_tokens=MIN_TOKENS,
        cap_s=cap_s,
        reserve_s=reserve_s,
    )
    if completion is None:
        return None
    text = completion.text.strip()
    if normalize(text).kind == "unknown":
        run.decide("knowledge", "the model knows nothing of it: no reference")
        return None
    return Evidence(text=text, page=0, page_name=TITLE, source="model")
