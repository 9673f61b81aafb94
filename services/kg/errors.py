"""What can go wrong with a program, as one tree:

KgError
├── LanguageError        the text of a statement is not in the language, or names what is not in the catalogue
│   ├── ParseError       not a statement
│   └── UnknownName      a function, key or parameter that the catalogue does not have
├── NoEntity             a name that the graph does not know, or that could be several
├── NothingKnown         the graph has no row from which the answer could be computed
├── ExecutionTimeout     the store took longer than allowed
└── StoreError           the store is missing, corrupt or of another version
"""

from typing import Literal

from proto.kg import KgStatus


class KgError(Exception):
    """Base of all; `status` is what the response says."""

    status: KgStatus = "empty"


class LanguageError(KgError):
    status: KgStatus = "parse_error"

    def __init__(self, message: str, *, position: int = 0, expected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.position = position
        self.expected = expected


class ParseError(LanguageError):
    """`position` is the character where reading stopped, `expected` what could have stood there."""


class UnknownName(LanguageError):
    """`expected` are the nearest names that exist."""

    def __init__(
        self, kind: Literal["function", "key", "parameter"], message: str, *, expected: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, expected=expected)
        self.kind = kind
        if kind == "key":
            self.status: KgStatus = "unknown_key"


class NoEntity(KgError):
    """`candidates` are the nearest names; `ambiguous` when several fit alike."""

    def __init__(self, name: str, *, candidates: tuple[str, ...] = (), ambiguous: bool = False) -> None:
        near = f"; nearest: {', '.join(candidates[:3])}" if candidates else ""
        what = "could be several" if ambiguous else "is not in the knowledge graph"
        super().__init__(f'"{name}" {what}{near}')
        self.name = name
        self.candidates = candidates
        self.status: KgStatus = "ambiguous" if ambiguous else "no_entity"


class NothingKnown(KgError):
    """`status` stays `empty`."""


class ExecutionTimeout(KgError):
    status: KgStatus = "timeout"


class StoreError(KgError):
    """The message names the database and what to run."""
