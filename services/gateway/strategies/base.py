"""The base of strategies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from proto.options import Options
from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings


class Strategy(ABC):
    """A way to answer, composed of steps. Strategies keep no state, and none extends another."""

    name: ClassVar[str]
    summary: ClassVar[str]
    # Fields of `Options` that it heeds; a request with another is refused.
    options: ClassVar[frozenset[str]] = frozenset(("context_tokens",))
    # Parts that `cragmesh eval ablate` leaves out one at a time: name -> the options without it.
    parts: ClassVar[Mapping[str, Options]] = {}

    def min_domain_certainty(self, settings: GatewaySettings) -> float:
        """The domain is `open` below this certainty of the classifier."""
        return 0.0

    def describe(self, mesh: Mesh, settings: GatewaySettings) -> str:
        """A summary in a sentence or two, with what the mesh lacks for it now."""
        return self.summary

    @abstractmethod
    async def answer(self, context: Context) -> Draft:
        """The answer within the run's budget; a service that fails is named in `degraded`, never raised."""
