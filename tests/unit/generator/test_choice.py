"""What `auto` takes, by memory and pace that the tests say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.generator import choice
from services.generator.choice import (
    choose,
    context_tokens,
    embedded,
    free_memory,
    memory_bytes,
    prefill_tokens_per_s,
    read_choice,
    serves_int8,
    size_of,
    smaller,
)
from services.generator.errors import GeneratorError
from services.generator.settings import GeneratorSettings
from services.generator.sizes import SIZES
from services.kit.cpu import Isa

GIGA = 10**9
# Seconds for each token and weight: with the first the large model reads 400 tokens in 2.1 s, the medium one in 0.6 s.
FAST, SLOWISH, SLOWER, SLOW = 4e-12, 1.3e-11, 1.5e-11, 1e-10

# As versions wrote it that tried a larger size again after a day.
EARLIER = '{"size": "large", "reason": "", "machine": "", "pace": 0.0, "wanted": "", "failed_at": null}'


@pytest.fixture(autouse=True)
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.AVX512_VNNI)


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the free memory, 24 GB at first."""

    def set_free(giga: int) -> None:
        monkeypatch.setattr(choice, "free_memory", lambda: giga * GIGA)

    set_free(24)
    return set_free


def settings(folder: Path, **given: Any) -> GeneratorSettings:
    return GeneratorSettings.model_validate({"models_dir": folder, "embedded": "auto", "threads": 2} | given)


@pytest.mark.parametrize(
    ("free", "pace", "size", "reason"),
    [
        (24, FAST, "large", "22.0 GB of memory beside the other services, 400 tokens are read in 2.1 s"),
        (24, SLOWER, "medium", "large reads 400 tokens in 7.9 s, 400 tokens are read in 2.1 s"),
        (24, SLOW, "small", "medium reads 400 tokens in 14.3 s, and at most 7 s are allowed"),
        (6, FAST, "medium", "large needs 4.4 GB, 400 tokens are read in 0.6 s"),
        (4, FAST, "small", "2.0 GB of memory beside the other services, medium needs"),
        (1, FAST, "small", "0.0 GB"),
    ],
)
def test_auto_takes_the_largest_that_fits_and_reads_in_time(
    tmp_path: Path, memory: Callable[[int], None], free: int, pace: float, size: str, reason: str
) -> None:
    memory(free)
    measures: list[float] = []

    def measure() -> float:
        measures.append(pace)
        return pace

    made = choose(settings(tmp_path), measure)
    assert made.size == size
    assert reason in made.reason
    assert made.pace == (0 if free < 6 else pace)
    assert len(measures) == (free >= 6), "nothing is measured where only the smallest fits"
    name, why = embedded(settings(tmp_path))
    assert name == SIZES[size].hub
    assert why == f"auto took {size}: {made.reason}"


def test_the_gateway_is_told_of_the_speed_that_was_measured(tmp_path: Path) -> None:
    large = SIZES["large"]
    assert prefill_tokens_per_s(settings(tmp_path), large) == large.prefill_tokens_per_s
    choose(settings(tmp_path), lambda: FAST)
    assert prefill_tokens_per_s(settings(tmp_path), large) == pytest.approx(1 / (FAST * large.layers))
    # Of another size than was chosen, and of one that is named, nothing was measured.
    for given, size in (("auto", SIZES["small"]), ("large", large)):
        assert prefill_tokens_per_s(settings(tmp_path, embedded=given), size) == size.prefill_tokens_per_s
    assert context_tokens(settings(tmp_path), large) == large.max_context_tokens
    choose(settings(tmp_path), lambda: SLOWISH, anew=True)
    assert context_tokens(settings(tmp_path), large) == round(choice.CONTEXT_S / (SLOWISH * large.layers))
    choose(settings(tmp_path), lambda: 1e-9, anew=True)
    assert context_tokens(settings(tmp_path), SIZES["small"]) == choice.LEAST_CONTEXT_TOKENS


def test_a_decision_holds_until_the_machine_is_another_or_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = choose(settings(tmp_path), lambda: FAST)
    # A busy moment is no other machine.
    assert choose(settings(tmp_path), lambda: SLOW) == first
    assert choose(settings(tmp_path), lambda: SLOW, anew=True).size == "small"
    assert choose(settings(tmp_path), lambda: FAST).size == "small"
    assert choose(settings(tmp_path, threads=1), lambda: FAST).size == "large"
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.AVX2)
    assert choose(settings(tmp_path, threads=1), lambda: SLOW).size == "small"


