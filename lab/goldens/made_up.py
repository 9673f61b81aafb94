"""Parts `made_up` and `contracts`: digests of what is generated."""

import importlib
import itertools
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from lab.classifier import synthesise
from lab.goldens.records import Records, canonical, digest
from lab.trainer.synthesise import answers, programs, questions
from lab.trainer.synthesise.engine import Engine
from lab.trainer.synthesise.phrasing import Phrasing
from services.kg.domains import CATALOGUE

SERVICES = ("classifier", "gateway", "kg", "reranker", "retriever", "searcher")
SEED = 0
COUNT = 300


def record() -> Records:
    """Counts and digests of the first examples of each kind of made-up data."""
    with Engine(Phrasing(random.Random(SEED)), CATALOGUE) as engine:  # noqa: S311 - reproducible, not secret
        drawings = engine.graph.world.drawings
        rows = [
            (domain, {"table": table, **row.values})
            for domain, drawing in drawings.items()
            for table, things in drawing.rows.items()
            for row in things
        ]
    examples = itertools.islice(programs.generate(SEED), COUNT)
    return {
        **_digests("answers", ((one.domain, asdict(one)) for one in answers.generate(COUNT, SEED))),
        **_digests("questions", (("all", one) for one in questions.generate(COUNT // 4, SEED))),
        **_digests("programs", ((one.domain, [one.query, one.when, one.program, one.answer]) for one in examples)),
        **_digests("world", rows),
        **_digests("classifier", (("all", asdict(one)) for one in synthesise.synthesise())),
    }


def record_contracts() -> Records:
    """Digests of the operations and schemas that the services' applications document."""
    records: Records = {}
    for name in SERVICES:
        document = importlib.import_module(f"services.{name}.app").create_app().openapi()
        for path, operations in document["paths"].items():
            records |= {f"{name}: {method.upper()} {path}": digest(one) for method, one in operations.items()}
        for title, schema in document["components"]["schemas"].items():
            records[f"{name}: {title}"] = digest(schema)
    return records


def _digests(title: str, items: Iterable[tuple[str, Any]]) -> Records:
    groups: dict[str, list[str]] = defaultdict(list)
    for group, item in items:
        groups[group].append(canonical(item))
    return {
        f"{title}: {name}": {"count": len(group), "digest": digest(group)} for name, group in sorted(groups.items())
    }
