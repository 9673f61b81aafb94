"""The model agrees with queueing theory, plans keep to their utilisation, and a cluster loses what it must."""

import random
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
import qdrant_edge as edge
import yaml
from typer.testing import CliRunner

from lab.capacity.cluster import Cluster, search
from lab.capacity.mesh import Fault, Mesh, Stage, poisson, simulate
from lab.capacity.plan import DIVISORS, SHIPPED, assumptions, count, plan, rehearse, values_of
from services.cli.main import app

DIMENSIONS = 32


def one(stage: Stage, places: int = 10_000, cores: int = 1) -> Mesh:
    return Mesh(((stage,),), places, cores=cores)


def test_a_queue_waits_as_long_as_pollaczek_and_khinchine_say() -> None:
    arrivals = poisson(0.7, 3_000, random.Random(3))
    outcome = simulate(one(Stage("generate", (1.0,), 1)), arrivals)
    mean_s = sum(outcome.seconds) / len(outcome.seconds)
    # M/D/1: half of the load over what is left, and the service itself.
    assert mean_s == pytest.approx(1 + 0.7 / (2 * 0.3), rel=0.2)
    assert outcome.busy_s["generate"] == pytest.approx(len(outcome.seconds))


def test_servers_of_one_machine_share_its_cores() -> None:
    together = simulate(one(Stage("retrieve", (1.0,), 4, on_cores=True), cores=2), [0.0] * 4)
    assert together.quantile(0.5) == pytest.approx(2, abs=0.05)


def test_what_finds_no_place_is_refused_and_what_runs_out_of_time_is_late() -> None:
    stage = Stage("generate", (20.0,), 1)
    outcome = simulate(one(stage, places=3), [0.0] * 5)
    assert outcome.fates == {"answered": 1, "late": 2, "refused": 2}


def test_servers_that_are_away_are_missed_until_they_are_back() -> None:
    stage = Stage("generate", (1.0,), 2)
    fault = Fault("generate", 2, from_s=0, until_s=5)
    assert simulate(one(stage), [1.0], faults=[fault]).seconds == [pytest.approx(5)]


@pytest.mark.parametrize(("text", "number"), [("500k", 500_000), ("10M", 10**7), ("1.5B", 1_500_000_000), ("7", 7)])
def test_counts_are_read_as_people_write_them(text: str, number: int) -> None:
    assert count(text) == number
    with pytest.raises(ValueError, match="no number"):
        count(f"-{text}")


@pytest.mark.parametrize(("rate", "chunks"), [(1, 10**9), (100, 10**6), (10_000, 10**9)])
def test_a_plan_keeps_to_its_utilisation_and_to_the_memory_of_its_nodes(rate: float, chunks: int) -> None:
    made = plan(rate, chunks)
    of = values_of(made.basis)
    assert max(made.load.values()) <= of["utilisation"] + 1e-9
    room = made.qdrant["nodes"] * of["node_memory_gib"] * of["node_memory_share"]
    assert made.qdrant["memory_gib"] <= room + 1
    assert made.qdrant["shards"] * of["shard_points"] >= chunks
    assert made.cards <= made.t4_nodes * of["t4_node_cards"]
    assert made.values()["services"]["generator"]["replicas"] == made.replicas["generator"]


def test_a_plan_answers_what_it_is_for_and_less_where_half_of_it_is_lost() -> None:
    made = plan(20, 10**6)
    assert rehearse(made).share("answered") > 0.99
    assert rehearse(made, lost=0.5).share("answered") < 0.95


