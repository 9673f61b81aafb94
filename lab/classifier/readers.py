"""Labelled questions from files: CRAG's own records, FreshQA, and our own training set."""

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from services.classifier.examples import Example
from services.classifier.taxonomy import HEADS
from services.kit import jsonl

# FreshQA's words for CRAG's degrees.
FRESHQA = {"never-changing": "static", "slow-changing": "slow-changing", "fast-changing": "fast-changing"}


def normal(question: str) -> str:
    """A question's words alone, in lower case: two that are equal so are the same question."""
    text = unicodedata.normalize("NFKC", question).lower().replace("\u2019", "'")
    return " ".join(re.findall(r"[\w']+", text))


def held_back(question: str) -> bool:
    """Whether FreshQA's question is for evaluation only: half of them, by a hash of their words."""
    return hashlib.sha256(normal(question).encode()).digest()[0] % 2 == 1


def read(path: Path) -> list[Example]:
    """All labelled questions of a .jsonl or .csv file, also compressed by gzip or bzip2, each its own group.

    A record has CRAG's fields (`query`, `domain`, `question_type`, `static_or_dynamic`), FreshQA's (`question`,
    `fact_type`, `false_premise`) or our own. A field that is missing leaves its head without a label.

    Raises:
        BadLine: the file cannot be read, or a record has no question.
    """
    try:
        return [_example(record, place) for place, record in _records(path)]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise jsonl.BadLine(str(path), str(error)) from error


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if ".csv" not in path.suffixes:
        yield from jsonl.objects(path)
        return
    with io.TextIOWrapper(jsonl.open_bytes(path), encoding="utf-8", newline="") as text:
        for number, record in enumerate(csv.DictReader(text), 1):
            yield f"{path}:{number}", record


def _example(record: Mapping[str, Any], place: str) -> Example:
    official = record.get("crag_official") or {}
    question = str(record.get("query") or record.get("question") or "").strip()
    if not question:
        raise jsonl.BadLine(place, "no `query` and no `question`")
    if "fact_type" in record:
        false = str(record.get("false_premise", "")).lower() in ("true", "1")
        return Example(
            question,
            dynamism=FRESHQA.get(str(record["fact_type"]), ""),
            question_type="false_premise" if false else "",
            group=place,
        )
    labels = {
        "domain": record.get("domain") or official.get("domain"),
        "dynamism": record.get("static_or_dynamic") or record.get("dynamism") or official.get("static_or_dynamic"),
        "question_type": record.get("question_type") or official.get("question_type"),
    }
    valid = {head: label for head, label in labels.items() if label in HEADS[head]}
    return Example(question, **valid, group=str(record.get("group") or place))
