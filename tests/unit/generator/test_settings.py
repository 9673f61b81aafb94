from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from services.generator import __main__ as launcher
from services.generator.settings import GeneratorSettings
from services.kit.settings import EncoderSettings


def test_the_pretended_cpu_is_the_one_of_all_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_CPU_ISA", "avx2")
    assert GeneratorSettings().cpu_isa == EncoderSettings().cpu_isa == "avx2"


def test_arguments_win_over_the_environment_and_leave_the_rest_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_GENERATOR_PORT", "8105")
    monkeypatch.setenv("CRAGMESH_GENERATOR_MODELS_DIR", "/srv/models")
    settings = GeneratorSettings.model_validate({"port": 8205})
    assert (settings.port, settings.models_dir) == (8205, Path("/srv/models"))


def test_the_variables_of_the_mesh_are_not_the_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "MODEL"):
        monkeypatch.setenv(f"CRAGMESH_GENERATOR_{name}", "for the mesh")
    assert {"url", "model"}.isdisjoint(GeneratorSettings.model_fields)
    assert GeneratorSettings().profile == "cpu"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GENERATOR_PORT", "80"), ("GENERATOR_THREADS", "0"), ("GENERATOR_KV_CACHE_GIB", "257"), ("CPU_ISA", "sse2"),
        ("GENERATOR_PRECISION", "int4"), ("GENERATOR_PROFILE", "CPU"), ("GENERATOR_PROFILE", ""), ("MODEL", ""),
        *(("MODEL", name) for name in ("huge", "Small", "/etc/passwd", "../models", "a/b/c", "a/..", "a b/c", "-x/y")),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CRAGMESH_{name}", value)
    with pytest.raises(ValidationError):
        GeneratorSettings()


@pytest.mark.parametrize("name", ["auto", "small", "medium", "large", "owner/model-7b.v1"])
def test_a_model_is_a_size_or_a_hubs_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CRAGMESH_MODEL", name)
    assert GeneratorSettings().embedded == name


def test_what_prepares_reads_the_file_that_the_commands_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("CRAGMESH_MODEL=small\nCRAGMESH_GENERATOR_MODELS_DIR=/elsewhere\n")
    monkeypatch.setattr(launcher, "project_root", lambda: tmp_path)
    monkeypatch.setenv("CRAGMESH_GENERATOR_MODELS_DIR", "/here")
    # Set and removed, so that what the file brings goes when the test ends.
    monkeypatch.setenv("CRAGMESH_MODEL", "")
    monkeypatch.delenv("CRAGMESH_MODEL")
    made: list[GeneratorSettings] = []
    monkeypatch.setattr(launcher, "create", lambda *_: made.append(GeneratorSettings()))
    CliRunner().invoke(launcher.app, ["environment"], catch_exceptions=False)
    assert (made[0].embedded, made[0].models_dir) == ("small", Path("/here"))
