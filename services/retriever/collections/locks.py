"""A lock for each name."""

import asyncio
from weakref import WeakValueDictionary


class Locks:
    """Locks by name, kept while somebody holds them or waits, since names come from callers."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __getitem__(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    def __len__(self) -> int:
        return len(self._locks)
