# Generated from proto/collections.py by `make contracts`: edits are lost.
"""Contract of the retriever's collections: a corpus of one's own, indexed once, searched by several encoders."""

from typing import Annotated, Literal, TypeVar, get_args

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, field_validator, model_validator

from cragmesh_client.contracts.base import MAX_PAGE_CHARS, STRICT, Contract, Count, Degradation, Milliseconds, Query, QueryTime, StageTiming

MAX_BATCH_DOCUMENTS = 256
MAX_BATCH_CHARS = 16 * 1024 * 1024
MAX_QUERY_FORMS = 8
MAX_FIELDS = 32
# Of a request; those that a caller's key adds come on top.
MAX_FILTERS = 32
MAX_ALL_FILTERS = 2 * MAX_FILTERS
MAX_VALUES = 256
MAX_COLLECTIONS = 8
MAX_FILE_BYTES = 48 * 1024 * 1024
MAX_MOVES = 256
MAX_LISTED = 500

CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
EncoderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
# Not `.` or `..`, which addresses read as other places; a path's pattern matches no line feed.
DOCUMENT_ID = r"^([^.\n]|\.[^.\n]|[^.\n][^\n]|[^\n]{3,200})?$"
DocumentId = Annotated[str, StringConstraints(max_length=200, pattern=DOCUMENT_ID)]
FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
# JSON's numbers are doubles, which hold whole numbers exactly up to here.
WHOLE = 2**53
FieldValue = str | Annotated[int, Field(ge=-WHOLE, le=WHOLE)] | Annotated[float, Field(allow_inf_nan=False)] | bool
DocumentFormat = Literal["html", "markdown", "text"]
FileFormat = Literal["html", "markdown", "text", "pdf", "docx", "pptx", "xlsx", "epub", "mail"]
FIELDS = TypeAdapter(Annotated[dict[FieldName, FieldValue], Field(max_length=MAX_FIELDS)])
TEXTS = get_args(DocumentFormat)
DocumentState = Literal["waiting", "writing", "complete", "interrupted", "failed"]
# What a file's format is called over HTTP.
MEDIA_TYPES: dict[str, FileFormat] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/plain": "text",
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/epub+zip": "epub",
    "message/rfc822": "mail",
}
ROUTES = {
    "/collections/{name}/documents": ("Ingest", "IngestRequest", "IngestResponse"),
    "/collections/{name}/moves": ("MoveDocuments", "MoveRequest", "MoveResponse"),
    "/collections/{name}/search": ("Search", "SearchRequest", "SearchResponse"),
}
# The name of BM25's list among the encoders'.
BM25 = "bm25"


class Document(Contract):
    """A document to index."""

    id: DocumentId = Field(
        "", description="The caller's name, of one line and not `.` or `..`; its content's hash when empty."
    )
    title: str = Field("", max_length=4_000, description="What a reader knows it by.")
    url: str = Field("", max_length=8_192, description="Where it came from; never fetched.")
    source: str = Field("", max_length=200, description="The corpus that it is of; a sync removes of its own alone.")
    text: str = Field(max_length=MAX_PAGE_CHARS, description="The document itself.")
    format: DocumentFormat = Field("text", description="How `text` is written.")
    fields: dict[FieldName, FieldValue] = Field(
        default_factory=dict, max_length=MAX_FIELDS, description="Values to filter by; kept and returned as they are."
    )


class CreateCollection(Contract):
    """`PUT /collections/{name}`. The same request again changes nothing; another one is a 409."""

    model_config = STRICT

    encoders: tuple[EncoderName, ...] = Field(
        (), max_length=8, description="Encoders to index with, each a named vector; the retriever's own when empty."
    )
    chunked: bool = Field(True, description="Whether documents are cut into chunks; false keeps each whole.")
    indexed_fields: dict[FieldName, Literal["keyword", "integer", "float", "bool"]] = Field(
        default_factory=dict, max_length=MAX_FIELDS, description="Fields that get a payload index."
    )
    shards: int = Field(1, ge=1, le=256, description="Shards of a Qdrant cluster.")
    replicas: int = Field(1, ge=1, le=16, description="Copies of each shard.")


class CollectionInfo(Contract):
    name: str = Field(description="Its name.")
    encoders: tuple[str, ...] = Field((), description="Its named vectors.")
    chunked: bool = Field(description="Whether documents are cut into chunks.")
    documents: Count = Field(description="Documents indexed.")
    points: Count = Field(description="Chunks, or whole documents.")
    backend: Literal["local", "server"] = Field(description="qdrant-client's local mode, or a Qdrant server.")


