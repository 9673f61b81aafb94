"""From a model's reply to the answer that CRAG scores: one line, canonical abstentions (CRAG; ElectricSheep, 4.7)."""

import itertools
import re
from dataclasses import dataclass

from proto.answer import AnswerKind
from services.kit.llm import Sample
from services.kit.text.cutting import FULL_STOPS, whole_words

UNKNOWN = "i don't know"
INVALID = "invalid question"

_LABEL = re.compile(r"^\s*(?:\*\*)?(?:final\s+)?(?:answer|response|a)(?:\*\*)?\s*:\s*(?:\*\*)?\s*", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"\bi\s*(?:do\s*not|don\s*['’`´]?\s*t)\s+(?:really\s+|actually\s+)?know\b"
    r"|\b(?:i\s+(?:cannot|can\s*not|can['’]t|am\s+(?:not\s+able|unable)\s+to)\s+(?:answer|determine|find|provide|say))"
    r"|\b(?:documents?|context|references?|passages?|texts?|information|pages?)\s+(?:provided\s+|given\s+|above\s+)?"
    r"(?:do|does|did)(?:\s+not|n['’]t)\s+(?:contain|mention|provide|specify|include|state|say|give|answer)"
    r"|\b(?:is|are|was|were)\s+not\s+(?:mentioned|specified|stated|provided|given|included)\s+in\s+the\s+"
    r"(?:documents?|context|references?|passages?|texts?|pages?)",
    re.IGNORECASE,
)
# Alone on a line, whatever the others say.
_ONLY_UNKNOWN = re.compile(r"\W*i\s*(?:do\s*not|don\s*['’`´]?\s*t)\s+know\W*", re.IGNORECASE)
# A title: I Don't Know Why.
_TITLE = re.compile(r"I\s+(?:Do\s+Not|Don\s*['’`´]?\s*[tT])\s+Know(?=\s+\w)")
_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]")
_INVALID = re.compile(
    r"^\W*(?:this\s+is\s+an?\s+|the\s+question\s+is\s+)?invalid(?:\s+(?:question|premise)\b|\s*(?:$|[.,:;!(*-]))",
    re.IGNORECASE,
)
# What a full stop does not end: titles, months, companies.
_SHORT = """approx apr aug ave bros co corp dec dept dr est feb fig ft gen gov inc jan jr ltd mr mrs ms mt no nov oct
prof rep rev sen sep sept sr st vol vs"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
# Days as stores of data write them and no reader expects them.
_COMPACT_DAY = re.compile(r"(?<![\w.,$€£/-])((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?![\w%/-]|[.,]\d)")
# A word with the mark behind it, which may end a sentence.
_ENDING = re.compile(r"(\S+?)([.!?]) ")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Normalized:
    """An answer as CRAG reads it; `cut` where it ends within its only sentence, before a word that may be half."""

    answer: str
    kind: AnswerKind
    cut: bool = False


def normalize_sample(sample: Sample) -> Normalized:
    """The answer of a generator's sample."""
    return normalize(sample.text, finished=sample.finish_reason != "length")


def normalize(text: str, *, finished: bool = True) -> Normalized:
    """The answer in a model's reply, on one line.

    Args:
        text: the reply, at most 75 tokens long by the generator's `max_tokens`.
        finished: whether the model ended by itself; a reply that was cut loses its unfinished last sentence, and the
            last word of an only one.
    """
    lines = [line for line in (_CONTROL.sub(" ", line).strip() for line in text.splitlines()) if line]
    if len(lines) > 1 and lines[0].rstrip("* ").endswith(":"):
        # A label or an announcement on a line of its own, with the answer below it.
        lines = lines[1:]
    line = _LABEL.sub("", lines[0]) if lines else ""
    if len(lines) > 1 and all(map(_ITEM.match, lines[:2])):
        items = itertools.takewhile(_ITEM.match, lines)
        line = ", ".join(_ITEM.sub("", item) for item in items)
    if _is_unknown(line) or any(map(_ONLY_UNKNOWN.fullmatch, lines)):
        return Normalized(UNKNOWN, "unknown")
    if _INVALID.match(line):
        return Normalized(INVALID, "invalid_question")
    cut = False
    if not finished and len(lines) == 1:
        whole = _whole_sentences(line)
        cut = not whole
        line = whole or whole_words(line).rstrip(",;:，；、")
    line = _COMPACT_DAY.sub(r"\1-\2-\3", " ".join(line.split()).strip("*` "))
    if not re.search(r"\w", line):
        return Normalized(UNKNOWN, "unknown")
    return Normalized(line, "answer", cut)


def _is_unknown(line: str) -> bool:
    """Whether the answer's line says that it is none, outside of titles."""
    plain = _TITLE.sub(" ", line)
    unquoted = _QUOTED.sub(" ", plain)
    return _UNKNOWN.search(unquoted if re.search(r"\w", unquoted) else plain) is not None


def _whole_sentences(line: str) -> str:
    """The sentences of a line that was cut without the last one, which is not whole; empty if it is the only one."""
    if line.endswith((".", "!", "?")):
        return line
    ends = [match.end(2) for match in _ENDING.finditer(line) if match[2] != "." or not _is_abbreviation(match[1])]
    return line[: max(*ends, *(line.rfind(mark) + 1 for mark in FULL_STOPS))]


def _is_abbreviation(word: str) -> bool:
    word = word.strip("\"'“”‘’()[]*")
    return word.lower() in _ABBREVIATIONS or "." in word.strip(".") or (len(word) == 1 and word.isalpha())
