"""A table of a draft: its columns, its key, what names its rows, and what it joins."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from lab.draft.columns import NUMBERED, Column
from lab.draft.vocabulary import deeds, singular, words_of_names
from services.kg.load.mapping import MAX_FIELDS

# The least share of a column's values that are keys of another table, if it joins that one.
SHARED = 0.95
# The largest value of a column that weighs things is no smaller.
MIN_WEIGHT = 1_000
# The column of names that a first and a last name make.
FULL_NAME = "name"
# Names of columns that name a row.
NAMES = ("name", "title", "label", "surface")
# What people are called, whatever else they are.
PERSONS = ("person", "people")
_PLATE = re.compile(r"(?=.*(?:[A-Z]\d|\d[A-Z]))[A-Z0-9]{1,4}[ -][A-Z0-9]{1,4}")


def is_plated(column: Column) -> bool:
    """Whether a column has what vehicles' plates say: YK12 HNB."""
    return column.type == "text" and all(map(_PLATE.fullmatch, column.values))


@dataclass(frozen=True, slots=True)
class Join:
    """A column whose values are keys of another table."""

    column: Column  # of the table that joins
    table: str  # that is joined
    id: str  # its key
    key: str  # the same, or another of its columns that tells its rows apart
    label: str  # the column that names its rows
    role: str  # what the join says of a row: `neighbour`, `country`


@dataclass(slots=True)
class CsvTable:
    """A table of the draft."""

    name: str  # in the singular, as the kind of its rows
    noun: str  # the same without the domain's name before it
    path: Path  # of its CSV file
    columns: list[Column]  # in the file's order
    rows: int  # the number that was read
    key: tuple[str, ...] = ()  # columns that tell rows apart; none if equal rows are numbered
    label: Column | None = None  # the column that names a row; None for a table that only links others
    name_parts: tuple[str, ...] = ()  # headers of the first and the last name, which its column of names joins
    domain_noun: str = ""  # what the domain calls its rows: dogs of a domain that has nothing else
    synonyms: list[str] = field(default_factory=list)  # other words for its noun that name nothing else
    joins: list[Join] = field(default_factory=list)
    sample: dict[str, str] = field(default_factory=dict)

    def is_joined_name(self, column: Column) -> bool:
        """Whether a column is not of the file, but joins its first and last names."""
        return bool(self.name_parts) and column.header == FULL_NAME

    @property
    def names_things(self) -> bool:
        return self.label is not None

    @property
    def event(self) -> str:
        """The noun of rows without a name in which things of one kind meet, as teams in a match; else empty."""
        twice = len({join.table for join in self.joins}) < len(self.joins)
        more = any(column.numeric or column.type == "date" for column in self.columns if self.join_of(column) is None)
        free = all(column.name != self.noun for column in self.columns)
        return self.noun if twice and more and free and not self.names_things else ""

    @property
    def nouns(self) -> list[str]:
        """What one of its rows is called, in words."""
        label = self.label.name if self.label is not None and self.label.name not in NAMES else ""
        persons = PERSONS if self.of_persons else ()
        # "How often has it erupted" counts eruptions.
        verbs = deeds(self.noun) if self.noun.endswith(("ion", "ing")) else []
        # Pets, of what has a `pet_name`, and jobs, by a `job_no`.
        front, _, last = label.rpartition("_")
        is_called = last in (*NAMES, *NUMBERED) and front not in words_of_names("adjectives")
        called = [front] if is_called else []
        nouns = (self.noun, singular(label), *called, self.domain_noun, *persons, *verbs, *self.synonyms)
        return list(dict.fromkeys(one.replace("_", " ") for one in nouns if one))

    @property
    def of_persons(self) -> bool:
        """Whether its rows are people, by its name."""
        return self.noun.rpartition("_")[2] in words_of_names("persons")

    @property
    def filled(self) -> list[Column]:
        """Columns with a value in every row."""
        return [column for column in self.columns if column.filled == self.rows]

    @property
    def numbered_by(self) -> list[Column]:
        """Columns within whose values rows are numbered, if there is no key."""
        return [] if self.key else [one for one in self.filled if not one.timed][:MAX_FIELDS]

    @property
    def number(self) -> str:
        """The name of the column of those numbers."""
        return "occurrence" if all(column.name != "occurrence" for column in self.columns) else "occurrence_number"

    @property
    def id(self) -> str:
        """The column that identifies its things: its key, else the name, which several rows may have."""
        return self.key[0] if len(self.key) == 1 or self.label is None else self.label.name

    @property
    def codes(self) -> list[Column]:
        """Columns with codes or numbers that people say for a name: LHR, CV-2020-01. Codes of two letters are words."""
        return [
            column
            for column in self.columns
            if (column.code or is_plated(column) or (column.type == "text" and column.numbered))
            and column.unique
            and column.filled > SHARED * self.rows
            and min(map(len, column.values)) > 2
            and self.join_of(column) is None
        ]

    @property
    def weight(self) -> tuple[Column, int] | None:
        """The column that decides which namesake is the best known, with its largest value; None without one."""
        counts = [column for column in self.columns if column.type in ("integer", "bigint") and not column.year]
        spread = {column.name: max(int(one.replace(",", "")) for one in column.values) for column in counts}
        best = max(counts, key=lambda column: spread[column.name], default=None)
        if best is None or spread[best.name] < MIN_WEIGHT or best.name == self.id or self.join_of(best):
            return None
        return best, spread[best.name]

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def join_of(self, column: Column) -> Join | None:
        return next((join for join in self.joins if join.column == column), None)
