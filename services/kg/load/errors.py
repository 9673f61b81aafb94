"""What can go wrong while a source is loaded; what is wrong with a single row is reported instead and the row skipped.

LoadError            the source as a whole cannot be loaded; the tables stay as they were
├── UnknownFormat    no mapping describes the file, and it is no rows
└── BadMapping       the mapping file is not valid
BadRow               this row cannot be used; the message says why
"""


class LoadError(Exception):
    """The message names the file and what to do."""


class UnknownFormat(LoadError):
    """No loader recognises the file."""


class BadMapping(LoadError):
    """A mapping file with an unknown table, column or key."""


class BadRow(ValueError):
    """One row that cannot be used. `field` names the column at fault, or is empty."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason
