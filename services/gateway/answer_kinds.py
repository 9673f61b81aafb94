"""Whether an answer is of the kind that its question asks for, by the words of English in `data/answer_kinds.txt`."""

import re
from importlib.resources import files
from typing import Literal

from services.gateway.question import plain

Kind = Literal["time", "number", "person", "decision"]
ASKED: tuple[Kind, ...] = ("time", "number", "person")

_LINES = (files("services.gateway") / "data" / "answer_kinds.txt").read_text(encoding="utf-8").splitlines()
_TABLE = {key: tuple(word.strip() for word in words.split(",")) for key, _, words in (x.partition(":") for x in _LINES)}
_SAYS = {kind: frozenset(_TABLE[f"says a {kind}"]) for kind in ("time", "number", "decision")}
_ASKS_A_DECISION = frozenset(_TABLE["asks a decision"])
_ASKS = re.compile(
    "|".join(rf"(?P<{kind}>\b(?:{'|'.join(map(re.escape, _TABLE[f'asks a {kind}']))})\b)" for kind in ASKED)
)
_CHOICE = re.compile(r"\bor\b")
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")


def kind_asked(query: str) -> Kind | None:
    """The kind that a question names first; None where it names none, or offers a choice."""
    text = plain(query.strip()).lower()
    first = _WORD.match(text)
    if first is not None and first[0] in _ASKS_A_DECISION:
        return None if _CHOICE.search(text) else "decision"
    found = _ASKS.search(text)
    return next(kind for kind in ASKED if found[kind]) if found else None


def fits(query: str, answer: str) -> bool:
    """Whether an answer is of the kind asked for; true where none is."""
    kind = kind_asked(query)
    if kind is None:
        return True
    words = _WORD.findall(answer.lower())
    decided = bool(words) and words[0] in _SAYS["decision"]
    if kind == "decision":
        return decided
    numeric = _DIGIT.search(answer) is not None
    if kind == "person":
        return not numeric and not decided
    return numeric or not _SAYS[kind].isdisjoint(words)
