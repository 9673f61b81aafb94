"""A running estimate of the generator's speed, so that a strategy asks no more of it than the time left allows.

Requests in flight share the engine: it reads their prompts one after the other, and writes their answers side by side.
So a prompt is taken to cost its tokens times the number of requests, which also gives each of them its fair share.
"""

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar

from services.gateway.settings import GatewaySettings
from services.kit.errors import Overloaded

# Older requests fade by this factor with each new one: a generator that slows under load is believed within ten.
FADE = 0.9
# Shorter requests cost what any request costs, whatever their length: they tell nothing of a token's price.
TELLING_PROMPT = 100
TELLING_COMPLETION = 8
# How many requests' worth of belief the first guess carries.
PRIOR_WEIGHT = 2.0
# Of the question in hand, itself included, when it was admitted; 0 where nobody counted.
current_sharing: ContextVar[int] = ContextVar("current_sharing", default=0)


class Pace:
    """Seconds per prompt token and per completion token, by exponentially weighted least squares.

    Args:
        prefill_s: first guess, seconds per prompt token.
        decode_s: first guess, seconds per completion token.
    """

    def __init__(self, prefill_s: float, decode_s: float) -> None:
        self.prefill_s = prefill_s
        self.decode_s = decode_s
        self._guess = (prefill_s, decode_s)
        self._in_flight = 0
        # Questions of other gateways.
        self.elsewhere = 0
        self._question_s = self._questions = 0.0
        # The guess enters as two imagined requests, one nearly all prompt and one nearly all completion.
        self._pp = self._pc = self._cc = self._pt = self._ct = 0.0
        self._imagine(PRIOR_WEIGHT)

    @classmethod
    def first(cls, settings: GatewaySettings) -> "Pace":
        """The settings' guess."""
        return cls(1 / settings.prefill_tokens_per_s, 1 / settings.decode_tokens_per_s)

    @property
    def sharing(self) -> int:
        """How many requests share the engine, in all gateways; at least one."""
        return max(1, self._in_flight + self.elsewhere)

    @property
    def question_s(self) -> float | None:
        """Seconds that the engine takes for a question of its own, whatever it asks of it; None before the first."""
        return self._question_s / self._questions if self._questions else None

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count a request as one that will need the engine while the context is open."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        """How long a request of this size should take now."""
        return prompt_tokens * self.sharing * self.prefill_s + completion_tokens * self.decode_s

    def affordable_prompt(self, seconds: float, completion_tokens: int) -> int:
        """The longest prompt, in tokens, whose answer should be there in time."""
        return max(0, int((seconds - completion_tokens * self.decode_s) / (self.prefill_s * self.sharing)))

    def affordable_completion(self, seconds: float, prompt_tokens: int) -> int:
        """The longest answer, in tokens, that should be there in time."""
        return max(0, int((seconds - prompt_tokens * self.sharing * self.prefill_s) / self.decode_s))

    def observe(self, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
        """Learn from a request that has ended, or from one given up after `seconds` with nothing to show."""
        if prompt_tokens < TELLING_PROMPT and completion_tokens < TELLING_COMPLETION:
            return
        self._add(float(prompt_tokens * self.sharing), float(completion_tokens), seconds, 1.0)
        self._solve()

    def answered(self, seconds: float, sharing: int) -> None:
        """Learn what a question costs the engine, by Little's law.

        Args:
            seconds: until the engine was done with it.
            sharing: when it came, itself included: an engine that works in turn lets nobody pass who comes later.
        """
        self._question_s = FADE * self._question_s + seconds
        self._questions = FADE * self._questions + sharing

    def promise(self, budget_s: float) -> None:
        """See that a question beside all others is answered within a budget of its own.

        Raises:
            Overloaded: it would not be, and waiting helps.
        """
        cost_s = self.question_s
        if cost_s and self._in_flight + self.elsewhere and (self.sharing + 1) * cost_s > budget_s:
            raise Overloaded(
                f"{self.sharing} questions are on their way: the generator needs more than {budget_s:g} s for this one",
                retry_after_s=math.ceil(cost_s),
            )

    def doubt(self) -> None:
        """Move a little back to the first guess: a request was not made because of what is believed.

        Without it an engine that was slow for a while would never be asked again, and never be found fast again.
        """
        self._imagine(PRIOR_WEIGHT)
        self._solve()

    def _imagine(self, weight: float) -> None:
        prefill_s, decode_s = self._guess
        for prompt, completion in ((1_000.0, 0.0), (0.0, 50.0)):
            self._add(prompt, completion, prompt * prefill_s + completion * decode_s, weight)

    def _solve(self) -> None:
        determinant = self._pp * self._cc - self._pc**2
        if determinant > 1e-9 * self._pp * self._cc:
            prefill = (self._pt * self._cc - self._ct * self._pc) / determinant
            decode = (self._ct * self._pp - self._pt * self._pc) / determinant
            if prefill > 0 and decode > 0:
                self.prefill_s, self.decode_s = prefill, decode
                return
        # Nothing tells the two apart: keep their proportion and scale both to what was seen.
        expected = self._pp * self.prefill_s**2 + 2 * self._pc * self.prefill_s * self.decode_s
        expected += self._cc * self.decode_s**2
        scale = (self._pt * self.prefill_s + self._ct * self.decode_s) / expected
        self.prefill_s, self.decode_s = self.prefill_s * scale, self.decode_s * scale

    def _add(self, prompt: float, completion: float, seconds: float, weight: float) -> None:
        self._pp = FADE * self._pp + weight * prompt * prompt
        self._pc = FADE * self._pc + weight * prompt * completion
        self._cc = FADE * self._cc + weight * completion * completion
        self._pt = FADE * self._pt + weight * prompt * seconds
        self._ct = FADE * self._ct + weight * completion * seconds
