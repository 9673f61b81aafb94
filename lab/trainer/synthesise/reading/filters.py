"""Filters of questions: the answer stands in the passage, once, and the question does not give it away."""

import re

from lab.trainer.score import token_f1
from lab.trainer.synthesise.phrasing import MONTHS
from lab.trainer.synthesise.reading.briefs import WORDS
from services.kit.text.vocabulary import WEEKDAY_NAMES

MIN_PASSAGE_WORDS, MAX_PASSAGE_WORDS = 40, 300
# A sentence of so many words that comes twice shows a model that has lost its way.
REPEATED_WORDS = 5
MAX_ANSWER_WORDS = 12
MIN_QUESTION_WORDS, MAX_QUESTION_WORDS = 4, 30
# Of two answers to one question, and of two questions on a passage, by token F1: as much is the same.
AGREEMENT, SAME = 0.6, 0.8

_WORD = re.compile(r"\w+(?:[.,:]\d+)*(?:'s\b)?")
_EDGES = " \t\n.,;:!?\"'“”‘’`*_()[]"
_PRONOUNS, _STOP = frozenset(WORDS["pronouns"]), frozenset(WORDS["stop words"])
_ABOUT_THE_TEXT = re.compile(
    r"\b(?:text|passage|article|paragraph|author of the (?:text|letter))\b|\baccording to\b", re.I
)
# "[Recipient's Name]"
_PLACEHOLDER = re.compile(r"\[[A-Z][\w' ]{2,40}\]|_{3,}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"“A-Z0-9])|\n+")
# Numbers, and words with a capital that do not begin the question.
_NAMED = re.compile(r"\b\d[\d,.]*\b|(?<=[a-z,] )[A-Z][\w'’]+")
_DAYS = frozenset(name.lower() for name in (*MONTHS, *WEEKDAY_NAMES))


def words(text: str) -> list[str]:
    """Lower-case words and numbers; a number keeps its separators."""
    return [word.removesuffix("'s") for word in _WORD.findall(text.lower().replace("’", "'"))]


def content_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in _STOP]


def agree(reply: str, answer: str) -> bool:
    """Whether a reply is the answer: most of its words, or a part of it."""
    return token_f1(reply, answer) >= AGREEMENT or (bool(words(reply)) and _contains(words(answer), words(reply)))


def sentences(passage: str) -> list[tuple[int, int]]:
    """Bounds of a passage's sentences, spaces between them left out."""
    bounds, start = [], 0
    for gap in _SENTENCE_END.finditer(passage):
        bounds.append((start, gap.start()))
        start = gap.end()
    return [*bounds, (start, len(passage))]


def passage_flaw(passage: str) -> str:
    """The flaw of a passage; empty when it has none."""
    if not MIN_PASSAGE_WORDS <= len(passage.split()) <= MAX_PASSAGE_WORDS:
        return "passage's length"
    if _PLACEHOLDER.search(passage):
        return "passage has gaps to fill in"
    tokens = [tuple(words(passage[start:end])) for start, end in sentences(passage)]
    long = [sentence for sentence in tokens if len(sentence) >= REPEATED_WORDS]
    return "passage repeats itself" if len(set(long)) < len(long) else ""


def question_flaw(question: str, passage: str) -> str:
    """The flaw of a question; empty when it has none."""
    one_line = question.find("?") == len(question) - 1 and "\n" not in question
    if not one_line or not MIN_QUESTION_WORDS <= len(question.split()) <= MAX_QUESTION_WORDS:
        return "no question"
    if _ABOUT_THE_TEXT.search(question):
        return "asks about the text"
    if not set(content_words(question)) & set(content_words(passage)):
        return "names nothing of the passage"
    return ""


def strange(question: str, text: str) -> bool:
    """Whether a question has a number or a name that is not in a text."""
    tokens = words(text)
    return any(not _contains(tokens, words(name)) for name in names(question))


def names(question: str) -> list[str]:
    """Numbers and words with a capital in a question; its first word is none of them."""
    return [match.group() for match in _NAMED.finditer(question)]


def locate(answer: str, question: str, passage: str) -> tuple[int, str] | str:
    """An answer's place in the passage and its spelling there, or its flaw.

    Of several places the one counts whose sentence alone shares most words with the question.
    """
    answer = answer.strip(_EDGES)
    tokens = words(answer)
    if not 1 <= len(answer.split()) <= MAX_ANSWER_WORDS or not tokens:
        return "answer's length"
    if all(token in _PRONOUNS for token in tokens):
        return "answer is a pronoun"
    if _contains(words(question), tokens):
        return "question holds the answer"
    places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", passage, re.I)]
    if not places:
        return "answer is not in the passage"
    if len(places) > 1:
        distinctive = set(content_words(question)) - set(tokens)
        around = [next(passage[start:end] for start, end in sentences(passage) if place < end) for place in places]
        shares = [len(distinctive & set(words(sentence))) for sentence in around]
        best = max(shares)
        if shares.count(best) > 1:
            return "answer stands in several places"
        places = [places[shares.index(best)]]
    return places[0], passage[places[0] : places[0] + len(answer)]


def _contains(tokens: list[str], part: list[str]) -> bool:
    return any(tokens[at : at + len(part)] == part for at in range(len(tokens) - len(part) + 1))


def without(passage: str, start: int, answer: str, title: str) -> str:
    """The passage without the sentence of an answer; empty where rest or title still tell it, or too little is left."""
    bounds = sentences(passage)
    at = next(number for number, (_, end) in enumerate(bounds) if start < end)
    rest = (passage[: bounds[at][0]] + passage[bounds[at][1] :].lstrip(" ")).strip()
    return "" if len(bounds) < 3 or _contains(words(f"{title}\n{rest}"), words(answer)) else rest


def swapped(question: str, passage: str, spare: tuple[str, str]) -> str:
    """The question about something else: a number or a name of the passage in it is another; empty where it has none.

    Args:
        spare: a digit, and a name in place of one.
    """
    digit, name = spare
    for match in _NAMED.finditer(question):
        old = match.group()
        if old.lower() in _DAYS or len(old) < 3:
            continue
        new = name if old[0].isalpha() else (old[:-1] + digit if old[-1] != digit else digit + old)
        if _contains(words(passage), words(old)) and not _contains(words(passage), words(new)):
            return question[: match.start()] + new + question[match.end() :]
    return ""
