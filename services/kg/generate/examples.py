"""The library of worked examples, and the choice of those that a prompt shows for a question.

db3 chose its examples by hand, the same for every question, and expected much of choosing them per question; here the
nearest by sentence embedding are shown (Liu et al. 2022, "What makes good in-context examples for GPT-3?").
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from proto.base import parse_query_time
from services.kg.definition.folder import BrokenDomain, Fault
from services.kg.generate.names import literals
from services.kg.language.catalogue import Catalogue, Domain
from services.kg.language.parse import parse
from services.kit.encoder import Encoder
from services.kit.lexical import Stems, bm25, stems

Floats = NDArray[np.float32]

# Weight of shared words beside the embeddings' cosine: words such as "opponent" tell keys apart that embeddings do not.
LEXICAL = 0.5
# What stands for a name in what is embedded, so that questions are near by what they ask and not by whom.
MASK = "X"
# Examples with one program but for its names teach nothing new after the second.
MAX_OF_SHAPE = 2


@dataclass(frozen=True, slots=True)
class Example:
    """A question of our own with its program in canonical form, and when it was asked if that matters."""

    query: str
    program: str
    query_time: datetime | None = None


@dataclass(slots=True)
class Library:
    """Worked examples by domain, with their embeddings once `embed` has run."""

    examples: Mapping[str, tuple[Example, ...]]
    catalogue: Catalogue
    _encoder: Encoder | None = None
    _vectors: dict[str, Floats] = field(default_factory=dict)
    _stems: dict[str, list[Stems]] = field(default_factory=dict)

    def embed(self, encoder: Encoder) -> None:
        """Embed all questions, names masked; blocks for a second."""
        self._encoder = encoder
        for domain, examples in self.examples.items():
            masked = [mask(one.query, literals(one.program, self.catalogue, domain)) for one in examples]
            self._vectors[domain] = encoder.encode(masked).vectors
            self._stems[domain] = stems(masked)

    async def nearest(self, query: str, *, domain: str, k: int, names: Sequence[str] = ()) -> tuple[Example, ...]:
        """The k examples nearest to a question, nearest last, no program's shape more than twice."""
        examples = self.examples.get(domain, ())
        if k <= 0 or not examples:
            return ()
        if self._encoder is None:
            return examples[-k:]
        scores = await asyncio.to_thread(self._scores, self._encoder, mask(query, names), domain)
        chosen: list[Example] = []
        shapes = Counter[str]()
        for index in np.argsort(-scores, kind="stable"):
            if len(chosen) == k:
                break
            shape = _shape(examples[index], self.catalogue, domain)
            if shapes[shape] < MAX_OF_SHAPE:
                chosen.append(examples[index])
                shapes[shape] += 1
        return tuple(reversed(chosen))

    def _scores(self, encoder: Encoder, masked: str, domain: str) -> Floats:
        dense: Floats = self._vectors[domain] @ encoder.encode([masked]).vectors[0]
        return dense + LEXICAL * bm25(stems([masked])[0], self._stems[domain])


def mask(query: str, names: Iterable[str]) -> str:
    """The question with its names replaced by one letter."""
    for name in sorted(names, key=len, reverse=True):
        start = query.lower().find(name.lower())
        if name and start >= 0:
            query = f"{query[:start]}{MASK}{query[start + len(name) :]}"
    return query


def _shape(example: Example, catalogue: Catalogue, domain: str) -> str:
    """The program without its names."""
    shape = example.program
    for name in literals(example.program, catalogue, domain):
        shape = shape.replace(json.dumps(name, ensure_ascii=False), MASK)
    return shape


def load_library(catalogue: Catalogue) -> Library:
    """Read the `examples.jsonl` of every domain.

    Raises:
        BrokenDomain: a line is not an example, or its program cannot be parsed.
    """
    return Library({domain.name: tuple(_read(domain)) for domain in catalogue.domains.values()}, catalogue)


def _read(domain: Domain) -> Iterable[Example]:
    if not domain.folder.has("examples.jsonl"):
        return
    for number, line in enumerate(domain.folder.text("examples.jsonl").splitlines(), 1):
        try:
            row = json.loads(line)
            parse(row["program"])
            when = parse_query_time(row["query_time"]) if row.get("query_time") else None
            yield Example(row["query"], row["program"], when)
        except Exception as error:
            fault = Fault(str(domain.folder.place / "examples.jsonl"), number, "", str(error))
            raise BrokenDomain(domain.name, [fault]) from error
