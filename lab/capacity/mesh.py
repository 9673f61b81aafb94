"""The mesh as queues: questions pass stages with measured times under one budget, simulated event by event by SimPy.

A stage has servers, and a question that finds none free waits in turn. Stages of one group run side by side, groups one
after the other, as in a strategy. Servers may share a machine's cores, which are then dealt out in slices.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from lab.capacity import percentile
from proto.answer import MAX_BUDGET_S
from services.kit.deadline import PLACE_S

SLICE_S = 0.005
# A fault takes its servers before any question does.
FAULT, QUESTION = 0, 1

Events = Generator[simpy.Event, Any, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """A kind of server.

    Args:
        seconds: a server's times for a question, of which each question has one at random.
        servers: of all replicas, each with one question at a time.
        beside: seconds that follow while the server is free again, as tokens are written while other prompts are read.
        on_cores: whether the seconds are of the machine's cores, shared with other such stages.
    """

    name: str
    seconds: Sequence[float]
    servers: int
    beside: Sequence[float] = (0.0,)
    on_cores: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Servers of a stage that are away between two times, in seconds, once they finish their question."""

    stage: str
    servers: int
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class Mesh:
    """A deployment.

    Args:
        groups: stages side by side, one group after the other.
        places: questions in flight at all gateways; a further one waits a moment and is refused.
        cores: of the machine, which stages `on_cores` share.
    """

    groups: tuple[tuple[Stage, ...], ...]
    places: int
    cores: int = 1
    budget_s: float = MAX_BUDGET_S


@dataclass
class Outcome:
    """The results of a simulation.

    Attributes:
        seconds: from arrival to answer, of the questions answered in full, in the order of their answers.
        fates: questions by `answered`, `late` (the budget ended, and the gateway gives its draft) and `refused` (429).
        busy_s: server-seconds by stage.
    """

    seconds: list[float] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    busy_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def quantile(self, share: float) -> float:
        """The most seconds that this share of the answers took; 0 without any."""
        return percentile(self.seconds, share)

    def share(self, fate: str) -> float:
        return self.fates[fate] / max(1, self.fates.total())


def poisson(rate: float, seconds: float, draw: random.Random) -> list[float]:
    """Times of independent arrivals."""
    times, at = [], draw.expovariate(rate)
    while at < seconds:
        times.append(at)
        at += draw.expovariate(rate)
    return times


def simulate(mesh: Mesh, arrivals: Sequence[float], *, faults: Sequence[Fault] = ()) -> Outcome:
    """The results of questions that arrive at these times, in seconds."""
    run = _Run(mesh)
    for at in arrivals:
        run.env.process(run.question(at))
    for fault in faults:
        for _ in range(fault.servers):
            run.env.process(run.away(fault))
    run.env.run()
    return run.outcome


class _Run:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.draw = random.Random(1)  # noqa: S311 - repeatable
        self.env = simpy.Environment()
        self.outcome = Outcome()
        self.places = simpy.Resource(self.env, mesh.places)
        self.cores = simpy.Resource(self.env, mesh.cores)
        stages = [stage for group in mesh.groups for stage in group]
        self.servers = {stage.name: simpy.PriorityResource(self.env, stage.servers) for stage in stages}

    def question(self, at: float) -> Events:
        yield self.env.timeout(at)
        with self.places.request() as place:
            yield place | self.env.timeout(PLACE_S)
            if not place.triggered:
                self.outcome.fates["refused"] += 1
                return
            for group in self.mesh.groups:
                stages = [self.env.process(self.stage(stage, at + self.mesh.budget_s)) for stage in group]
                yield self.env.all_of(stages)
                if not all(process.value for process in stages):
                    self.outcome.fates["late"] += 1
                    return
        self.outcome.fates["answered"] += 1
        self.outcome.seconds.append(self.env.now - at)

    def stage(self, stage: Stage, deadline: float) -> Events:
        """Whether the stage ends in time; at the deadline it gives its server back."""
        servers = self.servers[stage.name]
        with servers.request(priority=QUESTION) as server:
            yield server | self.env.timeout(max(0.0, deadline - self.env.now))
            if not server.triggered:
                return False
            seconds = self.draw.choice(stage.seconds)
            start = self.env.now
            if stage.on_cores:
                yield from self.compute(seconds)
            else:
                yield self.env.timeout(min(seconds, max(0.0, deadline - start)))
            self.outcome.busy_s[stage.name] += self.env.now - start
        yield self.env.timeout(self.draw.choice(stage.beside))
        return self.env.now < deadline

    def compute(self, seconds: float) -> Events:
        while seconds > 0:
            with self.cores.request() as core:
                yield core
                yield self.env.timeout(min(seconds, SLICE_S))
            seconds -= SLICE_S

    def away(self, fault: Fault) -> Events:
        yield self.env.timeout(fault.from_s)
        with self.servers[fault.stage].request(priority=FAULT) as server:
            yield server
            yield self.env.timeout(max(0.0, fault.until_s - self.env.now))
