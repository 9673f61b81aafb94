"""CRAG reads the first 75 tokens of an answer: here they are cut, by the generator's tokenizer where it has one."""

import re
from itertools import islice

from services.kit.errors import ServiceFailure
from services.kit.llm import LLM

MAX_TOKENS = 75
TOKENIZE_S = 5.0

# Letters by fours, digits, marks and anything beyond ASCII one by one: more pieces than any usual tokenizer makes.
_PIECE = re.compile(r"\s*(?:[A-Za-z]{1,4}|\S)")

BY_TOKENIZER = "the generator's tokenizer"
BY_ESTIMATE = "an estimate from above: a token for each four letters, each digit and each mark"


def cut_by_estimate(text: str) -> str:
    """The start of a text that has at most 75 tokens, counted from above."""
    pieces = list(islice(_PIECE.finditer(text), MAX_TOKENS + 1))
    return text if len(pieces) <= MAX_TOKENS else text[: pieces[-2].end()].rstrip()


class TokenCutter:
    """Cuts answers to CRAG's length.

    Args:
        llm: the generator, None when it is not to be asked.
    """

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm
        self.counter = BY_ESTIMATE

    async def probe(self) -> str:
        """See whether the generator counts tokens; returns in words what does."""
        if self._llm is not None:
            try:
                # Two texts of one length that an estimate by length cannot tell apart.
                spaced = await self._llm.count_tokens("a b c d e f g h", allow_s=TOKENIZE_S)
                joined = await self._llm.count_tokens("information the", allow_s=TOKENIZE_S)
                self.counter = BY_TOKENIZER if spaced != joined else BY_ESTIMATE
            except ServiceFailure:
                self.counter = BY_ESTIMATE
        if self.counter == BY_ESTIMATE:
            self._llm = None
        return self.counter

    async def cut(self, text: str) -> str:
        """The first 75 tokens of an answer."""
        if len(text.encode(errors="replace")) <= MAX_TOKENS:
            # A token is one byte at least.
            return text
        if self._llm is None:
            return cut_by_estimate(text)
        try:
            kept, _ = await self._llm.truncate(text, MAX_TOKENS, allow_s=TOKENIZE_S)
        except ServiceFailure:
            return cut_by_estimate(text)
        return kept
