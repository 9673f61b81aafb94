"""From a model's reply to the answer that CRAG scores: one line, canonical abstentions (CRAG; ElectricSheep, 4.7)."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from proto.answer import AnswerKind
from services.kit.llm import Sample
from services.kit.text.cutting import FULL_STOPS, whole_words

UNKNOWN = "i don't know"
INVALID = "invalid question"

_LABEL = re.compile(r"^\s*(?:\*\*)?(?:final\s+)?(?:answer|response|a)(?:\*\*)?\s*:\s*(?:\*\*)?\s*", re.IGNORECASE)
# What models think before they answer; some templates begin it in the prompt.
_THOUGHT = re.compile(r"\A(?:(?!<think>).)*</think>|<think>.*?(?:</think>|\Z)", re.IGNORECASE | re.DOTALL)
_CODE_FENCE = re.compile(r"(?:`{3}|~{3})\s*\w*")
_DO_NOT = r"(?:do\s*not|don\s*['’`´]?\s*t)"
_CANNOT = r"(?:can\s*not|can\s*['’`´]\s*t|could\s+not|couldn\s*['’`´]\s*t)"
_I_AM = r"\bi(?:\s+am|\s*['’`´]\s*m)"
_FIND = r"(?:answer|determine|find|provide|say)"
_SOURCES = r"(?:documents?|context|references?|passages?|texts?|pages?)"
_THE_SOURCES = rf"(?:the|these|this)\s+(?:provided\s+|given\s+|above\s+)?{_SOURCES}"
_STATED = r"(?:mentioned|specified|stated|provided|given|included)"
_UNKNOWN = re.compile(
    rf"\bi\s*{_DO_NOT}\s+(?:really\s+|actually\s+)?know\b"
    rf"|\bi\s+{_CANNOT}\s+{_FIND}"
    rf"|{_I_AM}\s+(?:not\s+able|unable)\s+to\s+{_FIND}"
    rf"|\bi\s*{_DO_NOT}\s+have\s+(?:(?:any|the|enough|sufficient|specific)\s+)?(?:information|access|data)\b"
    rf"|\b(?:{_SOURCES}|information)\s+(?:provided\s+|given\s+|above\s+)?"
    r"(?:do|does|did)(?:\s+not|n['’]t)\s+(?:contain|mention|provide|specify|include|state|say|give|answer)"
    rf"|\bnone\s+of\s+{_THE_SOURCES}\s+(?:contain|mention|provide|specif|include|state|say|give|answer)"
    rf"|\b(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:\w+ly\s+)?{_STATED}\s+in\s+{_THE_SOURCES}"
    rf"|\b{_CANNOT}\s+be\s+(?:determined|answered|found|inferred)\s+(?:based\s+on|from|in|with|using)\s+{_THE_SOURCES}"
    rf"|\b(?:no|not\s+enough|insufficient)\s+(?:\w+\s+)?(?:information|mention)\b[^.;]*?\sin\s+{_THE_SOURCES}"
    rf"|\b{_SOURCES}\s+(?:provide|contain|give|include|have)\s+no\s+(?:\w+\s+)?(?:information|mention)\b"
    rf"|\bthe\s+answer\s+is(?:\s+not|n['’]t)\s+(?:{_STATED}\s+)?in\s+{_THE_SOURCES}"
    # At the start of an answer, where they speak of all of it.
    r"|^\W*(?:(?:sorry|unfortunately|no)\W+)?there(?:\s+is|['’]s)\s+(?:no|not\s+enough|insufficient)\s+(?:\w+\s+)?information"
    r"(?=\s+(?:about|available|concerning|given|on|provided|regarding|that|to)\b|\W*$)"
    r"|^\W*(?:the|this|that)\s+information\s+(?:is|was)(?:\s+not|n['’]t)\s+(?:available|provided|given)\W*$"
    rf"|^\W*{_I_AM}\s+not\s+(?:\w+ly\s+|quite\s+)?(?:sure|certain)\b"
    rf"|^\W*(?:(?:it|this|that|the\s+answer)\s+)?{_CANNOT}\s+be\s+(?:determined|answered)(?=[.,;]|\s*$)"
    rf"|^\W*(?:{_CANNOT}|unable\s+to)\s+(?:answer|determine)\b"
    rf"|^\W*not\s+(?:\w+ly\s+)?(?:{_STATED}|found|available)\s+in\s+{_THE_SOURCES}"
    r"|^\W*(?:insufficient|no|not\s+enough)\s+(?:\w+\s+)?information"
    r"\s+(?:(?:is|was)\s+)?(?:about|on|available|provided|given|found|stated)\b"
    # "Not included" may answer whether breakfast is.
    r"|^\W*(?-i:[Nn]ot)\s+(?-i:mentioned|specified|stated)\W*$",
    re.IGNORECASE,
)
# Alone on a line, whatever the others say.
_ONLY_UNKNOWN = re.compile(rf"\W*i\s*{_DO_NOT}\s+know\W*", re.IGNORECASE)
# A title: I Don't Know Why.
_TITLE = re.compile(r"I\s+(?:Do\s+Not|Don\s*['’`´]?\s*[tT])\s+Know(?=\s+\w)|I(?:\s+A|['’`´])m\s+Not\s+Sure\b")
_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]")
_INVALID = re.compile(
    r"^\W*(?:this\s+is\s+an?\s+|the\s+question\s+is\s+)?invalid(?:\s+(?:question|premise)\b|\W*$)",
    re.IGNORECASE,
)
# What a full stop does not end: titles, months, companies.
_SHORT = """approx apr aug ave bros co corp dec dept dr est feb fig ft gen gov inc jan jr ltd mr mrs ms mt no nov oct
prof rep rev sen sep sept sr st vol vs"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_ITEM = re.compile(r"^\s*(?:[-*•]|(\d{1,2})[.)])\s+(?=\S)")
# Days as stores of data write them and no reader expects them, where nothing else is said: an amount may look so too.
_DAY = r"((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
_COMPACT_DAY = re.compile(_DAY)
_COMPACT_DAYS = re.compile(rf"{_DAY}(?:(?:\s*[,;]|\s+(?:and|to))\s+{_DAY})*\.?")
# A word with the mark behind it, which may end a sentence.
_ENDING = re.compile(r"(\S+?)([.!?]) ")
_WORD = re.compile(r"\w")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Normalized:
    """An answer as CRAG reads it; `cut` where it lacks the end of its only sentence, or the list's last item."""

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
    lines = [_CONTROL.sub(" ", line).strip() for line in _THOUGHT.sub("", text).splitlines()]
    lines = [line for line in lines if _WORD.search(line) and not _CODE_FENCE.fullmatch(line)]
    if len(lines) > 1 and lines[0].rstrip("* ").endswith(":"):
        # A label or an announcement on a line of its own, with the answer below it.
        lines = lines[1:]
    line, cut = _LABEL.sub("", lines[0]) if lines else "", False
    if len(lines) > 1 and all(map(_ITEM.match, lines[:2])):
        items = list(itertools.takewhile(_ITEM.match, lines))
        if cut := not finished and len(items) == len(lines):
            items.pop()
        line = ", ".join(_ITEM.sub("", item) for item in items) if _are_counted(items) else ", ".join(items)
    if _is_unknown(line) or any(map(_ONLY_UNKNOWN.fullmatch, lines)):
        return Normalized(UNKNOWN, "unknown")
    if _INVALID.match(line):
        return Normalized(INVALID, "invalid_question")
    if not finished and len(lines) == 1:
        whole = _whole_sentences(line)
        cut = not whole
        line = whole or whole_words(line).rstrip(",;:，；、")
    line = " ".join(line.split()).strip("*` ")
    if _COMPACT_DAYS.fullmatch(line):
        line = _COMPACT_DAY.sub(r"\1-\2-\3", line)
    if not _WORD.search(line):
        return Normalized(UNKNOWN, "unknown")
    return Normalized(line, "answer", cut)


