"""Examples of the subtask `sql`: questions of invented organisations about their own tables, each with its SELECT.

A language model wrote the tables, the questions and the statements; a program of its own computed each answer from the
CSV files, and the statement finds the same, which a test holds. One question in seven asks what they do not hold, or
is about another subject altogether.
"""

import asyncio
import random
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from lab.draft.graph import drafted_graph
from lab.trainer import scenes
from lab.trainer.dataset import Example, lines, turns
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter, spots_in
from services.kg.generate.sql.prompt import SqlPrompt
from services.kit.shard import WHOLE, Shard

FOLDER = Path(__file__).parent.parent / "data" / "tables"
NONE = "NONE"
# Questions about other subjects beside an organisation's own: as many of the world's as of another one's rules.
OTHERS = 4


class Question(BaseModel):
    """A question on an organisation's tables.

    `answer` is empty and `sql` NONE where they do not hold it; `alternatives` are other ways to write the answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    answer: str
    alternatives: tuple[str, ...] = ()
    sql: str = Field(min_length=4)


def organisations() -> list[Path]:
    """Folders of CSV files with `today.txt`, when their questions are asked, and `questions.jsonl`."""
    return sorted(path.parent for path in FOLDER.glob("*/questions.jsonl"))


def questions(organisation: Path) -> list[Question]:
    """The questions about an organisation's tables.

    Raises:
        BadDataset: a line is none.
    """
    return [question for _, question in lines([organisation / "questions.jsonl"], Question)]


@cache
def _scenes() -> tuple[Sequence[scenes.Scene], ...]:
    """Scenes of the world, and of organisations' documents; thousands of lines, which are read once."""
    return scenes.scenes(scenes.TAUGHT), scenes.scenes(scenes.DOCUMENTS)


def of_others(organisation: Path) -> list[Question]:
    """Questions of scenes, which have nothing to do with an organisation's tables; the same ones each time."""
    rng = random.Random(f"others:{organisation.name}")  # noqa: S311 - reproducible, not secret
    each = OTHERS // len(_scenes())
    texts = [rng.choice(rng.choice(some).questions).question for some in _scenes() for _ in range(each)]
    return [Question(question=text, answer="", sql=NONE) for text in texts]


def asked_at(organisation: Path) -> datetime:
    """When its questions are asked."""
    return datetime.combine(datetime.fromisoformat((organisation / "today.txt").read_text().strip()), time(10), UTC)


def examples(share: Shard = WHOLE, folders: Sequence[Path] = ()) -> Iterator[Example]:
    """All questions of all organisations, each after its tables as they are drafted; takes seconds for each."""
    for organisation in folders or organisations():
        yield from _of(organisation, share)


def _of(organisation: Path, share: Shard) -> Iterator[Example]:
    name, now = organisation.name, asked_at(organisation)
    with tempfile.TemporaryDirectory() as folder, drafted_graph(name, organisation, Path(folder)) as graph:
        engine, catalogue = graph
        prompt, spotter = SqlPrompt(catalogue, Values(engine)), Spotter(engine, catalogue)
        for number, one in enumerate((*questions(organisation), *of_others(organisation))):
            id = f"sql-{name}-{number:03d}"
            if not share.holds(id):
                continue
            spots = asyncio.run(spots_in(one.question, name, spotter))
            links = prompt.links(one.question, name, spots)
            yield Example(
                id=id,
                task="sql",
                messages=turns(prompt.messages(one.question, query_time=now, domain=name, links=links)),
                completion=one.sql,
                domain=name,
                kind="unknown" if one.sql == NONE else "answer",
                source="tables",
                query=one.question,
                group=f"tables:{name}",
            )
