"""Settings of the retriever."""

from pathlib import Path

from pydantic import Field, HttpUrl

from services.kit.environment import OrNone
from services.kit.settings import EncoderSettings, KitSettings


class RetrieverSettings(KitSettings, EncoderSettings):
    retriever_port: int = Field(8001, ge=1024, le=65_535)
    # Requests in flight; more are refused with 429, which costs callers less than waiting.
    retriever_max_in_flight: int = Field(32, ge=1, le=10_000)
    # Processes that parse HTML; pages are hostile, so the service's own process parses none.
    page_workers: int = Field(2, ge=1, le=64)
    # A page that takes longer is dropped and named; the slowest of real pages takes a tenth of it.
    page_timeout_s: float = Field(4.0, gt=0, le=30)
    # The same of a file (PDF, Word, ...), which may be a book of a thousand pages.
    file_timeout_s: float = Field(25.0, gt=0, le=600)
    # Address space of a page worker; a page that needs more fails alone.
    page_worker_mib: int = Field(1_024, ge=256, le=16_384)
    # Cache of pages' chunks and vectors; 0 keeps none.
    page_cache_mib: int = Field(128, ge=0, le=65_536)
    # Reserved of a caller's deadline for ranking, so that one slow page cannot cost all the others.
    rank_reserve_s: float = Field(1.0, ge=0, le=10)
    # Folder of the collections when no server is named; one process may hold it, and nobody else may write there.
    qdrant_path: Path = Path("models/collections")
    # Folder of files that wait to be written, those of a killed retriever too; of one retriever alone. Below the
    # collections' folder when empty.
    intake_path: OrNone[Path] = None
    # Size of the files that may wait; more are refused with 429.
    intake_mib: int = Field(2_048, ge=64, le=1_048_576)
    # A Qdrant server, or any node of a cluster: from about 50,000 chunks on, or for several retrievers.
    qdrant_url: OrNone[HttpUrl] = None
    qdrant_api_key: str = Field("", repr=False)
    # Encoders of one's own, in the form of `services/kit/encoders.yaml`.
    encoders_file: OrNone[Path] = None
    # Weights of the encoders that collections ask for, beside the retriever's own; the one unused longest makes room.
    encoders_mib: int = Field(2_048, ge=1, le=1_048_576)
