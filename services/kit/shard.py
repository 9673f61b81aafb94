"""Sharing work among jobs by hashes of ids, so that the jobs need not talk to each other."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shard:
    """Share `index` of `count`, from 0."""

    index: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def of(cls, text: str, job_index: int | None = None) -> "Shard":
        """The share that `I/N` names, or `N` alone for job `job_index` of N; the whole where the text is empty.

        Raises:
            ValueError: the text is neither, or there is no such share.
        """
        if not text:
            return cls()
        index, slash, count = text.rpartition("/")
        if not slash and job_index is None:
            raise ValueError(f"{text!r} is not like 0/4, and JOB_COMPLETION_INDEX says no index")
        try:
            shard = cls(int(index) if slash else int(job_index or 0), int(count))
        except ValueError:
            raise ValueError(f"{text!r} is not like 0/4") from None
        if not 0 <= shard.index < shard.count:
            raise ValueError(f"there is no share {shard}: the first is 0/{shard.count}")
        return shard

    def holds(self, id: str) -> bool:
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.index

    def of_items(self, items: Iterable[Item], id_of: Callable[[Item], str]) -> Iterator[Item]:
        """The items of this share, in their order."""
        return (item for item in items if self.count == 1 or self.holds(id_of(item)))


WHOLE = Shard()
