"""Tables of CSV files: their keys, the columns that name their rows, and joins by another table's keys."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path

from lab.draft.columns import MOST_SORTS, Column, read_columns
from lab.draft.headers import MAX_NAME, column_name, without_abbreviations
from lab.draft.vocabulary import deeds, singular, synonyms, words_of_names
from services.kg.load.errors import LoadError
from services.kg.load.files import check, header, records, suffix
from services.kg.load.mapping import MAX_FIELDS
from services.kg.load.values import NOTHING

# The most rows that are read; others are taken to be like them.
MAX_ROWS = 200_000
# The least share of a column's values that are keys of another table, if it joins that one.
SHARED = 0.95
# Fewer values may be keys of another table by chance.
MIN_SHARED = 3
# The largest value of a column that weighs things is no smaller.
MIN_WEIGHT = 1_000
# In fewer rows each maker may stand once by chance, and yet Volvo names no vehicle.
MIN_TELLING = 20
# The most words of a name, on average.
MOST_WORDS = 5
# The column of names that a first and a last name make.
FULL_NAME = "name"
# The year, the season or the version that a file's name ends in.
_EDITION = re.compile(r"_(?:(?:19|20)\d\d(?:_\d\d(?:\d\d)?)?|v\d+|export|final|copy)$")
# Names of columns that name a row.
_NAMES = ("name", "title", "label", "surface")


@dataclass(frozen=True, slots=True)
class Join:
    """A column whose values are keys of another table."""

    column: Column  # of the table that joins
    table: str  # that is joined
    key: str  # its key, or another of its columns that tells its rows apart
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
        label = self.label.name if self.label is not None and self.label.name not in _NAMES else ""
        persons = ("person", "people") if self.of_persons else ()
        # "How often has it erupted" counts eruptions.
        verbs = deeds(self.noun) if self.noun.endswith(("ion", "ing")) else []
        nouns = (self.noun, singular(label), self.domain_noun, *persons, *verbs, *self.synonyms)
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
        return [] if self.key else self.filled[:MAX_FIELDS]

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
        """Columns with codes that people say for a name: LHR, FRA. Too many codes of two letters are words."""
        return [
            column
            for column in self.columns
            if column.code
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


def read_tables(paths: Sequence[Path], prefix: str = "", reserved: Container[str] = ()) -> list[CsvTable]:
    """The tables of those files with their keys and joins.

    `prefix` stands before a `reserved` name, which a table or kind elsewhere has.

    Raises:
        LoadError: a file cannot be read, is no CSV, has no rows, or is called as another.
    """
    tables: dict[str, CsvTable] = {}
    alike = Counter(map(_name_of, paths))
    for path in paths:
        name = _name_of(path)
        table = _read(path, name if alike[name] == 1 else singular(without_abbreviations(_stem(path))))
        if table.name in reserved:
            table.name = f"{prefix}_{table.name}"[:MAX_NAME].rstrip("_")
        if (other := tables.get(table.name)) is not None:
            raise LoadError(f"{path} and {other.path} would both be the table {table.name}: rename one")
        tables[table.name] = table
    for table in tables.values():
        table.key = _key_as_joined(table, tables)
    for table in tables.values():
        table.joins = _joins(table, tables)
        if table.label is not None and table.join_of(table.label) is not None:
            # A participant names no race, even if nobody takes part in two.
            table.label = None
    names = {column.key for table in tables.values() for column in table.columns}
    names |= {table.noun for table in tables.values()}
    for table in tables.values():
        # The members of a crew are the crew.
        group = [table.noun.removesuffix("_member")] if table.noun.endswith("_member") else []
        table.synonyms = [one for one in (*group, *synonyms(table.noun)) if one.replace(" ", "_") not in names]
    # Tables that others refer to come first, and those that only link others last.
    return sorted(tables.values(), key=lambda one: (not one.names_things, len(one.joins)))


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _name_of(path: Path) -> str:
    """The name of a file's table: `licence` of `Licences 2025.csv` and `licences_v2.csv`."""
    return singular(_EDITION.sub("", without_abbreviations(_stem(path))))


def _read(path: Path, name: str) -> CsvTable:
    check(path)
    if suffix(path) not in (".csv", ".tsv"):
        raise LoadError(f"{path} is no .csv or .tsv file")
    headers = header(path)
    rows = [[row.get(one, "") for one in headers] for _, row in islice(records(path), MAX_ROWS)]
    name_parts = _name_parts(headers)
    if name_parts:
        places = [headers.index(one) for one in name_parts]
        rows = [[*row, _full_name([row[place].strip() for place in places])] for row in rows]
        headers = [*headers, FULL_NAME]
    columns = read_columns(headers, rows)
    if not name or not columns:
        raise LoadError(f"{path} has no rows under a header")
    table = CsvTable(name, name, path, columns, len(rows), name_parts=name_parts)
    table.key = _key(table, rows, headers)
    table.label = _label(table)
    fullest = max(rows, key=lambda row: sum(bool(cell.strip()) for cell in row))
    table.sample = {column.name: fullest[headers.index(column.header)].strip() for column in columns}
    return table


