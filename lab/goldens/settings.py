"""The places of the evaluation's questions and of their records, neither of which is in git."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class GoldensSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # The folder of CONTRIBUTING's table; without it the part `evaluation` is left out.
    eval_data: Path | None = None
    # A graph with the evaluation's rows, as `make out/eval-kg.sqlite` loads it.
    goldens_database: str = "sqlite:///out/eval-kg.sqlite"
    # Outside of `out/`, which `make clean` removes.
    goldens_dir: Path = Path(".goldens")
