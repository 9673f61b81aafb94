"""The judge `rules`: strict, offline, the same everywhere. Where it cannot tell, it says wrong.

A prediction is right when it says what some gold answer says: the same polarity for yes and no, every quantity of the
gold answer and no other, every name or list item and no further one, the same number of negations. A gold answer
that is a sentence is first cut to its core, and what it repeats of the question is not asked for again.
"""

import re
from collections.abc import Sequence

from lab.evaluator.judge import protocol
from lab.evaluator.judge.agreement import agree
from lab.evaluator.judge.comparison import PERCENT_ASKED, Comparison
from lab.evaluator.judge.reading import read, shown
from lab.evaluator.judge.text import clean, negations
from lab.evaluator.judge.verdict import Case, Verdict
from services.kit.text.quantities import Quantity, find

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
_LANGUAGE_CODES = (
    "en:english fr:french de:german es:spanish it:italian ja:japanese ko:korean zh:chinese cn:chinese hi:hindi "
    "ru:russian pt:portuguese ar:arabic sv:swedish da:danish no:norwegian nl:dutch pl:polish tr:turkish fi:finnish "
    "el:greek he:hebrew th:thai cs:czech hu:hungarian ro:romanian id:indonesian vi:vietnamese fa:persian uk:ukrainian "
    "ta:tamil te:telugu ml:malayalam bn:bengali"
)
_LANGUAGES = dict(pair.split(":") for pair in _LANGUAGE_CODES.split())


def judge(case: Case) -> Verdict:
    """The verdict of protocol and rules: right when the prediction says what one of the gold answers says."""
    decided = protocol.decide(case)
    if decided:
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
    asked = clean(question[:MAX_CHARS]).lower()
    gold_text, said_text = clean(gold), clean(prediction)
    if not protocol.bare(said_text):
        return "no words"
    for _ in range(2):
        said_text = _LEAD_IN.sub("", said_text) or said_text
    polarity = _polarity(gold_text)
    if polarity:
        return _polar_mismatch(asked, gold_text, said_text, polarity)
    if _LANGUAGE_ASKED.search(asked):
        gold_text, said_text = _language(gold_text), _language(said_text)
    if protocol.bare(gold_text) == protocol.bare(said_text):
        return ""
    return Comparison(asked, gold_text, said_text).mismatch()


def _polarity(text: str) -> str:
    """yes, no, or nothing, by the first word alone."""
    first = re.match(r"\W*([a-z]+)(?=\W|$)", text.lower())
    word = first[1] if first else ""
    if word in _YES:
        return "yes"
    # "No" may begin a title or a refusal to name: only alone, or before a comma, does it answer.
    plain_no = re.match(r"\W*(?:no|nope|false|incorrect)\s*(?:[,.;:!-]|$)", text.lower())
    return "no" if plain_no else ""


def _polar_mismatch(asked: str, gold: str, said: str, polarity: str) -> str:
    first = re.match(r"\W*([a-z]+)", said.lower())
    word = first[1] if first else ""
    answered = "yes" if word in _YES else "no" if word in _NO else ""
    if not answered:
        return "neither yes nor no"
    other = _NO if answered == "yes" else _YES
    if answered != polarity:
        return "yes and no differ"
    if re.match(rf"\W*{word}\W+(?:and|or|but)\s+(?:{'|'.join(other)})\b", said.lower()):
        return "yes and no at once"
    # "Yes, it is not": the sentence takes back what the word says.
    clause = re.match(r"\W*yes\W+(?:it|he|she|they|that|this|there)\s+[^,.;]*", said.lower())
    if answered == "yes" and clause and negations(clause[0]) and not negations(gold):
        return "yes and no at once"
    gold_read, said_read = read(gold), read(said)
    if gold_read.quantities:
        known = (*gold_read.quantities, *find(asked))
        if stray := _stray(said_read.quantities, known, asked):
            return f"another number: {shown(said_read, stray)}"
    return ""


def _language(text: str) -> str:
    return re.sub(r"^\W*([a-z]{2})\W*$", lambda match: _LANGUAGES.get(match[1], match[1]), text.lower())


def _stray(said: Sequence[Quantity], known: Sequence[Quantity], asked: str) -> Quantity | None:
    percent = PERCENT_ASKED.search(asked) is not None
    return next(
        (item for item in said if not item.soft and not any(agree(one, item, percent_asked=percent) for one in known)),
        None,
    )
