"""The files of a drafted domain."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from sqlalchemy.dialects import sqlite

from lab.draft.columns import Column
from lab.draft.headers import MAX_NAME, identifier
from lab.draft.joins import child_of, sorts_behind
from lab.draft.speech import words_of_keys
from lab.draft.table import CsvTable, Join
from lab.draft.tables import read_tables
from lab.draft.vocabulary import plural, singular
from services.kg.definition.domain import NAME_TAKEN, STORE
from services.kg.domains import CATALOGUE

TEMPLATES = files("lab.draft") / "templates"
# Keys that a statement shows beside the name if a question names none.
SHOWN = 4
_QUOTE = sqlite.dialect().identifier_preparer.quote


class DraftError(ValueError):
    """No domain can be drafted; the message says why."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a function: a column of its view, and what the view selects for it."""

    name: str
    select: str
    type: str = "text"
    unit: str = ""
    label: str = ""
    kind: str = ""
    id: str = ""
    spell: str = ""
    alias: str = ""

    @property
    def described(self) -> str:
        """Its entry in domain.yaml, as a flow mapping."""
        fields = {name: getattr(self, name) for name in ("type", "unit", "label", "kind", "id", "spell")}
        if self.type == "text":
            del fields["type"]
        parts = [f"{name}: {scalar(value)}" for name, value in fields.items() if value]
        parts += [f"aliases: {_listed([self.alias])}"] if self.alias else []
        return f"{{{', '.join(parts)}}}"


@dataclass(frozen=True, slots=True)
class View:
    """A function over one table and the names of those that it joins."""

    table: CsvTable
    keys: tuple[Key, ...]
    parameters: tuple[tuple[str, str, str], ...]
    sql: tuple[str, ...]
    facets: tuple[tuple[str, str, str], ...]

    @property
    def subject(self) -> list[str]:
        if self.table.label is not None:
            return [self.table.label.key]
        if self.table.event:
            return [self.table.event]
        return [join.role for join in self.table.joins] or [self.keys[0].name]

    @property
    def pair(self) -> list[str]:
        """The roles of the two things that a table links."""
        return [] if self.table.names_things or self.table.event else [join.role for join in self.table.joins][:2]

    @property
    def order(self) -> list[str]:
        """By weight, the greatest first; else by name."""
        best = self.table.weight if self.table.names_things else None
        return [f"-{best[0].key}"] if best else self.subject

    @property
    def summary(self) -> str:
        words = ", ".join(_words(key) for key in self.keys)
        return f"{plural(self.table.noun)}: {words}"

    @property
    def lead(self) -> str:
        """The template of the words before a statement's rows."""
        return plural(self.table.noun) + "{% if names %} of {{ names | join(' and ') }}{% endif %}"

    @property
    def shown(self) -> list[str]:
        if self.table.names_things or self.table.event:
            return [key.name for key in self.keys if key.name not in self.subject][:SHOWN] or self.subject
        if not self.table.key:
            return [key.name for key in self.keys][:SHOWN]
        own = [one.key for one in self.table.columns if self.table.join_of(one) is None]
        return [*self.subject[-1:], *(own if self.table.joins else [])][:SHOWN]


