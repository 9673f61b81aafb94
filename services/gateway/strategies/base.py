"""What a strategy is: a name, a sentence, and a way from a question to a draft within a run's budget."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from proto.kg import KgResponse
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import planned_s, time_words
from services.gateway.steps.facts import look_up
from services.gateway.steps.rerank import best_pages, rerank
from services.gateway.steps.retrieve import retrieve

# db3, section 2.2: of more pages the snippets choose.
PAGES = 5
# The generator's share of a short budget, and the most that a strategy may ask for it.
USUAL_SHARE = 0.4
MOST_SHARE = 0.7


class Strategy(ABC):
    """A way to answer. Strategies keep no state between requests."""

    name: ClassVar[str]
    summary: ClassVar[str]
    # What the classifier must be sure of to name a domain; below it the question is `open`.
    min_domain_certainty: float = 0.0

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings

    def describe(self, mesh: Mesh) -> str:
        """What it runs, in a sentence or two, and what it lacks as the mesh is now."""
        return self.summary

    @abstractmethod
    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        """Answer within `run.budget`; a service that fails is named in `run.degraded`, never raised."""

    def web_allowance(self, run: Run, cap_s: float, *, needed_s: float = 0.0) -> float:
        """Seconds for a stage before generation: what is left after the generator's share of this very budget.

        Args:
            needed_s: what the shortest generation of use takes, where that may be more than the usual share.
        """
        total_s = run.budget.total_s
        reserve_s = max(
            min(self.settings.generate_reserve_s, USUAL_SHARE * total_s), min(needed_s, MOST_SHARE * total_s)
        )
        return run.budget.allow(cap_s, reserve_s=reserve_s)

    async def look_up(self, question: Question, run: Run, mesh: Mesh) -> KgResponse | None:
        """The knowledge graph's facts, in the time before generation; None when the service failed."""
        settings = self.settings
        allow_s = self.web_allowance(run, settings.kg_cap_s)
        return await look_up(run, mesh, question, allow_s=allow_s, max_tokens=settings.kg_max_tokens)

    async def reranked(
        self, question: Question, run: Run, mesh: Mesh, *, recall_k: int, top_n: int, **options: Any
    ) -> list[Evidence]:
        """The best passages of the best pages: pages by their snippets, `recall_k` passages, `top_n` after reranking.

        Of a collection, up to 20 passages more are reranked.

        Args:
            options: further fields of `RetrieveRequest`.
        """
        settings = self.settings
        query, results = question.query, question.search_results
        allow_s = self.web_allowance(run, settings.rerank_cap_s)
        pages = await best_pages(run, mesh, query, results, top_n=PAGES, allow_s=allow_s)
        allow_s = self.web_allowance(run, settings.retrieve_cap_s)
        found = await retrieve(
            run,
            mesh,
            query,
            results,
            pages,
            collection=question.collection,
            allow_s=allow_s,
            recall_k=recall_k,
            top_n=recall_k,
            **options,
        )
        allow_s = self.web_allowance(run, settings.rerank_cap_s)
        return await rerank(run, mesh, query, found, top_n=top_n, allow_s=allow_s)

    def changes_fast(self, run: Run) -> bool:
        """Whether the answer is too likely to change within a year; not when the classifier did not say."""
        found = run.classification
        fast = found.dynamic_probability >= self.settings.dynamic_threshold and found.dynamism != "unknown"
        run.decide(
            "dynamism",
            f"{found.dynamism}, changes within a year with {found.dynamic_probability:.2f}: "
            f"{'fast' if fast else 'not fast'} by the threshold of {self.settings.dynamic_threshold:.2f}",
        )
        return fast

    def affordable(self, run: Run, mesh: Mesh, calls: Mapping[str, tuple[int, int]]) -> set[str]:
        """The calls to the generator that fit into the time left, one after the other; the others are named.

        Args:
            calls: step -> tokens read and written, the most useful first.
        """
        left = run.budget.left()
        chosen: set[str] = set()
        for step, (prompt_tokens, completion_tokens) in calls.items():
            seconds = planned_s(mesh, prompt_tokens, completion_tokens)
            words = f"{time_words(mesh, prompt_tokens, completion_tokens)} of the {left:.1f} s left"
            # The first is what all others are for: it is cut to the time that there is.
            if chosen and seconds > left:
                run.skip(step, words)
                continue
            run.plan(step, words)
            chosen.add(step)
            left = max(0.0, left - seconds)
        return chosen
