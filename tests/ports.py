"""Ports for servers that tests start as processes."""

import random
import socket
from contextlib import ExitStack

# Below those that Linux gives to outgoing connections: no other test's connection takes one before its server is up.
FIRST, LAST = 20_000, 32_000
_chance = random.SystemRandom()
# A port that was given may not be bound yet.
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago, none of them twice."""
    with ExitStack() as held:
        return [_bound(held) for _ in range(count)]


def free_port() -> int:
    """One such port."""
    return free_ports(1)[0]


def _bound(held: ExitStack) -> int:
    while True:
        probe = held.enter_context(socket.socket())
        port = _chance.randint(FIRST, LAST)
        if port in _given:
            continue
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        _given.add(port)
        return port