class Collections(Contract):
    collections: tuple[CollectionInfo, ...] = Field((), description="All collections, by name.")


class IngestRequest(Contract):
    """`POST /collections/{name}/documents`."""

    documents: tuple[Document, ...] = Field(min_length=1, max_length=MAX_BATCH_DOCUMENTS, description="A batch.")

    @model_validator(mode="after")
    def _bounded_in_all(self) -> "IngestRequest":
        if sum(len(document.text) for document in self.documents) > MAX_BATCH_CHARS:
            raise ValueError(f"documents hold more than {MAX_BATCH_CHARS} characters in all")
        return self


class IngestResponse(Contract):
    added: Count = Field(0, description="Documents that are new.")
    unchanged: Count = Field(0, description="Documents that were there already, word for word.")
    replaced: Count = Field(0, description="Documents whose content under the same id was another.")
    points: Count = Field(0, description="Points written.")
    skipped: tuple[Degradation, ...] = Field((), description="Documents that hold no text or cannot be read, and why.")
    timing: StageTiming = Field(default_factory=StageTiming, description="The whole of it.")


Bound = Annotated[float, Field(allow_inf_nan=False)]


class Range(Contract):
    """An interval of numbers (`gt` ... `lte`) or of times in ISO 8601 (`since`, `until`); all bounds given hold."""

    # An operator that nobody knows would be one that lets everything through.
    model_config = STRICT

    gt: Bound | None = Field(None, description="More than.")
    gte: Bound | None = Field(None, description="At least.")
    lt: Bound | None = Field(None, description="Less than.")
    lte: Bound | None = Field(None, description="At most.")
    since: QueryTime | None = Field(None, description="At or after this time.")
    until: QueryTime | None = Field(None, description="Before this time.")

    @model_validator(mode="after")
    def _bounded(self) -> "Range":
        return _some(self, set())


class FileDescription(Contract):
    """What a file's sender says of it, in the query of `PUT /collections/{name}/documents/{id}`."""

    title: str = Field("", max_length=4_000, description="What a reader knows it by; the file's own when empty.")
    url: str = Field("", max_length=8_192, description="Where it came from; never fetched.")
    source: str = Field("", max_length=200, description="The corpus that it is of.")
    fields: str = Field(
        "{}", max_length=65_536, description="Values to filter by, as JSON; with the whole address at most 64 KiB."
    )
    wait_s: float = Field(10.0, ge=0, le=25, description="Seconds to wait until it is written.")

    @field_validator("fields")
    @classmethod
    def _fields(cls, value: str) -> str:
        try:
            FIELDS.validate_json(value)
        except ValidationError as error:
            problem = error.errors(include_context=False)[0]["msg"]
            raise ValueError(f'not a JSON object of fields, such as {{"year": 1864}}: {problem}') from error
        return value


class Listing(Contract):
    """Which documents a list has."""

    limit: int = Field(100, ge=1, le=MAX_LISTED, description="Documents of a page.")
    after: str = Field("", pattern="^[0-9a-f-]{0,36}$", description="`next` of the page before.")
    source: str = Field("", max_length=200, description="Those of one corpus; all when empty.")


class DocumentInfo(Contract):
    """A document of a collection, and how far its writing is."""

    id: str = Field(description="Its id.")
    title: str = Field("", description="What a reader knows it by.")
    url: str = Field("", description="Where it came from.")
    source: str = Field("", description="The corpus that it is of.")
    format: str = Field("", description="What it was read as; empty for one that an older version wrote.")
    digest: str = Field("", description="SHA-256 of the file, or of the text in UTF-8, in hexadecimal.")
    fields: dict[str, FieldValue] = Field(default_factory=dict, description="Values to filter by.")
    pages: Count = Field(0, description="Its pages or slides; 0 where it has none.")
    passages: Count = Field(0, description="What it is cut into.")
    written: Count = Field(0, description="How many of them are written; all, once it is `complete`.")
    state: DocumentState = Field(
        description="`waiting` or `writing` (come again), `complete`, `interrupted` (send it again: it goes on), or "
        "`failed` (it cannot be read)."
    )
    problem: str = Field("", description="Why it cannot be read.")


