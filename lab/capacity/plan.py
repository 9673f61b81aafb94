"""A deployment for a rate and a corpus: servers by utilisation, then the queues of one cell simulated.

All other numbers are assumptions with a source, `assumptions.yaml`.
"""

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, RootModel

from lab.capacity.mesh import Fault, Mesh, Outcome, Stage, poisson, simulate
from services.kg.definition.folder import BrokenDomain, Content, Folder, Part

SHIPPED = Path(__file__).with_name("assumptions.yaml")
HOURS = 730
# A higher rate is that of several cells side by side, since a queue of thousands of servers waits no longer.
CELL_RATE = 5.0
SIMULATED_S = 180.0
ON_CARDS = frozenset({"reranker", "generator"})
QDRANT_LABELS = {"app.kubernetes.io/name": "qdrant", "app.kubernetes.io/instance": "qdrant"}
# Assumptions that are divided by.
DIVISORS = frozenset(
    [
        "cores_per_pod",
        "decode_tokens_per_s",
        "node_memory_gib",
        "node_memory_share",
        "node_searches_per_s",
        "places_per_gateway",
        "prefill_tokens_per_s",
        "replication",
        "shard_points",
        "t4_node_cards",
        "utilisation",
    ]
)
Assumptions = dict[str, tuple[float, str]]
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kMGB]?)")
_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}


class Assumption(Part):
    """An entry of the file."""

    value: float = Field(strict=True, ge=0, allow_inf_nan=False)
    source: str = "yours"


def count(text: str) -> int:
    """A number as people write it: `10M` is ten million.

    Raises:
        ValueError: the text is no number, or it is below 1.
    """
    match = _COUNT.fullmatch(text)
    if match is None or (number := round(float(match[1]) * _FACTORS[match[2]])) < 1:
        raise ValueError(f"{text!r} is no number such as 500k, 10M or 1B")
    return number


def assumptions(file: Path = SHIPPED) -> Assumptions:
    """Name -> value and source, of the file or else as shipped.

    Raises:
        ValueError: the file cannot be read, has an unknown name, or a value that none can have.
    """
    try:
        shipped, _ = _read(SHIPPED)
        own, content = _read(file)
    except BrokenDomain as error:
        raise ValueError(str(error.faults[0])) from None
    for name, entry in own.items():
        if name not in shipped:
            raise ValueError(str(content.fault((name,), "there is no such assumption")))
        if not entry.value and name in DIVISORS:
            raise ValueError(str(content.fault((name, "value"), "it must be above 0")))
    return {name: (entry.value, entry.source) for name, entry in (shipped | own).items()}


def _read(file: Path) -> tuple[dict[str, Assumption], Content]:
    entries, content = Folder(file.parent).model(file.name, RootModel[dict[str, Assumption]])
    return entries.root, content


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment.

    Attributes:
        replicas: pods by service.
        cards: T4s.
        usd_month: by part.
        load: share of each service's servers that is busy at the rate.
    """

    rate: float
    chunks: int
    replicas: dict[str, int]
    cards: int
    t4_nodes: int
    qdrant: dict[str, int]
    usd_month: dict[str, float]
    load: dict[str, float]
    basis: Assumptions

    @property
    def first(self) -> str:
        """The service that is full first at a higher rate."""
        return max(self.load, key=self.load.__getitem__)

    @property
    def usd_per_1000(self) -> float:
        """The cost of a thousand questions at the full rate, all month."""
        return sum(self.usd_month.values()) / (self.rate * HOURS * 3.6)

    def values(self) -> dict[str, Any]:
        """Values for `deploy/helm/cragmesh` over its values-t4.yaml, beside a Qdrant of `../values/qdrant.yaml`."""
        services: dict[str, Any] = {name: {"replicas": n, "autoscale": None} for name, n in self.replicas.items()}
        services["retriever"]["env"] = {"CRAGMESH_QDRANT_URL": "http://qdrant:6333"}
        # Cores, which are priced, in the place of that file's card.
        share = {"cpu": f"{self.basis['cores_per_pod'][0]:g}", "nvidia.com/gpu": "0"}
        services["retriever"]["resources"] = {"requests": dict(share), "limits": dict(share)}
        return {"services": services, "qdrant": {"enabled": False, "cluster": dict(QDRANT_LABELS)}}


def values_of(basis: Assumptions) -> dict[str, float]:
    return {name: value for name, (value, _) in basis.items()}


def seconds(of: Mapping[str, float]) -> dict[str, float]:
    """A question's seconds on one server of each service, by the values of assumptions."""
    return {
        "gateway": of["gateway_cpu_s"],
        "classifier": of["classify_cpu_s"],
        "kg": of["kg_cpu_s"],
        "retriever": of["retrieve_cpu_s"] + of["encode_s"],
        "reranker": of["rerank_s"],
        "generator": of["calls"] * of["prompt_tokens"] / of["prefill_tokens_per_s"],
    }


