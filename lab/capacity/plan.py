"""A deployment for a rate and a corpus: servers by utilisation, then the queues of one cell simulated.

Every number that is not asked for is an assumption with a source, `assumptions.yaml`.
"""

import math
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from lab.capacity.mesh import Fault, Mesh, Outcome, Stage, poisson, simulate

SHIPPED = Path(__file__).with_name("assumptions.yaml")
HOURS = 730
# More questions a second than this are so many cells side by side: a queue of thousands of servers waits no longer.
CELL_RATE = 5.0
SIMULATED_S = 180.0
Assumptions = dict[str, tuple[float, str]]
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kMGB]?)")
_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}


def count(text: str) -> int:
    """A number as people write it: `10M` are ten million.

    Raises:
        ValueError: it is none, or below 1.
    """
    match = _COUNT.fullmatch(text)
    if match is None or (number := round(float(match[1]) * _FACTORS[match[2]])) < 1:
        raise ValueError(f"{text!r} is no number such as 500k, 10M or 1B")
    return number


def assumptions(file: Path = SHIPPED) -> Assumptions:
    """Name to value and source; what a file leaves out is as shipped.

    Raises:
        ValueError: the file has a name that none has, or no positive number under one.
        OSError: it cannot be read.
    """
    known = yaml.safe_load(SHIPPED.read_text("utf-8"))
    given = yaml.safe_load(file.read_text("utf-8"))
    if not isinstance(given, dict) or (strange := sorted(set(given) - set(known))):
        raise ValueError(f"{file}: no such assumption: {', '.join(strange) if isinstance(given, dict) else 'no names'}")
    merged = known | given
    for name, entry in merged.items():
        value = entry.get("value") if isinstance(entry, dict) else None
        if not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"{file}: {name} has no value")
    return {name: (float(entry["value"]), str(entry.get("source", "yours"))) for name, entry in merged.items()}


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment.

    Attributes:
        replicas: pods by service.
        cards: T4s.
        usd_month: by part.
        load: share of each service's servers that is busy at the rate that was asked for.
        known: what it rests on.
    """

    rate: float
    chunks: int
    replicas: dict[str, int]
    cards: int
    t4_nodes: int
    qdrant: dict[str, int]
    usd_month: dict[str, float]
    load: dict[str, float]
    known: Assumptions

    @property
    def first(self) -> str:
        """The service that is full first as questions become more."""
        return max(self.load, key=self.load.__getitem__)

    @property
    def usd_per_1000(self) -> float:
        """At the whole rate, all month."""
        return sum(self.usd_month.values()) / (self.rate * HOURS * 3.6)

    def values(self) -> dict[str, Any]:
        """Values for `deploy/helm/cragmesh`; Qdrant's cluster is its own chart's, with `replicaCount`."""
        services: dict[str, Any] = {name: {"replicas": n, "autoscale": None} for name, n in self.replicas.items()}
        services["retriever"]["env"] = {"CRAGMESH_QDRANT_URL": "http://qdrant:6333"}
        return {"services": services, "qdrant": {"enabled": False}}


def seconds(known: Assumptions) -> dict[str, float]:
    """What a question takes of one server of each service."""
    of = {name: value for name, (value, _) in known.items()}
    return {
        "gateway": of["gateway_cpu_s"],
        "classifier": of["classify_cpu_s"],
        "kg": of["kg_cpu_s"],
        "retriever": of["retrieve_cpu_s"] + of["encode_s"],
        "reranker": of["rerank_s"],
        "generator": of["calls"] * of["prompt_tokens"] / of["prefill_tokens_per_s"],
    }


def plan(rate: float, chunks: int, known: Assumptions | None = None) -> Plan:
    """Size a deployment.

    Args:
        rate: questions a second at the peak.
        chunks: of all collections together.
    """
    known = known or assumptions()
    of = {name: value for name, (value, _) in known.items()}
    took = seconds(known)
    servers = {name: of["cores_per_pod"] if name not in ("reranker", "generator") else 1.0 for name in took}
    replicas = {name: math.ceil(rate * took[name] / servers[name] / of["utilisation"]) for name in took}
    # A question holds its place for as long as it takes, the answer's tokens included (Little's law).
    held_s = sum(took.values()) * 1.5 + of["calls"] * of["answer_tokens"] / of["decode_tokens_per_s"]
    replicas["gateway"] = max(replicas["gateway"], math.ceil(2 * rate * held_s / of["places_per_gateway"]))
    replicas = {name: max(number, 1 if name == "generator" else 2) for name, number in replicas.items()}
    cards = replicas["generator"] * of["generator_cards"] + replicas["reranker"] * of["reranker_cards"]
    t4_nodes = math.ceil(cards / of["t4_node_cards"])
    qdrant = _qdrant(rate, chunks, of)
    cores = sum(replicas[name] * of["cores_per_pod"] for name in replicas if name not in ("generator", "reranker"))
    usd = {
        "t4": t4_nodes * of["t4_node_usd_h"] * HOURS,
        "cores": cores * of["core_usd_h"] * HOURS,
        "qdrant": qdrant["nodes"] * of["qdrant_node_usd_h"] * HOURS,
        "disk": qdrant["disk_gib"] * of["disk_usd_gib_month"],
    }
    load = {name: rate * took[name] / (replicas[name] * servers[name]) for name in took}
    load["qdrant"] = qdrant["searches"] / (qdrant["nodes"] * of["node_searches_per_s"])
    return Plan(rate, chunks, replicas, int(cards), t4_nodes, qdrant, usd, load, known)


def _qdrant(rate: float, chunks: int, of: dict[str, float]) -> dict[str, int]:
    copies = chunks * of["replication"]
    memory = copies * of["dimensions"] * of["bytes_per_dimension"] * of["index_factor"]
    disk = copies * (of["dimensions"] * 4 + of["payload_bytes"])
    by_memory = math.ceil(memory / (of["node_memory_gib"] * 2**30 * of["node_memory_share"]))
    shards = max(math.ceil(chunks / of["shard_points"]), math.ceil(by_memory / of["replication"]))
    # A question is searched for in every shard once, dense and sparse in one call: more replicas carry more questions.
    searches = rate * shards
    by_searches = math.ceil(searches / of["node_searches_per_s"] / of["utilisation"])
    # Three, so that two of them agree on who is there.
    nodes = max(3, by_memory, by_searches)
    return {
        "nodes": nodes,
        "shards": shards,
        "replicas": max(int(of["replication"]), math.ceil(by_searches / shards)),
        "by_memory": by_memory,
        "by_searches": by_searches,
        "memory_gib": math.ceil(memory / 2**30),
        "disk_gib": math.ceil(disk / 2**30),
        "searches": math.ceil(searches),
    }


def cell(deployment: Plan) -> tuple[Mesh, float]:
    """The queues of a cell of the deployment, and the questions a second that it gets."""
    known = deployment.known
    of = {name: value for name, (value, _) in known.items()}
    share = min(1.0, CELL_RATE / deployment.rate)
    cores = of["cores_per_pod"]

    def stage(name: str, beside: float = 0.0) -> Stage:
        slots = 1.0 if name in ("reranker", "generator") else cores
        servers = max(1, round(deployment.replicas[name] * slots * share))
        return Stage(name, (seconds(known)[name],), servers, beside=(beside,))

    written = of["calls"] * of["answer_tokens"] / of["decode_tokens_per_s"]
    groups = (
        (stage("gateway"),),
        (stage("classifier"), stage("kg"), stage("retriever")),
        (stage("reranker"),),
        (stage("generator", written),),
    )
    places = max(1, round(deployment.replicas["gateway"] * of["places_per_gateway"] * share))
    return Mesh(groups, places), deployment.rate * share


def rehearse(deployment: Plan, *, surge: float = 1.0, lost: float = 0.0, seed: int = 1) -> Outcome:
    """Simulate three minutes of a cell.

    Args:
        surge: how many times the rate that was planned for.
        lost: share of all servers that is away from the first minute on, as one of so many regions is.
    """
    mesh, rate = cell(deployment)
    arrivals = poisson(rate * surge, SIMULATED_S, random.Random(seed))  # noqa: S311 - repeatable
    stages = [stage for group in mesh.groups for stage in group]
    # Gateways are lost with their places.
    mesh = replace(mesh, places=max(1, round(mesh.places * (1 - lost))))
    faults = [Fault(stage.name, round(stage.servers * lost), 60.0, SIMULATED_S + 60) for stage in stages]
    return simulate(mesh, arrivals, faults=faults, seed=seed)
