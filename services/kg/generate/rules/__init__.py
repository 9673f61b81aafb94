"""Programs by rules: names are looked up, words of the question choose functions, keys and windows.

So did WeKnow-RAG, APEX and the official baseline of the challenge; no language model is needed, and a question costs
milliseconds. It is what remains when the generator is down.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from services.kg.generate.base import Written, as_data
from services.kg.generate.rules import finance, movie, music, open_, sports
from services.kg.generate.rules.question import Question
from services.kg.generate.spans import Spotter
from services.kit.budget import Budget

# A question's statements by domain; none when no rule fits.
RULES: Mapping[str, Callable[[Question], list[str]]] = {
    "movie": movie.statements,
    "finance": finance.statements,
    "music": music.statements,
    "sports": sports.statements,
    "open": open_.statements,
}


@dataclass(frozen=True, slots=True)
class RuleWriter:
    """Writes programs without a model.

    Args:
        spotter: finds the names; without one they are guessed from where the question's own words end.
    """

    spotter: Spotter | None = None
    name: str = "rules"

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`; `feedback` changes nothing, as rules know nothing else to say."""
        program = await asyncio.to_thread(self.program, query, query_time, domain)
        return Written(program, self.name)

    def program(self, query: str, query_time: datetime, domain: str) -> str:
        """As `write`, blocking."""
        statements = RULES.get(domain, RULES["open"])
        text = as_data(query)
        spots = self.spotter.spot(text, self.spotter.kinds_of(domain)) if self.spotter is not None else []
        question = Question(text, domain, query_time, tuple(spots))
        return "\n".join(dict.fromkeys(statements(question))) or "none"