def draft(name: str, paths: Sequence[Path], to: Path) -> list[Path]:
    """Write the folder of a domain that these CSV or TSV files with headers fill, and return its files.

    Raises:
        DraftError: the name is not valid or that of a bundled domain, or the folder exists.
        LoadError: a file cannot be read, or is no table.
        OSError: the folder cannot be written; nothing of it is left.
    """
    if not name or name != identifier(name):
        raise DraftError(f"{name!r} is no name of a domain: a letter, then letters, digits and _, at most {MAX_NAME}")
    if name in CATALOGUE.domains:
        raise DraftError(f"{name}: {NAME_TAKEN}")
    folder = to / name
    if folder.exists():
        raise DraftError(f"{folder} is there: remove it, or choose another name")
    tables = read_tables(paths, name, {*STORE, *CATALOGUE.tables, *CATALOGUE.kinds})
    first, *others = tables
    if not others and first.names_things and all(column.key != singular(name) for column in first.columns):
        first.domain_noun = singular(name)
    views = [_view(table, tables) for table in tables]
    texts = {
        "domain.yaml": _render("domain.yaml", name=name, tables=tables, views=views),
        "tables.yaml": _render("tables.yaml", tables=tables),
        "calendar.yaml": _render("calendar.yaml"),
        "words.yaml": _render("words.yaml", tables=tables, key_words=words_of_keys(tables)),
        **{f"sources/{table.name}.yaml": _render("source.yaml", name=name, table=table) for table in tables},
        "examples.jsonl": "".join(
            json.dumps({"query": query, "program": program}, ensure_ascii=False) + "\n"
            for query, program in _examples(views)
        ),
    }
    _write(folder, texts)
    return [folder / file for file in texts]


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write a folder with all its files, or nothing."""
    # A service takes no folder for a domain whose name begins with a dot.
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        for file, text in texts.items():
            path = unfinished / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        unfinished.rename(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def scalar(value: Any) -> str:
    """A value as YAML has it, in quotes only if YAML would read a bare one as something else."""
    text = str(value)
    plain = text.replace(" ", "").replace("_", "").replace("²", "").replace("/", "").replace("°", "")
    is_plain = plain.isalpha() or (text.isidentifier() and text.isascii())
    return text if is_plain and text.lower() not in _YAML_WORDS else json.dumps(value, ensure_ascii=False)


_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})


def _render(template: str, **values: Any) -> str:
    # The texts are YAML, whose values go through `scalar`.
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)  # noqa: S701
    environment.filters.update(scalar=scalar, plural=plural, names=_listed)
    text = (TEMPLATES / f"{template}.j2").read_text(encoding="utf-8")
    return environment.from_string(text).render(**values)


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(map(scalar, names))}]"


def _view(table: CsvTable, tables: Sequence[CsvTable]) -> View:
    keys: list[Key] = []
    behind: list[Key] = []
    roles = {join.role for join in table.joins}
    hidden = [f"t.{_QUOTE(table.id)} AS _{table.name}"] if table.names_things else []
    sources = [f"FROM {_QUOTE(table.name)} AS t"]
    # The label first, then the others in the file's order.
    for column in sorted(table.columns, key=lambda column: column is not table.label):
        join = table.join_of(column)
        if join is not None:
            alias = f"{join.role}_"
            on = f"{alias}.{_QUOTE(join.key)} = t.{_QUOTE(column.name)}"
            sources.append(f"LEFT JOIN {_QUOTE(join.table)} AS {alias} ON {on}")
            id_ = f"t.{_QUOTE(column.name)}" if join.key == join.id else f"{alias}.{_QUOTE(join.id)}"
            hidden.append(f"{id_} AS _{join.role}")
            keys.append(Key(join.role, f"{alias}.{_QUOTE(join.label)}", kind=join.table, id=f"_{join.role}"))
            behind += [
                Key(name, f"{alias}.{_QUOTE(column.name)}")
                for name, column in sorts_behind(table, join, tables).items()
            ]
        elif column.key in roles:
            # An order's customer, beside its customer_id.
            continue
        elif column is table.label or not (table.names_things and column.name == table.id and column.numeric):
            keys.append(_key(table, column))
    if table.event:
        keys.insert(0, _event_key(table))
    own = (table.name, table.noun)
    joins = [(other, join) for other in tables for join in other.joins if join.table == table.name]
    children = [(other, join) for other, join in joins if join.role in own]
    for other, join in children:
        count = _count(other, join)
        keys += [count] if count.name not in {key.name for key in keys} else []
    keys += [key for key in behind if key.name not in {one.name for one in keys}]
    keys = [replace(key, alias="") if key.alias in {one.name for one in keys} else key for key in keys]
    selects = [*hidden, *(f"{key.select} AS {_QUOTE(key.name)}" for key in keys)]
    names = {key.name for key in keys}
    facets: dict[str, tuple[str, str, str]] = {}
    for other, join in children:
        if (facet := identifier(plural(child_of(other, join)))) not in names:
            facets.setdefault(facet, (facet, other.name, _child_key(other, join)))
    sql = ["SELECT", *(f"  {one}," for one in selects[:-1]), f"  {selects[-1]}", *sources]
    return View(table, tuple(keys), tuple(_parameters(table)), tuple(sql), tuple(facets.values()))


def _event_key(table: CsvTable) -> Key:
    """The name of an event: who met, and when."""
    days = [f"t.{_QUOTE(column.name)}" for column in table.columns if column.type == "date"][:1]
    parts = " || ' - ' || ".join(f"{join.role}_.{_QUOTE(join.label)}" for join in table.joins)
    return Key(table.event, " || ', ' || ".join((parts, *days)))


def _count(table: CsvTable, join: Join) -> Key:
    """The number of a table's rows that join one of another: a country's airports."""
    child = child_of(table, join)
    where = f"o.{_QUOTE(join.column.name)} = t.{_QUOTE(join.key)}"
    # Names of the files, made of letters, digits and _.
    count = f"(SELECT count(*) FROM {_QUOTE(table.name)} AS o WHERE {where})"  # noqa: S608
    return Key(f"{child}_count", count, "integer", label=f"number of {plural(child)}")


def _key(table: CsvTable, column: Column) -> Key:
    named = column is table.label
    return Key(
        column.key,
        f"coalesce(t.{_QUOTE(column.name)}, 0)" if column.ticked else f"t.{_QUOTE(column.name)}",
        column.key_type,
        unit=column.unit,
        label=f"{column.key.replace('_', ' ')} time" if column.of_day and "time" not in column.key else "",
        kind=table.name if named else "",
        id=f"_{table.name}" if named else "",
        spell="age" if column.birth else "plain" if column.year else "",
        alias="" if named else _alias(column),
    )


def _alias(column: Column) -> str:
    """A shorter name of a key: currency of `currency_name`, hired of a date `hired_on`."""
    endings = ("_on", "_at", "_from", "_in") if column.type == "date" else ("_name",)
    short = next((column.key.removesuffix(one) for one in endings if column.key.endswith(one)), "")
    return short.replace("_", " ") if short not in ("first", "last") else ""


def _parameters(table: CsvTable) -> Iterable[tuple[str, str, str]]:
    """Name, kind and column of each parameter: the table's own names, then those of what it joins."""
    if table.names_things:
        yield table.name, table.name, f"_{table.name}"
    for join in table.joins:
        if join.role != table.name:
            yield join.role, join.table, f"_{join.role}"


