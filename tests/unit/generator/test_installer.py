import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.generator import installer
from services.generator.installer import Command, by_pip, by_uv, install, pip_settings, translate


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named uv beside the interpreter."""
    program = tmp_path / "bin/uv"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    return program


def test_what_pip_is_told_of_indexes_is_told_to_uv() -> None:
    told = translate(
        {
            "index-url": "https://index.example/simple",
            "extra-index-url": "https://a.example/simple\nhttps://b.example/simple",
            "find-links": "/wheels /more",
            "constraint": "/etc/constraints.txt",
            "trusted-host": "a.example",
            "cert": "/etc/ca.pem",
            "default-timeout": "180",
            "quiet": "1",
        }
    )
    assert told == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_CONSTRAINT": "/etc/constraints.txt",
        "UV_INSECURE_HOST": "a.example",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_HTTP_TIMEOUT": "180",
    }


@pytest.mark.parametrize("option", ["no-index", "proxy", "client-cert", "only-binary", "an-option-of-tomorrow"])
def test_what_uv_cannot_be_told_is_left_to_pip(option: str, uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "pip_settings", lambda: {option: "1"})
    assert translate({option: "1", "cert": "/etc/ca.pem"}) is None
    assert by_uv("python", ("numpy",)) is None


def test_uv_installs_into_the_environment_that_is_named(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "7")
    monkeypatch.setattr(installer, "pip_settings", lambda: {"timeout": "15", "find-links": "/wheels"})
    command = by_uv("/env/bin/python", ("numpy==2.0",))
    assert command is not None
    assert command.argv == (str(uv), "pip", "install", "--python", "/env/bin/python", "numpy==2.0")
    # What the operator says of uv itself counts.
    assert (command.env["UV_HTTP_TIMEOUT"], command.env["UV_FIND_LINKS"]) == ("7", "/wheels")
    assert command.env["UV_INDEX_STRATEGY"] == "unsafe-best-match"


def test_without_uv_there_is_no_command_of_its(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert by_uv("python", ("numpy",)) is None


def test_settings_are_pips_own_with_variables_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nfind-links = /a\nextra-index-url =\n    file:///x\n    file:///y\n[install]\ntimeout = 9\n"
    )
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_FIND_LINKS", "/b")
    settings = pip_settings()
    assert settings["find-links"] == "/b"
    assert settings["extra-index-url"].split() == ["file:///x", "file:///y"]
    assert settings["timeout"] == "9"


@pytest.mark.parametrize(
    ("has_uv", "works", "tried"), [(True, "uv", ["uv"]), (True, "pip", ["uv", "pip"]), (False, "pip", ["pip"])]
)
def test_pip_installs_where_uv_does_not(
    has_uv: bool, works: str, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Command(("uv", "numpy"), {}) if has_uv else None
    monkeypatch.setattr(installer, "by_uv", lambda python, arguments: command)
    ran: list[str] = []

    def execute(command: Command) -> bool:
        ran.append("pip" if "pip" in command.argv else "uv")
        return ran[-1] == works

    assert install("python", ("numpy",), execute)
    assert ran == tried


def test_what_neither_can_install_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "by_uv", lambda python, arguments: Command((sys.executable, "-c", "1/0"), {}))
    assert by_pip("/env/bin/python", ("numpy",)).argv[:4] == ("/env/bin/python", "-m", "pip", "install")
    missing = Command((sys.executable, "-c", "raise SystemExit(1)"), dict(os.environ))
    monkeypatch.setattr(installer, "by_pip", lambda python, arguments: missing)
    assert not install("python", ("numpy",))


def test_it_needs_nothing_that_it_installs() -> None:
    argv = (sys.executable, "-S", "-c", "import services.generator.installer")
    subprocess.run(argv, check=True, cwd=Path(installer.__file__).parents[2])  # noqa: S603 - our own arguments
