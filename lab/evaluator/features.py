"""The table that an abstention model is fitted on: what was known at each answer, and what became of it."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lab.evaluator.store import Judgement, Prediction

# Column to meaning. `outcome`, `right` and `label_*` are known only afterwards: what to predict, never features.
COLUMNS: dict[str, str] = {
    "id": "the question's id",
    "outcome": "right, missing or wrong, by the judge",
    "right": "1 when right, else 0",
    "judged_by": "protocol (no judge was needed) or the judge",
    "label_kind": "answer, idk or invalid: what kind of gold answer the question has",
    "label_domain": "the domain as labelled",
    "label_question_type": "the question type as labelled",
    "label_dynamism": "the dynamism as labelled",
    "label_popularity": "the entity's popularity as labelled",
    "strategy": "the strategy that answered",
    "kind": "answer, unknown or invalid_question, as the gateway said",
    "confidence": "the gateway's confidence, 0..1",
    "source": "where the answer came from: kg, web, public_data, model, none",
    "query_words": "words of the question",
    "query_has_time": "1 when the question came with a time",
    "answer_words": "words of the answer",
    "answer_numbers": "numbers in digits in the answer",
    "citations": "passages that the answer cites",
    "citation_best": "the best citation's score, 0 without citations",
    "citation_mean": "the citations' mean score",
    "citation_gap": "the best score less the second best",
    "support": "largest share of the answer's words that one cited passage holds",
    "degraded": "things that were missing",
    "llm_calls": "requests to the generator",
    "prompt_tokens": "tokens read",
    "completion_tokens": "tokens written",
    "seconds": "the caller's wall time",
    "domain": "the classifier's domain, empty when it was not asked",
    "domain_certainty": "and its certainty",
    "dynamism": "the classifier's dynamism",
    "dynamism_certainty": "and its certainty",
    "question_type": "the classifier's question type",
    "question_type_certainty": "and its certainty",
    "signals": "JSON object of what the gateway computed its confidence from; empty for strategies that do not",
}

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A spreadsheet would run a text that begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(predictions: Iterable[Prediction], judgements: Mapping[str, Judgement]) -> list[dict[str, Any]]:
    """One row a judged question that got an answer or an abstention, by id."""
    table = [_row(line, judgements[line.id]) for line in predictions if line.id in judgements and not line.error]
    return sorted(table, key=lambda row: str(row["id"]))


def _row(line: Prediction, judgement: Judgement) -> dict[str, Any]:
    ranked = sorted(line.citation_scores, reverse=True)
    labels = line.classification
    return {
        "id": line.id,
        "outcome": judgement.outcome,
        "right": int(judgement.outcome == "right"),
        "judged_by": judgement.by,
        "label_kind": line.label_kind,
        "label_domain": line.domain,
        "label_question_type": line.question_type,
        "label_dynamism": line.dynamism,
        "label_popularity": line.popularity,
        "strategy": line.strategy,
        "kind": line.kind,
        "confidence": line.confidence,
        "source": line.source,
        "query_words": len(line.query.split()),
        "query_has_time": int(bool(line.query_time)),
        "answer_words": len(line.prediction.split()),
        "answer_numbers": len(_NUMBER.findall(line.prediction)),
        "citations": line.citations,
        "citation_best": ranked[0] if ranked else 0.0,
        "citation_mean": round(sum(ranked) / len(ranked), 5) if ranked else 0.0,
        "citation_gap": round(ranked[0] - ranked[1], 5) if len(ranked) > 1 else 0.0,
        "support": line.support,
        "degraded": len(line.degraded),
        "llm_calls": line.llm_calls,
        "prompt_tokens": line.prompt_tokens,
        "completion_tokens": line.completion_tokens,
        "seconds": line.seconds,
        "domain": labels.domain if labels else "",
        "domain_certainty": labels.domain_certainty if labels else 0.0,
        "dynamism": labels.dynamism if labels else "",
        "dynamism_certainty": labels.dynamism_certainty if labels else 0.0,
        "question_type": labels.question_type if labels else "",
        "question_type_certainty": labels.question_type_certainty if labels else 0.0,
        "signals": json.dumps(line.signals, sort_keys=True) if line.signals else "",
    }


def as_csv(table: Iterable[Mapping[str, Any]]) -> str:
    """The table as CSV, harmless in a spreadsheet."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return out.getvalue()


def as_jsonl(table: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table)


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
