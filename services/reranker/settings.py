"""Settings of the reranker."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.kit.environment import OrNone
from services.kit.settings import EncoderSettings, KitSettings

ScorerName = Literal["late-interaction", "query-likelihood", "cross-encoder", "flag-embedding"]


class RerankerSettings(KitSettings, EncoderSettings):
    reranker_port: int = Field(8002, ge=1024, le=65_535)
    # `late-interaction` needs no weights beyond the encoder's; the others need `reranker_model`.
    reranker_scorer: ScorerName = "late-interaction"
    # A name of `rerankers.yaml`, which brings its scorer, e.g. bge-reranker-v2-m3; or a folder or a hub name.
    reranker_model: str = ""
    # Tokens of one batch, padding included: larger ones are slower on a CPU and need more memory on a GPU.
    reranker_batch_tokens: int = Field(16_384, ge=512, le=1_048_576)
    # Tokens that may wait for the model; more are refused with 429.
    reranker_queue_tokens: int = Field(400_000, ge=1_024, le=100_000_000)
    # The extractive reader of `POST /read`: some 15 MiB in int8, 50 in fp32.
    reader: bool = True
    # A folder of `cragmesh train reader`; the shipped one when empty.
    reader_weights: OrNone[Path] = None
    # Tokens that may wait for the reader; more are refused with 429.
    reader_queue_tokens: int = Field(200_000, ge=1_024, le=100_000_000)
