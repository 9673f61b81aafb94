"""What a strategy is: a name, a sentence, and a way from a question to a draft within a run's budget."""

from abc import ABC, abstractmethod
from typing import ClassVar

from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings


class Strategy(ABC):
    """A way to answer. Strategies keep no state between requests."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings

    @abstractmethod
    async def answer(self, question: Question, run: Run, mesh: Mesh) -> Draft:
        """Answer within `run.budget`; a service that fails is named in `run.degraded`, never raised."""

    def web_allowance(self, run: Run, cap_s: float) -> float:
        """Seconds for a stage before generation: what is left after the generator's share of this very budget."""
        reserve_s = min(self.settings.generate_reserve_s, run.budget.total_s * 0.4)
        return run.budget.allow(cap_s, reserve_s=reserve_s)
