"""Parts `made_up` and `contracts`: digests of what is generated."""

import hashlib
import importlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from lab.classifier import synthesise
from lab.goldens.records import Records
from lab.trainer.synthesise import answers, programs, questions

SERVICES = ("classifier", "gateway", "kg", "reranker", "retriever")
SEED = 0
COUNT = 1_500


def record() -> Records:
    """Count and digest of the first examples of each kind of made-up data."""
    world, drawn = next(programs.generate(SEED))
    return {
        **_digests("answers", ((one.domain, asdict(one)) for one in answers.generate(COUNT, SEED))),
        **_digests("questions", (("all", one) for one in questions.generate(COUNT // 10, SEED))),
        **_digests("programs", ((one.record.domain, asdict(one)) for one in itertools.islice(drawn, COUNT))),
        **_digests("world", ((row["domain"], row) for row in world.rows())),
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
