"""Tables of CSV files, and how they belong together: keys, names, and columns that hold another table's keys."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path

from lab.draft.columns import MAX_NAME, MOST_SORTS, Column, deeds, identifier, read_columns
from lab.draft.vocabulary import singular, synonyms, words_of_names
from services.kg.load.errors import LoadError
from services.kg.load.files import check, header, records, suffix
from services.kg.load.mapping import MAX_FIELDS
from services.kg.load.values import NOTHING

# Rows that are looked at; what lies behind is taken to be like them.
MAX_ROWS = 200_000
# A column whose values are keys of another table, but for slips, joins it.
SHARED = 0.95
# Fewer values that happen to be keys of another table say nothing.
MIN_SHARED = 3
# A column whose largest value is below this tells nobody apart.
MIN_WEIGHT = 1_000
# In fewer rows no maker may stand twice by chance, and yet Volvo names no vehicle.
MIN_TELLING = 20
# More words than these are no name, on average.
MOST_WORDS = 5
# The column of names that a first and a last name make.
FULL_NAME = "name"
# Names of columns that name a row.
_NAMES = ("name", "title", "label", "surface")


@dataclass(frozen=True, slots=True)
class Join:
    """A column whose values are keys of another table."""

    column: Column  # of the table that joins
    table: str  # that is joined
    key: str  # its key
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
    key: tuple[str, ...] = ()  # columns that tell rows apart; where none do, how often their like came before
    label: Column | None = None  # the column that names a row; None for a table that only links others
    made: tuple[str, ...] = ()  # headers of the first and the last name, which its column of names joins
    called: str = ""  # what else its rows are called: dogs of a domain that has nothing else
    like: list[str] = field(default_factory=list)  # other words for its noun that nothing else is called by
    joins: list[Join] = field(default_factory=list)
    sample: dict[str, str] = field(default_factory=dict)

    def is_made(self, column: Column) -> bool:
        """Whether a column is none of the file's: that of the names which a first and a last name make."""
        return bool(self.made) and column.header == FULL_NAME

    @property
    def names_things(self) -> bool:
        return self.label is not None

    @property
    def event(self) -> str:
        """What a row without a name is called in which things of one kind meet, as teams in a match; else empty."""
        twice = len({join.table for join in self.joins}) < len(self.joins)
        more = any(column.numeric or column.type == "date" for column in self.columns if self.join_of(column) is None)
        free = all(column.name != self.noun for column in self.columns)
        return self.noun if twice and more and free and not self.names_things else ""

    @property
    def nouns(self) -> list[str]:
        """What one of its rows is called: as the table, and as the column that names it."""
        label = self.label.name if self.label is not None and self.label.name not in _NAMES else ""
        persons = ("person", "people") if self.of_persons else ()
        # "How often has it erupted" counts eruptions.
        done = deeds(self.noun) if self.noun.endswith(("ion", "ing")) else []
        nouns = (self.noun, singular(label), self.called, *persons, *done, *self.like)
        return list(dict.fromkeys(one.replace("_", " ") for one in nouns if one))

    @property
    def of_persons(self) -> bool:
        """Whether its rows are people, as it is called."""
        return self.noun.rpartition("_")[2] in words_of_names("persons")

    @property
    def filled(self) -> list[Column]:
        """Columns that every row has."""
        return [column for column in self.columns if column.filled == self.rows]

    @property
    def alike(self) -> list[Column]:
        """Columns by which rows are numbered that nothing tells apart; none where there is a key."""
        return [] if self.key else self.filled[:MAX_FIELDS]

    @property
    def number(self) -> str:
        """The column of those numbers."""
        return "occurrence" if all(column.name != "occurrence" for column in self.columns) else "occurrence_number"

    @property
    def id(self) -> str:
        """The column that tells its things apart: its key, else the name, which several rows may have."""
        return self.key[0] if len(self.key) == 1 or self.label is None else self.label.name

    @property
    def codes(self) -> list[Column]:
        """Columns with codes that people say for a name: LHR, FRA. Of two letters too many are words."""
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
        """The column by which the best known of namesakes is told, with its largest value; None without one."""
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


