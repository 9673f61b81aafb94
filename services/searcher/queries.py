"""A question as search engines take it."""

import re
from datetime import datetime
from importlib import resources

from services.kit.untrusted import one_line

# Words of little weight to an engine: function words of English, and those of questions.
_FUNCTION_WORDS = frozenset(resources.files("services.searcher").joinpath("function_words.txt").read_text().split())
_PRESENT = re.compile(
    r"\b(?:now|currently?|latest|most recent|today|tonight|this (?:week|month|year|season))\b", re.IGNORECASE
)
_WORD = re.compile(r"[\w'$€£%&+./-]*\w")


def queries(question: str, asked_at: datetime, count: int) -> list[str]:
    """The engine's queries: the question and, where `count` is 2 and they are fewer words, its keywords.

    Keywords of a question about the present have its month: an engine would take its own.
    """
    whole = one_line(question)
    if count < 2:
        return [whole]
    words = [word for word in _WORD.findall(whole) if word.lower() not in _FUNCTION_WORDS]
    if _PRESENT.search(whole):
        words.append(f"{asked_at:%B %Y}")
    keywords = " ".join(words)
    return [whole] if not words or keywords.lower() == whole.lower().rstrip("?. ") else [whole, keywords]
