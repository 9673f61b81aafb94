"""Collects the results of each question's searches and re-scoring, by the gateway's own steps.

Two files grow in the run's folder: `enhancements.jsonl`, the generator's texts, so that a run can be repeated without a
generator, and `lists.jsonl`, the pools. A killed run goes on with them: a line is used again if all that it depends on
is the same. Of a collection of the running mesh that is its name, its counts and its encoders' names.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from pydantic import Field

from lab.evaluator.errors import BadRun, Unreachable
from lab.evaluator.store import AppendLog, Stored, read_lines
from lab.papers.data import Benchmark, Text
from proto.base import Readiness
from proto.collections import CollectionInfo, CreateCollection, Document, IngestRequest, IngestResponse
from services.gateway.access import OWNER, current_scope
from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.gateway.papers import feedback
from services.gateway.papers.candidates import Candidate, Listing, Pool, Role
from services.gateway.papers.clean import clean, question
from services.gateway.papers.enhance import Prompts, enhance
from services.gateway.papers.query_forms import ANSWER, KEYWORDS, QUESTION, Form
from services.gateway.papers.strategy import Retrieval, gather
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance
from services.kit.budget import Budget
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure

ENHANCEMENTS, LISTS = "enhancements.jsonl", "lists.jsonl"
# A measurement waits for what a request would go without.
ALLOW_S = 300.0
BATCH = 64

OnStep = Callable[[int], None]


class Enhancement(Stored):
    """All forms of the query that the generator wrote for one question."""

    id: str
    key: str
    generator: str = ""
    forms: dict[Form, str] = Field(default_factory=dict)


class StoredList(Stored):
    source: str
    form: Form
    role: Role = "retrieval"
    ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()


class StoredPool(Stored):
    """One question's pool, without texts."""

    id: str
    key: str
    candidates: tuple[str, ...] = ()
    lists: tuple[StoredList, ...] = ()

    @classmethod
    def of(cls, query: str, key: str, pool: Pool) -> "StoredPool":
        def stored(item: Listing) -> StoredList:
            ids, scores = tuple(item.scores), tuple(item.scores.values())
            return StoredList(source=item.source, form=item.form, role=item.role, ids=ids, scores=scores)

        return cls(id=query, key=key, candidates=tuple(pool.candidates), lists=tuple(map(stored, pool.lists)))

    def pool(self) -> Pool:
        lists = [
            Listing(one.source, one.form, dict(zip(one.ids, one.scores, strict=True)), one.role) for one in self.lists
        ]
        return Pool({name: Candidate(name) for name in self.candidates}, lists)


@dataclass(frozen=True, slots=True)
class Collector:
    """A run over a test collection.

    Args:
        folder: where its files are.
        collection: the retriever's collection, which exists.
        models: the reranker's model and the encoders' fingerprints, on which lists depend too.
    """

    benchmark: Benchmark
    mesh: Mesh
    settings: GatewaySettings
    folder: Path
    collection: CollectionInfo
    models: Mapping[str, str]

    def question(self, query: str) -> str:
        text = self.benchmark.questions[query]
        return question(text.title[:2_000], text.body)

    def _context(self, text: str, seconds: float) -> Context:
        return Context(Question(text, datetime.now(UTC)), Run(Budget(seconds)), self.mesh, self.settings)

    async def enhanced(
        self, prompts: Prompts, *, ask: bool, concurrency: int, on_step: OnStep
    ) -> dict[str, dict[Form, str]]:
        """Each question's further forms, from the file or, with `ask`, from the generator.

        Raises:
            Unreachable: the generator does not answer.
        """
        both = (prompts.keywords, prompts.answer)
        texts = [part for prompt in both for part in (prompt.system, prompt.user.template)]
        keys = {query: _key(self.question(query), texts) for query in self.benchmark.questions}
        path = self.folder / ENHANCEMENTS
        forms = {line.id: line.forms for line in read_lines(path, Enhancement) if keys.get(line.id) == line.key}
        on_step(len(forms))
        missing = [query for query in keys if query not in forms]
        if not ask or not missing:
            return forms
        gate = asyncio.Semaphore(concurrency)
        with AppendLog(path) as log:

            async def write(query: str) -> None:
                async with gate:
                    line = await self._enhance(query, keys[query], prompts)
                log.append(line)
                forms[query] = line.forms
                on_step(1)

            await all_of(write(query) for query in missing)
        return forms

    async def _enhance(self, query: str, key: str, prompts: Prompts) -> Enhancement:
        context = self._context(self.question(query), 2 * ALLOW_S)
        forms: dict[Form, str] = {}
        await enhance(context, prompts, forms, Allowance(ALLOW_S))
        failed = [item for item in context.run.degraded if item.reason != "empty"]
        if failed:
            raise Unreachable(f"enhancement: {failed[0].stage}: {failed[0].reason} {failed[0].detail}")
        return Enhancement(id=query, key=key, generator=self.mesh.llm.model, forms=forms)

    def description(self, enhanced: Mapping[str, Mapping[Form, str]]) -> str:
        """The number of questions with each form, and the generators, for a report."""
        models = {line.generator for line in read_lines(self.folder / ENHANCEMENTS, Enhancement) if line.id in enhanced}
        counts = {form: sum(form in forms for forms in enhanced.values()) for form in (KEYWORDS, ANSWER)}
        texts = ", ".join(f"{form} for {count}" for form, count in counts.items())
        return f"{texts} questions, by {', '.join(sorted(models))}" if models else "none"

    async def pools(
        self, enhanced: Mapping[str, Mapping[Form, str]], prompts: Prompts, on_step: OnStep
    ) -> dict[str, Pool]:
        """Each question's pool: all lists of all forms, and the re-scoring model's.

        Raises:
            Unreachable: a search or the re-scoring fell short, twice.
        """
        forms_by_query = {
            query: {QUESTION: self.question(query), **enhanced.get(query, {})} for query in self.benchmark.questions
        }
        dependencies = [
            self.collection.model_dump(mode="json"),
            dict(self.models),
            self.settings.papers_candidates,
            self.settings.papers_rescored,
            [feedback.DOCUMENTS, feedback.WORDS],
        ]
        keys = {query: _key(forms, dependencies) for query, forms in forms_by_query.items()}
        path = self.folder / LISTS
        pools = {line.id: line.pool() for line in read_lines(path, StoredPool) if keys.get(line.id) == line.key}
        on_step(len(pools))
        with AppendLog(path) as log:
            for query, forms in forms_by_query.items():
                if query not in pools:
                    pools[query] = await self._search(forms, prompts)
                    log.append(StoredPool.of(query, keys[query], pools[query]))
                    on_step(1)
        return {query: pools[query] for query in forms_by_query}

    async def _search(self, forms: Mapping[Form, str], prompts: Prompts) -> Pool:
        # This process asks, not a caller with a key.
        current_scope.set(OWNER)
        reasons: list[str] = []
        for _ in range(2):
            context, retrieval = self._context(forms[QUESTION], ALLOW_S), Retrieval(self.collection.name, dict(forms))
            await gather(context, prompts, retrieval, enhanced=False)
            run = context.run
            if not run.degraded:
                return retrieval.pool
            reasons = [f"{item.stage}: {item.reason} {item.detail}" for item in run.degraded]
        raise Unreachable("; ".join(reasons))


