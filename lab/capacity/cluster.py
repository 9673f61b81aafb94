"""A Qdrant cluster as queues: every search asks one replica of each shard, and is as slow as the slowest.

A lost node takes its replicas with it. Searches that were sent there fail over when their time-out ends, until the
cluster has noticed; shards that have no replica left are missing from every answer.
"""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.capacity import percentile


@dataclass(frozen=True, slots=True)
class Cluster:
    """A collection on nodes.

    Args:
        cores: searches of a shard that a node works on at a time.
        shard_s: what one takes of a core, on average: half of it always, the rest drawn from an exponential.
        timeout_s: after which a search asks another replica of the shard.
        noticed_s: after which nobody is sent to a lost node any more.
        moving: share of the cores that a node which takes over shards gives to that.
    """

    nodes: int
    shards: int
    replicas: int
    cores: int = 8
    shard_s: float = 0.01
    timeout_s: float = 1.0
    noticed_s: float = 5.0
    moving: float = 0.0

    def owners(self) -> list[list[int]]:
        """The nodes of each shard, neighbours on a ring."""
        return [[(shard + copy) % self.nodes for copy in range(self.replicas)] for shard in range(self.shards)]


@dataclass(frozen=True, slots=True)
class Searches:
    """What became of searches: seconds of each, and the share of the points that it saw."""

    seconds: Sequence[float]
    seen: Sequence[float]

    def quantile(self, share: float) -> float:
        return percentile(self.seconds, share)

    @property
    def recall(self) -> float:
        """Of the nearest points, those that were found, where they lie in any shard alike."""
        return sum(self.seen) / len(self.seen)


def search(
    cluster: Cluster,
    rate: float,
    seconds: float,
    *,
    lost: frozenset[int] = frozenset(),
    at_s: float = 0.0,
    seed: int = 1,
) -> Searches:
    """Searches that arrive at random, served first come, first served.

    Args:
        lost: nodes that are away from `at_s` on.
    """
    draw = random.Random(seed)  # noqa: S311 - repeatable
    cores = max(1, round(cluster.cores * (1 - cluster.moving)))
    free = [[0.0] * cores for _ in range(cluster.nodes)]
    owners = cluster.owners()
    now, times, seen = 0.0, [], []
    while (now := now + draw.expovariate(rate)) < seconds:
        done, found = now, 0
        for holders in owners:
            first = draw.choice(holders)
            began = now
            if first in lost and now >= at_s:
                alive = [node for node in holders if node not in lost]
                if now < at_s + cluster.noticed_s:
                    began += cluster.timeout_s
                if not alive:
                    done = max(done, began)
                    continue
                first = draw.choice(alive)
            core = max(began, heapq.heappop(free[first]))
            ends = core + cluster.shard_s / 2 + draw.expovariate(2 / cluster.shard_s)
            heapq.heappush(free[first], ends)
            done, found = max(done, ends), found + 1
        times.append(done - now)
        seen.append(found / cluster.shards)
    return Searches(times, seen)


def missing(cluster: Cluster, lost: frozenset[int]) -> float:
    """Share of the points that no replica holds any more."""
    return sum(set(holders) <= lost for holders in cluster.owners()) / cluster.shards


def moved_s(gib: float, cluster: Cluster, *, gbit_s: float = 5.0) -> float:
    """Seconds until a lost node's shards are copied to the others, each of which takes its share.

    Args:
        gib: of the collection, one copy.
    """
    share = gib * cluster.replicas / cluster.nodes
    return share * 8.6 / gbit_s / max(1, cluster.nodes - 1)
