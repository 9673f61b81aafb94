"""Settings of the command line itself; where the services are is `services.kit.settings.MeshUrls`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kit.environment import OrNone


def project_root() -> Path:
    """The checkout that this code runs from, or the working directory when it was installed as a package."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


class CliSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # Pid files and logs of the embedded mesh; one folder is one mesh.
    run_dir: Path = Field(default_factory=lambda: project_root() / ".run")
    # Replaces the start limit of every service; a loaded machine may need more.
    start_timeout_s: OrNone[float] = Field(None, gt=0, le=3600)
    # What a service gets to finish its requests before it is killed; above `graceful_shutdown_s`.
    stop_timeout_s: float = Field(15.0, gt=0, le=300)
    # Sent as a bearer token to a gateway that asks for one.
    api_key: str = Field("", repr=False)
    # Which of an Indexed Job's pods this is, as Kubernetes says it; for `--shard N`.
    job_completion_index: OrNone[int] = Field(None, ge=0, validation_alias="JOB_COMPLETION_INDEX")