def _child_key(table: CsvTable, join: Join) -> str:
    if table.label is not None:
        return table.label.key
    own = (column.key for column in table.columns if table.join_of(column) is None)
    return child_of(table, join) if len(table.joins) > 1 else next(own, join.role)


def _examples(views: Sequence[View]) -> Iterator[tuple[str, str]]:
    """Worked examples with names of the files, questions and programs, for the model that writes programs."""
    for view in views:
        table = view.table
        if table.label is None:
            continue
        name, function = table.sample[table.label.name], f"get_{table.name}"
        call = f"{function}({json.dumps(name, ensure_ascii=False)})"
        for key in [key for key in view.keys if key.name not in view.subject][:2]:
            yield f"What is the {_words(key)} of {name}?", f'{call}["{key.name}"]'
        yield from _examples_of_rows(view, f"{function}(None)", f'["{table.label.key}"]')
        for facet, _, _ in view.facets:
            words = facet.replace("_", " ")
            yield f"Which {words} does {name} have?", f'{call}["{facet}"]'
            yield f"How many {words} does {name} have?", f'LEN {call}["{facet}"]'


def _examples_of_rows(view: View, call: str, named: str) -> Iterator[tuple[str, str]]:
    """Programs over many rows: both ends of an order, values and numbers as conditions, counts and totals."""
    table, noun, nouns = view.table, view.table.noun.replace("_", " "), plural(view.table.noun)
    numbers = [key for key in view.keys if key.type in ("integer", "number", "money")]
    for key in [key for key in numbers if not key.spell and not key.kind][:1]:
        words, bound = _words(key), _middle(table, key.name)
        yield f"Which {noun} has the highest {words}?", f"{call} sort(None, -{key.name}){named}[:1]"
        yield f"Which {noun} has the lowest {words}?", f"{call} sort(None, {key.name}){named}[:1]"
        yield f"What is the total {words} of all {nouns}?", f'SUM {call}["{key.name}"]'
        if bound:
            over = f"where(gt({key.name}, {bound}))"
            yield f"Which {nouns} have a {words} of more than {bound}?", f"{call} {over}{named}"
    for key in [key for key in view.keys if key.type == "date"][:1]:
        yield f"Which {noun} has the earliest {_words(key)}?", f"{call} sort(None, {key.name}){named}[:1]"
        yield f"Which {nouns} have a {_words(key)} after 2015?", f"{call} where(gt({key.name}, 2015)){named}"
    sorting = [column for column in table.columns if column.sorts and table.join_of(column) is None]
    for column in [one for one in sorting if one is not table.label][:2]:
        value = min(column.values)
        rows = f"{call} where(eq({column.key}, {json.dumps(value, ensure_ascii=False)}))"
        words = column.key.replace("_", " ")
        yield f"Which {nouns} have the {words} {value}?", f"{rows}{named}"
        yield f"How many {nouns} have the {words} {value}?", f"LEN {rows}"


def _middle(table: CsvTable, key: str) -> str:
    """The median of a key's values; empty if it is no number of the table's columns."""
    values = next((one.values for one in table.columns if one.key == key and one.numeric), frozenset[str]())
    figures = sorted(float(one.replace(",", "")) for one in values)
    return f"{figures[len(figures) // 2]:g}" if figures else ""


def _words(key: Key) -> str:
    return key.label or key.name.replace("_", " ")