def _name_parts(headers: Sequence[str]) -> tuple[str, ...]:
    """The columns of a person's first and last name; empty without them, or if another column has both."""
    names = {column_name(one): one for one in headers}
    if names.keys() & {FULL_NAME, "full_name"}:
        return ()
    parts = [next((names[one] for one in names if one in words_of_names(kind)), "") for kind in ("firsts", "lasts")]
    return tuple(parts) if all(parts) else ()


def _full_name(names: Sequence[str]) -> str:
    """A person's full name; empty if a part is unknown, as a load has it."""
    return "" if any(one.casefold() in NOTHING for one in names) else " ".join(names)


def _key_as_joined(table: CsvTable, tables: Mapping[str, CsvTable]) -> tuple[str, ...]:
    """The key of a table, or the codes or names that other tables have in place of it.

    A team has a name and a tag, and its players have the tag; a person has a number and a name, and others the name.
    """
    others = [
        column for other in tables.values() if other is not table for column in other.columns if column.type == "text"
    ]
    codes = [column for column in table.filled if column.unique and (column.code or column is table.label)]

    def joined(key: Column) -> int:
        within = [one for one in others if one.values <= key.values]
        return sum(len(one.values) >= MIN_SHARED or _is_called(one, table) for one in within)

    own = table.column(table.key[0]) if len(table.key) == 1 else None
    if own is None or not codes:
        return table.key
    # Numbers of any column may be keys by chance.
    if joined(own) if own.type == "text" else _is_joined_by(own, table, tables):
        return table.key
    best = max(codes, key=joined)
    return (best.name,) if joined(best) else table.key


def _is_joined_by(key: Column, table: CsvTable, tables: Mapping[str, CsvTable]) -> bool:
    """Whether a column of any table has the name of this key, or of the table or of people with keys."""
    columns = [one for other in tables.values() for one in other.columns if one is not key and one.numeric]
    named = any(one.keyed and words_of_names("persons").intersection(one.name.split("_")) for one in columns)
    return named or any(one.name == key.name or (one.keyed and _is_called(one, table)) for one in columns)


def _key(table: CsvTable, rows: Sequence[Sequence[str]], headers: Sequence[str]) -> tuple[str, ...]:
    """The column that tells rows apart, one with the name of a key before others; else two columns; else none."""
    unique = [column for column in table.filled if column.unique]
    called = [column for column in unique if column.keyed or column.name == table.name]
    # Dates tell rows apart by chance, unless they come first.
    plain = [one for one in unique if one.type != "number" and (one.type != "date" or one is table.columns[0])]
    if best := (called or plain):
        return (best[0].name,)
    for pair in combinations(table.filled[:4], 2):
        places = [headers.index(column.header) for column in pair]
        if len({tuple(row[place] for place in places) for row in rows}) == table.rows:
            return tuple(column.name for column in pair)
    return ()


def _label(table: CsvTable) -> Column | None:
    texts = [column for column in table.columns if column.type == "text" and not column.code]
    for name in _NAMES:
        for column in texts:
            if column.name in (name, f"{table.name}_{name}"):
                return column
    called = (one for one in texts if one.name == table.name or _mostly_unique(one, table))
    # Things without a name have that of their key: order 1005, invoice 2024-17.
    key = table.column(table.key[0]) if len(table.key) == 1 else None
    telling = next((one for one in texts if _tells_apart(one, table)), None)
    if key is not None and key.code and telling is not None and table.rows < MIN_TELLING and not _of_words(telling):
        telling = None
    named = next(called, None) or telling
    return key if named is None and key is not None and (key.type == "text" or key.numbered) else named


def _of_words(column: Column) -> bool:
    """Whether most of its values have several words, as titles have."""
    return 2 * sum(" " in value for value in column.values) > len(column.values)


def _mostly_unique(column: Column, table: CsvTable) -> bool:
    return column.name.split("_")[-1] in _NAMES and len(column.values) > 0.5 * table.rows


def _tells_apart(column: Column, table: CsvTable) -> bool:
    """Whether each row has a short text of its own there."""
    words = sum(len(value.split()) for value in column.values)
    return column.unique and column.filled == table.rows and words <= MOST_WORDS * table.rows


