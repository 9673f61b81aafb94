"""The retriever's collections without their HTTP."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence

from qdrant_client import models

from proto.base import StageTiming
from proto.collections import (
    BM25,
    CollectionInfo,
    Collections,
    CreateCollection,
    Document,
    DocumentInfo,
    Documents,
    Filter,
    IngestResponse,
    Listing,
    Move,
    MoveResponse,
    SearchRequest,
    SearchResponse,
)
from services.kit.encoders import MIB
from services.kit.errors import refusal
from services.kit.lexical import stems
from services.retriever.collections.catalogue import Catalogue
from services.retriever.collections.documents import File
from services.retriever.collections.encoding import Encoding
from services.retriever.collections.errors import CollectionConflict, NoSuchCollection, NoSuchDocument
from services.retriever.collections.ingest import Ingestion
from services.retriever.collections.intake import Intake
from services.retriever.collections.local import LocalStore
from services.retriever.collections.locks import Locks
from services.retriever.collections.pipeline import Progress
from services.retriever.collections.schema import Schema, check_owner, read
from services.retriever.collections.search import ListQuery, distinct, fused_response, lists_response
from services.retriever.collections.sparse import query_vector
from services.retriever.collections.store import ServerStore, Store
from services.retriever.engine import Engine, encoder_pool
from services.retriever.settings import RetrieverSettings


def open_store(settings: RetrieverSettings) -> Store:
    """The store that the settings name, not opened."""
    return ServerStore.of(settings) if settings.qdrant_url else LocalStore(settings.qdrant_path)


class CollectionService:
    """Create, fill, search, list and delete collections.

    What names a collection raises NoSuchCollection where there is none, CollectionConflict where another service or
    another version of this one made it, and where one of its encoders is not the one that it was built with.

    Args:
        engine: parses pages, and shares its encoder.
        store: where collections are; the settings' own when None.
    """

    def __init__(self, settings: RetrieverSettings, engine: Engine, store: Store | None = None) -> None:
        self._default_encoder = engine.encoder.name
        pool = encoder_pool(settings)
        pool.pin(self._default_encoder, engine.encoder)
        self._encoding = Encoding(pool)
        self._store = store or open_store(settings)
        self._ingestion = Ingestion(self._store, self._encoding, engine.pages, settings)
        self._catalogue = Catalogue(self._store)
        self.intake = Intake(
            self._ingest, settings.intake_path or settings.qdrant_path / "intake", max_bytes=settings.intake_mib * MIB
        )
        # Batches of one collection are written one after the other: two of one document at once would mix versions.
        self._writing = Locks()

    @property
    def warning(self) -> str:
        """The store's warning for the operator; empty where all is well."""
        return self._store.warning

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["CollectionService"]:
        """Serve while the context is open; an embedded store is read before."""
        async with self._store.running(), self._encoding.running(), self.intake.running():
            yield self

    async def create(self, name: str, request: CreateCollection) -> tuple[CollectionInfo, bool]:
        """Make a collection; whether it is new comes with it.

        Raises:
            InvalidRequest: there is no such encoder, or the store has no shards.
            CollectionConflict: there is one that was built otherwise; it is left as it is.
        """
        encoders = request.encoders or (self._default_encoder,)
        if BM25 in encoders:
            raise refusal("encoders", f"every collection has {BM25}: it is no encoder to name")
        if len(set(encoders)) < len(encoders):
            raise refusal("encoders", "an encoder is named twice")
        for field in ("shards", "replicas"):
            if self._store.backend == "local" and getattr(request, field) > 1:
                raise refusal(field, "local mode has neither shards nor replicas: they need a Qdrant server", "1")
        records = {encoder: await self._encoding.record(encoder) for encoder in encoders}
        schema = Schema.build(request, records)
        async with self._writing[name]:
            try:
                existing = await self._schema(name)
            except NoSuchCollection:
                await self._store.create(name, schema)
                return await self._info(name, schema), True
        if differences := existing.differences(schema):
            raise CollectionConflict(
                f"the collection {name!r} exists and was built otherwise, so nothing was changed; it has "
                + "; ".join(differences)
            )
        # A killed request may have made the collection without its indexes.
        await self._store.index_payload(name, existing)
        return await self._info(name, existing), False

    async def info(self, name: str, filters: Sequence[Filter] = ()) -> CollectionInfo:
        """One collection, with the documents counted that the filters let through."""
        return await self._info(name, await self._schema(name), filters)

    async def require(self, name: str) -> None:
        """Check that there is a collection; unlike `info` without counts, which take as long as there are documents."""
        await self._schema(name)

    async def all(self, filters: Sequence[Filter] = ()) -> Collections:
        """The collections that this service made, by name, with the documents counted that the filters let through."""
        infos = []
        for name in await self._store.names():
            # A shared server has collections of others, and one may be deleted meanwhile.
            with contextlib.suppress(CollectionConflict, NoSuchCollection):
                infos.append(await self.info(name, filters))
        return Collections(collections=tuple(infos))

    async def delete(self, name: str) -> None:
        """Delete a collection with all its documents, whatever version of this service made it."""
        check_owner(name, await self._store.metadata(name))
        await self.intake.forget_all(name)
        async with self._writing[name]:
            await self._store.delete(name)

    async def ingest(self, name: str, documents: Sequence[Document]) -> IngestResponse:
        """Write a batch of documents; see `Ingestion.run`."""
        began = time.monotonic()
        response = await self._ingest(name, [File.of(document) for document in documents])
        return response.model_copy(update={"timing": StageTiming(elapsed_ms=(time.monotonic() - began) * 1000)})

    async def put(self, name: str, file: File, *, wait_s: float) -> tuple[DocumentInfo, bool]:
        """Write a file, within `wait_s` or later; whether it is new comes with it.

        Raises:
            InvalidRequest: it cannot be read; says why.
            Overloaded: too many files wait.
        """
        schema = await self._schema(name)
        await self._check_encoders(name, schema, schema.encoders)
        job = await self.intake.put(name, file)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await job.done.wait()
        if job.state == "failed":
            raise refusal("body", job.problem)
        info = await self._catalogue.info(name, file.id) if job.done.is_set() else None
        return (info or job.info()), job.new

    async def document(self, name: str, document: str, filters: Sequence[Filter] = ()) -> DocumentInfo:
        """A document that the filters let through; raises NoSuchDocument."""
        await self._schema(name)
        # The fields of a waiting document are not indexed yet, so that filters exclude it.
        waiting = None if filters else self.intake.find(name, document)
        info = waiting or await self._catalogue.info(name, document, filters)
        if info is None:
            raise NoSuchDocument(name, document)
        return info

    async def documents(self, name: str, listing: Listing, filters: Sequence[Filter] = ()) -> Documents:
        """A page of those documents of a collection that the filters let through."""
        await self._schema(name)
        return await self._catalogue.documents(name, listing, filters)

    async def delete_document(self, name: str, document: str) -> None:
        """Delete a document; raises NoSuchDocument."""
        await self._schema(name)
        forgotten = await self.intake.forget(name, document)
        async with self._writing[name]:
            if not await self._catalogue.delete(name, document) and not forgotten:
                raise NoSuchDocument(name, document)

    async def move(self, name: str, moves: Sequence[Move]) -> MoveResponse:
        """Give documents other ids."""
        async with self._writing[name]:
            await self._schema(name)
            return await self._catalogue.move(name, moves)

    async def _ingest(self, name: str, files: Sequence[File], progress: Progress = lambda *_: None) -> IngestResponse:
        async with self._writing[name]:
            schema = await self._schema(name)
            await self._check_encoders(name, schema, schema.encoders)
            return await self._ingestion.run(name, schema, files, progress)

    async def search(self, name: str, request: SearchRequest) -> SearchResponse:
        """The best points for a question in one or several forms; raises InvalidRequest for an encoder it lacks."""
        began = time.monotonic()
        schema = await self._schema(name)
        encoders = list(dict.fromkeys(request.encoders)) or [*schema.encoders, BM25]
        if missing := [encoder for encoder in encoders if encoder not in schema.encoders and encoder != BM25]:
            message = f"the collection {name!r} has no vectors of {', '.join(missing)}"
            raise refusal("encoders", message, ", ".join([*schema.encoders, BM25]))
        await self._check_encoders(name, schema, [encoder for encoder in encoders if encoder != BM25])
        queries = await self._list_queries(request.queries, encoders)
        encoded = time.monotonic()
        if request.lists:
            lists = await self._store.lists(name, request, queries)
            response = lists_response(request, queries, lists)
        else:
            response = fused_response(request, await self._fused(name, request, queries))
        return response.model_copy(
            update={
                "timing": StageTiming(elapsed_ms=(time.monotonic() - began) * 1000),
                "encode_ms": (encoded - began) * 1000,
            }
        )

    async def _fused(self, name: str, request: SearchRequest, queries: Sequence[ListQuery]) -> list[models.ScoredPoint]:
        if not request.distinct:
            return await self._store.fused(name, request, queries)
        # Twice `top_n` nearly always holds enough; where pages have many mirrors, all candidates are searched.
        best: list[models.ScoredPoint] = []
        for limit in (2 * request.top_n, request.candidates * len(queries)):
            points = await self._store.fused(name, request.model_copy(update={"top_n": limit}), queries)
            best = distinct(points)[: request.top_n]
            if len(best) == request.top_n or len(points) < limit:
                break
        return best

    async def _list_queries(self, texts: Sequence[str], encoders: Sequence[str]) -> list[ListQuery]:
        queries = []
        for encoder in encoders:
            if encoder == BM25:
                sparse = map(query_vector, stems(texts))
                # A query of stop words alone has no vector.
                queries += [ListQuery(BM25, index, vector) for index, vector in enumerate(sparse) if vector.indices]
                continue
            vectors = await self._encoding.queries(await self._encoding.get(encoder), texts)
            queries += [ListQuery(encoder, index, vector.tolist()) for index, vector in enumerate(vectors)]
        return queries

    async def _schema(self, name: str) -> Schema:
        return read(name, await self._store.metadata(name))

    async def _info(self, name: str, schema: Schema, filters: Sequence[Filter] = ()) -> CollectionInfo:
        return CollectionInfo(
            name=name,
            encoders=tuple(schema.encoders),
            chunked=schema.chunked,
            documents=await self._store.count(name, filters, chunk=0),
            points=await self._store.count(name, filters),
            backend=self._store.backend,
        )

    async def _check_encoders(self, name: str, schema: Schema, encoders: Iterable[str]) -> None:
        for encoder in encoders:
            built = schema.encoders[encoder]
            if not self._encoding.defines(encoder):
                raise CollectionConflict(
                    f"the collection {name!r} was built with the encoder {encoder} ({built}), which is not defined here"
                )
            here = await self._encoding.record(encoder)
            if not built.matches(here):
                raise CollectionConflict(
                    f"the collection {name!r} was built with another {encoder}: {built} there, {here} here"
                )
