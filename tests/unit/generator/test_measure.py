"""How fast a machine reads: what its own threads compute, whatever a neighbour takes from it."""

from types import SimpleNamespace

import pytest

from services.generator import measure

WEIGHTS = sum(inputs * outputs for inputs, outputs in measure.SHAPES)


@pytest.mark.parametrize(("wall", "computed", "counted"), [(0.1, 0.2, 0.1), (0.3, 0.2, 0.11)], ids=["idle", "busy"])
@pytest.mark.parametrize(
    ("number_format", "by_fbgemm", "overhead"),
    [
        ("int8", False, measure.OVERHEAD),
        ("int8", True, measure.OVERHEAD_FBGEMM),
        ("fp32", False, measure.OVERHEAD_FP32),
    ],
)
def test_a_neighbour_that_is_busy_all_the_while_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
    number_format: str,
    by_fbgemm: bool,
    overhead: float,
    wall: float,
    computed: float,
    counted: float,
) -> None:
    now = {"wall": 0.0, "computed": 0.0}

    def layer() -> None:
        now["wall"] += wall
        now["computed"] += computed

    clock = SimpleNamespace(
        perf_counter=lambda: now["wall"], monotonic=lambda: now["wall"], process_time=lambda: now["computed"]
    )
    monkeypatch.setattr(measure, "time", clock)
    module = SimpleNamespace(get_num_threads=lambda: 2, by_fbgemm=lambda: by_fbgemm)
    monkeypatch.setattr(measure, "import_module", lambda _: module)
    monkeypatch.setattr(measure, "_layer", lambda *_: layer)
    expected = overhead * counted * len(measure.SHAPES) / measure.ROWS / WEIGHTS
    assert measure.measure(number_format) == pytest.approx(expected)
