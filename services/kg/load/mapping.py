"""The models of a mapping: which fields of a source's records become which columns of which tables.

docs/loading.md shows the forms of its YAML.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

Name = Annotated[str, Field(min_length=1, max_length=200)]
Scalar = str | int | float | bool | None
# That one value is made of.
MAX_FIELDS = 12


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[Name, ...], BeforeValidator(_listed), Field(min_length=1, max_length=MAX_FIELDS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class From(_Strict):
    """A field, or the first of several that is not null.

    as: transforms, in turn.
    else: the value in place of null.
    if: a value without which this one is null.
    """

    fields: Names = Field(alias="from")
    transforms: Annotated[tuple[Name, ...], BeforeValidator(_listed)] = Field((), alias="as")
    split: str | None = Field(None, min_length=1, max_length=5)  # makes a row of each part
    otherwise: Scalar = Field(None, alias="else")
    condition: "Value | None" = Field(None, alias="if")


class Constant(_Strict):
    """The same value for all records."""

    value: Scalar


class Slug(_Strict):
    """An identifier of the words of these fields, null where the first is."""

    slug: Names
    prefix: str = ""


class Text(_Strict):
    """A text with fields in it, "{year}/{name}"; null where one of them is."""

    text: str = Field(min_length=1, max_length=500)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{([^{}]+)\}", self.text))


class Occurrence(_Strict):
    """1 for the first record of a file with these values, 2 for the second that is alike; of no fields all are."""

    occurrence: Annotated[tuple[Name, ...], BeforeValidator(_listed), Field(max_length=MAX_FIELDS)]


class Entity(_Strict):
    """The identifier of an entity, by its name; `entity` makes one where there is none, `find` is null there."""

    entity: Name | None = None
    find: Name | None = None
    name: "Value"
    id: "Value | None" = None
    apart: "Value | None" = None
    near: "Value | None" = None
    of: "Value | None" = None
    fill: bool = False
    columns: dict[Name, "Value"] = {}

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.entity is None) == (self.find is None):
            raise ValueError("either `entity` or `find` names the kind")
        return self

    @property
    def kind(self) -> str:
        return self.entity or self.find or ""


# By the key that only it has.
_FORMS = {
    "value": "Constant",
    "slug": "Slug",
    "text": "Text",
    "occurrence": "Occurrence",
    "entity": "Entity",
    "find": "Entity",
}


def _form(value: Any) -> str:
    return next((form for key, form in _FORMS.items() if key in value), "From") if isinstance(value, dict) else "From"


def _short(value: Any) -> Any:
    return {"from": value} if isinstance(value, (str, list, tuple)) else value


Value = Annotated[
    Annotated[From, Tag("From")]
    | Annotated[Constant, Tag("Constant")]
    | Annotated[Slug, Tag("Slug")]
    | Annotated[Text, Tag("Text")]
    | Annotated[Occurrence, Tag("Occurrence")]
    | Annotated[Entity, Tag("Entity")],
    Discriminator(_form),
    BeforeValidator(_short),
]


class Part(_Strict):
    """What one table gets of a record, or what a function of the domain makes of it.

    if, unless: values that must not be null, or must be.
    """

    table: Name | None = None
    record: Name | None = None
    columns: dict[Name, Value] = Field(min_length=1, max_length=60)
    each: Value | None = None  # a list or an object of the record; a row for each element
    condition: Value | None = Field(None, alias="if")
    exception: Value | None = Field(None, alias="unless")
    absent: dict[Name, Names] = {}  # tables of which none may hold a row with the same values in these columns
    fill: bool = False  # the row adds what is unknown and replaces nothing
    as_of: Value | None = None  # the moment that the record is of, if the source's data end with the latest

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.table is None) == (self.record is None):
            raise ValueError("either `table` or `record` says where the columns go")
        if len(self.splits) > 1 or (self.splits and self.each):
            raise ValueError("only one column of a table can be split, and only where there is no `each`")
        return self

    @property
    def splits(self) -> list[str]:
        return [name for name, one in self.columns.items() if isinstance(one, From) and one.split]


class Rule(_Strict):
    """What becomes of the records that `when` fits: all its fields have the value, or one of those listed."""

    when: dict[Name, Scalar | tuple[Scalar, ...]] = {}
    order: int = 50
    let: dict[Name, Value] = {}
    rows: tuple[Part, ...] = ()


class Source(_Strict):
    """A mapping file."""

    domain: Name
    about: str = ""
    columns: tuple[Name, ...] = ()  # of the header of a CSV file that is such a source
    through: Name | None = None  # the function of the domain that sees the records of a file first
    order: int = 50
    tables: tuple[Part, ...] = Field((), max_length=20)
    rules: tuple[Rule, ...] = ()

    @model_validator(mode="after")
    def _tables_or_rules(self) -> Self:
        if bool(self.tables) == bool(self.rules):
            raise ValueError("either `tables` or `rules`")
        return self

    def all_rules(self) -> tuple[Rule, ...]:
        return self.rules or (Rule(order=self.order, rows=self.tables),)

    def header(self) -> frozenset[str]:
        """What the header of a CSV file has that is such a source."""
        return frozenset(self.columns) or self.fields()

    def fields(self) -> frozenset[str]:
        """The fields of records that the values name."""
        values = (value for rule in self.all_rules() for value in rule_values(rule))
        named = {field for value in values for field in fields_of(value)}
        return frozenset(field for field in named if field[0] not in "$.")


def rule_values(rule: Rule) -> Iterator[Value]:
    """All values of a rule, with those inside of others."""
    stack: list[Value | None] = list(rule.let.values())
    for part in rule.rows:
        stack += [*part.columns.values(), part.each, part.condition, part.exception, part.as_of]
    while stack:
        value = stack.pop()
        if value is None:
            continue
        yield value
        if isinstance(value, From):
            stack.append(value.condition)
        elif isinstance(value, Entity):
            stack += [value.name, value.id, value.apart, value.near, value.of, *value.columns.values()]


def fields_of(value: Value) -> tuple[str, ...]:
    """The fields and variables that a value itself names."""
    match value:
        case From() | Text():
            return value.fields
        case Slug():
            return value.slug
        case Occurrence():
            return value.occurrence
    return ()


From.model_rebuild()
Entity.model_rebuild()
