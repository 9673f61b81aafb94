"""Functions out of a domain's files; a part that names something unknown raises BrokenPart."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Table

from services.kg.definition import clauses
from services.kg.definition.folder import BrokenPart, Folder, Part, check_name
from services.kg.definition.schema import FunctionPart, KeyPart, Member, ParameterPart, Words
from services.kg.definition.views import Sources, read_query, select_of
from services.kg.definition.vocabulary import Vocabulary
from services.kg.language.catalogue import Compare, Function, Key, Parameter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes the functions of one domain."""

    folder: Folder  # the domain's
    sources: Sources  # of its views
    kinds: frozenset[str]  # its kinds of names
    hook: Callable[[str], Callable[..., Any]]  # name -> function of the folder's Python

    def function(self, name: str, part: FunctionPart) -> Function:
        """A function."""
        flags = [key for key, one in part.keys.items() if one.type == "flag"]
        try:
            view = select_of(read_query(part.view, self.sources), self.sources, flags)
        except BrokenPart as error:
            raise BrokenPart(str(error), "view", line=error.line + 1) from None
        columns = frozenset(column.name for column in view.selected_columns)
        parameters = tuple(self._parameter(one, parameter, columns) for one, parameter in part.parameters.items())
        keys = tuple(self._key(one, key, columns) for one, key in part.keys.items())
        _check(part, columns)
        values: dict[str, Any] = {"parameters": parameters, "view": view, "keys": keys, "event": part.event or ""}
        values |= {"refine": self.hook(part.python) if part.python else None}
        return build(Function, part, name=name, domain=self.folder.name, **values)

    def _key(self, name: str, part: KeyPart, columns: frozenset[str]) -> Key:
        place = ("keys", name)
        check_name(name, columns, "column of the view", *place)
        if part.kind is not None:
            check_name(part.kind, self.kinds, "kind", *place, "kind")
        if part.id is not None:
            check_name(part.id, columns, "column of the view", *place, "id")
        values: dict[str, Any] = {"kind": part.type, "entity": part.kind or "", "id_column": part.id or ""}
        values |= {"compare": self._compare(name, part, columns), "spell": part.spell or ""}
        return build(Key, part, name=name, **values)

    def _compare(self, name: str, part: KeyPart, columns: frozenset[str]) -> Compare | None:
        place = ("keys", name, "compare")
        match part.compare:
            case None:
                return None
            case Member() as member:
                clause = clauses.is_member(self._table(member, columns, *place), member.on, member.column)
            case Words() as words:
                column = words.column or name
                check_name(column, columns, "column of the view", *place, "column")
                if isinstance(words.vocabulary, str):
                    vocabulary, _ = self.folder.model(words.vocabulary, Vocabulary)
                else:
                    vocabulary = Vocabulary.model_validate({"words": words.vocabulary})
                clause = clauses.in_vocabulary(vocabulary, column, name, or_contains=words.contains)
            case _:
                clause = clauses.contains(name)
        return clauses.comparison(clause)

    def _table(self, member: Member, columns: frozenset[str], *place: str) -> Table:
        check_name(member.member, self.sources.tables, "table", *place, "member")
        table = self.sources.tables[member.member]
        for own in (member.column, *member.on):
            check_name(own, table.c.keys(), f"column of {table.name}", *place)
        for of_view in member.on.values():
            check_name(of_view, columns, "column of the view", *place, "on")
        return table

    def _parameter(self, name: str, part: ParameterPart, columns: frozenset[str]) -> Parameter:
        place = ("parameters", name)
        for kind in part.kinds:
            check_name(kind, self.kinds, "kind", *place, "kinds")
        for column in (part.column, part.text_column, part.like):
            if column is not None:
                check_name(column, columns, "column of the view", *place)
        clause = None
        if part.through is not None:
            table = self._table(part.through, columns, *place, "through")
            clause = clauses.among_members(table, part.through.on, part.through.column)
        elif part.like is not None:
            clause = clauses.like(part.like, squash=part.squash, or_unknown=part.or_unknown, drop=part.drop)
        values: dict[str, Any] = {"kind": part.type, "entities": part.kinds, "clause": clause}
        values |= {"column": part.column or "", "text_column": part.text_column or ""}
        return build(Parameter, part, name=name, **values)


def build(target: type[T], part: Part, /, **values: Any) -> T:
    """An object with these values, and with the fields of a part that it has by the same name."""
    same = {one.name: getattr(part, one.name) for one in fields(target) if one.name in type(part).model_fields}
    return target(**same | values)


def check_facets(functions: Mapping[str, Function], name: str) -> None:
    """Check that the facets of a function name functions and keys, and that those functions take what it is about."""
    about = next((one for one in functions[name].parameters[:1] if one.entities), None)
    for facet, one in functions[name].facets.items():
        place = ("facets", facet)
        check_name(one.function, functions, "function", *place, "function")
        taken = functions[one.function].parameters
        if about and not any(other.name == about.name or other.entities == about.entities for other in taken):
            raise BrokenPart(f"{one.function} takes no {about.name}, which {name} is about", *place, "function")
        keys = {key.name for key in functions[one.function].keys}
        for field, named in (("show", one.show), ("where", one.where)):
            for key in named:
                check_name(key, keys, f"key of {one.function}", *place, field)


def _check(part: FunctionPart, columns: frozenset[str]) -> None:
    """Check the fields that name keys or parameters of the same function."""
    keys, parameters = part.keys, part.parameters
    fields_of_names: list[tuple[str, Iterable[str], Any, str]] = [
        # The wording of a row may need a subject that is no key.
        ("subject", part.subject, {*keys, *columns}, "key"),
        *(("default", part.default, keys, "key"), ("presets", part.presets, keys, "key")),
        *(("event", filter(None, [part.event]), keys, "key"), ("apart", chain(*part.apart.items()), keys, "key")),
        ("default_of", chain(*part.default_of.values()), keys, "key"),
        ("order", (name.removeprefix("-") for name in part.order), columns, "column of the view"),
        *(("pair", part.pair or (), parameters, "parameter"), ("span", part.span or (), parameters, "parameter")),
        ("default_of", part.default_of, parameters, "parameter"),
        ("totals", (name.partition(" ")[0] for name in part.totals), parameters, "parameter"),
    ]
    for field, names, options, what in fields_of_names:
        for name in names:
            check_name(name, options, what, field)
