"""Questions from files, one at a time: CRAG records, questions with given contexts, plain JSONL.

Files are read as streams, compressed or not, whatever their names say: gzip, bzip2, or a tar of either. Memory is
bounded by one record. A line that cannot be used is named and skipped.
"""

import bz2
import gzip
import hashlib
import heapq
import io
import json
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from lab.evaluator.errors import BadSource
from lab.evaluator.judge.protocol import INVALID, UNKNOWN, label_kind_of
from proto.base import MAX_PAGES, MAX_PASSAGE_CHARS
from services.kit import jsonl

# What the gateway takes in one body by default; a longer line is not read into memory.
MAX_RECORD_BYTES = 64 * 1024 * 1024
BUFFER_BYTES = 1024 * 1024
# Files up to this size are read once beforehand to count their questions.
COUNTABLE_BYTES = 64 * 1024 * 1024

_LINES = re.compile(r"\.jsonl?(?:\.(?:gz|bz2))?$")


@dataclass(frozen=True, slots=True)
class Item:
    """A question, the request body for it, and its labels.

    `body` holds `query`, `query_time`, either `evidence` (contexts given) or `search_results`, and `collection`.
    `dynamism` is CRAG's `static_or_dynamic`. `place` is file and line.
    """

    id: str
    query: str
    gold: tuple[str, ...]
    label_kind: str
    body: dict[str, Any]
    place: str
    query_time: str = ""
    domain: str = ""
    question_type: str = ""
    dynamism: str = ""
    popularity: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """A line that is no usable question, and why."""

    place: str
    why: str


OnSkip = Callable[[Skip], None]


