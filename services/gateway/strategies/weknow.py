"""`weknow`: knowledge graph and web by how fast the matter changes, and only answers that the model is sure of.

After WeKnow-RAG (web retrieval in two stages, domain by certainty, self-assessment, integration by rate of change).
As published but for:

- Web: of more than five pages the snippets choose five, as db3's; chunks are matched with their page's name and
  snippet, where the authors took snippets as candidates of their own beside 200 chunks; encoder and reranker are the
  mesh's where bge-large-en-v1.5 and bge-reranker-large were.
- Domain: the mesh's classifier in place of a first call of the language model; under 90 % certainty it is open, as
  theirs.
- Graph: programs in the regularized language stand for their structured analysis and its API calls.
- Integration: the classifier says how fast this very question's answer changes, where the authors went by the domain.
- Self-assessment: a turn after the answer, of one word, where theirs stands in the same reply.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from proto.options import Options
from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.classify import changes_fast
from services.gateway.steps.generate import Generation, chat, read_and_answer
from services.gateway.steps.knowledge_graph import facts_of, look_up
from services.gateway.steps.retrieve import RERANKING_OPTIONS, Retrieval, reranked
from services.gateway.steps.self_assess import MAX_TOKENS as ASSESS_TOKENS
from services.gateway.steps.self_assess import TURN, accepts, self_assess
from services.gateway.strategies.base import Strategy
from services.kit.concurrency import both, prefer
from services.kit.tokens import estimate_tokens

# The retriever ranks 200 candidates by BM25; its `hybrid` passes the 5 best of them and the 20 best by vectors on.
WEB = Retrieval(
    recall_k=25,
    rerank_k=5,
    chunker="tokens",
    ranking="hybrid",
    extractor="beautifulsoup",
    tables=False,
    page_fields=True,
)
PROMPT = prompts.load("weknow")
HINTS = prompts.load_table("domain_hints")


class WeKnow(Strategy):
    name = "weknow"
    summary = (
        "WeKnow-RAG: the knowledge graph first for what is stable, the web first for what changes fast; 5 candidates "
        "by BM25 and 20 by vectors, reranked; only answers that the model calls highly certain."
    )

    options = RERANKING_OPTIONS | {"context_tokens", "kg", "dynamism", "self_assessment"}
    parts: ClassVar = {
        "kg": Options(kg="off"),
        "rerank": Options(rerank=False),
        "sparse": Options(ranking="dense"),
        "rate-of-change": Options(dynamism=False),
        "self-assessment": Options(self_assessment="off"),
    }

    def min_domain_certainty(self, settings: GatewaySettings) -> float:
        return settings.weknow_domain_certainty

    async def answer(self, context: Context) -> Draft:
        if context.question.evidence:
            return await _assessed(context, context.question.evidence)
        if await changes_fast(context):
            context.run.plan("balance", "the web first, the knowledge graph's facts after it")
            web, response = await both(reranked(context, WEB), look_up(context))
            return await _assessed(context, [*web, *facts_of(response)])
        context.run.plan("balance", "the knowledge graph first, the web where it does not answer")
        facts: list[Evidence] = []
        first = await prefer(_from_graph(context, facts), reranked(context, WEB), decided=context.run.settle)
        return first if isinstance(first, Draft) else await _assessed(context, [*facts, *first])


async def _from_graph(context: Context, facts: list[Evidence]) -> Draft | None:
    """The knowledge graph's answer, where a rule or the model is sure of one; its facts are added to `facts`."""
    response = await look_up(context)
    facts += facts_of(response)
    if response is None or not facts:
        return None
    settled = response.settled
    if settled is not None and settled.rule != "statement":
        context.run.decide("settled", f"{settled.rule}: {settled.answer!r} from {'; '.join(settled.inputs)}")
        return Draft(settled.answer, "answer", 1.0, "kg", tuple(facts))
    draft = await _assessed(context, facts)
    return draft if draft.kind == "answer" else None


async def _assessed(context: Context, evidence: Sequence[Evidence]) -> Draft:
    """An answer of which the model is sure enough, else an abstention with the evidence."""
    question = context.question
    required = context.options.self_assessment or context.settings.weknow_confidence
    hint = HINTS[(await context.classification()).domain]
    generation = Generation(PROMPT, hint=hint)
    assessing_s = context.mesh.speed.planned_s(estimate_tokens(TURN.content), ASSESS_TOKENS)
    draft = await read_and_answer(context, generation, evidence, reserve_s=assessing_s)
    if draft.kind == "unknown" or required == "off":
        return _by_source(draft)
    messages = chat(PROMPT, question.query, question.query_time, draft.evidence, hint=hint)
    level = await self_assess(context, messages, draft.answer)
    accepted = accepts(required, level)
    context.run.decide(
        "self_assess",
        f"{draft.answer!r}: {level or 'not assessed'}, {'given' if accepted else 'not given'}: {required} is asked for",
    )
    if not accepted:
        return Draft(evidence=draft.evidence, generator=draft.generator)
    return _by_source(draft)


def _by_source(draft: Draft) -> Draft:
    """The draft, with the graph as its source where all its evidence is facts."""
    from_facts = draft.kind != "unknown" and {item.source for item in draft.evidence} == {"kg"}
    return replace(draft, source="kg") if from_facts else draft
