"""Joins of tables: columns whose values are keys of another table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lab.draft.columns import MOST_SORTS, Column
from lab.draft.table import SHARED, CsvTable, Join
from lab.draft.vocabulary import usual_words, words_of_names

# Fewer values may be keys of another table by chance.
MIN_SHARED = 3
# Shorter beginnings of a noun may be other words.
MIN_BEGINNING = 4


def joins_of(table: CsvTable, tables: Mapping[str, CsvTable]) -> list[Join]:
    """The joins by columns with keys of other tables, or of this one beside its own key."""
    named = [one for one in tables.values() if one.names_things and len(one.key) == 1]
    joins: list[Join] = []
    for column in table.columns:
        others = named if table.key != (column.name,) else _extended(column, table, named)
        joined = _joined(column, table, others) if others else None
        if joined is not None and (label := joined[0].label) is not None:
            other, key = joined
            role = column.name.removesuffix(f"_{key}").removesuffix("_id").removesuffix("_code")
            # A dept_id is the key of departments.
            role = other.noun if column.name == key or _shortens(role, other.noun) else role
            joins.append(Join(column, other.name, other.key[0], key, label.name, role))
    counts = Counter(join.table for join in joins)
    nouns = {one.name: one.noun for one in named}
    return [_plain(one, nouns[one.table]) if counts[one.table] == 1 else one for one in joins]


def _extended(column: Column, table: CsvTable, named: Sequence[CsvTable]) -> list[CsvTable]:
    """The table that tells more of the rows that a table's key tells: the takings of a performance, by `perf`.

    Rows that have numbers of their own are no more of the same: each of a few loans may be somebody else's.
    """
    if any(one.unique and (one.code or one.numbered) for one in table.filled if one is not column):
        return []
    stem = column.name.removesuffix("_id").removesuffix("_no")
    return [
        one
        for one in named
        if one is not table
        and one.rows >= table.rows
        and (is_called(column, one) or _shortens(stem, one.noun))
        and not is_called(column, table)
        and _held(column, _key(one)) >= SHARED
    ][:1]


def with_own_roles(table: CsvTable, joins: Sequence[Join]) -> list[Join]:
    """The first join of each role: an order's customer_id and customer say the same, if both tell a customer.

    A join whose role is the name of a column that tells something else has its own column's name for it.
    """
    first: dict[str, Join] = {}
    for join in joins:
        first.setdefault(join.role, join)
    joined = {join.column.name for join in joins}
    others = {column.name for column in table.columns} - joined
    return [replace(join, role=join.column.name) if join.role in others else join for join in first.values()]


def _shortens(name: str, noun: str) -> bool:
    """Whether a column is called by the beginning of a noun: the instr of instructors, but no plan of plants."""
    return len(name) >= MIN_BEGINNING and noun.startswith(name) and name not in usual_words()


def _plain(join: Join, noun: str) -> Join:
    """The only join of a table with its noun as role: star of a `host_star`, but not country of a `birth_country`."""
    front, _, last = join.column.name.removesuffix("_id").rpartition("_")
    plain = last == noun and front == join.role and front not in words_of_names("telling")
    return replace(join, role=noun) if plain else join


def _joined(column: Column, table: CsvTable, named: Sequence[CsvTable]) -> tuple[CsvTable, str] | None:
    """The table whose rows a column tells, and the name of its column with the same values."""
    best = max(named, key=lambda one: (_shared(column, one, _key(one)), is_called(column, one)), default=None)
    if best is None or _shared(column, best, _key(best)) < SHARED:
        best = _by_role(column, table, named)
    return (best, best.key[0]) if best is not None else _by_another_key(column, named)


def _by_another_key(column: Column, named: Sequence[CsvTable]) -> tuple[CsvTable, str] | None:
    """As `_joined`, by another column than the key: numbers of members whom others have by name."""
    for table in named:
        for key in (one for one in table.filled if one.unique and one.name not in table.key and one is not column):
            is_telling = key is table.label or key.code or key.numbered
            if is_telling and _shared(column, table, key) >= SHARED:
                return table, key.name
    people = [one for one in named if one.of_persons]
    if len(people) == 1 and _is_number_of_person(column):
        keys = (one for one in people[0].filled if one.unique and one is not column)
        return next(((people[0], one.name) for one in keys if _held(column, one) >= SHARED), None)
    return None


def _is_number_of_person(column: Column) -> bool:
    """Whether a column has numbers of persons by its name: keeper_no, run_by."""
    role, _, last = column.name.rpartition("_")
    is_person = last in ("no", "nr", "num", "number") and role.rpartition("_")[2] in words_of_names("persons")
    return column.type == "integer" and (is_person or last == "by")


def _key(table: CsvTable) -> Column:
    """The key of a table that has one column for it."""
    return table.column(table.key[0])


def _shared(column: Column, table: CsvTable, key: Column) -> float:
    """The share of a column's values that are keys of a table; 0 for numbers, unless by the column's name."""
    # A piece_cat_no is the cat_no of another table; a mast_no of any table with a `no` is not.
    ends = "_" in key.name and column.name.endswith(f"_{key.name}")
    # The cust of an order is the cust_no of a customer.
    begins = key.numbered and column.name == key.name.rpartition("_")[0]
    begins |= column.type == "text" and _shortens(column.name, table.noun)
    named = column.name == key.name or is_called(column, table) or ends or begins
    if (column.type != "text" and not named) or (len(column.values) < MIN_SHARED and not named):
        return 0.0
    return _held(column, key)


def is_called(column: Column, table: CsvTable) -> bool:
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
    is_person = role in words_of_names("persons")
    if column.type != "integer":
        return None
    if not column.keyed and not (is_person and min(map(int, column.values)) > table.rows):
        return None
    fitting = [one for one in named if _held(column, _key(one)) >= SHARED]
    if role in words_of_names("sides") and len(others := [one for one in fitting if one is not table]) == 1:
        return others[0]
    people = [one for one in fitting if one.of_persons] if is_person else []
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
