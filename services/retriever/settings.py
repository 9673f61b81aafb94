"""Settings of the retriever."""

from pydantic import Field

from services.kit.settings import EncoderSettings, KitSettings


class RetrieverSettings(KitSettings, EncoderSettings):
    retriever_port: int = Field(8001, ge=1024, le=65_535)
    # Requests worked on at a time; above it callers are told to come again, which costs them less than waiting.
    retriever_max_in_flight: int = Field(32, ge=1, le=10_000)
    # Processes that parse HTML; pages are hostile, so none is parsed in the service's own process.
    page_workers: int = Field(2, ge=1, le=64)
    # A page that takes longer is given up and named; the slowest of real pages takes a tenth of it.
    page_timeout_s: float = Field(4.0, gt=0, le=30)
    # Address space of a page worker; a page that needs more fails alone.
    page_worker_mib: int = Field(1_024, ge=256, le=16_384)
    # Chunks and vectors of pages seen before; 0 keeps none.
    page_cache_mib: int = Field(128, ge=0, le=65_536)
    # Kept back from a caller's deadline for ranking, so that one slow page cannot cost all the others.
    rank_reserve_s: float = Field(1.0, ge=0, le=10)
