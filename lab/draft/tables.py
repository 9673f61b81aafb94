"""Tables of CSV files: their keys and the columns that name their rows."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

from lab.draft.cells import read_columns
from lab.draft.columns import Column
from lab.draft.headers import MAX_NAME, column_name, without_abbreviations
from lab.draft.joins import MIN_SHARED, is_called, joins_of, with_own_roles
from lab.draft.table import FULL_NAME, NAMES, CsvTable, is_plated
from lab.draft.vocabulary import singular, synonyms, words_of_names
from services.kg.load.errors import LoadError
from services.kg.load.files import check, header, records, suffix
from services.kg.load.values import NOTHING

# The most rows that are read; others are taken to be like them.
MAX_ROWS = 200_000
# In fewer rows each maker may stand once by chance, and yet Volvo names no vehicle.
MIN_TELLING = 20
# The most words of a name, on average.
MOST_WORDS = 5
# The year, the season or the version that a file's name ends in.
_EDITION = re.compile(r"_(?:(?:19|20)\d\d(?:_\d\d(?:\d\d)?)?|v\d+|export|final|copy)$")


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
        table.joins = joins_of(table, tables)
        if table.label is not None and table.join_of(table.label) is not None:
            # A participant names no race, even if nobody takes part in two.
            table.label = _called_by_key(table)
            if table.label is not None and table.join_of(table.label) is not None:
                table.label = None
        table.joins = with_own_roles(table, table.joins)
        table.columns = _with_own_keys(table)
    names = {column.key for table in tables.values() for column in table.columns}
    names |= {table.noun for table in tables.values()}
    for table in tables.values():
        # The members of a crew are the crew.
        group = [table.noun.removesuffix("_member")] if table.noun.endswith("_member") else []
        table.synonyms = [one for one in (*group, *synonyms(table.noun)) if one.replace(" ", "_") not in names]
    # Tables that others refer to come first, and those that only link others last.
    return sorted(tables.values(), key=lambda one: (not one.names_things, len(one.joins)))


def _with_own_keys(table: CsvTable) -> list[Column]:
    """The columns of a table, with the units in the keys that others have without: cargo and cargo_t, height_ft."""
    taken = {table.event, *(join.role for join in table.joins)}
    taken |= {one.name for one in table.columns if one.key == one.name and table.join_of(one) is None}
    columns: list[Column] = []
    for column in table.columns:
        if column.key != column.name and column.key in taken:
            column = replace(column, keeps_unit=True)
        taken.add(column.key)
        columns.append(column)
    return columns


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
        return sum(len(one.values) >= MIN_SHARED or is_called(one, table) for one in within)

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
    return named or any(one.name == key.name or (one.keyed and is_called(one, table)) for one in columns)


def _key(table: CsvTable, rows: Sequence[Sequence[str]], headers: Sequence[str]) -> tuple[str, ...]:
    """The column that tells rows apart, one with the name of a key before others; else two columns; else none."""
    unique = [column for column in table.filled if column.unique]
    called = [column for column in unique if column.keyed or column.name == table.name]
    # Dates, prices and counts tell rows apart by chance, unless they come first or number the rows.
    first = table.columns[0]
    plain = [
        one
        for one in unique
        if one.type == "text" or one.numbered or (one is first and one.type != "number" and not one.unit)
    ]
    if best := (called or plain):
        return (best[0].name,)
    # The time of day, which is not kept, may be all that tells two rows apart.
    for pair in combinations([one for one in table.filled if not one.timed][:4], 2):
        places = [headers.index(column.header) for column in pair]
        if len({tuple(row[place] for place in places) for row in rows}) == table.rows:
            return tuple(column.name for column in pair)
    return ()


def _label(table: CsvTable) -> Column | None:
    texts = [column for column in table.columns if column.type == "text" and not column.code]
    # Values that are mostly different: no shift Early, Late or Night, and no surface of a road.
    different = [one for one in texts if len(one.values) > 0.5 * table.rows]
    for name in NAMES:
        for column in different:
            if column.name in (name, f"{table.name}_{name}"):
                return column
    # A column called a name, a title or as the table.
    called = (one for one in different if one.name == table.name or one.name.split("_")[-1] in NAMES)
    # Things without a name have that of their key: order 1005, invoice 2024-17, coach C14, whatever its plate.
    key = _single_key(table)
    telling = next((one for one in texts if _tells_apart(one, table)), None)
    if key is not None and key.code and telling is not None:
        is_weak = table.rows < MIN_TELLING and not _of_words(telling)
        telling = None if is_plated(telling) or is_weak else telling
    return next(called, None) or telling or _called_by_key(table)


def _single_key(table: CsvTable) -> Column | None:
    return table.column(table.key[0]) if len(table.key) == 1 else None


def _called_by_key(table: CsvTable) -> Column | None:
    """The key, where it may be what a thing is called by: order 1005, invoice 2024-17."""
    key = _single_key(table)
    return key if key is not None and (key.type == "text" or key.numbered) else None


def _of_words(column: Column) -> bool:
    """Whether most of its values have several words, as titles have."""
    return 2 * sum(" " in value for value in column.values) > len(column.values)


def _tells_apart(column: Column, table: CsvTable) -> bool:
    """Whether each row has a short text of its own there."""
    words = sum(len(value.split()) for value in column.values)
    return column.unique and column.filled == table.rows and words <= MOST_WORDS * table.rows