def read_tables(paths: Sequence[Path], prefix: str = "", taken: Container[str] = ()) -> list[CsvTable]:
    """The tables of those files with their keys and joins.

    `prefix` stands before a name that is `taken` by a table or kind elsewhere.

    Raises:
        LoadError: a file cannot be read, is no CSV, has no rows, or is called as another.
    """
    tables: dict[str, CsvTable] = {}
    for path in paths:
        table = _read(path)
        if table.name in taken:
            table.name = f"{prefix}_{table.name}"[:MAX_NAME].rstrip("_")
        if (other := tables.get(table.name)) is not None:
            raise LoadError(f"{path} and {other.path} would both be the table {table.name}: rename one")
        tables[table.name] = table
    for table in tables.values():
        table.key = _key_as_joined(table, tables)
    for table in tables.values():
        table.joins = _joins(table, tables)
        if table.label is not None and table.join_of(table.label) is not None:
            # Whoever takes part names no race, though nobody took part in two.
            table.label = None
    taken = {column.key for table in tables.values() for column in table.columns} | {
        one.noun for one in tables.values()
    }
    for table in tables.values():
        # The crew are its members.
        group = [table.noun.removesuffix("_member")] if table.noun.endswith("_member") else []
        table.like = [one for one in (*group, *synonyms(table.noun)) if one.replace(" ", "_") not in taken]
    # What others refer to comes first, and last what only links them.
    return sorted(tables.values(), key=lambda one: (not one.names_things, len(one.joins)))


def _read(path: Path) -> CsvTable:
    check(path)
    if suffix(path) not in (".csv", ".tsv"):
        raise LoadError(f"{path} is no .csv or .tsv file")
    headers = header(path)
    rows = [[row.get(one, "") for one in headers] for _, row in islice(records(path), MAX_ROWS)]
    made = _parts_of_names(headers)
    if made:
        of_names = [headers.index(one) for one in made]
        rows = [[*row, _whole_name([row[place].strip() for place in of_names])] for row in rows]
        headers = [*headers, FULL_NAME]
    name = singular(identifier(path.name.partition(".")[0]))
    columns = read_columns(headers, rows)
    if not name or not columns:
        raise LoadError(f"{path} has no rows under a header")
    table = CsvTable(name, name, path, columns, len(rows), made=made)
    table.key = _key(table, rows, headers)
    table.label = _label(table)
    places = {column.name: headers.index(column.header) for column in columns}
    filled = max(rows, key=lambda row: sum(bool(cell.strip()) for cell in row))
    table.sample = {column: filled[place].strip() for column, place in places.items()}
    return table


def _parts_of_names(headers: Sequence[str]) -> tuple[str, ...]:
    """The columns of a person's first and last name, where none has both; empty where there are none."""
    known = {identifier(one): one for one in headers}
    if known.keys() & {FULL_NAME, "full_name"}:
        return ()
    parts = [next((known[one] for one in known if one in words_of_names(kind)), "") for kind in ("firsts", "lasts")]
    return tuple(parts) if all(parts) else ()


def _whole_name(names: Sequence[str]) -> str:
    """A person's whole name; empty where one part is not known, as a load has it."""
    return "" if any(one.casefold() in NOTHING for one in names) else " ".join(names)


def _key_as_joined(table: CsvTable, tables: Mapping[str, CsvTable]) -> tuple[str, ...]:
    """The column by which other tables tell its rows, where that is not the key that it would have by itself.

    A team has a name and a tag, and its players stand under the tag; who has a number and a name is told by the name.
    """
    others = [
        column for other in tables.values() if other is not table for column in other.columns if column.type == "text"
    ]
    codes = [column for column in table.filled if column.unique and (column.code or column is table.label)]

    def joined(key: Column) -> int:
        held = [one for one in others if one.values <= key.values]
        return sum(len(one.values) >= MIN_SHARED or _is_called(one, table) for one in held)

    own = table.column(table.key[0]) if len(table.key) == 1 else None
    # Small numbers are keys of any table, whatever a column of numbers holds.
    numbers = own is not None and own.type != "text"
    if own is None or not codes or (numbers and _is_joined_by(own, table, tables)) or (not numbers and joined(own)):
        return table.key
    best = max(codes, key=joined)
    return (best.name,) if joined(best) else table.key


