"""Part `evaluation`: what rules write for the evaluation's questions, as digests that nobody can read.

Authors of rules must not know these questions, so the file holds no text, and differences are counts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.evaluator.data import Source
from lab.goldens.graph import TIME, Rules
from lab.goldens.records import Records, digest
from proto.base import parse_query_time
from services.kg.domains import CATALOGUE
from services.kg.store.engine import open_store

QUESTIONS = "crag_kg_qa.jsonl"


def record(folder: Path, database: str) -> Records:
    """A record for each question under the digest of its name: domain, statuses, digests of program and outcomes."""
    engine = open_store(database)
    try:
        rules = Rules(engine)
        return {
            _digest(item.id): _blind(item.domain, rules.record(item.query, item.domain, _moment(item.query_time)))
            for item in Source([folder / QUESTIONS]).items()
            if item.domain in CATALOGUE.domains
        }
    finally:
        engine.dispose()


def describe(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The differences, as counts by domain."""
    counts: Counter[str] = Counter()
    for name in recorded.keys() | now.keys():
        before, after = recorded.get(name), now.get(name)
        if before is None or after is None:
            counts["questions that only one of them has"] += 1
        elif before != after:
            what = "another program" if before["program"] != after["program"] else "another outcome"
            counts[f"{after['domain']}: {what}, {before['status']} -> {after['status']}"] += 1
    yield from (f"{count:5d} {what}" for what, count in counts.most_common())


def _blind(domain: str, record: Mapping[str, Any]) -> dict[str, str]:
    status = " ".join(one["status"] for one in record.get("outcomes", ())) or "refused"
    return {
        "domain": domain,
        "status": status,
        "program": _digest(record["program"]),
        "outcome": _digest({key: value for key, value in record.items() if key != "program"}),
    }


def _moment(query_time: str) -> Any:
    return parse_query_time(query_time) if query_time else TIME


def _digest(value: Any) -> str:
    return digest(value)[:16]
