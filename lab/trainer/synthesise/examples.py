"""Examples of a subtask: made-up records, programs and statements, prompts exactly as they are served."""

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from lab.trainer import pairs, scenes
from lab.trainer.dataset import Example, turns
from lab.trainer.synthesise import answers, programs, tables
from lab.trainer.synthesise.engine import NONE, every_domain
from lab.trainer.synthesise.reading import records, written
from lab.trainer.synthesise.record import Record
from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.steps.generate import TAUGHT_PROMPT, chat
from services.kg.generate.program import adapter_messages
from services.kit.shard import WHOLE, Shard

Item = TypeVar("Item")


def examples(
    task: str,
    count: int,
    seed: int,
    share: Shard = WHOLE,
    *,
    domain: str = "",
    prose: Path | None = None,
    prose_share: float = 0.0,
    near_share: float = 0.0,
    scene_share: float = 0.0,
    documents_share: float = 0.0,
) -> Iterator[Example]:
    """Examples in the order in which they are made up.

    Args:
        share: which of them are rendered; `count` is of all shares together.
        domain: looked-up records, or programs, of this domain alone.
        prose: of `answer`, a file of `cragmesh train prose` that a share of them is about.
        near_share, scene_share: of `answer`, so many are on the dense passages and scenes that are there to be taught.
        documents_share: of `answer`, so many are about organisations' documents.

    Raises:
        BadDataset: the file cannot be read, or gives nothing to learn from.
    """
    if task == "sql":
        return islice(tables.examples(share), count)
    if task != "answer":
        return _programs(count, seed, domain, share)
    reading = written.about_passages(round(count * near_share), seed) if near_share else []
    reading += written.about_scenes(round(count * scene_share), seed) if scene_share else []
    reading += written.about_scenes(round(count * documents_share), seed, scenes.DOCUMENTS) if documents_share else []
    if prose and (about_prose := round(count * prose_share)):
        reading += records.generate(pairs.read([prose]), about_prose, seed)
    made_up = records.mingled(reading, count, seed) if reading else answers.generate(count, seed, domain)
    return _answers(made_up, seed, share)


def _numbered(share: Shard, prefix: str, items: Iterator[Item]) -> Iterator[tuple[str, Item]]:
    """A share of the items, each after its id."""
    return share.of_items(((f"{prefix}-{number:06d}", item) for number, item in enumerate(items)), itemgetter(0))


def _source(pattern: str) -> str:
    kind, _, of = pattern.partition(".")
    return {"dense": "near", "scene": "scene"}.get(of, "prose") if kind == "reading" else "synthetic"


def _answers(records: Iterator[Record], seed: int, share: Shard) -> Iterator[Example]:
    prompt = prompts.load(TAUGHT_PROMPT)
    for id, record in _numbered(share, f"answer-{seed}", records):
        titles = record.titles or ("",) * len(record.passages)
        named = zip(record.passages, titles, strict=True)
        evidence = [Evidence(text, page, page_name=title) for page, (text, title) in enumerate(named)]
        yield Example(
            id=id,
            task="answer",
            messages=turns(chat(prompt, record.query, record.query_time, evidence)),
            completion=record.answer,
            domain=record.domain,
            kind=record.kind,
            question_type=record.question_type,
            source=f"{_source(record.pattern)}:{seed}",
            query=record.query,
            group=record.group,
        )


def _programs(count: int, seed: int, domain: str, share: Shard) -> Iterator[Example]:
    domains = every_domain().domains
    for id, pair in _numbered(share, f"kg-api-{seed}", islice(programs.generate(seed, domain), count)):
        yield Example(
            id=id,
            task="kg-api",
            messages=turns(adapter_messages(pair.query, query_time=pair.when, domain=domains[pair.domain])),
            completion=pair.program,
            domain=pair.domain,
            kind="unknown" if pair.program == NONE else "answer",
            question_type=pair.question_type,
            source=f"synthetic:{seed}",
            query=pair.query,
        )
