"""Text to chunks: small ones to match the query with, and larger parents for the generator.

A chunk is a slice of the text without changes, so that a citation can point to its place. Adding a chunker means adding
a class and its name in `CHUNKERS`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

import sentencex
from tokenizers import Tokenizer

Kind = Literal["text", "table"]

# The splitter is linear, but keeps several copies of its input.
_BLOCK_CHARS = 200_000

# Start and end.
Span = tuple[int, int]

_PARAGRAPH = "\n\n"
# A line without the blanks around it.
_LINE = re.compile(r"\S(?:[^\n]*\S)?")
# Interrogatives and auxiliary verbs, with which a question begins.
_OPENER = re.compile(
    "(?:who|whom|whose|what|which|when|where|why|how|am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|"
    r"shall|should|may|might|must)\b",
    re.IGNORECASE,
)


class Chunk(NamedTuple):
    """A piece of a page; a tuple, which is pickled five times as fast as a dataclass.

    Attributes:
        text: the slice; a piece of a table begins with the table's head.
        start: first character, in the page's text, or among the tables' Markdown for the kind `table`.
        end: one past the last character.
        parent: index of the chunk that holds it, or `None`.
        page: of the document, from 1; 0 where it has no pages.
    """

    text: str
    start: int
    end: int
    parent: int | None = None
    kind: Kind = "text"
    page: int = 0


class Chunking(NamedTuple):
    """Children in the order of the text, and their parents, which some chunkers do not make."""

    children: list[Chunk]
    parents: list[Chunk]


class Chunker(Protocol):
    def chunk(self, text: str, language: str = "en") -> Chunking:
        """Cut the text; `language` is an ISO 639 code for the sentence splitter."""


@dataclass(frozen=True, slots=True)
class Passages:
    """Whole sentences packed into children, whole children packed into parents.

    A sentence of up to twice a child's size stays whole; a longer one is cut between words.

    Args:
        child_full: how full a child must be to end with its paragraph.
        parent_full: how full a parent must be to leave out all of a paragraph of which only a part would fit.
    """

    child_chars: int = 200
    # Half the usual size: within 500 tokens of context two more parents hold the answer more often than longer ones.
    parent_chars: int = 600
    child_full: float = 0.75
    parent_full: float = 1
    # A sentence more is better than a chunk that ends too early.
    tolerance: ClassVar[float] = 1.2

    @classmethod
    def sized(cls, parent_chars: int) -> Self:
        return cls(child_chars=min(200, parent_chars), parent_chars=parent_chars)

    def by_paragraphs(self) -> Self:
        """The same, but a paragraph that fits into a parent of its own is not torn to fill the one before.

        For documents with headings, lists and rules, whose paragraphs say what they are about at their beginning.
        """
        return replace(self, child_full=0.3, parent_full=0.4)

    def chunk(self, text: str, language: str = "en") -> Chunking:
        children: list[Chunk] = []
        parents: list[Chunk] = []
        for spans in self._parents(text, self._pack(text, language)):
            start, end = spans[0][0], spans[-1][1]
            children += (Chunk(text[s:e], s, e, len(parents)) for s, e in spans)
            parents.append(Chunk(text[start:end], start, end))
        return Chunking(children, parents)

    def _parents(self, text: str, spans: Iterable[Span]) -> Iterator[list[Span]]:
        """Runs of children that make a parent each."""
        run: list[Span] = []
        for paragraph in _paragraphs(text, spans):
            is_full = run and run[-1][1] - run[0][0] >= self.parent_full * self.parent_chars
            if is_full and paragraph[-1][1] - run[0][0] > self.parent_chars:
                yield run
                run = []
            for span in paragraph:
                if run and span[1] - run[0][0] > self.parent_chars:
                    yield run
                    run = []
                run.append(span)
        if run:
            yield run

    def _pack(self, text: str, language: str) -> Iterator[Span]:
        limit = self.tolerance * self.child_chars
        first = last = 0
        for start, end in sentences(text, language):
            is_full = last - first > self.child_full * self.child_chars
            if last > first and (end - first > limit or (is_full and _PARAGRAPH in text[last:start])):
                yield first, last
                first = last
            if last == first:
                first = start
            if end - first > 2 * self.child_chars:
                *whole, (first, end) = windows(text, first, end, self.child_chars)
                yield from whole
            last = end
        if last > first:
            yield first, last


@dataclass(frozen=True, slots=True)
class ParentChild:
    """Overlapping windows within overlapping windows, cut between words (db3, section 2.2; sizes as in its code).

    The paper shows parents of 700 characters, and finds 500, 1,000 and 2,000 as good.
    """

    parent_chars: int = 2_000
    parent_overlap: int = 400
    child_chars: int = 200
    child_overlap: int = 50

    @classmethod
    def sized(cls, parent_chars: int) -> Self:
        child = min(200, parent_chars)
        return cls(parent_chars, parent_chars // 5, child, child // 4)

    def chunk(self, text: str, language: str = "en") -> Chunking:
        children: list[Chunk] = []
        parents: list[Chunk] = []
        for start, end in windows(text, 0, len(text), self.parent_chars, self.parent_overlap):
            inner = windows(text, start, end, self.child_chars, self.child_overlap)
            children += (Chunk(text[s:e], s, e, len(parents)) for s, e in inner)
            parents.append(Chunk(text[start:end], start, end))
        return Chunking(children, parents)


@dataclass(frozen=True, slots=True)
class SentenceGroups:
    """Sentences in groups of three, a question with what follows it (ElectricSheep, section 4.1).

    Sentences are cut to `sentence_chars`; since a chunk is one slice, a cut sentence ends its group.
    """

    sentence_chars: int = 200
    group: int = 3

    @classmethod
    def sized(cls, parent_chars: int) -> Self:
        return cls(sentence_chars=max(1, parent_chars // 3))

    def chunk(self, text: str, language: str = "en") -> Chunking:
        return Chunking([Chunk(text[start:end], start, end) for start, end in self._groups(text, language)], [])

    def _groups(self, text: str, language: str) -> Iterator[Span]:
        limit = self.group * self.sentence_chars
        first = last = count = 0
        has_question = is_closed = False
        for start, end in sentences(text, language):
            sentence = text[start:end]
            cut = start + len(sentence[: self.sentence_chars].rstrip())
            is_question = sentence.endswith("?") or _OPENER.match(sentence) is not None
            is_full = cut - first > limit or (count >= self.group and not has_question)
            if count and (is_closed or is_question or is_full):
                yield first, last
                count = 0
            if not count:
                first, has_question = start, is_question
            last, is_closed, count = cut, len(sentence) > self.sentence_chars, count + 1
        if count:
            yield first, last


@dataclass(frozen=True, slots=True)
class Tokens:
    """Runs of tokens of the encoder; with 500 WeKnow had its best results."""

    tokenizer: Tokenizer
    size: int

    def chunk(self, text: str, language: str = "en") -> Chunking:
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        spans = (
            (offsets[first][0], offsets[min(first + self.size, len(offsets)) - 1][1])
            for first in range(0, len(offsets), self.size)
        )
        return Chunking([Chunk(text[start:end], start, end) for start, end in spans if text[start:end].strip()], [])


@lru_cache(maxsize=2)
def load_tokenizer(path: str) -> Tokenizer:
    """A tokenizer from its `tokenizer.json`, without truncation and padding."""
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


Sized = TypeVar("Sized", Passages, ParentChild, SentenceGroups)


def _sized(chunker: type[Sized], chars: int) -> Sized:
    return chunker.sized(chars) if chars else chunker()


# By the characters of a passage for the generator, 0 for the chunker's own size, as published; and the path of the
# encoder's tokenizer, which only `tokens` needs.
CHUNKERS: dict[str, Callable[[int, str], Chunker]] = {
    "passages": lambda chars, _: _sized(Passages, chars),
    "paragraphs": lambda chars, _: _sized(Passages, chars).by_paragraphs(),
    "parent-child": lambda chars, _: _sized(ParentChild, chars),
    "sentence-groups": lambda chars, _: _sized(SentenceGroups, chars),
    # A token of English prose is four characters long.
    "tokens": lambda chars, tokenizer: Tokens(load_tokenizer(tokenizer), chars // 4 or 500),
}


def sentences(text: str, language: str = "en") -> Iterator[Span]:
    """Start and end of each sentence, blanks trimmed; a line break ends a sentence as well."""
    for position, block_end in windows(text, 0, len(text), _BLOCK_CHARS):
        for segment in sentencex.segment(language or "en", text[position:block_end]):
            # The splitter drops some line breaks, so a sentence reaches from one end to the next.
            start = text.find(segment, position, block_end)
            if start >= 0:
                yield from _lines(text, position, start + len(segment))
                position = start + len(segment)
        yield from _lines(text, position, block_end)


def _paragraphs(text: str, spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Spans in runs, each of which ends with a blank line or the text."""
    run: list[Span] = []
    for span in spans:
        if run and _PARAGRAPH in text[run[-1][1] : span[0]]:
            yield run
            run = []
        run.append(span)
    if run:
        yield run


