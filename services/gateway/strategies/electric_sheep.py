"""`electric-sheep`: reasoning over all that may help, no answer to what changes fast (ElectricSheep, 4.1 to 4.7).

As published but for:

- Pages (4.1): of more than five the snippets choose five, as db3's (`options.rerank` off: the first five); sentencex
  splits sentences where blingfire did; of a page's chunks the 200 best by BM25 are embedded (`options.prefilter`), by
  the mesh's encoder where sentence-t5-large was; tables, 4,000 characters a page, are ranked beside the chunks and
  not shown whole.
- Predictor (4.2): the SVM that the authors found better too late to submit. What changes within a year with more than
  the settings' probability is dynamic.
- Calculator (4.3): expressions of a language of our own, never `eval`, and only of numbers that stand in the sources.
- Graph (4.5): function calls, which the authors tried and left unoptimised; they submitted entities by the language
  model and queries by rules (`options.kg`: rules). Where the time does not pay the call, rules write the program.
- Reasoning (4.6, D.5): the frame is a constraint of the decoder; a reply that calls the premise false and answers all
  the same is a doubt; "i don't know" counts in the frame's answer, where the authors took it anywhere in a reply as
  the whole reply.
- Time: a call that the time left does not pay is skipped and named, the least useful by the authors' ablation first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from proto.kg import KgMode
from proto.options import Options
from services.gateway.calculator.wanted import asks_arithmetic
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Draft
from services.gateway.steps import reason as reasoning
from services.gateway.steps.ask import Allowance, affordable
from services.gateway.steps.calculate import calculate
from services.gateway.steps.classify import changes_fast
from services.gateway.steps.closed_book import MIN_TOKENS as MIN_KNOWLEDGE_TOKENS
from services.gateway.steps.closed_book import closed_book
from services.gateway.steps.knowledge_graph import FOUND, as_evidence, look_up
from services.gateway.steps.reason import reason, references
from services.gateway.steps.rerank import best_pages
from services.gateway.steps.retrieve import PAGES, RETRIEVAL_OPTIONS, Retrieval, retrieve
from services.gateway.steps.search import with_web_pages
from services.gateway.strategies.base import Strategy
from services.kit.concurrency import all_of
from services.kit.tokens import estimate_tokens

# Sections 4.1 and 5: three sentences of 200 characters a chunk, the ten best by vectors.
WEB = Retrieval(recall_k=10, chunker="sentence-groups", ranking="dense", extractor="trafilatura")
KG_CHARS = 1_000
# Usual tokens of calls, prompt and completion: ten chunks of 600 characters, the functions of a domain with six
# examples, a question alone.
CHUNKS_TOKENS = 2_000
FRAME_TOKENS = 450
LEAST_REASONING = (FRAME_TOKENS + 300, reasoning.FRAMED_TOKENS)
FUNCTION_CALLING = (2_000, 60)
KNOWLEDGE = (200, MIN_KNOWLEDGE_TOKENS)
CALCULATE = (1_500, 60)


class ElectricSheep(Strategy):
    name = "electric-sheep"
    summary = (
        "Third in task 1 of CRAG 2024: no answer to what changes fast; else sentence groups and tables, the knowledge "
        "graph by function calls, calculations and the model's own answer, reasoned over with a check of the premise."
    )

    options = RETRIEVAL_OPTIONS | frozenset(
        ("rerank", "context_tokens", "kg", "calculator", "closed_book", "false_premise", "dynamism")
    )
    # As the table of the paper's ablation has them.
    parts: ClassVar = {
        "attribute-predictor": Options(dynamism=False),
        "tables": Options(tables=False),
        "calculator": Options(calculator=False),
        "false-premise": Options(false_premise=False),
        "closed-book": Options(closed_book=False),
        "kg": Options(kg="off"),
    }

    async def answer(self, context: Context) -> Draft:
        context = replace(context, least_generation=LEAST_REASONING)
        if await changes_fast(context):
            return Draft()
        evidence = context.question.evidence
        planned = _plan(context)
        collecting = [_memory(context, wanted="knowledge" in planned)]
        if not evidence:
            mode: KgMode = "function-calling" if "kg" in planned else "rules"
            collecting += [_facts(context, mode), _web(context)]
        memory, *collected = await all_of(collecting)
        facts, web = collected if collected else ([], list(evidence))
        results = await _calculate(context, [*facts, *web]) if "calculate" in planned else []
        return await reason(context, [*facts, *results, *memory, *web])


def _plan(context: Context) -> set[str]:
    """The calls that fit into the time left, by the measured speed, the most useful first."""
    question = context.question
    calls = {
        "reason": _size(context, question.evidence),
        "kg": FUNCTION_CALLING,
        "knowledge": KNOWLEDGE,
        "calculate": CALCULATE,
    }
    options = context.options
    if question.evidence or options.kg in ("off", "rules"):
        del calls["kg"]
    if options.closed_book is False:
        del calls["knowledge"]
    if options.calculator is False or not asks_arithmetic(question.query):
        del calls["calculate"]
    return affordable(context, calls)


def _size(context: Context, evidence: Sequence[Evidence]) -> tuple[int, int]:
    """Tokens of the reasoning, prompt and completion; the usual ones where the evidence is not there yet."""
    reference_tokens = estimate_tokens(references(evidence)) if evidence else CHUNKS_TOKENS
    prompt_tokens = FRAME_TOKENS + min(reference_tokens, context.context_tokens)
    return prompt_tokens, reasoning.FRAMED_TOKENS + reasoning.REASONING_TOKENS


async def _web(context: Context) -> list[Evidence]:
    context = await with_web_pages(context)
    return await retrieve(context, await best_pages(context, top_n=PAGES), WEB)


async def _facts(context: Context, mode: KgMode) -> list[Evidence]:
    """Facts as a reference, cut at KG_CHARS; a game that did not take place is a fact as well."""
    facts = await look_up(context, mode)
    if facts is None or facts.status not in FOUND | {"no_event"}:
        return []
    item = as_evidence(facts)
    return [replace(item, text=item.text[:KG_CHARS])]


async def _memory(context: Context, *, wanted: bool) -> list[Evidence]:
    if not wanted:
        return []
    allow_s = context.before_generation(context.settings.knowledge_cap_s)
    allowance = Allowance(allow_s, context.run.budget.left() - allow_s)
    memory = await closed_book(context, allowance)
    return [memory] if memory else []


async def _calculate(context: Context, evidence: Sequence[Evidence]) -> list[Evidence]:
    allowance = Allowance(context.settings.calculate_cap_s, context.mesh.speed.planned_s(*_size(context, evidence)))
    return await calculate(context, evidence, allowance)
