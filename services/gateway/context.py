"""The context of a request, which every step gets."""

from dataclasses import dataclass

from proto.classify import Classification
from proto.options import Options
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings

# The generator's share of a short budget, and the greatest that a strategy may reserve for it.
USUAL_SHARE = 0.4
MAX_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Context:
    """A question, its time and its account, and the services and settings to answer it with.

    Attributes:
        least_generation: tokens of the shortest useful prompt and completion, where these may take more than the
            generator's usual share of the budget.
    """

    question: Question
    run: Run
    mesh: Mesh
    settings: GatewaySettings
    least_generation: tuple[int, int] = (0, 0)

    @property
    def options(self) -> Options:
        return self.question.options

    @property
    def context_tokens(self) -> int:
        """The most tokens of passages in a prompt."""
        return self.options.context_tokens or self.settings.max_context_tokens

    def within_context(self, max_tokens: int) -> int:
        """A step's own limit on the tokens of passages, or the request's where that is lower."""
        return min(max_tokens, self.options.context_tokens or max_tokens)

    async def classification(self) -> Classification:
        """The classification, as soon as it is there; open and unknown where the classifier failed."""
        await self.run.classified.wait()
        return self.run.classification

    def before_generation(self, cap_s: float) -> float:
        """Seconds, at most `cap_s`, for a stage before generation, which leave the generator its share."""
        total_s = self.run.budget.total_s
        usual_s = min(self.settings.generate_reserve_s, USUAL_SHARE * total_s)
        least_s = min(self.mesh.speed.planned_s(*self.least_generation), MAX_SHARE * total_s)
        return self.run.budget.allow(cap_s, reserve_s=max(usual_s, least_s))
