"""`weknow`: knowledge graph and web by how fast the matter changes, and only answers that the model is sure of.

After WeKnow-RAG (web retrieval in two stages, domain by certainty, self-assessment, integration by rate of change). As
published but for: the classifier says how fast this very question's answer changes, where the authors went by the
domain; programs in the regularized language stand for their structured analysis and its API calls.
"""

from collections.abc import Sequence
from dataclasses import replace

from proto.kg import KgResponse
from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import planned_s
from services.gateway.steps.facts import FOUND, as_evidence
from services.gateway.steps.generate import chat, read_and_answer
from services.gateway.steps.post_process import settle
from services.gateway.steps.self_assess import MAX_TOKENS as ASSESS_TOKENS
from services.gateway.steps.self_assess import accepts, self_assess
from services.gateway.strategies.base import Strategy
from services.kit.concurrency import all_of, prefer
from services.kit.llm import estimate_tokens

# The retriever ranks 200 candidates by BM25; its `hybrid` passes the 5 best of them and the 20 best by vectors on.
RECALL_K = 25
TOP_N = 5


class WeKnow(Strategy):
    name = "weknow"
    summary = (
        "WeKnow-RAG: the knowledge graph first for what is stable, the web first for what changes fast; 5 candidates "
        "by BM25 and 20 by vectors, reranked; only answers that the model calls highly certain."
    )

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self.min_domain_certainty = settings.weknow_domain_certainty
        self._prompt = prompts.load("weknow")
        self._turn = prompts.load_turn("self_assess")
        self._hints = prompts.load_table("domain_hints")

    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        await run.classified.wait()
        if question.evidence:
            return await self._assessed(question, run, mesh, question.evidence)
        if self.changes_fast(run):
            run.plan("balance", "the web first, the knowledge graph's facts after it")
            web, facts = await all_of((self._web(question, run, mesh), self._facts(question, run, mesh)))
            return await self._assessed(question, run, mesh, [*web, *facts])
        run.plan("balance", "the knowledge graph first, the web where it does not answer")
        found = await prefer(self._knowledge(question, run, mesh), self._web(question, run, mesh), decided=run.settle)
        if isinstance(found, Draft):
            return found
        return await self._assessed(question, run, mesh, [*_shown(run.kg), *found])

    async def _knowledge(self, question: Question, run: Run, mesh: Mesh) -> Draft | None:
        """The knowledge graph's answer, by a rule or by the model; None when it has none of which the model is sure."""
        facts = await self._facts(question, run, mesh)
        if not facts or run.kg is None:
            return None
        settled = settle(question.query, run.kg)
        if settled is not None:
            run.decide("post_process", f"{settled.how}: {settled.answer!r} from {'; '.join(settled.inputs)}")
            return Draft(settled.answer, "answer", 1.0, "kg", tuple(facts))
        draft = await self._assessed(question, run, mesh, facts)
        return draft if draft.kind == "answer" else None

    async def _facts(self, question: Question, run: Run, mesh: Mesh) -> list[Evidence]:
        return _shown(await self.look_up(question, run, mesh))

    async def _web(self, question: Question, run: Run, mesh: Mesh) -> list[Evidence]:
        return await self.reranked(
            question,
            run,
            mesh,
            recall_k=RECALL_K,
            top_n=TOP_N,
            chunker="tokens",
            ranking="hybrid",
            page_fields=True,
        )

    async def _assessed(self, question: Question, run: Run, mesh: Mesh, evidence: Sequence[Evidence]) -> Draft:
        """An answer of which the model is as sure as the settings ask for, else "i don't know" with its evidence."""
        settings = self.settings
        hint = self._hints[run.classification.domain]
        draft = await read_and_answer(
            run,
            mesh,
            self._prompt,
            question.query,
            question.query_time,
            evidence,
            max_context_tokens=settings.max_context_tokens,
            max_tokens=settings.max_answer_tokens,
            hint=hint,
            reserve_s=planned_s(mesh, estimate_tokens(self._turn.content), ASSESS_TOKENS),
        )
        if draft.kind == "unknown":
            return draft
        asked = chat(self._prompt, question.query, question.query_time, draft.evidence, hint=hint)
        level = await self_assess(run, mesh, self._turn, asked, draft.answer, cap_s=run.budget.left())
        accepted = accepts(settings.weknow_confidence, level)
        run.decide(
            "self_assess",
            f"{draft.answer!r}: {level or 'not assessed'}, {'given' if accepted else 'not given'}: "
            f"{settings.weknow_confidence} is asked for",
        )
        if not accepted:
            return run.best
        from_facts = bool(draft.evidence) and all(item.source == "kg" for item in draft.evidence)
        return replace(draft, source="kg") if from_facts else draft


def _shown(facts: KgResponse | None) -> list[Evidence]:
    """Facts as a reference; none where the graph found none."""
    return [as_evidence(facts)] if facts and facts.status in FOUND else []