def windows(text: str, start: int, end: int, size: int, overlap: int = 0) -> Iterator[Span]:
    """Start and end of pieces of at most `size` characters that cover a part of the text, blanks excepted.

    Pieces end at blanks where there are any; each begins up to `overlap` characters before the end of the one before
    it, at a word.
    """
    start = fresh = _skip_blanks(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > size:
        cut = start + size
        if not text[cut].isspace():
            # A piece must reach further than the one before it, or it would repeat that one's end alone.
            blank = max(text.rfind(" ", fresh, cut), text.rfind("\n", fresh, cut))
            cut = blank if blank > fresh else cut
        stop = cut
        while text[stop - 1].isspace():
            stop -= 1
        yield start, stop
        fresh = _skip_blanks(text, cut, end)
        start = _back(text, start, stop, overlap) if overlap else fresh
        if fresh - start >= size:
            start = fresh
    if end > start:
        yield start, end


def _back(text: str, start: int, stop: int, overlap: int) -> int:
    back = max(stop - overlap, start + 1)
    if text[back - 1].isspace():
        return _skip_blanks(text, back, stop)
    blanks = [blank for blank in (text.find(" ", back, stop), text.find("\n", back, stop)) if blank >= 0]
    # A word longer than the overlap is not repeated; one longer than a piece is, or it could not be found at the cut.
    back = min(blanks) if blanks else stop if " " in text[start:stop] else back
    return _skip_blanks(text, back, len(text))


def _skip_blanks(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    return (line.span() for line in _LINE.finditer(text, start, end))
