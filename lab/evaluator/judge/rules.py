"""The judge `rules`: strict, offline, deterministic. In doubt the verdict is wrong.

A prediction is right when it says what some gold answer says: the same polarity for yes and no, every quantity of the
gold answer and no other, every name or list item and no further one, the same number of negations. A gold answer
that is a sentence is first cut to its core; the prediction need not repeat what the core repeats of the question.
"""

import re
from collections.abc import Mapping

from lab.evaluator.judge import protocol
from lab.evaluator.judge.agreement import agree
from lab.evaluator.judge.comparison import PERCENT_ASKED, Comparison
from lab.evaluator.judge.reading import read, written
from lab.evaluator.judge.text import WORDS, clean, negations
from lab.evaluator.judge.verdict import Case, Verdict
from services.kit.text.quantities import find

NAME = "rules"

# Longer texts are no short answers; what is compared takes time with the square of it.
MAX_CHARS = 3_000

_YES = frozenset({"yes", "yeah", "yep", "correct", "true", "affirmative", "indeed"})
_NO = frozenset({"no", "nope", "false", "incorrect", "negative"})
_LEAD_IN = re.compile(
    r"^\W*(?:(?:the\s+)?(?:correct\s+|final\s+|short\s+)?answer(?:\s+to\s+(?:the|this)\s+question)?\s*(?:is|:)|"
    r"it(?:'s| is| was| would be)\b|(?:that|this)(?:'s| is| was| would be)\b|they (?:are|were)\b|"
    r"(?:he|she) (?:is|was)\b|"
    r"(?:based on|according to)[^,]*,|sure[,!.]|certainly[,!.])\s*",
    re.IGNORECASE,
)
_LANGUAGE_ASKED = re.compile(r"\blanguages?\b")
_LANGUAGES: Mapping[str, str] = WORDS["languages"]


def judge(case: Case) -> Verdict:
    """The verdict of protocol and rules: right when the prediction says what one of the gold answers says."""
    if decided := protocol.decide(case):
        return decided
    reason = "no gold answer"
    for gold in case.gold:
        reason = mismatch(case.question, gold, case.prediction)
        if not reason:
            return Verdict("right", NAME, "says what the gold answer says")
    return Verdict("wrong", NAME, reason)


def mismatch(question: str, gold: str, prediction: str) -> str:
    """In what the prediction differs from the gold answer, in a few words; empty when it does not."""
    if len(gold) > MAX_CHARS or len(prediction) > MAX_CHARS:
        return "too long to compare"
    question, gold, prediction = clean(question[:MAX_CHARS]).lower(), clean(gold), clean(prediction)
    if not protocol.bare(prediction):
        return "no words"
    for _ in range(2):
        prediction = _LEAD_IN.sub("", prediction) or prediction
    if polarity := _polarity(gold):
        return _polar_mismatch(question, gold, prediction, polarity)
    if _LANGUAGE_ASKED.search(question):
        gold, prediction = _language(gold), _language(prediction)
    if protocol.bare(gold) == protocol.bare(prediction):
        return ""
    return Comparison(question, gold, prediction).mismatch()


def _polarity(text: str) -> str:
    """yes, no, or nothing, by the first word alone."""
    if re.match(rf"\W*(?:{'|'.join(_YES)})(?!\w)", text.lower()):
        return "yes"
    # "No" may begin a title or a refusal to name: only alone, or before a comma, does it answer.
    plain_no = re.match(r"\W*(?:no|nope|false|incorrect)\s*(?:[,.;:!-]|$)", text.lower())
    return "no" if plain_no else ""


def _polar_mismatch(question: str, gold: str, prediction: str, polarity: str) -> str:
    first = re.match(r"\W*([a-z]+)", prediction.lower())
    word = first[1] if first else ""
    if word not in _YES | _NO:
        return "neither yes nor no"
    same, other = (_YES, _NO) if polarity == "yes" else (_NO, _YES)
    if word not in same:
        return "yes and no differ"
    if word == "no" and re.match(r"\W*no\s+(?:doubt|question|wonder)\b", prediction.lower()):
        return "neither yes nor no"
    others = "|".join(other)
    both = rf"\W*{word}\W+(?:(?:and|or|but)\s+(?:{others})\b|(?:{others})\b(?!\s+\w))"
    if re.match(both, prediction.lower()):
        return "yes and no at once"
    # "Yes, it is not": the sentence takes back what the word says.
    clause = re.match(r"\W*yes\W+(?:it|he|she|they|that|this|there)\s+[^,.;]*", prediction.lower())
    if clause and negations(clause[0]) and not negations(gold):
        return "yes and no at once"
    if quantities := find(gold):
        reading, percent_asked = read(prediction), PERCENT_ASKED.search(question) is not None
        expected = (*quantities, *find(question))
        for item in reading.quantities:
            if not item.soft and not any(agree(one, item, percent_asked=percent_asked) for one in expected):
                return f"another number: {written(reading, item)}"
    return ""


def _language(text: str) -> str:
    return re.sub(r"^\W*([a-z]{2})\W*$", lambda match: _LANGUAGES.get(match[1], match[1]), text.lower())
