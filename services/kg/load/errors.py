"""Errors of loading a source. A bad row is skipped and reported; any other error leaves the tables as they were.

LoadError            the source as a whole cannot be loaded
├── UnknownFormat    no mapping describes the file, and it holds no rows
└── BadMapping       the mapping file is not valid
BadRow               the row cannot be used; the message says why
"""


class LoadError(Exception):
    """The message names the file and what to do."""


class UnknownFormat(LoadError):
    """No loader recognises the file."""


class BadMapping(LoadError):
    """A mapping file with an unknown table, column or key."""


class BadRow(ValueError):
    """A row that cannot be used. `field` is the column at fault, or empty."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason
