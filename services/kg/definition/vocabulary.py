"""Codes for what goes by many names: an award that was renamed five times, and what people call it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from services.kg.definition.folder import BrokenDomain, Folder, Part


class VocabularyFile(Part):
    """People's words and sources' names for one set of codes, by patterns; the first that is found decides."""

    class Dated(Part):
        code: str
        until: int

    words: dict[str, str | tuple[str, ...]]  # what people say -> codes
    # What a source writes -> code; `until` ends with a year.
    names: dict[str, str | Dated] = Field(default_factory=dict)
    noise: str = ""  # what of people's words is dropped first
    official: str = ""  # what tells a source's name from people's words
    otherwise: Literal["none", "slug"] = "none"  # what a text is that no pattern finds: no code, or a slug of itself


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Patterns of people's words and of sources' names, in the order in which they are tried."""

    # Pattern -> codes; several where words leave open which is meant.
    words: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    # Pattern -> code, and the last year in which the name had that meaning.
    names: tuple[tuple[re.Pattern[str], str, int | None], ...]
    noise: re.Pattern[str] | None = None  # what is dropped from people's words
    official: re.Pattern[str] | None = None  # what only a source's name has
    slugs: bool = False  # whether a text that no pattern finds is a code of its own

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(code for _, code, _ in self.names), *(c for _, cs in self.words for c in cs))))

    def code(self, name: str, year: int | None = None) -> str:
        """The code of a source's name: that of the first pattern found in it, else a slug of the name.

        Some names meant something else before a `year`.
        """
        text = " ".join(name.casefold().split())
        for pattern, code, until in self.names:
            if (until is None or (year is not None and year <= until)) and pattern.search(text):
                return code
        return _slug(text) or "other"

    def find(self, text: str) -> tuple[str, ...]:
        """The codes that people's words mean, or that are written out; none where the words mean nothing here."""
        plain = " ".join(text.casefold().replace("_", " ").replace("-", " ").split())
        if _slug(plain) in self.codes:
            return (_slug(plain),)
        if self.official is not None and self.official.search(plain):
            return (self.code(text),)
        words = " ".join(self.noise.sub(" ", plain).split()) if self.noise is not None else plain
        for pattern, codes in self.words:
            if pattern.search(words):
                return codes
        return (_slug(" ".join(text.casefold().split())) or "other",) if self.slugs else ()


def vocabulary_of(content: VocabularyFile) -> Vocabulary:
    """The vocabulary of a file.

    Raises:
        re.error: a pattern cannot be read.
    """
    words = tuple(
        (re.compile(pattern), (codes,) if isinstance(codes, str) else codes) for pattern, codes in content.words.items()
    )
    names = tuple(
        (re.compile(pattern), *((code, None) if isinstance(code, str) else (code.code, code.until)))
        for pattern, code in content.names.items()
    )
    return Vocabulary(
        words,
        names or tuple((pattern, codes[0], None) for pattern, codes in words),
        re.compile(content.noise) if content.noise else None,
        re.compile(content.official) if content.official else None,
        content.otherwise == "slug",
    )


def vocabulary_inline(words: Mapping[str, str]) -> Vocabulary:
    """A vocabulary of a few patterns."""
    return vocabulary_of(VocabularyFile(words=dict(words)))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.replace("&", "and")).strip("_")


def read_vocabulary(folder: Folder, name: str) -> Vocabulary:
    """The vocabulary of a file of that folder.

    Raises:
        BrokenDomain: it cannot be read, or a pattern in it cannot.
    """
    file, content = folder.model(name, VocabularyFile)
    try:
        return vocabulary_of(file)
    except re.error as error:
        raise BrokenDomain(folder.name, [content.fault((), f"{error.pattern!r} is no pattern: {error.msg}")]) from None
