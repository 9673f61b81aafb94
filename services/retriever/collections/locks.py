"""A lock for each name."""

import asyncio
from weakref import WeakValueDictionary


class Locks(WeakValueDictionary[str, asyncio.Lock]):
    """Locks by name, made when asked for and kept while somebody holds them or waits: names come from callers."""

    def __getitem__(self, name: str) -> asyncio.Lock:
        return self.setdefault(name, asyncio.Lock())