@pytest.mark.parametrize("text", ["", "{}", '{"size": "huge", "reason": "", "machine": ""}', EARLIER, "\xff"])
def test_what_was_not_written_here_is_no_decision(tmp_path: Path, text: str) -> None:
    (tmp_path / choice.CHOICE).write_bytes(text.encode("latin-1"))
    assert read_choice(settings(tmp_path)) is None
    with pytest.raises(GeneratorError, match=r"generator prepare.*small, medium, large"):
        embedded(settings(tmp_path))


def test_a_name_needs_no_decision(tmp_path: Path) -> None:
    assert embedded(settings(tmp_path, embedded="large")) == ("Qwen/Qwen2.5-Coder-1.5B-Instruct", "")
    assert embedded(settings(tmp_path, embedded="owner/model-7b")) == ("owner/model-7b", "")
    assert size_of("owner/model-7b") is None
    assert size_of("Qwen2.5-Coder-0.5B-Instruct") is SIZES["medium"]


def test_memory_follows_the_number_format_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = SIZES["large"]
    int8 = memory_bytes(settings(tmp_path), large)
    assert int8 < 4.6 * GIGA
    assert memory_bytes(settings(tmp_path, kv_cache_gib=1.5), large) == int8 + 1024**3
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.BASE)
    fp32 = memory_bytes(settings(tmp_path), large)
    assert fp32 > memory_bytes(settings(tmp_path, precision="bf16"), large) > int8


def test_int8_is_served_where_a_library_multiplies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serves_int8(settings(tmp_path))
    assert serves_int8(settings(tmp_path, precision="int8"))
    assert not serves_int8(settings(tmp_path, precision="fp32"))
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.AVX2)
    assert serves_int8(settings(tmp_path))
    monkeypatch.setattr(choice, "instruction_set", lambda _limit: Isa.BASE)
    assert not serves_int8(settings(tmp_path))
    with pytest.raises(GeneratorError, match=r"\(base\) has no AVX2"):
        choose(settings(tmp_path, precision="int8"), lambda: FAST)
    assert read_choice(settings(tmp_path)) is None


@pytest.mark.parametrize(
    ("files", "gib"),
    [
        ({}, 16.0),
        ({"memory.max": "max\n", "memory.current": "1\n"}, 16.0),
        ({"memory.max": "8589934592\n", "memory.current": "3221225472\n"}, 5.0),
        (
            {
                "memory.max": "8589934592",
                "memory.current": "3221225472",
                "memory.stat": "anon 1\ninactive_file 1073741824",
            },
            6.0,
        ),
        ({"memory/memory.limit_in_bytes": "4294967296", "memory/memory.usage_in_bytes": "1073741824"}, 3.0),
        # Version 1 says a number beyond all memory where there is no limit.
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, 16.0),
    ],
)
def test_free_memory_is_the_containers_where_it_has_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], gib: float
) -> None:
    monkeypatch.setattr(choice, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(choice, "CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 25165824 kB\nMemAvailable:   16777216 kB\n")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert free_memory() == gib * 1024**3


def test_a_size_that_cannot_be_prepared_gives_way_to_the_next_smaller(tmp_path: Path) -> None:
    first = choose(settings(tmp_path), lambda: FAST)
    second = smaller(settings(tmp_path), first, "no such package")
    assert second is not None
    assert second.size == "medium"
    third = smaller(settings(tmp_path), second, "no space left")
    assert third is not None
    assert third.size == "small"
    reason = embedded(settings(tmp_path))[1]
    assert reason.startswith("auto took small: medium cannot be prepared: no space left; ")
    assert "prepare --anew" in reason
    assert smaller(settings(tmp_path), third, "no network") is None


def test_a_smaller_size_stays_until_somebody_says_so_or_the_machine_is_another(tmp_path: Path) -> None:
    for again in ({"anew": True}, {}):
        smaller(settings(tmp_path), choose(settings(tmp_path), lambda: FAST, anew=True), "no network")
        assert choose(settings(tmp_path), lambda: FAST).size == "medium"
        other = settings(tmp_path) if again else settings(tmp_path, threads=1)
        assert choose(other, lambda: FAST, **again).size == "large"
