"""A collection's schema, kept in its metadata, so that no collection of another build is searched by mistake."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proto.collections import CreateCollection
from proto.retrieve import ChunkerName
from services.kit.encoder import Encoder
from services.retriever.collections.documents import CHUNK_CHARS, CHUNKER
from services.retriever.collections.errors import CollectionConflict
from services.retriever.collections.sparse import CHUNK_LENGTH

# Changes whenever vectors or point ids of old collections become wrong.
VERSION = 1
KEY = "cragmesh"
AVERAGE_LENGTH = "average_length"


class EncoderRecord(BaseModel):
    """The model behind a named vector.

    Attributes:
        precision: its number format then; vectors of all formats mix, at a cosine of 0.999.
    """

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    dimension: int
    fingerprint: str
    precision: str
    normalise: bool = True
    pooling: str = ""
    passage_instruction: str = ""
    static_passages: bool = False

    @classmethod
    def of(cls, encoder: Encoder) -> "EncoderRecord":
        usage = encoder.usage
        return cls(
            dimension=encoder.dimension,
            fingerprint=encoder.fingerprint,
            precision=encoder.precision.dtype,
            normalise=usage.normalise,
            pooling=usage.pooling or "",
            passage_instruction=usage.passage_instruction or "",
            static_passages=usage.static_passages,
        )

    def matches(self, other: "EncoderRecord") -> bool:
        """Whether vectors of both may be compared."""
        return self.model_dump(exclude={"precision"}) == other.model_dump(exclude={"precision"})

    def __str__(self) -> str:
        static = ", static passages" if self.static_passages else ""
        return f"{self.dimension} dimensions, model {self.fingerprint}{static}"


class Schema(BaseModel):
    """A collection's build."""

    model_config = ConfigDict(frozen=True)

    version: int = VERSION
    encoders: dict[str, EncoderRecord]
    chunked: bool
    chunker: ChunkerName = CHUNKER
    chunk_chars: int = CHUNK_CHARS
    indexed_fields: dict[str, Literal["keyword", "integer", "float", "bool"]] = Field(default_factory=dict)
    shards: int = 1
    replicas: int = 1

    @property
    def document_chunker(self) -> str:
        """How documents are cut, as the collection's first ones were; empty where they stay whole."""
        return self.chunker if self.chunked else ""

    @classmethod
    def build(cls, request: CreateCollection, encoders: dict[str, EncoderRecord]) -> "Schema":
        options = request.model_dump(include={"chunked", "indexed_fields", "shards", "replicas"})
        return cls(encoders=encoders, **options)

    def metadata(self) -> dict[str, Any]:
        """The metadata of a new collection; the average length of whole documents is added with the first ones."""
        return {KEY: self.model_dump()} | ({AVERAGE_LENGTH: CHUNK_LENGTH} if self.chunked else {})

    def differences(self, other: "Schema") -> list[str]:
        """What this build has in place of another one's, in words; an older one's chunker goes on to be used."""
        mine, others = self.model_dump(), other.model_dump()
        differences = [
            f"{_in_words(field, mine[field])}, not {_in_words(field, others[field])}"
            for field in mine
            if field not in ("encoders", "chunker") and mine[field] != others[field]
        ]
        if list(self.encoders) != list(other.encoders):
            differences.append(f"the encoders {', '.join(self.encoders)}, not {', '.join(other.encoders)}")
            return differences
        return differences + [
            f"the encoder {name} with {record}, not {other.encoders[name]}"
            for name, record in self.encoders.items()
            if not record.matches(other.encoders[name])
        ]


def _in_words(field: str, value: Any) -> str:
    if field == "chunked":
        return "chunks of documents" if value else "whole documents"
    if field == "indexed_fields":
        return "indexed fields " + (", ".join(f"{name}:{kind}" for name, kind in value.items()) or "none")
    return f"{field.replace('_', ' ')} {value}"


def check_owner(name: str, metadata: dict[str, Any]) -> None:
    """Check that this service made a collection, in whatever version.

    Raises:
        CollectionConflict: it did not.
    """
    if KEY not in metadata:
        raise CollectionConflict(f"the collection {name!r} was not made by this service, which leaves it alone")


def read(name: str, metadata: dict[str, Any]) -> Schema:
    """A collection's schema from its metadata.

    Raises:
        CollectionConflict: another service made it, or another version of this one.
    """
    check_owner(name, metadata)
    try:
        schema = Schema.model_validate(metadata[KEY])
    except ValidationError as error:
        raise CollectionConflict(f"the collection {name!r} says of itself what this version cannot read") from error
    if schema.version != VERSION:
        raise CollectionConflict(
            f"the collection {name!r} was built by version {schema.version} of the index, and this is {VERSION}: "
            "delete it and index again"
        )
    return schema
