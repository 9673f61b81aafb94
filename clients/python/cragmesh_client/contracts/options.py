# Generated from proto/options.py by `make contracts`: edits are lost.
"""What the published systems vary, as fields of a request: for ablations and for questions of one's own."""

from typing import Literal

from pydantic import Field

from cragmesh_client.contracts.base import STRICT, Contract
from cragmesh_client.contracts.kg import KgMode
from cragmesh_client.contracts.retrieve import ChunkerName, ExtractorName, RankingName

KgOption = Literal[KgMode, "off"]
AssessmentOption = Literal["high", "medium", "low", "off"]

MAX_CONTEXT_TOKENS = 32_000


class Options(Contract):
    """Knobs of a strategy, for one question.

    One that is left out keeps what the strategy does. `GET /strategies` names those that it heeds; another is refused.
    """

    model_config = STRICT

    extractor: ExtractorName | None = Field(None, description="HTML to text.")
    chunker: ChunkerName | None = Field(None, description="Text to chunks.")
    chunk_chars: int | None = Field(
        None, ge=100, le=8_000, description="Characters of what the generator is shown of a chunk, or of its parent."
    )
    ranking: RankingName | None = Field(None, description="How chunks are ordered.")
    prefilter: int | None = Field(None, ge=10, le=5_000, description="Chunks that are embedded, chosen by BM25.")
    recall_k: int | None = Field(None, ge=1, le=200, description="Passages that retrieval keeps.")
    rerank: bool | None = Field(None, description="Whether passages and snippets are reranked.")
    rerank_k: int | None = Field(None, ge=1, le=50, description="Passages that go on to the generator.")
    tables: bool | None = Field(None, description="Whether tables are passages of their own.")
    context_tokens: int | None = Field(
        None, ge=100, le=MAX_CONTEXT_TOKENS, description="Tokens of passages that the generator is shown at most."
    )
    kg: KgOption | None = Field(None, description="Who writes programs for the knowledge graph; `off` asks it nothing.")
    calculator: bool | None = Field(None, description="Whether calculations may be asked for.")
    closed_book: bool | None = Field(None, description="Whether the model is asked without documents as well.")
    false_premise: bool | None = Field(None, description="Whether a question may be called invalid.")
    dynamism: bool | None = Field(None, description="Whether how fast the answer changes decides anything.")
    self_assessment: AssessmentOption | None = Field(
        None, description="What the model must say of its own answer for it to be given; `off` does not ask."
    )

    @property
    def given(self) -> frozenset[str]:
        """Names of the options that are not left out."""
        return frozenset(name for name in type(self).model_fields if getattr(self, name) is not None)
