"""Verdicts of CRAG that need no judge (CRAG, section 3.2): exact matches, abstentions, invalid questions."""

import re

from lab.evaluator.judge.text import clean
from lab.evaluator.judge.verdict import Case, Verdict

UNKNOWN = "i don't know"
INVALID = "invalid question"

_UNKNOWN = re.compile(r"\bi (?:don'?t|do not) (?:really |actually )?know\b")
# Punctuation before a text; the point of .305 is its own.
_AROUND = re.compile(r"^(?:(?!(?<!\.)\.\d)[ .,;:!?\"'])+")
_INVALID = re.compile(r"^\W*(?:this is an? |(?:the|this) question is )?invalid(?: question)?\W*$|\binvalid question\b")


def is_abstention(text: str) -> bool:
    return _UNKNOWN.search(clean(text).lower()) is not None


def is_invalid(text: str) -> bool:
    return _INVALID.search(clean(text).lower()) is not None


def label_kind_of(gold: str) -> str:
    """The kind of a gold answer whose record does not say: answer, idk or invalid."""
    if bare(gold) == UNKNOWN:
        return "idk"
    return "invalid" if is_invalid(gold) else "answer"


def decide(case: Case) -> Verdict | None:
    """The verdict; None when a judge must compare the meanings of prediction and gold answer."""
    prediction = case.prediction.strip()
    if not prediction:
        return Verdict("missing", "protocol", "no answer")
    if is_abstention(prediction):
        return Verdict("missing", "protocol", "abstention")
    if case.label_kind == "idk":
        return Verdict("wrong", "protocol", "an answer that nothing given holds")
    if case.label_kind == "invalid":
        if is_invalid(prediction):
            return Verdict("right", "protocol", "invalid question")
        return Verdict("wrong", "protocol", "premise not refused")
    if is_invalid(prediction):
        return Verdict("wrong", "protocol", "a valid question refused")
    if any(bare(prediction) == bare(gold) for gold in case.gold):
        return Verdict("right", "protocol", "exact match")
    return None


def bare(text: str) -> str:
    """A text without case, typographic variants, a leading article and punctuation around it."""
    plain = _AROUND.sub("", clean(text).lower()).rstrip(" .,;:!?\"'")
    return re.sub(r"^(?:the|an?)\s+", "", plain).strip(" \"'")
