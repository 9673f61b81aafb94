"""Query enhancement by the generator: keywords, and an answer to search with (Onewo, query enhancement).

An answer need not be right: it resembles a document that holds the right one (Gao et al. 2023, HyDE). Nothing but the
search uses it, so a question that steers the generator can only spoil its own ranking.
"""

import re
from collections.abc import MutableMapping
from dataclasses import dataclass

from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.normalize import normalize
from services.gateway.papers.clean import clean, cut
from services.gateway.papers.query_forms import ANSWER, KEYWORDS, MAX_APPENDED_CHARS, Form, appended
from services.gateway.steps.ask import Allowance, Request, ask
from services.gateway.steps.generate import Hint
from services.kit.concurrency import all_of
from services.kit.prompts import Prompt
from services.kit.untrusted import fence, harmless

MAX_KEYWORDS = 10
# A longer one is a sentence.
MAX_KEYWORD_WORDS = 4
MAX_KEYWORD_CHARS = 60
KEYWORDS_TOKENS, MIN_KEYWORDS_TOKENS = 60, 15
# Three sentences: an abstract's heart, and what the encoder reads beside a question.
ANSWER_TOKENS, MIN_ANSWER_TOKENS = 120, 40
# Of the question; AQA's bodies run on, and their beginning holds the question.
QUESTION_CHARS = 1_200

_SEPARATOR = re.compile(r"[,;\n|\u2022]+")
_ORNAMENT = re.compile(r"^[\s\-*#\d.)(\"'`]+|[\s.\"'`*)]+$")
_LABEL = re.compile(r"^\W*(?:key\s?words?|key\s?phrases?|answer|response)\W*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts, read once."""

    keywords: Prompt
    answer: Prompt

    @classmethod
    def read(cls) -> "Prompts":
        return cls(prompts.load("papers_keywords"), prompts.load("papers_answer"))


def keywords_constraint() -> Hint:
    """Up to `MAX_KEYWORDS` of up to `MAX_KEYWORD_WORDS` words each, with commas between them, on one line."""
    word = r"[^\s,;|]+"
    keyword = rf"{word}( {word}){{0,{MAX_KEYWORD_WORDS - 1}}}"
    return Hint(regex=rf"{keyword}(, {keyword}){{0,{MAX_KEYWORDS - 1}}}")


async def enhance(context: Context, prompts: Prompts, forms: MutableMapping[Form, str], allowance: Allowance) -> None:
    """Add the generator's forms to `forms`, written side by side, each as soon as it is there."""
    question = context.question.query
    fenced = fence(cut(question, QUESTION_CHARS))

    async def write(form: Form, request: Request) -> None:
        completion = await ask(context, request, allowance)
        if completion is None:
            return
        addition = ", ".join(read_keywords(completion.text)) if form == KEYWORDS else read_answer(completion.text)
        if addition:
            forms[form] = appended(question, addition)
        else:
            context.run.degrade(form, "empty", "the generator's reply is of no use to a search")

    messages = prompts.keywords.fill(question=fenced)
    keywords = Request(KEYWORDS, messages, KEYWORDS_TOKENS, MIN_KEYWORDS_TOKENS, constraint=keywords_constraint())
    answer = Request(ANSWER, prompts.answer.fill(question=fenced), ANSWER_TOKENS, MIN_ANSWER_TOKENS)
    await all_of((write(KEYWORDS, keywords), write(ANSWER, answer)))


def read_keywords(text: str) -> list[str]:
    """Keywords of a reply, in its order and each once, whatever separates them; sentences are left out."""
    keywords: dict[str, str] = {}
    for part in _SEPARATOR.split(_plain(", ".join(text.splitlines()))):
        keyword = " ".join(_ORNAMENT.sub("", part).split())
        if re.search(r"\w", keyword) and len(keyword) <= MAX_KEYWORD_CHARS:
            keywords.setdefault(keyword.lower(), keyword)
    return [keyword for keyword in keywords.values() if len(keyword.split()) <= MAX_KEYWORD_WORDS][:MAX_KEYWORDS]


def read_answer(text: str) -> str:
    """An answer on one line; empty where the reply is none or abstains."""
    line = _plain(text)
    return "" if normalize(line).kind != "answer" else cut(line, MAX_APPENDED_CHARS)


def _plain(text: str) -> str:
    # The fence's own tag last: a text made harmless has entities, which cleaning would undo.
    return _LABEL.sub("", " ".join(harmless(clean(text)).split()))
