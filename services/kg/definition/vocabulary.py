"""Codes for what goes by many names: an award that was renamed five times, and what people call it."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from services.kg.definition.folder import Part


class Dated(Part):
    """A code that a name had up to a year."""

    code: str
    until: int


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


# An empty one would be found everywhere; it means that there is none.
Wanted = Annotated[re.Pattern[str] | None, BeforeValidator(lambda value: value or None)]


class Vocabulary(Part):
    """People's words and sources' names for one set of codes, by patterns; the first that is found decides."""

    # What people say -> codes; several where words leave open which is meant.
    words: Mapping[re.Pattern[str], Annotated[tuple[str, ...], BeforeValidator(_several)]]
    # What a source writes -> code; the words where it is empty.
    names: Mapping[re.Pattern[str], str | Dated] = Field(default_factory=dict)
    noise: Wanted = None  # what of people's words is dropped first
    official: Wanted = None  # what tells a source's name from people's words
    otherwise: Literal["none", "slug"] = "none"  # what a text is that no pattern finds: no code, or a slug of itself

    @cached_property
    def _names(self) -> list[tuple[re.Pattern[str], str, int | None]]:
        """Pattern, code, and the last year in which the name had that meaning."""
        if not self.names:
            return [(pattern, codes[0], None) for pattern, codes in self.words.items()]
        return [
            (pattern, one, None) if isinstance(one, str) else (pattern, one.code, one.until)
            for pattern, one in self.names.items()
        ]

    @cached_property
    def codes(self) -> frozenset[str]:
        return frozenset(code for _, code, _ in self._names).union(*self.words.values())

    def code(self, name: str, year: int | None = None) -> str:
        """The code of a source's name: that of the first pattern found in it, else a slug of the name.

        Some names meant something else before a `year`.
        """
        text = " ".join(name.casefold().split())
        for pattern, code, until in self._names:
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
        for pattern, codes in self.words.items():
            if pattern.search(words):
                return codes
        return (_slug(" ".join(text.casefold().split())) or "other",) if self.otherwise == "slug" else ()


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.replace("&", "and")).strip("_")
