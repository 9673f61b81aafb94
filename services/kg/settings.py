"""Settings of the KG-API-parser."""

from pathlib import Path

from pydantic import Field, HttpUrl

from services.kit.environment import OrNone
from services.kit.settings import EncoderSettings, KitSettings, MeshUrls


class KgSettings(KitSettings, MeshUrls, EncoderSettings):
    kg_port: int = Field(8004, ge=1024, le=65_535)
    # `sqlite:///file` or `postgresql+psycopg://user@host/name`; a SQLite file that is not there is made with the demo
    # graph, so that a first start needs nothing.
    kg_database: str = Field("sqlite:///models/kg.sqlite", min_length=1, repr=False)
    # Seconds between checks whether the store answers, and whether a load has replaced the graph.
    kg_follow_s: float = Field(5.0, ge=0.05, le=60.0)
    # A folder of folders, each a domain of one's own: see docs/your-own-domain.md. A broken one stops the start.
    kg_domains: OrNone[Path] = None
    # Root of a running CRAG mock API: programs then run over its data, not over the database, and rules, which need the
    # names of the database, write them less well.
    kg_live_url: OrNone[HttpUrl] = None
    # For all its requests of one program.
    kg_live_cap_s: float = Field(8.0, gt=0, le=30)
    # For all statements of a program together; a graph in memory answers in milliseconds.
    kg_execute_cap_s: float = Field(1.0, gt=0, le=30)
    # Writing the program; above it the rules write one.
    kg_write_cap_s: float = Field(10.0, gt=0, le=30)
    # Worked examples in the prompt: more make it longer, fewer leave functions unseen.
    kg_examples: int = Field(4, ge=0, le=20)
    # Whether the base model can write programs from examples alone. One of 1.5 B parameters can, the embedded one of
    # 135 M cannot: for it rules alone write them until the adapter below is served.
    kg_base_model_writes: bool = False
    # Whether the base model writes SQL for domains of one's own, behind the rules; `kg_base_model_writes` says so too.
    kg_sql: bool = False
    # Seconds from the start in which the service is ready only once the generator has read the tables of added domains:
    # a question that comes before waits for them. `cragmesh up` sets it; a cluster's service waits for no generator.
    kg_reads_first_s: float = Field(0.0, ge=0, le=600)
    # LoRA adapter that writes programs; the base model does where the generator has none of that name.
    kg_adapter: str = "kg-api"
    # The one that writes SQL for domains of one's own; likewise.
    kg_sql_adapter: str = "sql"
    # Programs executed at a time; more wait.
    kg_workers: int = Field(4, ge=1, le=64)

    @property
    def writes_sql(self) -> bool:
        """Whether a model may write SQL for a domain of one's own."""
        return self.kg_sql or self.kg_base_model_writes

    @property
    def execute_cap_s(self) -> float:
        return self.kg_live_cap_s if self.kg_live_url else self.kg_execute_cap_s
