"""Codes for things of many names: an award that was renamed five times, and the words that people have for it."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from services.kg.definition.folder import Part
from services.kit.environment import OrNone


class Dated(Part):
    """The code of a name up to a year."""

    code: str
    until: int


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Vocabulary(Part):
    """People's words and sources' names for one set of codes, by patterns; the first that matches decides."""

    # People's words -> codes; several where the words are ambiguous.
    words: Mapping[re.Pattern[str], Annotated[tuple[str, ...], BeforeValidator(_several)]]
    # Sources' names -> code; without any, people's words.
    names: Mapping[re.Pattern[str], str | Dated] = Field(default_factory=dict)
    noise: OrNone[re.Pattern[str]] = None  # dropped from people's words first
    official: OrNone[re.Pattern[str]] = None  # in a source's name, and not in people's words
    otherwise: Literal["none", "slug"] = "none"  # for words that no pattern matches: no code, or a slug of the words

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
        """The code of a source's name: that of the first pattern in it, else a slug of the name.

        Some names had another code up to a `year`.
        """
        text = " ".join(name.casefold().split())
        for pattern, code, until in self._names:
            if (until is None or (year is not None and year <= until)) and pattern.search(text):
                return code
        return _slug(text) or "other"

    def find(self, text: str) -> tuple[str, ...]:
        """The codes of people's words, or those that the text itself is; none where no pattern matches."""
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
