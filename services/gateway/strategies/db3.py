"""`db3`: the knowledge graph and, where it does not answer, the web (db3, sections 2.2 to 2.4)."""

from collections.abc import Sequence
from dataclasses import replace

from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.facts import answer_from_facts
from services.gateway.steps.generate import TAUGHT_PROMPT, read_and_answer, taught
from services.gateway.steps.public_data import public_data
from services.gateway.steps.reason import origin
from services.gateway.strategies.base import Strategy
from services.kit.concurrency import all_of, prefer

RECALL_K = 50
TOP_N = 5


class Db3(Strategy):
    name = "db3"
    summary = (
        "Winner of CRAG 2024: an answer from the knowledge graph comes first; else the web: the 5 best pages by "
        "snippet, parent-child chunks, recall 50, rerank 5, as much context as the settings allow, a prompt that "
        "allows for abstention."
    )

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._prompt = prompts.load(settings.db3_prompt)
        self._facts_prompt = prompts.load("facts")
        self._entities_prompt = prompts.load("entities")
        self._taught_prompt = prompts.load(TAUGHT_PROMPT)

    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        if question.evidence:
            return await self._read(question, run, mesh, question.evidence)
        if self.settings.db3_public_data:
            records, web = await all_of((self._records(question, run, mesh), self._web(question, run, mesh)))
            draft = await self._read(question, run, mesh, [*records, *web])
            held = draft.kind == "answer" and origin(draft.answer, draft.evidence) == "public_data"
            return replace(draft, source="public_data") if held else draft
        found = await prefer(self._knowledge(question, run, mesh), self._web(question, run, mesh), decided=run.settle)
        return found if isinstance(found, Draft) else await self._read(question, run, mesh, found)

    async def _knowledge(self, question: Question, run: Run, mesh: Mesh) -> Draft | None:
        """The knowledge graph's answer; None when it has none."""
        settings = self.settings
        facts = await self.look_up(question, run, mesh)
        if facts is None:
            return None
        has_adapter = await taught(run, mesh, settings.kg_answer_adapter)
        return await answer_from_facts(
            run,
            mesh,
            self._taught_prompt if has_adapter else self._facts_prompt,
            question,
            facts,
            max_tokens=settings.kg_max_tokens,
            adapter=settings.kg_answer_adapter,
        )

    async def _records(self, question: Question, run: Run, mesh: Mesh) -> list[Evidence]:
        """Records of the entities in question (task 1)."""
        allow_s = self.web_allowance(run, self.settings.kg_cap_s)
        return await public_data(
            run, mesh, self._entities_prompt, question, cap_s=allow_s, reserve_s=run.budget.left() - allow_s
        )

    async def _web(self, question: Question, run: Run, mesh: Mesh) -> list[Evidence]:
        return await self.reranked(question, run, mesh, recall_k=RECALL_K, top_n=TOP_N, chunker="parent-child")

    async def _read(self, question: Question, run: Run, mesh: Mesh, found: Sequence[Evidence]) -> Draft:
        settings = self.settings
        has_adapter = await taught(run, mesh, settings.web_answer_adapter)
        return await read_and_answer(
            run,
            mesh,
            self._taught_prompt if has_adapter else self._prompt,
            question.query,
            question.query_time,
            found,
            max_context_tokens=settings.max_context_tokens,
            max_tokens=settings.max_answer_tokens,
            adapter=settings.web_answer_adapter,
        )
