"""Settings of the gateway."""

from typing import Literal

from pydantic import Field

from services.kit.settings import KitSettings, MeshUrls


class GatewaySettings(KitSettings, MeshUrls):
    # Not below 1024, so that no service needs privileges.
    gateway_port: int = Field(8000, ge=1024, le=65_535)
    # Requests answered at a time; one more is told to come again rather than made to wait for an answer too late.
    gateway_max_in_flight: int = Field(10, ge=1, le=10_000)
    # Asked for as a bearer token by `POST /answer` when it is set; the inner services are protected by their network.
    api_key: str = Field("", repr=False)
    # Used when a request names none.
    default_strategy: str = "db3"
    # Kept back from every budget for writing the answer; what is left under it is never given to a stage.
    safety_margin_s: float = Field(0.3, ge=0.05, le=5)
    # db3, section 2.4: longer contexts cost time and bring few answers more.
    max_context_tokens: int = Field(4_000, ge=100, le=100_000)
    # CRAG scores only the first 75 tokens of an answer.
    max_answer_tokens: int = Field(75, ge=1, le=1_000)
    # db3, section 2.4: `controlled` hallucinates less and answers less; an adapter taught to abstain wants `basic`.
    db3_prompt: Literal["basic", "controlled"] = "controlled"
    # LoRA adapter of the web answer; the base model answers where the generator has none of that name.
    web_answer_adapter: str = "web-answer"
    # Caps of the stages, so that a stuck service leaves time for the answer.
    retrieve_cap_s: float = Field(12.0, gt=0, le=30)
    rerank_cap_s: float = Field(5.0, gt=0, le=30)
    # What the classification may take of a request; it runs beside the strategy, which waits for it only to read it.
    classify_cap_s: float = Field(0.3, gt=0, le=30)
    # The knowledge graph's facts are asked for beside the web; above this the web answers alone.
    kg_cap_s: float = Field(12.0, gt=0, le=30)
    # Facts are short: what is longer is a list that a question rarely wants whole.
    kg_max_tokens: int = Field(1_000, ge=50, le=4_000)
    # LoRA adapter of the answer from facts; the base model answers where the generator has none of that name.
    kg_answer_adapter: str = "kg-answer"
    # Kept for the generator by the stages before it.
    generate_reserve_s: float = Field(8.0, gt=0, le=30)
    # First guesses of the generator's speed, corrected by what is measured; those of the embedded model on two cores.
    prefill_tokens_per_s: float = Field(700.0, gt=0)
    decode_tokens_per_s: float = Field(40.0, gt=0)
