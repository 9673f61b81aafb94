"""Pages ready to be searched, and a bounded cache of them: chunks, stems and the vectors computed so far."""

import threading
from collections import OrderedDict
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from services.kit.lexical import Stems, stems
from services.retriever.chunk import Chunk
from services.retriever.pages import PageOptions, ProcessedPage

Key = tuple[str, PageOptions, str]

# Overhead of Python objects beside their contents.
BYTES_A_CHUNK = 400
BYTES_A_STEM = 70


class SearchablePage:
    """A processed page with its stems and vectors; ranking fills the vectors in when a query needs them."""

    def __init__(self, page: ProcessedPage) -> None:
        self.unread = page.unread
        self.children, self.parents = page.chunking
        self.stems: list[Stems] = stems([chunk.text for chunk in self.children])
        # By child, of those that a query has needed.
        self.vectors: dict[int, NDArray[np.float16]] = {}
        # Token states and ids of the children that late interaction has scored; they take 100 times a vector's memory.
        self.states: dict[int, tuple[NDArray[np.float16], NDArray[np.int64]]] = {}

    @property
    def is_empty(self) -> bool:
        return not self.children

    @property
    def nbytes(self) -> int:
        """Estimated memory; it grows with the vectors and token states."""
        vectors = sum(vector.nbytes for vector in self.vectors.values())
        return self._fixed_nbytes + vectors + sum(states.nbytes + ids.nbytes for states, ids in self.states.values())

    @cached_property
    def _fixed_nbytes(self) -> int:
        chars = sum(len(chunk.text) for chunk in (*self.children, *self.parents))
        chunks = len(self.children) + len(self.parents)
        words = sum(len(words) for words in self.stems)
        return chars + chunks * BYTES_A_CHUNK + words * BYTES_A_STEM

    def passage(self, child: int) -> Chunk:
        """The generator's passage for a child: its parent, or itself where it has none."""
        parent = self.children[child].parent
        return self.children[child] if parent is None else self.parents[parent]


class PageCache:
    """The pages used last, up to a number of bytes; safe to use from several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # Each with its size when it was put, since pages grow while they are used.
        self._pages: OrderedDict[Key, tuple[SearchablePage, int]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def get(self, key: Key) -> SearchablePage | None:
        with self._lock:
            if key not in self._pages:
                return None
            self._pages.move_to_end(key)
            return self._pages[key][0]

    def put(self, key: Key, page: SearchablePage) -> None:
        """Keep a page, or count it anew, and drop those unused for longest; one larger than the cache is not kept."""
        nbytes = page.nbytes
        with self._lock:
            if replaced := self._pages.pop(key, None):
                self._nbytes -= replaced[1]
            if nbytes > self._max_bytes:
                return
            self._pages[key] = page, nbytes
            self._nbytes += nbytes
            while self._nbytes > self._max_bytes:
                _, (_, oldest_nbytes) = self._pages.popitem(last=False)
                self._nbytes -= oldest_nbytes