class Documents(Contract):
    """A page of a collection's documents, in an order of no meaning that stays."""

    documents: tuple[DocumentInfo, ...] = Field((), description="Those of this page.")
    next: str = Field("", description="`after` of the next page; empty on the last.")


class Move(Contract):
    """A document that is known by another name from now on."""

    id: str = Field(min_length=1, max_length=200, description="Its id.")
    to: DocumentId = Field(min_length=1, description="Its new id; what has that is replaced.")
    url: str = Field("", max_length=8_192, description="Its new address.")


class MoveRequest(Contract):
    """`POST /collections/{name}/moves`: nothing is read or encoded again."""

    moves: tuple[Move, ...] = Field(min_length=1, max_length=MAX_MOVES, description="In this order.")


class MoveResponse(Contract):
    moved: Count = Field(0, description="Documents that were moved.")
    missing: tuple[str, ...] = Field((), description="Ids of no complete document.")


class Filter(Contract):
    """A condition on one field of a document; of several operators all must hold."""

    model_config = STRICT

    field: FieldName = Field(description="Its name.")
    equals: FieldValue | None = Field(None, description="Its value.")
    any_of: tuple[FieldValue, ...] = Field((), max_length=MAX_VALUES, description="It has one of these values.")
    range: Range | None = Field(None, description="Its value lies in this interval.")
    exists: bool | None = Field(None, description="Whether the document has the field at all.")

    @model_validator(mode="after")
    def _conditioned(self) -> "Filter":
        return _some(self, {"field"})


Stated = TypeVar("Stated", bound=Contract)


def _some(message: Stated, besides: set[str]) -> Stated:
    """The message; one that states nothing would hold for everything, and a misspelt operator is nothing."""
    names = [name for name in type(message).model_fields if name not in besides]
    if not any(getattr(message, name) not in (None, ()) for name in names):
        raise ValueError(f"must state one of {', '.join(names)}")
    return message


class SearchRequest(Contract):
    """`POST /collections/{name}/search`."""

    queries: tuple[Query, ...] = Field(
        min_length=1, max_length=MAX_QUERY_FORMS, description="Forms of one question: as asked, enhanced, an answer ..."
    )
    encoders: tuple[EncoderName, ...] = Field(
        (), description="Lists to make; the collection's own encoders and BM25 when empty."
    )
    candidates: int = Field(150, ge=1, le=1_000, description="Length of each list (encoder x query form).")
    top_n: int = Field(20, ge=1, le=1_000, description="Documents or chunks of the fused list.")
    filters: tuple[Filter, ...] = Field((), max_length=MAX_ALL_FILTERS, description="All must hold.")
    lists: bool = Field(False, description="Whether each list is returned beside the fused one.")
    texts: bool = Field(True, description="Whether texts are returned.")
    distinct: bool = Field(
        True,
        description="Whether a text that several documents hold is found once, where it is best; copies still take "
        "places among `candidates`, and count in scores.",
    )


class SearchHit(Contract):
    """A point of the collection."""

    id: str = Field(description="The document's id.")
    title: str = Field("", description="The document's title.")
    url: str = Field("", description="The document's address.")
    text: str = Field("", description="The chunk, or the whole document.")
    start: Count = Field(0, description="First character in the document's extracted text.")
    end: Count = Field(0, description="One past the last character.")
    page_number: Count = Field(0, description="Page of the document, from 1; 0 where it has no pages.")
    fields: dict[str, FieldValue] = Field(default_factory=dict, description="The document's fields.")
    score: float = Field(allow_inf_nan=False, description="Fused rank score.")


class RankedList(Contract):
    """What one encoder found for one form of the query."""

    encoder: str = Field(description="An encoder's name, or `bm25`.")
    query: Count = Field(description="Index in `queries`.")
    hits: tuple[Count, ...] = Field((), description="Indexes in `hits`, best first.")
    scores: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = Field(
        (), description="Cosines, or BM25's scores, in the same order."
    )


class SearchResponse(Contract):
    hits: tuple[SearchHit, ...] = Field(
        (), description="The fused list's `top_n`, best first; with `lists` all other candidates after them."
    )
    fused: Count = Field(0, description="How many of `hits` are the fused list.")
    lists: tuple[RankedList, ...] = Field((), description="Each list, when asked for.")
    timing: StageTiming = Field(default_factory=StageTiming, description="The whole of it.")
    encode_ms: Milliseconds = Field(0, description="Part spent on vectors of the queries.")
