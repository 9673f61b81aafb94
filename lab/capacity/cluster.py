"""A Qdrant cluster as queues: every search asks one replica of each shard, and is as slow as the slowest.

A lost node takes its replicas with it. Searches that were sent there fail over when their time-out ends, until the
cluster notices the loss; shards without a replica are missing from every answer.
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
        shard_s: a search's mean time on a core: half of it fixed, the rest exponential.
        timeout_s: until a search fails over to another replica of the shard.
        noticed_s: until no search is sent to a lost node.
        moving: share of a node's cores that takes over shards.
    """

    nodes: int
    shards: int
    replicas: int
    cores: int = 8
    shard_s: float = 0.01
    timeout_s: float = 1.0
    noticed_s: float = 5.0
    moving: float = 0.0


@dataclass(frozen=True, slots=True)
class Searches:
    """The results of searches: seconds of each, and the share of the points that it covers."""

    seconds: Sequence[float]
    coverage: Sequence[float]

    def quantile(self, share: float) -> float:
        return percentile(self.seconds, share)

    @property
    def recall(self) -> float:
        """The share of the nearest points that is found, if they lie in any shard alike."""
        return sum(self.coverage) / len(self.coverage)


def search(
    cluster: Cluster, rate: float, seconds: float, *, lost: frozenset[int] = frozenset(), at_s: float = 0.0
) -> Searches:
    """The results of searches that arrive at random and are served in their order.

    Args:
        lost: nodes that are away from `at_s` on.
    """
    draw = random.Random(1)  # noqa: S311 - repeatable
    cores = max(1, round(cluster.cores * (1 - cluster.moving)))
    free = [[0.0] * cores for _ in range(cluster.nodes)]
    # The nodes of a shard are neighbours on a ring.
    owners = [[(shard + copy) % cluster.nodes for copy in range(cluster.replicas)] for shard in range(cluster.shards)]
    now, times, coverage = 0.0, [], []
    while (now := now + draw.expovariate(rate)) < seconds:
        done, searched = now, 0
        for holders in owners:
            first = draw.choice(holders)
            start = now
            if first in lost and now >= at_s:
                alive = [node for node in holders if node not in lost]
                if now < at_s + cluster.noticed_s:
                    start += cluster.timeout_s
                if not alive:
                    done = max(done, start)
                    continue
                first = draw.choice(alive)
            core = max(start, heapq.heappop(free[first]))
            ends = core + cluster.shard_s / 2 + draw.expovariate(2 / cluster.shard_s)
            heapq.heappush(free[first], ends)
            done, searched = max(done, ends), searched + 1
        times.append(done - now)
        coverage.append(searched / cluster.shards)
    return Searches(times, coverage)
