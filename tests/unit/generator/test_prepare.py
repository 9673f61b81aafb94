"""The preparation with small files in place of the wheel and the model; what they replace runs in the e2e tests."""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from services.generator import choice
from services.generator import prepare as preparing
from services.generator.errors import GeneratorError
from services.generator.files import MANIFEST, problems, read_manifest
from services.generator.prepare import prepare, prepare_from_hub, prepare_int8, prepare_large
from services.generator.progress import Reporter
from services.generator.settings import GeneratorSettings
from services.generator.sizes import SIZES, SMOLLM2, Size, Source, Wheel
from services.kit.cpu import Isa

GGUF = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.AVX512_VNNI)


def wheel(content: bytes = GGUF, member: str = SMOLLM2.wheels[0].member) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, content)
    return packed.getvalue()


WHEEL = wheel()
FILE = replace(SMOLLM2.wheels[0], sha256=hashlib.sha256(WHEEL).hexdigest())
SOURCE = Source(SMOLLM2.model, (FILE,), disk_bytes=1)


class Bench:
    """A models folder, the two outside steps, and how often each ran."""

    def __init__(self, folder: Path) -> None:
        self.settings = GeneratorSettings(models_dir=folder)
        self.target = folder / SOURCE.model
        self.cache = folder / ".cache"
        self.log = io.StringIO()
        self.downloads = 0
        self.conversions = 0
        self.offered = WHEEL
        self.fails = False

    def download(self, wheel: Wheel, folder: Path) -> None:
        self.downloads += 1
        (folder / wheel.file).write_bytes(self.offered)

    def convert(self, gguf: Path, out: Path) -> None:
        self.conversions += 1
        assert gguf.read_bytes() == GGUF
        out.mkdir()
        (out / "config.json").write_text("{}")
        if self.fails:
            raise GeneratorError("the machine went away")
        (out / "model.safetensors").write_bytes(gguf.read_bytes()[::-1])
        (out / "model.safetensors").chmod(0o600)

    def prepare(self, *, verify: bool = False) -> bool:
        reporter = Reporter(Console(file=self.log, width=200))
        return prepare(
            self.settings, reporter, verify=verify, source=SOURCE, download=self.download, convert=self.convert
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "models")


