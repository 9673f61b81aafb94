"""Texts to vectors for collections: one thread, in which queries and pieces of a batch of documents take turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from services.kit.batcher import Batcher
from services.kit.encoder import Encoder, Floats
from services.kit.encoders import EncoderFailure, EncoderPool, UnknownEncoder
from services.kit.errors import Unavailable, refusal
from services.retriever.collections.locks import Locks
from services.retriever.collections.schema import EncoderRecord
from services.retriever.turns import turns

# Passages encoded at a time: a query that comes in between waits for half a second of a CPU's work, not for a book's.
PASSAGES_AT_A_TIME = 32
MAX_QUEUED = 256


class Encoding:
    """The encoders of collections."""

    def __init__(self, pool: EncoderPool) -> None:
        self._pool = pool
        # Loading a model takes minutes: in a thread of its own, since all others need the common ones, with a lock for
        # each name, so that a caller that waits for a model holds no place in that thread's queue.
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._loading = Locks()
        self._records: dict[str, EncoderRecord] = {}
        self._turns: Batcher[Callable[[], Floats], Floats] = turns(MAX_QUEUED)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Encoding"]:
        """Serve while the context is open."""
        async with self._turns.running():
            try:
                yield self
            finally:
                self._loader.shutdown(wait=False, cancel_futures=True)

    async def get(self, name: str) -> Encoder:
        """A loaded encoder, at once when it is in memory.

        Raises:
            InvalidRequest: there is none of that name.
            Unavailable: its model cannot be loaded.
        """
        try:
            async with self._loading[name]:
                if (encoder := self._pool.find(name)) is not None:
                    return encoder
                return await asyncio.get_running_loop().run_in_executor(self._loader, self._pool.get, name)
        except UnknownEncoder as error:
            raise refusal("encoders", str(error)) from error
        except EncoderFailure as error:
            raise Unavailable(str(error)) from error

    async def record(self, name: str) -> EncoderRecord:
        """A collection's record of an encoder; raises as `get` does."""
        encoder = await self.get(name)
        if name not in self._records:
            self._records[name] = await asyncio.to_thread(EncoderRecord.of, encoder)
        return self._records[name]

    def defines(self, name: str) -> bool:
        """Whether there is an encoder of that name."""
        return name in self._pool.names

    async def queries(self, encoder: Encoder, texts: Sequence[str]) -> Floats:
        """Vectors of queries, shape (texts, d)."""
        return (await self._turns.submit(partial(encoder.encode_queries, texts))).result

    async def passages(self, encoder: Encoder, texts: Sequence[str]) -> Floats:
        """Vectors of passages, shape (texts, d), made in pieces of like length: 32 at a time."""
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        vectors = np.empty((len(texts), encoder.dimension), np.float32)
        for first in range(0, len(order), PASSAGES_AT_A_TIME):
            rows = order[first : first + PASSAGES_AT_A_TIME]
            call = partial(encoder.encode_passages, [texts[row] for row in rows])
            vectors[rows] = (await self._turns.submit(call)).result
        return vectors
