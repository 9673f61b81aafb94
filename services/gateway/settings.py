"""Settings of the gateway."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from proto.kg import KgMode
from services.gateway.origin import name_of
from services.kit.caution import Caution
from services.kit.environment import OrNone
from services.kit.settings import KitSettings, MeshUrls


class GatewaySettings(KitSettings, MeshUrls):
    # Not below 1024, so that no service needs privileges.
    gateway_port: int = Field(8000, ge=1024, le=65_535)
    # Requests that this gateway takes at a time, whatever the generator would answer in time; one more waits a quarter
    # of a second, and is then told to come again.
    gateway_max_in_flight: int = Field(10, ge=1, le=10_000)
    # A Valkey or Redis that all gateways of the mesh know, redis://:password@host:6379/0: places and keys' rates count
    # there once for all; in each gateway when empty.
    valkey_url: str = Field("", pattern=r"^((rediss?|unix)://.+)?$", repr=False)
    # How many gateways share the generator, where no store counts or it is away: each takes its share.
    gateways: int = Field(1, ge=1, le=1_000_000)
    # Asked for as a bearer token by every route but the open ones when it is set; the inner services are protected by
    # their network.
    api_key: str = Field("", repr=False)
    # A file that `python -m services.gateway.keys` writes: several keys, hashed, read again when it changes.
    api_keys_file: OrNone[Path] = None
    # Names, with commas between, by which a gateway without a key is reached, behind a proxy say; addresses, localhost
    # and names that nobody can register need no entry, unless a proxy sends pages' requests on under another name.
    hosts: str = Field("", pattern=r"^[A-Za-z0-9._:\[\] ,-]*$")
    # Requests a minute of a key that has no rate of its own in the file; 0 is no limit.
    rate_per_minute: int = Field(0, ge=0, le=1_000_000)
    # Off where the gateway is an API for programs only: then `/` is not there.
    page: bool = True
    # The Model Context Protocol at `/mcp`; nothing of it is loaded before the first call.
    mcp: bool = True
    # The evaluator's reports that the page shows; when empty those of `out/eval` here, and those that are shipped.
    reports_dir: OrNone[Path] = None
    # Where `POST /feedback` keeps what people say of answers, with question and answer; nothing is kept without it.
    feedback_dir: OrNone[Path] = None
    # How long that is kept.
    feedback_days: int = Field(30, ge=1, le=3_650)
    # Where `/v1/batches` keeps questions and answers: sqlite:///FILE, or postgresql+psycopg://... for several gateways,
    # which then share the work; no batches without it.
    batches_database: str = Field("", repr=False)
    # Requests in flight, callers' and batches', up to which batches fill up; at 1 a question of a batch is asked only
    # while nobody else asks, and given up when somebody does. Higher where a GPU answers several as fast as one. Of the
    # whole mesh where `valkey_url` is set, else of each gateway.
    batches_level: int = Field(1, ge=1, le=10_000)
    # What files and batches of one key may take; and how long they are kept.
    batches_mib: int = Field(1_024, ge=1, le=100_000)
    batches_days: int = Field(30, ge=1, le=3_650)
    # What a question of its own may take before the gateway is ready, so that the first caller is answered as fast as
    # the next; 0 asks none.
    warm_up_s: float = Field(10.0, ge=0, le=60)
    # Used when a request names none.
    default_strategy: str = "adaptive"
    # Kept back from every budget for writing the answer; what is left under it is never given to a stage.
    safety_margin_s: float = Field(0.3, ge=0.05, le=5)
    # What the embedded model reads: with more it is wrong more often, and half as fast. A larger model gets 4,000 (db3,
    # section 2.4).
    max_context_tokens: int = Field(900, ge=100, le=100_000)
    # CRAG scores only the first 75 tokens of an answer.
    max_answer_tokens: int = Field(75, ge=1, le=1_000)
    # db3, section 2.4: `controlled` hallucinates less and answers less. Where the adapter below is served its own short
    # prompt is used instead: it was taught when to abstain.
    db3_prompt: Literal["basic", "controlled"] = "controlled"
    # Task 1 of CRAG, which has no knowledge graph: records of the entities in question go before the web's passages.
    db3_public_data: bool = False
    # LoRA adapter of the web answer; the base model answers where the generator has none of that name.
    web_answer_adapter: str = "answer"
    # LoRA adapter of `adaptive` where passages are asked for yes or no and a confidence is fitted on its answers; else
    # that of the web answer.
    yes_no_adapter: str = "yes-no"
    # Off where every answer is wanted, whatever its probability; a request may say so for itself (`every_answer`).
    abstain: bool = True
    # How dear a wrong answer is: low, balanced and high are 0.5, 1 and 2 right ones; the dearer, the fewer are given.
    caution: Caution = "balanced"
    # Files of fitted confidences that win over the shipped ones, read again when they change; `cragmesh calibrate`
    # writes them there. A folder that is not there holds none.
    confidence_dir: Path = Path("models/confidence")
    # Caps of the stages, so that a stuck service leaves time for the answer.
    retrieve_cap_s: float = Field(12.0, gt=0, le=30)
    rerank_cap_s: float = Field(5.0, gt=0, le=30)
    # Searching the web, where a question asks for it; pages that are late are read by their summaries.
    search_cap_s: float = Field(8.0, gt=0, le=30)
    # The extractive reader reads beside the generator, in a tenth of a second on idle cores; 0 does without it.
    read_cap_s: float = Field(3.0, ge=0, le=30)
    # From which probability on the reader answers where the generator does not; what was fitted with its weights when
    # empty.
    reader_threshold: OrNone[float] = Field(None, ge=0, le=1)
    # What the classification may take of a request; it runs beside the strategy, which waits for it only to read it.
    classify_cap_s: float = Field(0.3, gt=0, le=30)
    # Who writes the graph's programs where the request does not say: `auto` is a language model that was taught to, or
    # one that `kg_base_model_writes`, behind the rules.
    kg_mode: KgMode = "auto"
    # The knowledge graph's facts are asked for beside the web; above this the web answers alone.
    kg_cap_s: float = Field(12.0, gt=0, le=30)
    # Facts are short: what is longer is a list that a question rarely wants whole.
    kg_max_tokens: int = Field(1_000, ge=50, le=4_000)
    # LoRA adapter of the answer from facts; the base model answers where the generator has none of that name.
    kg_answer_adapter: str = "answer"
    # From this probability on that the answer changes within a year, `electric-sheep` does not answer, and `weknow`
    # leans on the web instead of the knowledge graph.
    dynamic_threshold: float = Field(0.5, ge=0, le=1)
    # What the model's answer from memory may take; it is written beside retrieval.
    knowledge_cap_s: float = Field(8.0, gt=0, le=30)
    # Writing expressions may take this long, over this much of the documents that hold figures.
    calculate_cap_s: float = Field(8.0, gt=0, le=30)
    calculate_max_tokens: int = Field(1_500, ge=100, le=100_000)
    # WeKnow-RAG: the domain is `open` unless it is more certain than this.
    weknow_domain_certainty: float = Field(0.9, ge=0, le=1)
    # WeKnow-RAG: what the model must say of its own answer for it to be given.
    weknow_confidence: Literal["high", "medium", "low"] = "high"
    # Weights of the ensemble of `/papers`, as `cragmesh papers tune` writes them; the shipped ones when empty.
    papers_weights: OrNone[Path] = None
    # Onewo: length of each list, encoder by form of the query.
    papers_candidates: int = Field(150, ge=10, le=1_000)
    # Of the candidates so many are scored again; twice as many take twice as long.
    papers_rescored: int = Field(100, ge=1, le=200)
    papers_rescore_cap_s: float = Field(10.0, gt=0, le=30)
    # Keywords and an answer to search with may take this long, written side by side.
    papers_enhance_cap_s: float = Field(12.0, gt=0, le=30)
    # Kept by the enhancement for the search with it and for the re-scoring.
    papers_reserve_s: float = Field(6.0, gt=0, le=30)
    # Kept for the generator by the stages before it.
    generate_reserve_s: float = Field(8.0, gt=0, le=30)
    # First guesses of the generator's speed, corrected by what is measured; those of the embedded model on two cores.
    prefill_tokens_per_s: float = Field(700.0, gt=0)
    decode_tokens_per_s: float = Field(40.0, gt=0)

    @property
    def host_names(self) -> frozenset[str]:
        """The names in `hosts`."""
        return frozenset(map(name_of, self.hosts.lower().replace(",", " ").split()))