def plan(rate: float, chunks: int, basis: Assumptions | None = None) -> Plan:
    """Size a deployment.

    Args:
        rate: questions a second at the peak.
        chunks: of all collections together.
    """
    basis = basis or assumptions()
    of = values_of(basis)
    service_s = seconds(of)
    servers = {name: of["cores_per_pod"] if name not in ON_CARDS else 1.0 for name in service_s}
    replicas = {name: math.ceil(rate * service_s[name] / servers[name] / of["utilisation"]) for name in service_s}
    # A question holds its place until its last token (Little's law).
    held_s = sum(service_s.values()) * 1.5 + of["calls"] * of["answer_tokens"] / of["decode_tokens_per_s"]
    replicas["gateway"] = max(replicas["gateway"], math.ceil(2 * rate * held_s / of["places_per_gateway"]))
    replicas = {name: max(number, 1 if name == "generator" else 2) for name, number in replicas.items()}
    cards = replicas["generator"] * of["generator_cards"] + replicas["reranker"] * of["reranker_cards"]
    t4_nodes = math.ceil(cards / of["t4_node_cards"])
    qdrant = _qdrant(rate, chunks, of)
    cores = sum(replicas[name] * of["cores_per_pod"] for name in replicas if name not in ON_CARDS)
    usd = {
        "t4": t4_nodes * of["t4_node_usd_h"] * HOURS,
        "cores": cores * of["core_usd_h"] * HOURS,
        "qdrant": qdrant["nodes"] * of["qdrant_node_usd_h"] * HOURS,
        "disk": qdrant["disk_gib"] * of["disk_usd_gib_month"],
    }
    load = {name: rate * service_s[name] / (replicas[name] * servers[name]) for name in service_s}
    load["qdrant"] = qdrant["searches"] / (qdrant["nodes"] * of["node_searches_per_s"])
    return Plan(rate, chunks, replicas, int(cards), t4_nodes, qdrant, usd, load, basis)


def _qdrant(rate: float, chunks: int, of: dict[str, float]) -> dict[str, int]:
    copies = chunks * of["replication"]
    memory = copies * of["dimensions"] * of["bytes_per_dimension"] * of["index_factor"]
    disk = copies * (of["dimensions"] * 4 + of["payload_bytes"])
    by_memory = math.ceil(memory / (of["node_memory_gib"] * 2**30 * of["node_memory_share"]))
    shards = max(math.ceil(chunks / of["shard_points"]), math.ceil(by_memory / of["replication"]))
    # A question makes one search of every shard, dense and sparse in one call, so more replicas carry more questions.
    searches = rate * shards
    by_searches = math.ceil(searches / of["node_searches_per_s"] / of["utilisation"])
    # Of three, two agree on who is there.
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
    of = values_of(deployment.basis)
    share = min(1.0, CELL_RATE / deployment.rate)

    def stage(name: str, beside: float = 0.0) -> Stage:
        slots = 1.0 if name in ON_CARDS else of["cores_per_pod"]
        servers = max(1, round(deployment.replicas[name] * slots * share))
        return Stage(name, (seconds(of)[name],), servers, beside=(beside,))

    decode_s = of["calls"] * of["answer_tokens"] / of["decode_tokens_per_s"]
    groups = (
        (stage("gateway"),),
        (stage("classifier"), stage("kg"), stage("retriever")),
        (stage("reranker"),),
        (stage("generator", decode_s),),
    )
    places = max(1, round(deployment.replicas["gateway"] * of["places_per_gateway"] * share))
    return Mesh(groups, places), deployment.rate * share


def rehearse(deployment: Plan, *, surge: float = 1.0, lost: float = 0.0) -> Outcome:
    """The results of three simulated minutes of a cell.

    Args:
        surge: the rate, as a multiple of the planned one.
        lost: share of all servers that is away from the first minute on, as a lost region is.
    """
    mesh, rate = cell(deployment)
    arrivals = poisson(rate * surge, SIMULATED_S, random.Random(1))  # noqa: S311 - repeatable
    stages = [stage for group in mesh.groups for stage in group]
    # Lost gateways take their places with them.
    mesh = replace(mesh, places=max(1, round(mesh.places * (1 - lost))))
    faults = [Fault(stage.name, round(stage.servers * lost), 60.0, SIMULATED_S + 60) for stage in stages]
    return simulate(mesh, arrivals, faults=faults)
