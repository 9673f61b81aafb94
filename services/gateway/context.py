"""What every step of an answer works with."""

from dataclasses import dataclass

from proto.classify import Classification
from proto.options import Options
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings

# The generator's share of a short budget, and the most that a strategy may ask for it.
USUAL_SHARE = 0.4
MOST_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Context:
    """A question on its way, and what there is to answer it with: one object from the first step to the last.

    Args:
        run: its time and its account: stages, what was missing, what is told to the caller.
        mesh: the services.
    """

    question: Question
    run: Run
    mesh: Mesh
    settings: GatewaySettings

    @property
    def options(self) -> Options:
        return self.question.options

    @property
    def context_tokens(self) -> int:
        """Tokens of passages that the generator is shown at most."""
        return self.options.context_tokens or self.settings.max_context_tokens

    async def classification(self) -> Classification:
        """The classifier's, as soon as it is there; open and unknown where it failed."""
        await self.run.classified.wait()
        return self.run.classification

    def before_generation(self, cap_s: float, *, needed_s: float = 0.0) -> float:
        """Seconds for a stage before generation: what is left after the generator's share of this very budget.

        Args:
            cap_s: seconds for the stage at most.
            needed_s: what the shortest generation of use takes, where that may be more than the usual share.
        """
        total_s = self.run.budget.total_s
        usual_s = min(self.settings.generate_reserve_s, USUAL_SHARE * total_s)
        return self.run.budget.allow(cap_s, reserve_s=max(usual_s, min(needed_s, MOST_SHARE * total_s)))
