"""The words of keys in a draft's words.yaml, beside the keys' names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lab.draft.columns import Column, verb_of
from lab.draft.headers import identifier
from lab.draft.joins import child_of, sorts_behind
from lab.draft.table import PERSONS, CsvTable
from lab.draft.vocabulary import compounds, measures, phrases_of, plural, singular, words_of_names
from services.kg.generate.rules.inflection import inflections
from services.kg.generate.sql.refusals import CONTACTS

# The only one of these that a thing has is its size, if no other column is.
_DIMENSIONS = ("height", "length", "width", "diameter", "weight")
# Counts that are the size of a thing without another one.
_COUNTS_OF_SIZE = ("rooms", "seats", "capacity", "population")
_PAYMENT = "payment"


@dataclass(slots=True)
class KeyWords:
    """The entry of a key in words.yaml."""

    column: Column | None = None  # None for a join, a number of rows, and a column of a joined table
    words: list[str] = field(default_factory=list)  # that ask for it, beside its name
    also: list[str] = field(default_factory=list)  # that stand beside it and ask nothing
    open: str = ""  # why its values are words of questions
    only: bool = False  # whether its own name is no word for it
    more: list[str] = field(default_factory=list)  # adjectives of great values
    less: list[str] = field(default_factory=list)  # adjectives of small values
    unit: list[str] = field(default_factory=list)  # words for its units, in all tables


def words_of_keys(tables: Sequence[CsvTable]) -> dict[str, KeyWords]:
    """The words of each key; if several tables have it, those of the column that sorts its rows."""
    entries = _of_columns(tables)
    _add_ends(entries, tables)
    nouns = {table.name: table.noun for table in tables}
    for table in tables:
        for key, of_join in _of_joins(table, tables, nouns):
            entry = entries.setdefault(key, of_join)
            if entry.column is None and entry is not of_join:
                # The studio of a game is who made it, and what studios are called.
                entry.words = [*entry.words, *of_join.words]
                entry.also = list(dict.fromkeys((*entry.also, *of_join.also)))
    for key in _of_other_persons(tables):
        if entries[key].column is None:
            entries[key].words = []
    things = frozenset(nouns.values())
    names = {name.replace("_", " ") for name in (*entries, *(noun for table in tables for noun in table.nouns))}
    for entry in entries.values():
        ambiguous = names.intersection(entry.column.other_names) if entry.column is not None else ()
        words = (form for word in entry.words if word not in ambiguous for form in _without_nouns(word, things))
        entry.words = list(dict.fromkeys(words))
    return entries


def _of_other_persons(tables: Sequence[CsvTable]) -> Iterator[str]:
    """The keys by which rows of several persons have what one of them has: a pupil's phone is not the instructor's."""
    persons = {one.name for one in tables if one.of_persons}
    for table in tables:
        joins = [one for one in table.joins if one.table in persons]
        for join in joins:
            keys = sorts_behind(table, join, tables)
            if table.name in persons:
                yield from keys
            elif len(joins) > 1:
                yield from (key for key, column in keys.items() if not CONTACTS.isdisjoint(column.key.split("_")))


def _without_nouns(word: str, nouns: frozenset[str]) -> list[str]:
    """A word without its forms that are nouns of tables: `paint` without painting, which is what was painted."""
    forms = inflections(word)
    if nouns.isdisjoint(forms):
        return [word]
    forms_of_nouns = {form for noun in nouns.intersection(forms) for form in inflections(noun)}
    return [] if word in forms_of_nouns else [f"={one}" for one in forms if one not in forms_of_nouns]


def _of_columns(tables: Sequence[CsvTable]) -> dict[str, KeyWords]:
    entries: dict[str, KeyWords] = {}
    has_payments = any(table.noun == _PAYMENT for table in tables)
    for table in tables:
        for column in table.columns:
            if column is table.label and (idle := [*column.idle, *phrases_of(table.noun).get("also", [])]):
                entries.setdefault(column.key, KeyWords(also=list(dict.fromkeys(idle))))
            named = column is table.label or (table.names_things and column.name == table.id)
            if column.key == table.noun and named and column is not table.label:
                # Which incidents are meant, and not their numbers.
                words = [f"{table.noun} {one}" for one in ("number", "code", "id")]
                entries.setdefault(column.key, KeyWords(words=words, only=True))
            if named or table.join_of(column) is not None:
                continue
            units = [*(entries[column.key].unit if column.key in entries else ()), *column.unit_words]
            if column.key not in entries or column.sorts:
                words = _of_its_like(column.words) if _is_of_its_like(column, table) else column.words
                why = f"its values are words of questions: {column.examples}" if column.sorts else ""
                # The longest episode is not the number of one; but a grade is the value of a row of grades.
                own = column.key == table.noun and (table.names_things or column.counts)
                words = [f"{table.noun} number", f"number of {table.noun}"] if own else words
                more, less = _adjectives(column, table)
                idle = column.idle
                # What somebody paid is told by the payments.
                if table.noun == _PAYMENT and column.key == "amount":
                    words = [*words, "pay"]
                elif has_payments and table.noun != _PAYMENT and not table.of_persons:
                    words = [one for one in words if one != "pay"]
                if _is_joining(column, table):
                    # "When did she join the school", of a `start_date`.
                    joining = measures()["joined"]
                    words, idle = [*words, *joining["words"]], list(dict.fromkeys((*idle, *joining["also"])))
                entries[column.key] = KeyWords(column, words, idle, why, own, more, less)
            entries[column.key].unit = list(dict.fromkeys(units))
    return entries


def _adjectives(column: Column, table: CsvTable) -> tuple[list[str], ...]:
    """Adjectives of great and of small values; a flat with an area is not big by its rooms."""
    more, less = column.adjectives.get("more", []), column.adjectives.get("less", [])
    if column is _size(table):
        more, less = [*more, "large", "big"], [*less, "small"]
    if not column.made and any(one.made for one in table.columns):
        # The older of two clocks is the one that was made before the other, whenever they were acquired.
        more, less = [one for one in more if one != "new"], [one for one in less if one != "old"]
    if _is_joining(column, table):
        # Whoever has been there longest came first, whatever else is told in hours.
        less = list(dict.fromkeys((*less, "long")))
    elif any(_is_joining(one, table) for one in table.columns):
        more = [one for one in more if one != "long"]
    measured = {one.key for one in table.columns if one.numeric} & {"area", "size"} - {column.key}
    sizes = frozenset(("large", "big", "small")) if measured and column.key in _COUNTS_OF_SIZE else frozenset()
    return tuple([one for one in adjectives if one not in sizes] for adjectives in (more, less))


def _is_joining(column: Column, table: CsvTable) -> bool:
    """Whether it says since when people are there."""
    dated = table.of_persons and column.type == "date"
    return dated and not words_of_names("joining").isdisjoint(column.key.split("_"))


def _size(table: CsvTable) -> Column | None:
    """The only dimension of things without another size: the height of statues."""
    measures = [one for one in table.columns if one.numeric and one.measured.rpartition("_")[2] in _DIMENSIONS]
    sized = any({"large", "big"}.intersection(one.adjectives.get("more", [])) for one in table.columns)
    return measures[0] if len(measures) == 1 and not sized else None


def _add_ends(entries: Mapping[str, KeyWords], tables: Sequence[CsvTable]) -> None:
    """Add the last word of `cpu_cores` and the first of `tickets_sold`, if no other key ends or begins so.

    So with the winter of a flag `winter_service`, if no other key ends or begins with it.
    """
    roles = {join.role for table in tables for join in table.joins}
    lasts = Counter(key.rpartition("_")[2] for key in {*entries, *roles})
    firsts = Counter(key.partition("_")[0] for key in entries)
    excluded = {*(table.noun for table in tables), *words_of_names("vague"), *words_of_names("joints")}
    for key, entry in entries.items():
        front, _, last = key.rpartition("_")
        column = entry.column
        if front and (column is None or column.measured == key) and lasts[last] == 1 and last not in excluded:
            entry.words = list(dict.fromkeys((*entry.words, singular(last))))
        offered = column.offered if column else ""
        if offered and not any(_has_end(one, offered) for one in {*entries, *roles, *excluded} - {key}):
            entry.words.append(offered.replace("_", " "))
        alone = firsts[front] == 1 and front not in excluded
        if alone and column and column.numeric and (verb := verb_of(last)):
            entry.words.append(singular(front))
            entry.also = [*entry.also, verb]


def _has_end(key: str, end: str) -> bool:
    """Whether a key begins or ends with these words, in the singular or the plural."""
    words, ends = ([singular(one) for one in name.split("_")] for name in (key, end))
    return ends in (words[: len(ends)], words[-len(ends) :])


def _of_joins(table: CsvTable, tables: Sequence[CsvTable], nouns: Mapping[str, str]) -> Iterator[tuple[str, KeyWords]]:
    """The words of a table's joins, of the numbers of its rows, and of columns that sort what it joins.

    `nouns` is name of a table -> its noun.
    """
    behind = [sorts_behind(table, join, tables) for join in table.joins]
    keys = Counter(column.key for column in (*table.columns, *(one for some in behind for one in some.values())))
    joined = {one.name: one for one in tables}
    for join, sorts in zip(table.joins, behind, strict=True):
        phrases = phrases_of(join.role)
        deed = verb_of(join.role.removesuffix("_by")) if join.role.endswith("_by") else ""
        verbs, also = phrases.get("words", []) or list(filter(None, [deed])), phrases.get("also", [])
        verbs = [*verbs, *compounds(join.role)]
        if table.of_persons:
            also = list(dict.fromkeys((*also, "work")))
        if join.table == table.name:
            verbs = _of_its_like(verbs)
        if verbs or also:
            yield join.role, KeyWords(words=verbs, also=also)
        child = child_of(table, join)
        if join.role in (join.table, nouns[join.table]):
            # "Which pet had it", of visits of an animal.
            called = joined[join.table].nouns
            yield join.role, KeyWords(words=[one for one in called if one not in PERSONS])
            if idle := [*verbs, *phrases_of(child).get("also", [])]:
                for key in (f"{child}_count", identifier(plural(child))):
                    yield key, KeyWords(also=idle)
        for key, column in sorts.items():
            entry = KeyWords(open="its values are words of questions")
            # "In which city is it", of a thing without a city that belongs to a single one with it.
            if keys[column.key] == 1:
                entry.words, entry.also = [column.key.replace("_", " "), *column.words], column.idle
            yield key, entry


def _is_of_its_like(column: Column, table: CsvTable) -> bool:
    """Whether its values are people of its own table: managers in a table of employees."""
    label = table.label if table.of_persons else None
    return label is not None and label.type == "text" and not column.values.isdisjoint(label.values)


def _of_its_like(verbs: Iterable[str]) -> list[str]:
    """The words for one of a thing's like: "who manages Anna", since the verb alone may mean whom Anna manages."""
    return [f"(who|what) {one}" for one in verbs]