def collection_name(documents: Mapping[str, Text]) -> str:
    """A name made of the documents, so that those of two test collections are never searched together."""
    digest = blake2b(digest_size=12)
    for key in sorted(documents):
        digest.update(_document(key, documents[key]).model_dump_json().encode())
    return f"papers-{digest.hexdigest()}"


async def index(mesh: Mesh, name: str, documents: Mapping[str, Text], on_step: OnStep) -> CollectionInfo:
    """Make a collection of whole documents, cleaned as questions are; existing documents stay.

    Raises:
        Unreachable: the retriever does not take it.
        BadRun: it skips documents that hold text.
    """
    request = CreateCollection(chunked=False)
    try:
        await mesh.retriever.request("PUT", f"/collections/{name}", request.model_dump_json().encode(), allow_s=ALLOW_S)
        texts = [item for item in (_document(key, text) for key, text in documents.items()) if item.text]
        for start in range(0, len(texts), BATCH):
            batch = IngestRequest(documents=tuple(texts[start : start + BATCH]))
            reply = await mesh.retriever.call(f"/collections/{name}/documents", batch, IngestResponse, allow_s=ALLOW_S)
            if reply.skipped:
                raise BadRun(f"{len(reply.skipped)} documents skipped: {reply.skipped[0].detail}")
            on_step(len(batch.documents))
        return await info(mesh, name)
    except ServiceFailure as failure:
        raise Unreachable(f"indexing: {failure}") from failure


async def info(mesh: Mesh, name: str) -> CollectionInfo:
    """The retriever's description of a collection.

    Raises:
        Unreachable: the retriever does not answer, or has no such collection.
    """
    try:
        reply = await mesh.retriever.request("GET", f"/collections/{name}", allow_s=ALLOW_S)
    except ServiceFailure as failure:
        raise Unreachable(f"collection {name}: {failure}") from failure
    return CollectionInfo.model_validate_json(reply)


async def reranker_model(mesh: Mesh) -> str:
    """The model that re-scores.

    Raises:
        Unreachable: the reranker does not answer.
    """
    try:
        reply = await mesh.reranker.request("GET", "/readyz", allow_s=ALLOW_S)
    except ServiceFailure as failure:
        raise Unreachable(f"re-scoring: {failure}") from failure
    return Readiness.model_validate_json(reply).model


def _document(key: str, text: Text) -> Document:
    title, body = clean(text.title), clean(text.body)
    return Document(id=key, title=title[:4_000], text=body or title)


def _key(*parts: object) -> str:
    return blake2b(json.dumps(parts, sort_keys=True, default=str).encode(), digest_size=12).hexdigest()
