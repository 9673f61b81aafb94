"""The errors of a program, as one tree:

KgError                  itself: the graph has no row from which the answer could be computed
├── LanguageError        the text of a statement is not in the language, or names what is not in the catalogue
│   ├── ParseError       not a statement
│   └── UnknownName      a function or parameter that the catalogue does not have
│       └── UnknownKey   a key that the function does not have
├── NoEntity             a name that the graph does not know, or that could be several
├── ExecutionTimeout     the store took longer than allowed
└── StoreError           the store is missing, corrupt or of another version
"""

from proto.kg import KgStatus


class KgError(Exception):
    """Base of all; `status` is that of the response, `expected` are texts or names that would have been right."""

    status: KgStatus = "empty"

    def __init__(self, message: str, *, expected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.expected = expected


class LanguageError(KgError):
    status: KgStatus = "parse_error"


class ParseError(LanguageError):
    """`expected` are texts that could stand where reading stopped."""


class UnknownName(LanguageError):
    """`expected` are the nearest names that exist."""


class UnknownKey(UnknownName):
    status: KgStatus = "unknown_key"


class NoEntity(KgError):
    """`expected` are the nearest names, of which several may fit alike (`ambiguous`)."""

    def __init__(self, name: str, *, candidates: tuple[str, ...] = (), ambiguous: bool = False) -> None:
        near = f"; nearest: {', '.join(candidates[:3])}" if candidates else ""
        fault = "could be several" if ambiguous else "is not in the knowledge graph"
        super().__init__(f'"{name}" {fault}{near}', expected=candidates)
        self.status = "ambiguous" if ambiguous else "no_entity"


class ExecutionTimeout(KgError):
    status: KgStatus = "timeout"


class StoreError(KgError):
    """The message names the database and what to run."""