class Source:
    """One or more question files.

    Args:
        paths: the files, in the order of reading.
        on_skip: told of every line that is not used.
        timed_only: leave out questions without a `query_time`.
        judged: leave out questions without an answer to judge by.

    Raises:
        BadSource: a file does not exist.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        on_skip: OnSkip = lambda _: None,
        timed_only: bool = False,
        judged: bool = True,
    ) -> None:
        self.paths = list(paths)
        self.on_skip = on_skip
        self.timed_only = timed_only
        self.judged = judged
        if absent := next((path for path in self.paths if not path.is_file()), None):
            raise BadSource(f"{absent}: no such file")
        self._sizes = [path.stat().st_size for path in self.paths]
        self.size = sum(self._sizes)
        # Bytes read so far, as they lie on disk; another thread may look while one reads.
        self.position = 0

    def fingerprint(self) -> list[str]:
        """Names and sizes of the files: what must be the same when a run goes on."""
        return [f"{path.name}:{size}" for path, size in zip(self.paths, self._sizes, strict=True)]

    def items(self) -> Iterator[Item]:
        """The questions, in order; a repeated id gets a suffix.

        Raises:
            BadSource: a file cannot be read, or ends in the middle.
        """
        done = 0
        repeats: Counter[str] = Counter()
        for path, size in zip(self.paths, self._sizes, strict=True):
            last = ""
            try:
                with path.open("rb") as stream:
                    for place, line in _lines(stream, path.name, self.on_skip):
                        last, self.position = place, done + stream.raw.tell()
                        item = self._item(line, place)
                        if item is None:
                            continue
                        repeats[item.id] += 1
                        yield item if repeats[item.id] == 1 else replace(item, id=f"{item.id}#{repeats[item.id]}")
            except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
                where = f", after {last}" if last else ""
                raise BadSource(f"{path}: {getattr(error, 'strerror', None) or error}{where}") from error
            done += size

    def _item(self, line: bytes, place: str) -> Item | None:
        try:
            item = parse(line, place, judged=self.judged)
        except jsonl.BadLine as error:
            self.on_skip(Skip(place, error.problem))
            return None
        return None if self.timed_only and not item.query_time else item


def chosen(source: Source, count: int, seed: int) -> frozenset[str]:
    """Ids of a random sample, the same for a seed whatever the order; a smaller sample lies within a larger one."""
    ids = (item.id for item in source.items())
    ranked = ((hashlib.sha256(f"{seed}:{name}".encode()).digest(), name) for name in ids)
    return frozenset(name for _, name in heapq.nsmallest(count, ranked))


def parse(line: bytes, place: str, *, judged: bool = True) -> Item:
    """A question from one line of JSON; it needs an answer where it is judged.

    Raises:
        BadLine: it is none; its problem says why.
    """
    record = jsonl.object_of(line, place)
    query = _text(record, "query", "question", "input")
    if not query:
        raise jsonl.BadLine(place, "no query")
    gold = _gold(record)
    kind = str(record.get("label_kind") or "")
    if not gold and kind in ("idk", "invalid"):
        gold = (UNKNOWN if kind == "idk" else INVALID,)
    if judged and not gold:
        raise jsonl.BadLine(place, "no answer to judge by")
    query_time = _text(record, "query_time")
    return Item(
        id=_text(record, "interaction_id", "id", "_id") or _name(query, query_time, gold),
        query=query,
        gold=gold,
        label_kind=kind if kind in ("answer", "idk", "invalid") else label_kind_of(gold[0] if gold else ""),
        body=_body(record, query, query_time),
        place=place,
        query_time=query_time,
        domain=_text(record, "domain"),
        question_type=_text(record, "question_type"),
        dynamism=_text(record, "static_or_dynamic", "dynamism", "fact_type"),
        popularity=_text(record, "popularity"),
    )


def _body(record: dict[str, Any], query: str, query_time: str) -> dict[str, Any]:
    body: dict[str, Any] = {"query": query}
    if query_time:
        body["query_time"] = query_time
    contexts = record.get("contexts")
    if isinstance(contexts, list):
        body["evidence"] = _passages(contexts)
    elif record.get("search_results"):
        body["search_results"] = record["search_results"]
    if collection := _text(record, "collection"):
        body["collection"] = collection
    return body


def _passages(contexts: list[Any]) -> list[str]:
    texts = [
        item if isinstance(item, str) else str(item.get("text", ""))
        for item in contexts
        if isinstance(item, (str, dict))
    ]
    pieces = [
        text[start : start + MAX_PASSAGE_CHARS] for text in texts for start in range(0, len(text), MAX_PASSAGE_CHARS)
    ]
    return [piece for piece in pieces if piece.strip()][:MAX_PAGES]


def _gold(record: dict[str, Any]) -> tuple[str, ...]:
    """The answer and its alternatives; CRAG writes the latter as a list, or as the JSON of one."""
    answers = (record.get(key) for key in ("label", "answer", "gold"))
    values: list[Any] = [answer for answer in answers if answer not in (None, "", [])][:1]
    for key in ("answers", "alternative_answers", "alt_ans", "alternatives"):
        more = record.get(key)
        if isinstance(more, str):
            try:
                parsed = json.loads(more)
            except ValueError:
                parsed = None
            # "1998" is an answer and no JSON.
            more = parsed if isinstance(parsed, list) else [more]
        values += more if isinstance(more, list) else []
    flat = [part for item in values for part in (item if isinstance(item, list) else [item])]
    texts = (str(item).strip() for item in flat if isinstance(item, (str, int, float)) and not isinstance(item, bool))
    return tuple(dict.fromkeys(text for text in texts if text))


def _text(record: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def _name(query: str, query_time: str, gold: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps([query, query_time, gold]).encode()).hexdigest()[:16]


def _lines(stream: io.BufferedReader, name: str, on_skip: OnSkip) -> Iterator[tuple[str, bytes]]:
    stream = _decompressed(stream)
    head = stream.peek(512)[:512]
    if head[257:262] != b"ustar":
        yield from _numbered(stream, name, on_skip)
        return
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and _LINES.search(member.name) else None
            if content is not None:
                inner = _decompressed(io.BufferedReader(cast(io.RawIOBase, content), BUFFER_BYTES))
                yield from _numbered(inner, f"{name}/{member.name}", on_skip)


def _decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    magic = stream.peek(3)[:3]
    if magic == b"BZh":
        return io.BufferedReader(cast(io.RawIOBase, bz2.open(stream, "rb")), BUFFER_BYTES)
    if magic[:2] == b"\x1f\x8b":
        return io.BufferedReader(cast(io.RawIOBase, gzip.open(stream, "rb")), BUFFER_BYTES)
    return stream


def _numbered(stream: io.BufferedReader, name: str, on_skip: OnSkip) -> Iterator[tuple[str, bytes]]:
    number = 0
    while line := stream.readline(MAX_RECORD_BYTES + 1):
        number += 1
        place = f"{name}:{number}"
        if len(line) > MAX_RECORD_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(BUFFER_BYTES)
            on_skip(Skip(place, f"longer than {MAX_RECORD_BYTES // 2**20} MiB"))
        elif line.strip():
            yield place, line.removeprefix(b"\xef\xbb\xbf")
