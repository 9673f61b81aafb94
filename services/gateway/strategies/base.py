"""What a strategy is: a name, a sentence, and a way from a question to a draft within a run's budget."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from proto.options import Options
from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings


class Strategy(ABC):
    """A way to answer, composed of steps. Strategies keep no state between requests, and none extends another."""

    name: ClassVar[str]
    summary: ClassVar[str]
    # Fields of `Options` that it heeds; a request with another is refused.
    options: ClassVar[frozenset[str]] = frozenset(("context_tokens",))
    # What `cragmesh eval ablate` leaves out, one at a time: name of the part -> the options without it.
    parts: ClassVar[Mapping[str, Options]] = {}
    # What the classifier must be sure of to name a domain; below it the question is `open`.
    min_domain_certainty: float = 0.0

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings

    def describe(self, mesh: Mesh) -> str:
        """What it runs, in a sentence or two, and what it lacks as the mesh is now."""
        return self.summary

    @abstractmethod
    async def answer(self, context: Context) -> Draft:
        """Answer within the run's budget; a service that fails is named in its `degraded`, never raised."""