def _are_counted(items: Sequence[str]) -> bool:
    """Whether the numbers of items, where they have some, count them: those of "10. May" and "12. June" are days."""
    numbers = [int(match[1]) for item in items if (match := _ITEM.match(item)) and match[1]]
    return all(following == number + 1 for number, following in itertools.pairwise(numbers))


def _is_unknown(line: str) -> bool:
    """Whether the answer's line says that it is none, outside of titles."""
    plain = _TITLE.sub(" ", line)
    unquoted = _QUOTED.sub(" ", plain)
    return _UNKNOWN.search(unquoted if _WORD.search(unquoted) else plain) is not None


def _whole_sentences(line: str) -> str:
    """The sentences of a line that was cut without the last one, which is not whole; empty if it is the only one."""
    *_, last = ("", *line.split())
    # What ends so may go on: $3.5 million, J. Smith.
    may_go_on = last[-2:-1].isdigit() or _is_abbreviation(last[:-1])
    if line.endswith(("!", "?")) or (line.endswith(".") and not may_go_on):
        return line
    ends = [match.end(2) for match in _ENDING.finditer(line) if match[2] != "." or not _is_abbreviation(match[1])]
    return line[: max(*ends, *(line.rfind(mark) + 1 for mark in FULL_STOPS))]


def _is_abbreviation(word: str) -> bool:
    word = word.strip("\"'“”‘’()[]*")
    return word.lower() in _ABBREVIATIONS or "." in word.strip(".") or (len(word) == 1 and word.isalpha())
