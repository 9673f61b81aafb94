"""A running estimate of the generator's speed, so that a strategy asks no more of it than the time left allows.

Requests in flight share the engine: it reads their prompts one after the other, and writes their answers side by side.
A prompt is priced at its tokens times the number of requests, which also gives each of them its fair share.
"""

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar

from services.gateway.settings import GatewaySettings
from services.kit.errors import Overloaded

# Each new request multiplies the weight of the older ones by this: ten of them show a generator that slows under load.
DECAY = 0.9
# The speed is an average: calls are planned as if they took this much longer.
MARGIN = 1.3
# The overhead of a request hides the price of a token in shorter ones.
MIN_PROMPT_TOKENS = 100
MIN_COMPLETION_TOKENS = 8
# Requests that the prior weighs as much as.
PRIOR_WEIGHT = 2.0
# Questions that shared the engine when the current one was admitted, itself included; 0 where nobody counted.
current_sharing: ContextVar[int] = ContextVar("current_sharing", default=0)


class GeneratorSpeed:
    """Seconds per prompt token and per completion token, from a prior, by exponentially weighted least squares.

    Attributes:
        in_flight_elsewhere: questions in other gateways.
    """

    def __init__(self, prefill_s: float, decode_s: float) -> None:
        self.prefill_s = prefill_s
        self.decode_s = decode_s
        self.in_flight_elsewhere = 0
        self._prior = (prefill_s, decode_s)
        self._in_flight = 0
        self._question_s = self._questions = 0.0
        # Sums of products of prompt tokens, completion tokens and time.
        self._pp = self._pc = self._cc = self._pt = self._ct = 0.0
        self._add_prior()

    @classmethod
    def configured(cls, settings: GatewaySettings) -> "GeneratorSpeed":
        """The settings' prior."""
        return cls(1 / settings.prefill_tokens_per_s, 1 / settings.decode_tokens_per_s)

    @property
    def sharing(self) -> int:
        """Requests that share the engine, in all gateways; at least one."""
        return max(1, self._in_flight + self.in_flight_elsewhere)

    @property
    def question_s(self) -> float | None:
        """Seconds that the engine takes for all calls of one question; None before the first."""
        return self._question_s / self._questions if self._questions else None

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count a request that needs the engine while the context is open."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Expected seconds of a request of this size, now."""
        return prompt_tokens * self.sharing * self.prefill_s + completion_tokens * self.decode_s

    def planned_s(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Seconds to plan for a request of this size."""
        return self.seconds(prompt_tokens, completion_tokens) * MARGIN

    def affordable_prompt(self, seconds: float, completion_tokens: int) -> int:
        """The longest prompt, in tokens, for which so many seconds are planned."""
        return max(0, int((seconds / MARGIN - completion_tokens * self.decode_s) / (self.prefill_s * self.sharing)))

    def affordable_completion(self, seconds: float, prompt_tokens: int) -> int:
        """The longest completion, in tokens, for which so many seconds are planned."""
        return max(0, int((seconds / MARGIN - prompt_tokens * self.sharing * self.prefill_s) / self.decode_s))

    def observe(self, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
        """Learn from a request that has ended, or from one that was cancelled after `seconds` without a completion."""
        if prompt_tokens < MIN_PROMPT_TOKENS and completion_tokens < MIN_COMPLETION_TOKENS:
            return
        self._add(float(prompt_tokens * self.sharing), float(completion_tokens), seconds, 1.0)
        self._solve()

    def observe_question(self, seconds: float, sharing: int) -> None:
        """Learn what a question costs the engine, by Little's law: seconds until the engine was done with it.

        Questions in the engine when it came share them, itself included; those that come later do not delay it.
        """
        self._question_s = DECAY * self._question_s + seconds
        self._questions = DECAY * self._questions + sharing

    def require(self, budget_s: float) -> None:
        """Check that one more question can be answered within its budget.

        Raises:
            Overloaded: it cannot beside those in flight.
        """
        cost_s = self.question_s
        if cost_s and self._in_flight + self.in_flight_elsewhere and (self.sharing + 1) * cost_s > budget_s:
            raise Overloaded(
                f"{self.sharing} questions are on their way: the generator needs more than {budget_s:g} s for this one",
                retry_after_s=math.ceil(cost_s),
            )

    def regress(self) -> None:
        """Move the estimate a little towards the prior, after it has ruled a request out.

        An engine that was slow for a while would otherwise never be measured again.
        """
        self._add_prior()
        self._solve()

    def _add_prior(self) -> None:
        """Add the prior as two requests, one all prompt and one all completion."""
        prefill_s, decode_s = self._prior
        for prompt, completion in ((1_000.0, 0.0), (0.0, 50.0)):
            self._add(prompt, completion, prompt * prefill_s + completion * decode_s, PRIOR_WEIGHT)

    def _solve(self) -> None:
        determinant = self._pp * self._cc - self._pc**2
        if determinant > 1e-9 * self._pp * self._cc:
            prefill = (self._pt * self._cc - self._ct * self._pc) / determinant
            decode = (self._ct * self._pp - self._pt * self._pc) / determinant
            if prefill > 0 and decode > 0:
                self.prefill_s, self.decode_s = prefill, decode
                return
        # The observations do not separate the two: keep their proportion and scale both.
        expected = self._pp * self.prefill_s**2 + 2 * self._pc * self.prefill_s * self.decode_s
        expected += self._cc * self.decode_s**2
        scale = (self._pt * self.prefill_s + self._ct * self.decode_s) / expected
        self.prefill_s, self.decode_s = self.prefill_s * scale, self.decode_s * scale

    def _add(self, prompt: float, completion: float, seconds: float, weight: float) -> None:
        self._pp = DECAY * self._pp + weight * prompt * prompt
        self._pc = DECAY * self._pc + weight * prompt * completion
        self._cc = DECAY * self._cc + weight * completion * completion
        self._pt = DECAY * self._pt + weight * prompt * seconds
        self._ct = DECAY * self._ct + weight * completion * seconds
