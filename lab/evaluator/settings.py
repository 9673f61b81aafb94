"""Settings of the evaluator; where the mesh is comes from `services.kit.settings.MeshUrls`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kit.environment import OrNone


class EvaluatorSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # Sent as a bearer token to a gateway that asks for one.
    api_key: str = Field("", repr=False)
    # Any OpenAI-compatible server for the judge `llm`; better not the model that is judged.
    judge_url: str = ""
    # Its model; the first that it serves when empty.
    judge_model: str = ""
    # Sent as a bearer token to the judge.
    judge_api_key: str = Field("", repr=False)
    # The longest that one verdict of the judge `llm` may take.
    judge_timeout_s: float = Field(60.0, gt=0, le=600)
    # Where `cragmesh calibrate` puts what it fits, and the gateway looks for it.
    confidence_dir: Path = Path("models/confidence")
    # Where evaluation data lies; reports write the variable's name instead.
    eval_data: OrNone[Path] = None
