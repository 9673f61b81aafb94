"""Questions with known answers, and whether a text holds one."""

import html
import pathlib
import random
import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from tests.bench import common

# Shorter answers and plain yes or no stand on any page.
UNTELLING = {"yes", "no", "nan", "true", "false", "none", "invalid question", "i don t know"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answers in their normal form, and the titles of the pages that it names."""

    text: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] = ()


def normal(text: str) -> str:
    """Lower-case words without punctuation and articles, the form in which answers are looked for."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    text = re.sub(r"(?<=\d),(?=\d)", "", text)
    words = "".join(" " if c in string.punctuation + "–—“”‘’" else c for c in text).split()
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def holds(text: str, answers: Sequence[str]) -> bool:
    padded = f" {normal(text)} "
    return any(f" {answer} " in padded for answer in answers)


def telling(answers: Sequence[object]) -> tuple[str, ...]:
    """The normal forms of those answers by which a text can be told to hold them."""
    forms = (normal(str(answer)) for answer in answers)
    return tuple(answer for answer in forms if answer and answer not in UNTELLING and len(answer) <= 60)


def as_html(title: str, text: str) -> str:
    """A plain page around an article's text; short lines without an end of sentence are headings."""
    name = html.escape(title.replace("_", " "))
    lines = [line.strip() for line in text.split("\n")]
    body = "\n".join(
        f"<h2>{html.escape(line)}</h2>"
        if len(line) < 60 and line[-1] not in '.!?:;,"'
        else f"<p>{html.escape(line)}</p>"
        for line in lines
        if line and not line.startswith("Title: ")
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>'
        f"<body><main><article><h1>{name}</h1>\n{body}\n</article></main></body></html>"
    )


def pages(root: pathlib.Path) -> dict[str, str]:
    """The Wikipedia pages that FreshQA's questions name: title to text."""
    return {row["title"]: row["text"] for row in common.read_rows(root / "freshqa_wiki_docs.jsonl.gz")}


def questions(root: pathlib.Path, documents: Mapping[str, str]) -> list[Question]:
    """FreshQA's questions with a true premise and a telling answer that stands on one of their own pages."""
    candidates = []
    for row in common.read_rows(root / "freshqa.jsonl"):
        answers = telling(row["answers"])
        own = [title for title in row.get("wiki_docs") or [] if title in documents]
        if not row["false_premise"] and any(holds(documents[title], answers) for title in own):
            candidates.append(Question(row["question"], answers, tuple(row["wiki_docs"])))
    return candidates


def fresh_questions(root: pathlib.Path, seed: int, limit: int) -> Iterator[tuple[Question, list[str]]]:
    """Such questions, each with HTML of the first page that holds its answer and of four other questions' pages."""
    documents = pages(root)
    candidates = questions(root, documents)
    rng = random.Random(seed)
    for question in rng.sample(candidates, min(limit, len(candidates))):
        own = [title for title in question.titles if title in documents]
        answering = next(title for title in own if holds(documents[title], question.answers))
        others = [title for title in sorted(documents) if title not in set(question.titles)]
        titles = [answering, *rng.sample(others, 4)]
        rng.shuffle(titles)
        yield question, [as_html(title, documents[title]) for title in titles]


def cut(tokenizer: Tokenizer, text: str, tokens: int) -> str:
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return text if len(offsets) <= tokens else text[: offsets[tokens - 1][1]]
