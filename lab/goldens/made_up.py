"""Parts `made_up` and `contracts`: digests of what is generated."""

import hashlib
import importlib
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from lab.classifier import synthesise
from lab.goldens.records import Records
from lab.trainer.synthesise import answers, programs, questions
from lab.trainer.synthesise.engine import Engine
from lab.trainer.synthesise.phrasing import Phrasing
from services.kg.domains import CATALOGUE

SERVICES = ("classifier", "gateway", "kg", "reranker", "retriever", "searcher")
SEED = 0
COUNT = 300


def record() -> Records:
    """Count and digest of the first examples of each kind of made-up data."""
    with Engine(Phrasing(random.Random(SEED)), CATALOGUE) as engine:  # noqa: S311 - reproducible, not secret
        drawings = engine.graph.world.drawings
        rows = [
            (domain, {"table": table, **row.values})
            for domain, drawing in drawings.items()
            for table, things in drawing.rows.items()
            for row in things
        ]
    made = itertools.islice(programs.generate(SEED), COUNT)
    return {
        **_digests("answers", ((one.domain, asdict(one)) for one in answers.generate(COUNT, SEED))),
        **_digests("questions", (("all", one) for one in questions.generate(COUNT // 4, SEED))),
        **_digests("programs", ((one.domain, [one.query, one.when, one.program, one.answer]) for one in made)),
        **_digests("world", rows),
        **_digests("classifier", (("all", asdict(one)) for one in synthesise.synthesise())),
    }


def record_contracts() -> Records:
    """Digest of each operation and schema of each service, as its application documents it."""
    records: Records = {}
    for name in SERVICES:
        document = importlib.import_module(f"services.{name}.app").create_app().openapi()
        for path, operations in document["paths"].items():
            records |= {f"{name}: {method.upper()} {path}": _digest(one) for method, one in operations.items()}
        for title, schema in document["components"]["schemas"].items():
            records[f"{name}: {title}"] = _digest(schema)
    return records


def _digests(title: str, items: Iterable[tuple[str, Any]]) -> Records:
    lines: dict[str, list[str]] = defaultdict(list)
    for group, item in items:
        lines[group].append(_text(item))
    return {f"{title}: {group}": {"count": len(kept), "digest": _digest(kept)} for group, kept in sorted(lines.items())}


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