def _is_joined_by(key: Column, table: CsvTable, tables: Mapping[str, CsvTable]) -> bool:
    """Whether a column of any table is called as this key, or holds such numbers of rows that it names."""
    columns = [one for other in tables.values() for one in other.columns if one is not key and one.numeric]
    named = any(one.keyed and words_of_names("persons").intersection(one.name.split("_")) for one in columns)
    return named or any(one.name == key.name or (one.keyed and _is_called(one, table)) for one in columns)


def _key(table: CsvTable, rows: Sequence[Sequence[str]], headers: Sequence[str]) -> tuple[str, ...]:
    """The column that tells rows apart: one that is called so, else the first; else two columns, else none."""
    whole = [column for column in table.filled if column.unique]
    called = [column for column in whole if column.keyed or column.name == table.name]
    # Days tell apart what is of one day each, as their place says; elsewhere they do by chance.
    plain = [one for one in whole if one.type != "number" and (one.type != "date" or one is table.columns[0])]
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
    # What has no name is told by its key: order 1005, invoice 2024-17.
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
    """Columns that hold the keys of other tables, and of this one where they are not its own key."""
    named = [one for one in tables.values() if one.names_things and len(one.key) == 1]
    found: list[Join] = []
    for column in table.columns:
        if table.key == (column.name,):
            continue
        best = max(named, key=lambda one: (_shared(column, one), _is_called(column, one)), default=None)
        if best is None or _shared(column, best) < SHARED:
            best = _by_role(column, table, named)
        if best is not None and best.label is not None:
            (key,) = best.key
            role = column.name.removesuffix(f"_{key}").removesuffix("_id").removesuffix("_code")
            # A dept_id is the key of departments.
            role = best.noun if column.name == key else role
            found.append(Join(column, best.name, key, best.label.name, role))
    own = Counter(join.table for join in found)
    nouns = {one.name: one.noun for one in named}
    return [_plain(one, nouns[one.table]) if own[one.table] == 1 else one for one in found]


def _plain(join: Join, noun: str) -> Join:
    """A join that is the only one, called as what it holds: the star of a `host_star`, but no birth_country."""
    front, _, last = join.column.name.removesuffix("_id").rpartition("_")
    plain = last == noun and front == join.role and front not in words_of_names("telling")
    return replace(join, role=noun) if plain else join


def _shared(column: Column, table: CsvTable) -> float:
    """Share of a column's values that are keys of a table; of numbers only where the column is called so."""
    named = column.name == table.key[0] or _is_called(column, table)
    if (column.type != "text" and not named) or (len(column.values) < MIN_SHARED and not named):
        return 0.0
    return _held(column, table)


def _is_called(column: Column, table: CsvTable) -> bool:
    """Whether a column is called as what a table holds: home_team_id, and no article_id of an art."""
    return f"_{table.noun}_" in f"_{column.name}_"


def _held(column: Column, table: CsvTable) -> float:
    """Share of a column's values that are keys of a table."""
    keys = table.column(table.key[0])
    return len(column.values & keys.values) / len(column.values) if column.type == keys.type else 0.0


def _by_role(column: Column, table: CsvTable, named: Sequence[CsvTable]) -> CsvTable | None:
    """The table whose numbers a column holds that is called by what they are to a row: manager_id, author_id.

    Small numbers are keys of any table, so it is the column's own, or the only one of people.
    """
    role = column.name.removesuffix("_id").rpartition("_")[2]
    if not column.keyed or column.type != "integer":
        return None
    fitting = [one for one in named if _held(column, one) >= SHARED]
    if role in words_of_names("sides") and len(others := [one for one in fitting if one is not table]) == 1:
        return others[0]
    people = [one for one in fitting if one.of_persons] if role in words_of_names("persons") else []
    if role in words_of_names("kin") and table in fitting and (table.of_persons or not people):
        return table
    return people[0] if len(people) == 1 else None


def sorts_behind(table: CsvTable, join: Join, tables: Sequence[CsvTable]) -> dict[str, Column]:
    """What sorts the things that a table joins, by the name of the key: the country of a host's data centre.

    None where it joins the same table twice: a match is played by two teams of different cities; and none whose values
    stand in a column of the table's own: a talk in Oslo is not one whose author lives there.
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
    """What rows of a table that joins another are to it: its cities; of a link, what stands on the other side."""
    others = [one.role for one in table.joins if one is not join]
    return others[0] if others and not table.names_things else table.noun
