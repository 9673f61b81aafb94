"""A question as strategies and steps see it."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from proto.answer import SearchResult
from proto.collections import Filter
from proto.options import Options
from services.gateway.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what the caller sent with it.

    Attributes:
        search_results: pages to answer from.
        search: whether the web is searched for further pages.
        collections: names of collections to answer from as well.
        filters: conditions on their documents.
        evidence: passages that take the place of retrieval.
        options: of the strategy.
        every_answer: whether the answer is given whatever its probability, with all its signals.
    """

    query: str
    query_time: datetime
    search_results: tuple[SearchResult, ...] = ()
    collections: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    search: bool = False
    every_answer: bool = False
    options: Options = field(default_factory=Options)


# "Can you tell me ...?" is no yes-or-no question, but small models answer "yes". Without "me" most of it asks
# something: "Can you give a cat aspirin?"; but not before "the date of".
_POLITE = re.compile(
    r"(?:(?:hey|hi|hello|please|so|ok(?:ay)?)\b[,!]?\s+)*"
    r"(?P<phrase>(?:(?:(?:can|could|would|will)\s+you|are\s+you\s+able\s+to)\s+(?:please\s+|possibly\s+)?)?"
    r"(?:tell|give|show|inform|remind|provide|find|share)\s+(?:me|us)"
    r"|(?:can|could|would)\s+you\s+(?:please\s+|possibly\s+)?"
    r"(?:name|list|specify|tell(?=\s+(?:who|what|when|where|which|how|why|if|whether|the)\b))"
    r"|(?:(?:can|could|would)\s+you\s+(?:please\s+)?|please\s+)(?:provide|give|find|share|show)"
    r"(?=\s+the\s+(?:\w+\s+){1,3}(?:of|in|when|for)\b)"
    r"|(?:do|would)\s+you\s+(?:happen\s+to\s+)?know|i(?:['’]d|\s+would)\s+like\s+to\s+know|i\s+want\s+to\s+know)"
    r"(?:\s+(?:with|about|of))?[,:]?\s+(?=\S)",
    re.IGNORECASE,
)
# Show Me the Money; I Want to Know What Love Is.
_TITLE = re.compile(r"\s[A-Z]")

# "Is it open?", "it's 9 degrees - do I have to wait?", not "in the U.S. does ..."; which of two is something else.
_WHETHER = re.compile(
    r"(?:^|(?:(?<![A-Z]\.[A-Z])\.|[,;:!?])\s+|\s[-–—]\s+|\b(?:then|so)\s+)\W*+"
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should"
    r"|may|might|must|isn['’]t|aren['’]t|don['’]t|doesn['’]t|didn['’]t|can['’]t)\b(?!.*\bor\b)",
    re.IGNORECASE | re.DOTALL,
)
# "My cat stays for ten days, ok?", "55 rolls for tomorrow. Still possible?"
_TAG = re.compile(
    r"[-–—,.?!]\s*(?:(?:is\s+)?(?:that|this|it)\s+)?(?:still\s+)?(?:ok(?:ay)?|fine|all\s?right|allowed|permitted|possible"
    r"|covered|included|enough|in\s+time)(?:\s+(?:by|for|with)\s+\w+)?\W*$",
    re.IGNORECASE,
)
_ASKING_WORD = r"\b(?:who|whom|whose|what|which|where|why|how)\b"
# What is left of "can you tell me if dogs are allowed?"
_INDIRECT = re.compile(rf"\W*(?:if|whether)\b(?![^,]*{_ASKING_WORD})[^,]*$", re.IGNORECASE)
# A "when" before it may be a condition.
_ASKING = re.compile(rf"{_ASKING_WORD}|^\W*when\W+(?:exactly|if\s+ever)\b", re.IGNORECASE)
# "Does anyone know who keeps the keys?", "can you explain the rule?"
_TO_BE_TOLD = re.compile(
    r"\b(?:(?:i|we)\s+(?:\w+\s+)?(?:ask|check|find\s+out|know|see)|(?:you|(?:any|some)(?:one|body))\s+(?:\w+\s+)?"
    rf"(?:know|remember|remind|say|tell))\b.*(?:{_ASKING_WORD}|\bwhen\b)"
    r"|^\W*(?:can|could|will|would)\s+(?:you|someone|somebody|anyone|anybody)\s+(?:please\s+)?"
    r"(?:describe|explain|give|list|name|outline|show|summari[sz]e)\b",
    re.IGNORECASE | re.DOTALL,
)


def asks_whether(query: str) -> bool:
    """Whether a question without a polite phrase wants yes or no."""
    begin = _WHETHER.search(query) or _TAG.search(query) or _INDIRECT.match(query)
    if begin is None or _ASKING.search(query, 0, begin.start()):
        return False
    return _TO_BE_TOLD.search(query, begin.start()) is None


def plain(query: str) -> str:
    """A question without the polite phrase in front of it."""
    polite = _POLITE.match(query)
    is_title = polite and not query.isupper() and _TITLE.search(polite["phrase"])
    return query if polite is None or is_title else query[polite.end() :]