def test_assumptions_can_be_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("prefill_tokens_per_s: {value: 6000}\n")
    assert plan(100, 10**6, assumptions(mine)).cards < plan(100, 10**6).cards / 3
    assert all(source for _, source in assumptions(SHIPPED).values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calls: {value: 1}\nprefil: {value: 1}\n", "mine.yaml, line 2, prefil: there is no such assumption"),
        ("1: {value: 1}\n", "mine.yaml, line 1, 1: there is no such assumption"),
        ("calls: {value: 1\n", "mine.yaml, line 2: "),
        ("calls: 1\n", "mine.yaml, line 1, calls: "),
        ("calls:\n  value: no\n", "mine.yaml, line 2, calls.value: "),
        ("calls: {value: 1, from: me}\n", "mine.yaml, line 1, calls.from: there is no field from here"),
        ("- calls\n", "mine.yaml, line 1: "),
        (None, "mine.yaml, line 1: No such file"),
    ],
)
def test_a_file_of_assumptions_that_cannot_be_read_is_named_with_line_and_key(
    text: str | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "mine.yaml").write_text(text)
    with chdir(tmp_path):
        result = CliRunner().invoke(app, ["plan", "--rate", "1", "--corpus", "1M", "--assumptions", "mine.yaml"])
    assert (result.exit_code, f"cragmesh: {message}" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize("name", assumptions())
def test_an_assumption_is_refused_to_be_nothing_where_it_divides(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"{name}: {{value: 0}}\n")
    if name in DIVISORS:
        with pytest.raises(ValueError, match=f"line 1, {name}.value: "):
            assumptions(mine)
    else:
        plan(100, 10**6, assumptions(mine))


def test_the_command_prints_values_of_the_chart() -> None:
    printed = CliRunner().invoke(app, ["plan", "--rate", "100", "--corpus", "10M", "--values"])
    assert yaml.safe_load(printed.stdout) == plan(100, 10**7).values()
    assert CliRunner().invoke(app, ["plan", "--rate", "1", "--corpus", "many"]).exit_code == 2


@pytest.mark.parametrize(("replicas", "seen"), [(1, 5 / 6), (2, 1.0)])
def test_a_lost_node_takes_the_points_that_nobody_else_has(replicas: int, seen: float) -> None:
    cluster = Cluster(nodes=6, shards=12, replicas=replicas)
    assert search(cluster, 50, 20, lost=frozenset({0}), at_s=-10).recall == pytest.approx(seen)


def test_searches_wait_for_a_lost_node_until_it_is_noticed_and_more_while_shards_move() -> None:
    cluster = Cluster(nodes=6, shards=12, replicas=2)
    before, during = (search(cluster, 50, 5, lost=lost).quantile(0.95) for lost in (frozenset[int](), frozenset({0})))
    assert during > cluster.timeout_s > before
    moving = Cluster(nodes=6, shards=12, replicas=2, moving=0.5)
    assert search(moving, 150, 20).quantile(0.95) > search(cluster, 150, 20).quantile(0.95)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[edge.EdgeShard]]:
    """Four shards of Qdrant's own engine, 150 points each, then one with all of them."""
    draw = random.Random(5)
    points = [edge.Point(number, {"v": [draw.gauss(0, 1) for _ in range(DIMENSIONS)]}, {}) for number in range(600)]
    made = []
    for number in range(5):
        config = edge.EdgeConfig(vectors={"v": edge.EdgeVectorParams(DIMENSIONS, edge.Distance.Cosine)})
        shard = edge.EdgeShard.create(str(tmp_path_factory.mktemp("shard")), config)
        part = points if number == 4 else points[number::4]
        shard.update(edge.UpdateOperation.upsert_points(part))
        made.append(shard)
    yield made
    for shard in made:
        shard.close()


def nearest(shards: list[edge.EdgeShard], vector: list[float]) -> list[int]:
    """The ten nearest of several shards, merged as a cluster merges them."""
    request = edge.QueryRequest(query=edge.Query.Nearest(vector, using="v"), limit=10)
    hits = [hit for shard in shards for hit in shard.query(request)]
    return [hit.id for hit in sorted(hits, key=lambda hit: -hit.score)[:10]]


def test_shards_of_qdrants_engine_find_what_one_finds_and_a_lost_one_takes_its_share(
    shards: list[edge.EdgeShard],
) -> None:
    draw = random.Random(6)
    kept = 0
    for _ in range(40):
        vector = [draw.gauss(0, 1) for _ in range(DIMENSIONS)]
        whole = nearest(shards[4:], vector)
        assert nearest(shards[:4], vector) == whole
        kept += len(set(nearest(shards[:3], vector)) & set(whole))
    assert kept / 400 == pytest.approx(3 / 4, abs=0.07)
