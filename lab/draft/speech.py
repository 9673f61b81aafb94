"""What a draft's words.yaml says of its keys: what people say for them, beside their names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lab.draft.columns import Column, identifier, verb_of
from lab.draft.tables import CsvTable, child_of, sorts_behind
from lab.draft.vocabulary import plural, singular, spoken, synonyms, words_of_names
from services.kg.generate.rules.inflection import inflections

# By the only one of these a thing is large where nothing else says how large it is.
_DIMENSIONS = ("height", "length", "width", "diameter", "weight")
# Numbers by which a thing is large only where its size is not told.
_COUNTS_OF_SIZE = ("rooms", "seats", "capacity", "population")


@dataclass(slots=True)
class Spoken:
    """What words.yaml says of a key."""

    column: Column | None = None  # whose key it is; None of a join, of a number of rows, and of what lies behind a join
    words: list[str] = field(default_factory=list)  # what asks for it beside its name
    also: list[str] = field(default_factory=list)  # what stands beside it and asks nothing
    open: str = ""  # why its values are words of questions
    only: bool = False  # whether its own name is no word for it
    more: list[str] = field(default_factory=list)  # adjectives of a great value
    less: list[str] = field(default_factory=list)  # and of a small one
    unit: list[str] = field(default_factory=list)  # behind its numbers, in whatever table


def speech(tables: Sequence[CsvTable]) -> dict[str, Spoken]:
    """By key, of the column that tells most where several tables have it; names speak for themselves."""
    found = _of_columns(tables)
    _add_heads(found, tables)
    nouns = {table.name: table.noun for table in tables}
    for table in tables:
        for key, one in _of_joins(table, tables, nouns):
            known = found.setdefault(key, one)
            if known.column is None and known is not one:
                # Who made a game is its studio, which is what studios are called by, too.
                known.words, known.also = [*known.words, *one.words], list(dict.fromkeys((*known.also, *one.also)))
    things = frozenset(nouns.values())
    taken = {key.replace("_", " ") for key in found} | {
        noun.replace("_", " ") for table in tables for noun in table.nouns
    }
    for one in found.values():
        meant = synonyms(one.column.measured) if one.column is not None else []
        one.words = [word for word in one.words if word not in meant or word not in taken]
        one.words = list(dict.fromkeys(said for word in one.words for said in _no_thing(word, things)))
    return found


def _no_thing(word: str, things: frozenset[str]) -> list[str]:
    """A word without the forms that things are called by: who paints made a painting, and that is no word for her."""
    forms = inflections(word)
    if things.isdisjoint(forms):
        return [word]
    called = {other for thing in things.intersection(forms) for other in inflections(thing)}
    return [] if word in called else [f"={one}" for one in forms if one not in called]


def _of_columns(tables: Sequence[CsvTable]) -> dict[str, Spoken]:
    found: dict[str, Spoken] = {}
    for table in tables:
        for column in table.columns:
            if column is table.label and (idle := [*column.idle, *spoken(table.noun).get("also", [])]):
                found.setdefault(column.key, Spoken(also=list(dict.fromkeys(idle))))
            named = column is table.label or (table.names_things and column.name == table.id)
            if named or table.join_of(column) is not None:
                continue
            units = [*(found[column.key].unit if column.key in found else ()), *column.unit_words]
            if column.key not in found or column.sorts:
                words = _of_its_like(column.words) if _is_of_its_like(column, table) else column.words
                why = f"its values are words of questions: {column.examples}" if column.sorts else ""
                # The longest episode is not the number of one; but a grade is what a row of grades says.
                own = column.key == table.noun and (table.names_things or column.counts)
                words = [f"{table.noun} number", f"number of {table.noun}"] if own else words
                more, less = _adjectives(column, table)
                found[column.key] = Spoken(column, words, column.idle, why, own, more, less)
            found[column.key].unit = list(dict.fromkeys(units))
    return found


def _adjectives(column: Column, table: CsvTable) -> tuple[list[str], ...]:
    """What is said of great and small values; a flat with an area is not big by its rooms."""
    said = dict(column.adjectives)
    if column is _size(table):
        said["more"], said["less"] = [*said.get("more", []), "large", "big"], [*said.get("less", []), "small"]
    measured = {one.key for one in table.columns if one.numeric} & {"area", "size"} - {column.key}
    sizes = frozenset(("large", "big", "small")) if measured and column.key in _COUNTS_OF_SIZE else frozenset()
    return tuple([one for one in said.get(way, []) if one not in sizes] for way in ("more", "less"))


def _size(table: CsvTable) -> Column | None:
    """The measure by which things are large of which nothing else says how large they are: the height of statues."""
    measures = [one for one in table.columns if one.numeric and one.measured.rpartition("_")[2] in _DIMENSIONS]
    sized = any({"large", "big"}.intersection(one.adjectives.get("more", [])) for one in table.columns)
    return measures[0] if len(measures) == 1 and not sized else None


def _add_heads(found: Mapping[str, Spoken], tables: Sequence[CsvTable]) -> None:
    """Add the last word of `cpu_cores`, if no other key ends so, and the first of `tickets_sold`, if none begins so."""
    roles = {join.role for table in tables for join in table.joins}
    heads = Counter(key.rpartition("_")[2] for key in {*found, *roles})
    fronts = Counter(key.partition("_")[0] for key in found)
    taken = {*(table.noun for table in tables), *words_of_names("vague"), *words_of_names("joints")}
    for key, one in found.items():
        front, _, head = key.rpartition("_")
        told = one.column is None or one.column.measured == key
        if front and told and heads[head] == 1 and head not in taken:
            one.words = list(dict.fromkeys((*one.words, singular(head))))
        if fronts[front] == 1 and front not in taken and one.column and one.column.numeric and (verb := verb_of(head)):
            one.words.append(singular(front))
            one.also = [*one.also, verb]


def _of_joins(table: CsvTable, tables: Sequence[CsvTable], nouns: Mapping[str, str]) -> Iterator[tuple[str, Spoken]]:
    """What is said of the things that a table joins, of the number of its rows, and of what sorts those things.

    Args:
        nouns: of each table by its name.
    """
    behind = [sorts_behind(table, join, tables) for join in table.joins]
    keys = Counter(column.key for column in (*table.columns, *(one for some in behind for one in some.values())))
    for join, sorts in zip(table.joins, behind, strict=True):
        said = spoken(join.role)
        verbs, also = said.get("words", []), said.get("also", [])
        if table.of_persons:
            also = list(dict.fromkeys((*also, "work")))
        if join.table == table.name:
            verbs = _of_its_like(verbs)
        if verbs or also:
            yield join.role, Spoken(words=verbs, also=also)
        child = child_of(table, join)
        if join.role in (join.table, nouns[join.table]) and (idle := [*verbs, *spoken(child).get("also", [])]):
            for key in (f"{child}_count", identifier(plural(child))):
                yield key, Spoken(also=idle)
        for key, column in sorts.items():
            # "In which city is it": of what has none, and belongs to one thing that has.
            alone = keys[column.key] == 1
            words = [column.key.replace("_", " "), *column.words] if alone else []
            yield key, Spoken(words=words, also=column.idle if alone else [], open="its values are words of questions")


def _is_of_its_like(column: Column, table: CsvTable) -> bool:
    """Whether people of a table stand there: managers in a table of employees."""
    label = table.label if table.of_persons else None
    return label is not None and label.type == "text" and not column.values.isdisjoint(label.values)


def _of_its_like(verbs: Iterable[str]) -> list[str]:
    """What asks for a thing's like: whom Anna manages is not who manages Anna, and one verb says both."""
    return [f"who {one}" for one in verbs]
