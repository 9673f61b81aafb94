"""Step `calculate`: arithmetic that the question asks for, as references (ElectricSheep, section 4.3).

The model writes up to five expressions and never a result; a calculator of our own evaluates them. ElectricSheep used
Python's `eval` and named a sandbox as missing; here the language is the sandbox. An expression with a number that
stands neither in the documents nor in the question is not used.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from services.gateway import prompts
from services.gateway.calculator.decoding import GRAMMAR, MAX_LINES, read
from services.gateway.calculator.errors import EvaluationError
from services.gateway.calculator.evaluate import Calculation, evaluate
from services.gateway.calculator.grounding import Grounds
from services.gateway.calculator.tree import Binary, Call, Compare, render
from services.gateway.calculator.wanted import asks_arithmetic
from services.gateway.context import Context
from services.gateway.evidence import CALCULATION_TITLE, Evidence
from services.gateway.evidence import render as render_evidence
from services.gateway.steps.ask import Allowance, Request, ask, fill
from services.gateway.steps.generate import MIN_CONTEXT_TOKENS, shorten
from services.kit.llm import Constraint
from services.kit.tokens import estimate_tokens

STEP = "calculate"
PROMPT = prompts.load("calculate")
MAX_TOKENS = 40 * MAX_LINES
# A line of two numbers with its label.
MIN_TOKENS = 30
_FIGURE = re.compile(r"[0-9]")


async def calculate(context: Context, evidence: Sequence[Evidence], allowance: Allowance) -> list[Evidence]:
    """Calculations for the question, in words, over the passages with figures; no call where it asks for none."""
    question, run = context.question, context.run
    if context.options.calculator is False:
        run.plan(STEP, "not asked: the request says so")
        return []
    if not asks_arithmetic(question.query):
        run.decide(STEP, "the question asks for no arithmetic")
        return []
    with_figures = [item for item in evidence if _FIGURE.search(item.text)]
    if not with_figures and len(_FIGURE.findall(question.query)) < 2:
        run.decide(STEP, "no figures to calculate with")
        return []
    documents = await _fit(context, with_figures, allowance)
    if with_figures and not documents:
        return []
    messages = fill(PROMPT, question.query, question.query_time, documents=render_evidence(documents))
    request = Request(STEP, messages, MAX_TOKENS, MIN_TOKENS, constraint=Constraint(grammar=GRAMMAR))
    completion = await ask(context, request, allowance)
    if completion is None:
        return []
    texts = [question.query, *(f"{item.page_name}\n{item.text}" for item in documents)]
    calculations, problems = results(completion.text, Grounds.of(texts, question.query_time.date()))
    run.decide(STEP, "; ".join((f"{len(calculations)} used", *problems)))
    return [Evidence(item.text, page=0, page_name=CALCULATION_TITLE, source="calculator") for item in calculations]


def results(reply: str, grounds: Grounds) -> tuple[list[Calculation], list[str]]:
    """A reply's calculations, each text behind the model's label, and the problems of expressions without a value."""
    proposals, problems = read(reply)
    calculations: list[Calculation] = []
    for label, expression in proposals:
        if not isinstance(expression, Binary | Call | Compare):
            problems.append(f"{label}: a number and no calculation")
            continue
        if ungrounded := grounds.lacks(expression):
            problems.append(f"ungrounded: {', '.join(ungrounded)} in {render(expression)}")
            continue
        try:
            calculation = evaluate(expression)
        except EvaluationError as error:
            problems.append(str(error))
            continue
        calculations.append(replace(calculation, text=f"{label}: {calculation.text}"))
    return list(dict.fromkeys(calculations)), problems


async def _fit(context: Context, evidence: Sequence[Evidence], allowance: Allowance) -> list[Evidence]:
    """The best documents that the settings' limit and the time for this step allow."""
    if not evidence:
        return []
    run, mesh = context.run, context.mesh
    fixed = estimate_tokens(PROMPT.system) + estimate_tokens(context.question.query) + 40
    seconds = run.budget.allow(allowance.cap_s, reserve_s=allowance.reserve_s)
    max_tokens = context.within_context(context.settings.calculate_max_tokens)
    limit = min(max_tokens, mesh.speed.affordable_prompt(seconds, MIN_TOKENS) - fixed)
    if limit < MIN_CONTEXT_TOKENS:
        run.skip(STEP, f"time for {max(0, limit)} tokens of documents only")
        return []
    return await shorten(context, evidence, limit, reserve_s=allowance.reserve_s)
