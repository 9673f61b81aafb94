"""The judge `llm`: any OpenAI-compatible model, constrained to one of two words, with a cache of its verdicts.

It sees the question, the gold answers and the prediction, never whose it is, and no case that the protocol decides.
"""

import asyncio
import hashlib
import json

from lab.evaluator.errors import Unreachable
from lab.evaluator.judge import protocol
from lab.evaluator.judge.verdict import Case, Outcome, Verdict
from lab.evaluator.store import AppendLog, Stored, read_lines
from services.kit.errors import BadReply, ServiceFailure, ServiceRejected
from services.kit.llm import LLM, Constraint
from services.kit.prompts import PromptFolder
from services.kit.untrusted import harmless

NAME = "llm"
UNJUDGED = "unjudged"

CORRECT, INCORRECT = "correct", "incorrect"
# Servers that do not know vLLM's `choice` refuse it or ignore it; JSON schema is what the others have.
CONSTRAINTS = (
    Constraint(choice=(CORRECT, INCORRECT)),
    Constraint(
        json_schema={
            "type": "object",
            "properties": {"verdict": {"type": "string", "enum": [CORRECT, INCORRECT]}},
            "required": ["verdict"],
            "additionalProperties": False,
        }
    ),
)
MAX_TOKENS = 24
PAUSES_S = (1.0, 3.0)
BAD_REQUEST, UNPROCESSABLE = 400, 422


class CachedVerdict(Stored):
    """One line of the cache; `key` is a hash of the model, the prompt and the case."""

    key: str
    verdict: str


class LlmJudge:
    """Judges by asking a model.

    Args:
        llm: the model.
        cache: the log of verdicts, each under a hash of its request.
        allow_s: seconds for one verdict.
    """

    def __init__(self, llm: LLM, cache: AppendLog, *, allow_s: float) -> None:
        self._llm = llm
        self._cache = cache
        self._allow_s = allow_s
        self._prompt = PromptFolder(__package__).prompt("judge")
        self._verdicts = {line.key: line.verdict for line in read_lines(cache.path, CachedVerdict)}
        self._constraint = 0
        self._model = ""

    async def connect(self) -> str:
        """The name of the model that judges.

        Raises:
            Unreachable: no server answers, or it serves nothing.
        """
        try:
            await self._llm.models(allow_s=self._allow_s)
        except ServiceFailure as failure:
            raise Unreachable(f"the judge does not answer: {failure}") from failure
        self._model = self._llm.model
        return self._model

    async def judge(self, case: Case) -> Verdict:
        """The verdict of protocol and model. A reply that is none counts as wrong, and is named.

        Raises:
            Unreachable: the server is gone; verdicts so far are kept.
        """
        if decided := protocol.decide(case):
            return decided
        content = json.dumps(
            {
                "question": harmless(case.question),
                "correct": [harmless(gold) for gold in case.gold],
                "given": harmless(case.prediction),
            }
        )
        # Caches of earlier versions hold keys over the prompt with the line ends of its file.
        request = (self._model, f"{self._prompt.system}\n", f"{self._prompt.user.template}\n", content)
        key = hashlib.sha256("\0".join(request).encode()).hexdigest()
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = await self._ask(content)
            self._verdicts[key] = verdict
            if verdict != UNJUDGED:
                await asyncio.to_thread(self._cache.append, CachedVerdict(key=key, verdict=verdict))
        outcome: Outcome = "right" if verdict == CORRECT else "wrong"
        return Verdict(outcome, NAME, UNJUDGED if verdict == UNJUDGED else f"judged {verdict}")

    async def _ask(self, content: str) -> str:
        messages = self._prompt.fill(case=content)
        tries = 0
        while True:
            used = self._constraint
            try:
                reply = await self._llm.chat(
                    messages,
                    max_tokens=MAX_TOKENS,
                    allow_s=self._allow_s,
                    temperature=0.0,
                    constraint=CONSTRAINTS[used],
                )
                if verdict := _verdict(reply.text):
                    return verdict
                raise BadReply("judge", "no verdict")
            except ServiceFailure as failure:
                unfit = isinstance(failure, BadReply) or (
                    isinstance(failure, ServiceRejected) and failure.status in (BAD_REQUEST, UNPROCESSABLE)
                )
                if unfit and used + 1 < len(CONSTRAINTS):
                    # Others that were asked meanwhile may have found out before.
                    self._constraint = max(self._constraint, used + 1)
                    continue
                if unfit:
                    return UNJUDGED
                if tries == len(PAUSES_S):
                    raise Unreachable(
                        f"the judge does not answer: {failure}; its verdicts so far are kept"
                    ) from failure
                await asyncio.sleep(PAUSES_S[tries])
                tries += 1


def _verdict(text: str) -> str:
    text = text.strip()
    if text in (CORRECT, INCORRECT):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    verdict = value.get("verdict") if isinstance(value, dict) else None
    return verdict if verdict in (CORRECT, INCORRECT) else ""