def _joins(table: CsvTable, tables: Mapping[str, CsvTable]) -> list[Join]:
    """The joins by columns with keys of other tables, or of this one beside its own key."""
    named = [one for one in tables.values() if one.names_things and len(one.key) == 1]
    joins: list[Join] = []
    for column in table.columns:
        if table.key == (column.name,):
            continue
        best = max(named, key=lambda one: (_shared(column, one), _is_called(column, one)), default=None)
        if best is None or _shared(column, best) < SHARED:
            best = _by_role(column, table, named)
        key = best.key[0] if best is not None else ""
        if best is None and (second := _second_key(column, named)) is not None:
            best, key = second
        if best is not None and best.label is not None:
            role = column.name.removesuffix(f"_{key}").removesuffix("_id").removesuffix("_code")
            # A dept_id is the key of departments.
            role = best.noun if column.name == key else role
            joins.append(Join(column, best.name, key, best.label.name, role))
    counts = Counter(join.table for join in joins)
    nouns = {one.name: one.noun for one in named}
    return [_plain(one, nouns[one.table]) if counts[one.table] == 1 else one for one in joins]


def _plain(join: Join, noun: str) -> Join:
    """The only join of a table with its noun as role: star of a `host_star`, but not country of a `birth_country`."""
    front, _, last = join.column.name.removesuffix("_id").rpartition("_")
    plain = last == noun and front == join.role and front not in words_of_names("telling")
    return replace(join, role=noun) if plain else join


def _second_key(column: Column, named: Sequence[CsvTable]) -> tuple[CsvTable, str] | None:
    """The table whose rows a column tells by another column than the key, and that: numbers of members with names."""
    for table in named:
        others = (one for one in table.filled if one.unique and one.name not in table.key and one is not column)
        for key in others:
            is_telling = key is table.label or key.code or key.numbered
            if is_telling and _shared(column, table, key) >= SHARED:
                return table, key.name
    return None


def _shared(column: Column, table: CsvTable, key: Column | None = None) -> float:
    """The share of a column's values that are keys of a table; 0 for numbers, unless by the column's name.

    Args:
        key: its own when None.
    """
    key = key or table.column(table.key[0])
    # A piece_cat_no is the cat_no of another table; a mast_no of any table with a `no` is not.
    ends = "_" in key.name and column.name.endswith(f"_{key.name}")
    # The cust of an order is the cust_no of a customer.
    ends = ends or (key.numbered and column.name == key.name.rpartition("_")[0])
    named = column.name == key.name or _is_called(column, table) or ends
    if (column.type != "text" and not named) or (len(column.values) < MIN_SHARED and not named):
        return 0.0
    return _held(column, key)


def _is_called(column: Column, table: CsvTable) -> bool:
    """Whether a column's name has the noun of a table: team of home_team_id, but not art of article_id."""
    return f"_{table.noun}_" in f"_{column.name}_"


def _held(column: Column, keys: Column) -> float:
    """The share of a column's values that are keys, if both have one type."""
    return len(column.values & keys.values) / len(column.values) if column.type == keys.type else 0.0


def _by_role(column: Column, table: CsvTable, named: Sequence[CsvTable]) -> CsvTable | None:
    """The table of a column with numbers that is named by a role: manager_id, author_id.

    Small numbers are keys of any table, so it is the column's own table, or the only one of people.
    """
    role = column.name.removesuffix("_id").rpartition("_")[2]
    if not column.keyed or column.type != "integer":
        return None
    fitting = [one for one in named if _held(column, one.column(one.key[0])) >= SHARED]
    if role in words_of_names("sides") and len(others := [one for one in fitting if one is not table]) == 1:
        return others[0]
    people = [one for one in fitting if one.of_persons] if role in words_of_names("persons") else []
    if role in words_of_names("kin") and table in fitting and (table.of_persons or not people):
        return table
    return people[0] if len(people) == 1 else None


def sorts_behind(table: CsvTable, join: Join, tables: Sequence[CsvTable]) -> dict[str, Column]:
    """The columns that sort the things that a table joins, by the name of the key: country of a host's data centre.

    None if the table joins the other one twice, as a match two teams of different cities; and none with values of the
    table's own columns: a talk in Oslo is not one whose author lives there.
    """
    if sum(one.table == join.table for one in table.joins) > 1:
        return {}
    (other,) = (one for one in tables if one.name == join.table)
    own = frozenset().union(*(column.values for column in table.columns if column.type == "text"))
    return {
        f"{join.role}_{column.key}": column
        for column in other.columns
        if column.type == "text"
        and not column.numbered
        and len(column.values) <= MOST_SORTS
        and column.values.isdisjoint(own)
        and column is not other.label
        and column.name != other.id
        and other.join_of(column) is None
    }


def child_of(table: CsvTable, join: Join) -> str:
    """The noun of a table's rows for a table that it joins: a country's cities; of a link, that of its other side."""
    others = [one.role for one in table.joins if one is not join]
    return others[0] if others and not table.names_things else table.noun
