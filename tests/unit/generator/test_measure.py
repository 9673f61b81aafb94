"""How fast a machine reads: what its own threads compute, whatever a neighbour takes from it."""

from types import SimpleNamespace

import pytest

from services.generator import measure

WEIGHTS = sum(inputs * outputs for inputs, outputs in measure.SHAPES)


@pytest.mark.parametrize(("wall", "computed", "counted"), [(0.1, 0.2, 0.1), (0.3, 0.2, 0.11)], ids=["idle", "busy"])
def test_a_neighbour_that_is_busy_all_the_while_does_not_count(
    monkeypatch: pytest.MonkeyPatch, wall: float, computed: float, counted: float
) -> None:
    now = {"wall": 0.0, "computed": 0.0}

    def layer() -> None:
        now["wall"] += wall
        now["computed"] += computed

    clock = SimpleNamespace(
        perf_counter=lambda: now["wall"], monotonic=lambda: now["wall"], process_time=lambda: now["computed"]
    )
    monkeypatch.setattr(measure, "time", clock)
    monkeypatch.setattr(measure, "import_module", lambda _: SimpleNamespace(get_num_threads=lambda: 2))
    monkeypatch.setattr(measure, "_layer", lambda *_: layer)
    expected = measure.OVERHEAD * counted * len(measure.SHAPES) / measure.ROWS / WEIGHTS
    assert measure.measure("int8") == pytest.approx(expected)
