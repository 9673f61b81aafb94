"""Step `calculate`: arithmetic that the question asks for, as references (ElectricSheep, section 4.3).

The model writes up to five expressions and never a result; a calculator of our own evaluates them. ElectricSheep used
Python's `eval` and named a sandbox as missing; here the language is the sandbox. What rests on a number that stands
neither in the documents nor in the question is not used.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.gateway.calculator.decoding import GRAMMAR, MAX_LINES, Proposal, read
from services.gateway.calculator.errors import EvaluationError
from services.gateway.calculator.evaluate import Calculation, evaluate
from services.gateway.calculator.grounding import Grounds
from services.gateway.calculator.tree import Binary, Call, Compare, render
from services.gateway.calculator.wanted import asks_arithmetic
from services.gateway.evidence import Evidence, cut, cut_by_estimate
from services.gateway.evidence import render as render_evidence
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.steps.ask import PACE_MARGIN, ask, asked_on
from services.gateway.steps.generate import MIN_CONTEXT_TOKENS, TOKENIZE_CAP_S
from services.kit.errors import ServiceFailure
from services.kit.llm import Constraint, estimate_tokens
from services.kit.prompts import Prompt
from services.kit.untrusted import one_line

STEP = "calculate"
TITLE = "calculation"
MAX_TOKENS = 40 * MAX_LINES
# A line of two numbers with its label.
MIN_TOKENS = 30
_FIGURE = re.compile(r"[0-9]")


@dataclass(frozen=True, slots=True)
class Result:
    """A calculation, and what the model calls it."""

    label: str
    calculation: Calculation

    @property
    def text(self) -> str:
        return f"{self.label}: {self.calculation.text}"


async def calculate(
    run: Run,
    mesh: Mesh,
    prompt: Prompt,
    question: Question,
    evidence: Sequence[Evidence],
    *,
    cap_s: float,
    reserve_s: float,
    max_context_tokens: int,
    adapter: str = "",
) -> list[Evidence]:
    """Calculations for the question, in words; none where it asks for none, and then no call is spent.

    Args:
        prompt: of this step.
        evidence: best first; what holds no figure is left out, for nothing can be calculated from it.
        cap_s: seconds for it at most.
        reserve_s: seconds left to what comes after it.
        max_context_tokens: of the documents that are read for it.
    """
    if not asks_arithmetic(question.query):
        run.decide(STEP, "the question asks for no arithmetic")
        return []
    figured = [item for item in evidence if _FIGURE.search(item.text)]
    if not figured and len(_FIGURE.findall(question.query)) < 2:
        run.decide(STEP, "no figures to calculate with")
        return []
    shown = await _fit(run, mesh, prompt, question, figured, cap_s, reserve_s, max_context_tokens)
    if figured and not shown:
        return []
    completion = await ask(
        run,
        mesh,
        STEP,
        prompt.fill(
            documents=render_evidence(shown), query=one_line(question.query), query_time=asked_on(question.query_time)
        ),
        max_tokens=MAX_TOKENS,
        min_tokens=MIN_TOKENS,
        cap_s=cap_s,
        reserve_s=reserve_s,
        adapter=adapter,
        constraint=Constraint(grammar=GRAMMAR),
    )
    if completion is None:
        return []
    texts = [question.query, *(f"{item.page_name}\n{item.text}" for item in shown)]
    found, why = results(completion.text, Grounds.of(texts, question.query_time.date()))
    run.decide(STEP, f"{len(found)} used" + "".join(f"; {reason}" for reason in why))
    return [Evidence(text=result.text, page=0, page_name=TITLE, source="calculator") for result in found]


def results(reply: str, grounds: Grounds) -> tuple[list[Result], list[str]]:
    """What came of the expressions of a reply, and why of others nothing."""
    proposals, why = read(reply)
    found: list[Result] = []
    for proposal in proposals:
        if not _computes(proposal):
            why.append(f"{proposal.label}: a number and no calculation")
            continue
        lacking = grounds.lacks(proposal.expression)
        if lacking:
            why.append(f"ungrounded: {', '.join(lacking)} in {render(proposal.expression)}")
            continue
        try:
            calculation = evaluate(proposal.expression)
        except EvaluationError as error:
            why.append(f"{type(error).__name__}: {error}")
            continue
        result = Result(proposal.label, calculation)
        if result not in found:
            found.append(result)
    return found, why


def _computes(proposal: Proposal) -> bool:
    return isinstance(proposal.expression, Binary | Call | Compare)


async def _fit(
    run: Run,
    mesh: Mesh,
    prompt: Prompt,
    question: Question,
    evidence: Sequence[Evidence],
    cap_s: float,
    reserve_s: float,
    max_tokens: int,
) -> list[Evidence]:
    """The best documents within `max_tokens` and within what the generator reads in the time for this step."""
    if not evidence:
        return []
    fixed = estimate_tokens(prompt.system) + estimate_tokens(question.query) + 40
    seconds = run.budget.allow(cap_s, reserve_s=reserve_s) / PACE_MARGIN
    limit = min(max_tokens, mesh.pace.affordable_prompt(seconds, MIN_TOKENS) - fixed)
    if limit < MIN_CONTEXT_TOKENS:
        run.skip(STEP, f"time for {max(0, limit)} tokens of documents only")
        return []
    try:
        return await cut(evidence, limit, mesh.llm, allow_s=run.budget.allow(TOKENIZE_CAP_S, reserve_s=reserve_s))
    except ServiceFailure:
        return cut_by_estimate(evidence, limit)