def test_a_model_appears_whole_with_its_manifest(bench: Bench) -> None:
    assert bench.prepare()
    manifest = read_manifest(bench.target)
    assert manifest is not None
    assert [file.name for file in manifest.files] == ["config.json", "model.safetensors"]
    assert manifest.source == SOURCE.requirement
    assert manifest.files[1].sha256 == hashlib.sha256(GGUF[::-1]).hexdigest()
    assert problems(bench.target, manifest, content=True) == []
    assert [path.name for path in bench.cache.iterdir()] == [f"{SOURCE.model}.lock"]
    assert not bench.prepare()
    assert not bench.prepare(verify=True)
    assert (bench.downloads, bench.conversions) == (1, 1)
    # Another user's server must be able to read it.
    assert (bench.target / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_an_interrupted_conversion_resumes_without_another_download(bench: Bench) -> None:
    bench.fails = True
    with pytest.raises(GeneratorError, match="went away"):
        bench.prepare()
    assert not bench.target.exists()
    bench.fails = False
    assert bench.prepare()
    assert (bench.downloads, bench.conversions) == (1, 2)
    assert not bench.prepare(verify=True)


def test_a_download_that_was_cut_off_starts_again(bench: Bench) -> None:
    incoming = bench.cache / f"{FILE.file}.incoming"
    incoming.mkdir(parents=True)
    (incoming / FILE.file).write_bytes(WHEEL[:100])
    assert bench.prepare()
    assert bench.downloads == 1


def test_another_wheel_than_the_pinned_one_is_deleted_and_both_sums_are_named(bench: Bench) -> None:
    bench.offered = wheel(b"something else")
    with pytest.raises(GeneratorError) as failure:
        bench.prepare()
    assert hashlib.sha256(bench.offered).hexdigest() in str(failure.value)
    assert SOURCE.sha256 in str(failure.value)
    assert not (bench.cache / FILE.file).exists()
    assert bench.conversions == 0
    bench.offered = WHEEL
    assert bench.prepare()


@pytest.mark.parametrize(
    ("harm", "says"),
    [(Path.unlink, "model.safetensors is missing"), (lambda file: os.truncate(file, 10), "has 10 bytes")],
)
def test_a_missing_or_truncated_file_is_seen_at_once(bench: Bench, harm: Callable[[Path], None], says: str) -> None:
    bench.prepare()
    harm(bench.target / "model.safetensors")
    assert bench.prepare()
    assert says in bench.log.getvalue()
    assert not bench.prepare(verify=True)


def test_a_changed_byte_is_seen_by_verify(bench: Bench) -> None:
    bench.prepare()
    with (bench.target / "model.safetensors").open("r+b") as file:
        file.write(b"\xff\xff")
    assert not bench.prepare()
    assert bench.prepare(verify=True)
    assert "has the sha256" in bench.log.getvalue()
    assert not bench.prepare(verify=True)


@pytest.mark.parametrize("text", ["", "{}", '{"source": "x", "source_sha256": "y", "files": []}'])
def test_a_manifest_that_says_nothing_is_no_manifest(bench: Bench, text: str) -> None:
    bench.prepare()
    (bench.target / MANIFEST).write_text(text)
    assert bench.prepare()


def test_a_manifest_cannot_name_files_elsewhere(bench: Bench) -> None:
    bench.prepare()
    manifest = bench.target / MANIFEST
    manifest.write_text(manifest.read_text().replace("config.json", "../config.json"))
    assert read_manifest(bench.target) is None


def test_a_model_of_another_source_is_replaced(bench: Bench) -> None:
    bench.prepare()
    manifest = bench.target / MANIFEST
    manifest.write_text(manifest.read_text().replace(SOURCE.sha256, "0" * 64))
    assert bench.prepare()
    assert bench.conversions == 2


def test_a_full_disk_is_told_before_the_download(bench: Bench) -> None:
    greedy = replace(SOURCE, disk_bytes=1 << 60)
    with pytest.raises(GeneratorError, match="MB free"):
        prepare(bench.settings, Reporter(Console(file=bench.log)), source=greedy, download=bench.download)
    assert bench.downloads == 0


def test_without_the_environment_the_error_names_the_command(tmp_path: Path) -> None:
    settings = GeneratorSettings(models_dir=tmp_path, interpreter=tmp_path / "none/bin/python")
    with pytest.raises(GeneratorError, match=r"services\.generator environment"):
        prepare(settings, Reporter(Console(file=io.StringIO())), source=SOURCE)


def test_progress_is_plain_lines_where_there_is_no_terminal(bench: Bench) -> None:
    bench.prepare()
    shown = bench.log.getvalue()
    assert "\x1b" not in shown
    assert f"verifying {FILE.file}: done in" in shown
    assert shown.rstrip().endswith("is ready")


class Quantiser:
    """Stands for the script that needs vLLM's interpreter; `test_quantise.py` runs that."""

    def __init__(self) -> None:
        self.runs = 0
        self.fails = False

    def __call__(self, source: Path, out: Path) -> None:
        self.runs += 1
        if self.fails:
            raise GeneratorError("the disk is full")
        (out / "config.json").write_text((source / "config.json").read_text())
        (out / "model.safetensors").write_bytes(b"int8")


def int8(bench: Bench, quantise: Quantiser, model: str = SOURCE.model, *, verify: bool = False) -> bool:
    reporter = Reporter(Console(file=bench.log, width=200))
    return prepare_int8(bench.settings, reporter, model, verify=verify, quantise=quantise)


def test_int8_weights_appear_beside_their_model_and_once(bench: Bench) -> None:
    bench.prepare()
    quantise = Quantiser()
    assert int8(bench, quantise, f"HuggingFaceTB/{SOURCE.model}")
    folder = bench.target.with_name(f"{SOURCE.model}-int8")
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.source == SOURCE.model
    assert problems(folder, manifest, content=True) == []
    assert not int8(bench, quantise)
    assert not int8(bench, quantise, verify=True)
    assert quantise.runs == 1


def test_int8_weights_follow_their_model(bench: Bench) -> None:
    bench.prepare()
    quantise = Quantiser()
    int8(bench, quantise)
    (bench.target / "model.safetensors").write_bytes(b"fine-tuned")
    assert int8(bench, quantise)
    (bench.target.with_name(f"{SOURCE.model}-int8") / "model.safetensors").write_bytes(b"INT8")
    assert not int8(bench, quantise)
    assert int8(bench, quantise, verify=True)


def test_a_failed_quantisation_leaves_nothing_that_would_be_served(bench: Bench) -> None:
    bench.prepare()
    quantise = Quantiser()
    quantise.fails = True
    with pytest.raises(GeneratorError, match="disk is full"):
        int8(bench, quantise)
    assert not bench.target.with_name(f"{SOURCE.model}-int8").exists()
    quantise.fails = False
    assert int8(bench, quantise)


def test_a_model_of_ones_own_is_taken_from_where_it_lies(bench: Bench, tmp_path: Path) -> None:
    mine = tmp_path / "elsewhere/mine"
    mine.mkdir(parents=True)
    (mine / "config.json").write_text("{}")
    (mine / "model.safetensors").write_bytes(b"weights")
    assert int8(bench, Quantiser(), str(mine))
    assert (bench.settings.models_dir / "mine-int8/model.safetensors").is_file()
    with pytest.raises(GeneratorError, match="holds no model"):
        int8(bench, Quantiser(), "absent")


class Parts:
    """A larger model in three parts, and what the outside steps were asked for."""

    def __init__(self, folder: Path) -> None:
        self.settings = GeneratorSettings(models_dir=folder, precision="int8")
        self.log = io.StringIO()
        self.wheels: dict[str, bytes] = {}
        self.downloads: list[str] = []
        self.conversions = 0
        names = [f"part{number}" for number in (1, 2, 3)]
        for number, name in enumerate(names):
            self.wheels[f"{name}.whl"] = wheel(GGUF[number * 4_000 : (number + 1) * 4_000], f"{name}.bin")
        parts = (
            Wheel(f"{name}==1", f"{name}.whl", hashlib.sha256(self.wheels[f"{name}.whl"]).hexdigest(), f"{name}.bin")
            for name in names
        )
        large = SIZES["large"]
        self.size: Size = replace(large, source=Source(large.model, tuple(parts), disk_bytes=1))
        self.quantise = Quantiser()

    def download(self, wheel: Wheel, folder: Path) -> None:
        self.downloads.append(wheel.file)
        (folder / wheel.file).write_bytes(self.wheels[wheel.file])

    def convert(self, gguf: Path, out: Path) -> None:
        self.conversions += 1
        assert gguf.read_bytes() == GGUF
        out.mkdir()
        (out / "config.json").write_text("{}")
        (out / "model.safetensors").write_bytes(b"dense")

    def prepare(self, *, original: bool = False) -> bool:
        reporter = Reporter(Console(file=self.log, width=200))
        return prepare_large(
            self.settings,
            reporter,
            self.size,
            original=original,
            download=self.download,
            convert=self.convert,
            quantise=self.quantise,
        )

    def folders(self) -> set[str]:
        return {path.name for path in self.settings.models_dir.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "models")


def test_a_model_in_parts_is_put_together_in_their_order(parts: Parts) -> None:
    assert parts.prepare()
    assert parts.downloads == ["part1.whl", "part2.whl", "part3.whl"]
    assert (parts.conversions, parts.quantise.runs) == (1, 1)
    assert not parts.prepare()
    assert (len(parts.downloads), parts.conversions, parts.quantise.runs) == (3, 1, 1)


def test_what_int8_was_made_from_goes_where_nothing_reads_it(parts: Parts) -> None:
    name = parts.size.model
    parts.prepare()
    assert parts.folders() == {f"{name}-int8"}
    assert {path.suffix for path in (parts.settings.models_dir / ".cache").iterdir()} == {".lock"}
    assert parts.prepare(original=True)
    assert parts.folders() == {f"{name}-int8", name}
    assert (parts.conversions, parts.quantise.runs) == (2, 1)


def test_where_int8_is_not_served_it_is_not_made(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.BASE)
    parts.settings = GeneratorSettings(models_dir=parts.settings.models_dir)
    assert parts.prepare()
    assert parts.folders() == {parts.size.model}
    assert not parts.prepare()


def test_another_part_than_the_pinned_one_is_deleted_and_the_others_stay(parts: Parts) -> None:
    whole = parts.wheels["part2.whl"]
    parts.wheels["part2.whl"] = wheel(b"something else", "part2.bin")
    with pytest.raises(GeneratorError, match=r"part2\.whl is not the file that was reviewed"):
        parts.prepare()
    parts.wheels["part2.whl"] = whole
    assert parts.prepare()
    assert parts.downloads == ["part1.whl", "part2.whl", "part2.whl", "part3.whl"]


def test_a_source_with_another_part_is_another_model(parts: Parts) -> None:
    parts.prepare()
    parts.wheels["part3.whl"] += b" "
    first, second, third = parts.size.source.wheels
    third = replace(third, sha256=hashlib.sha256(parts.wheels["part3.whl"]).hexdigest())
    parts.size = replace(parts.size, source=replace(parts.size.source, wheels=(first, second, third)))
    assert parts.prepare()
    assert parts.quantise.runs == 2


def test_every_wheel_is_pinned_once() -> None:
    wheels = [wheel for size in SIZES.values() for wheel in size.source.wheels]
    assert [len(size.source.wheels) for size in SIZES.values()] == [1, 6, 22]
    assert len({wheel.sha256 for wheel in wheels}) == len({wheel.file for wheel in wheels}) == len(wheels)
    assert all(len(bytes.fromhex(wheel.sha256)) == 32 and "==" in wheel.requirement for wheel in wheels)


def from_hub(parts: Parts, *, hub: bool) -> bool:
    settings = GeneratorSettings(models_dir=parts.settings.models_dir, hub=hub)

    def download(name: Path, out: Path) -> None:
        parts.downloads.append(str(name))
        out.mkdir()
        (out / "config.json").write_text("{}")

    return prepare_from_hub(settings, Reporter(Console(file=parts.log)), "owner/model", download=download)


def test_a_hub_is_asked_only_where_it_may_be(parts: Parts) -> None:
    with pytest.raises(GeneratorError, match="CRAGMESH_GENERATOR_HUB=1"):
        from_hub(parts, hub=False)
    assert from_hub(parts, hub=True)
    assert not from_hub(parts, hub=False)
    assert parts.downloads == ["owner/model"]


def test_a_model_that_the_operator_put_there_is_left_alone(parts: Parts) -> None:
    folder = parts.settings.models_dir / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert not from_hub(parts, hub=True)
    assert parts.downloads == []


def test_auto_takes_a_smaller_model_where_the_larger_ones_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = GeneratorSettings(models_dir=tmp_path, embedded="auto")
    monkeypatch.setattr(choice, "free_memory", lambda: 24 * 10**9)
    monkeypatch.setattr(preparing, "_measure", lambda *_: 1e-13)
    tried: list[str] = []

    def prepare_size(_settings: GeneratorSettings, _reporter: Reporter, size: Size, **_: bool) -> None:
        tried.append(size.name)
        if size.name != "small":
            raise GeneratorError(f"no package of {size.name}")

    monkeypatch.setattr(preparing, "_prepare_size", prepare_size)
    log = io.StringIO()
    preparing.prepare_embedded(settings, Reporter(Console(file=log, width=200)))
    assert tried == ["large", "medium", "small"]
    assert "auto takes small: medium cannot be prepared: no package of medium" in log.getvalue()
    assert choice.embedded(settings)[0] == SIZES["small"].hub

    monkeypatch.setattr(preparing, "_prepare_size", lambda *_, **__: None)
    preparing.prepare_embedded(settings, Reporter(Console(file=log, width=200)), anew=True)
    assert choice.embedded(settings)[0] == SIZES["large"].hub
