"""The models of `domain.yaml`, `tables.yaml` and `identity.yaml`, field by field."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag, model_validator

from services.kg.definition.folder import Part
from services.kg.language.tree import Aggregate

KeyKind = Literal["text", "integer", "number", "money", "percent", "date", "flag"]
ParameterKind = Literal["entity", "time", "integer", "text"]

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# Of a column of a view: those with a leading underscore are no keys.
ColumnName = Annotated[str, Field(pattern=r"^_?[a-z][a-z0-9_]{0,39}$")]
# A value of a condition that a facet or a function always has.
Fixed: TypeAlias = StrictBool | StrictInt | StrictStr
# Key -> key, or a parameter with a condition, as `person job=director`.
Total = Annotated[str, Field(pattern=r"^[a-z0-9_]+( [a-z0-9_]+=.+)?$")]


class ColumnPart(Part):
    """A column of a table: its type and what holds of it."""

    type: Literal["text", "date", "integer", "bigint", "number", "flag"]
    required: bool = False
    default: Fixed | float | None = None
    unit: str = ""  # for people who read the file, as `about`
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"type": data} if isinstance(data, str) else data


class TablePart(Part):
    """A table with its primary key and its indexes."""

    columns: Annotated[dict[Name, ColumnPart], Field(min_length=1)]
    key: Annotated[tuple[Name, ...], Field(min_length=1)]
    indexes: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    about: str = ""


class Popularity(Part):
    """A part of an entity's popularity: the logarithm of a number within 0 and `top`, by `share`.

    The number is a column of the kind's table or the second column of a SELECT by identifier; `stated` totals count
    where they are larger. With `of` it is the popularity of the most popular entity of another kind that the SELECT
    names.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    top: Annotated[float, Field(gt=0)] | None = None
    column: Name | None = None
    value: str | None = None
    stated: tuple[str, ...] = ()
    of: Name | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "Popularity":
        if (self.column is None) == (self.value is None):
            raise ValueError("it needs either `column` or `value`")
        if (self.of is None) == (self.top is None):
            raise ValueError("it needs `top`, or `of` and no `top`")
        return self


class NameWords(Part):
    """Words of the names of a kind, and what its names may be."""

    light_words: frozenset[str] = frozenset()  # words that say little in such a name, beside articles and prepositions
    telling_words: frozenset[str] = frozenset()  # words that make a name another thing's
    trade_words: frozenset[str] = frozenset()  # words that half of the names have
    about_words: frozenset[str] = frozenset()  # words in brackets behind a name that say its kind: "(film)"
    numbers: bool = False  # whether digits alone may be such a name
    # Whether identifiers are codes that people write, of which one letter makes another, as stock tickers.
    codes: bool = False
    beside_codes: frozenset[str] = frozenset()  # words that may stand beside a code
    code_marks: frozenset[str] = frozenset()  # words that stand before a code in brackets


class Identity(Part):
    """How entities of a kind are identified."""

    apart: str | None = None  # the column, a date, that tells entities of one name apart
    of: bool = False  # identifiers are made of the owner's name and its own
    prefix: str = ""  # of new identifiers
    columns: dict[str, str | int | float | bool] = Field(default_factory=dict)  # of all entities in their table
    same: dict[str, str] = Field(default_factory=dict)  # slugs of other spellings -> the slug
    new: str | None = None  # the pattern of names that may become an entity and its identifier; else all may
    # An entity that was identified by its name becomes the one of that name that a source numbers.
    merge: bool = False


class KindPart(NameWords):
    """A kind of names: their table, their popularity, and words that are no such name."""

    table: Name
    id: Name
    name: Name
    also: dict[Name, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    where: str = ""
    base: Annotated[float, Field(ge=0, le=1)] = 0.0
    popularity: tuple[Popularity, ...] = ()
    aliases: str = ""
    without_brackets: Annotated[float, Field(ge=0, le=1)] = 0.0
    common: str = ""
    generic: str | tuple[str, ...] = ()
    python: str = ""


class Member(Part):
    """A row of a table, joined by `column of the table: column of the view`, has the value in this column."""

    member: Name
    on: Annotated[dict[Name, ColumnName], Field(min_length=1)]
    column: Name


class Words(Part):
    """People's words by patterns: a file, or pattern -> code; `contains` also matches texts with the words in them."""

    vocabulary: str | dict[re.Pattern[str], str]
    column: ColumnName | None = None
    contains: bool = False


def _comparison(value: Any) -> str:
    if not isinstance(value, dict):
        return "contains"
    return "member" if "member" in value else "words"


Compare = Annotated[
    Annotated[Literal["contains"], Tag("contains")] | Annotated[Member, Tag("member")] | Annotated[Words, Tag("words")],
    Discriminator(_comparison),
]


class KeyPart(Part):
    """A key: a column of the view with its meaning."""

    type: KeyKind = "text"
    aliases: tuple[str, ...] = ()
    label: str = ""
    unit: str = ""
    kind: Name | None = None
    id: ColumnName | None = None
    compare: Compare | None = None
    spell: Literal["plain", "country", "language", "age"] | dict[str, str] | None = None
    ages: bool = False

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, data: Any) -> Any:
        return {} if data is None else data


class ParameterPart(Part):
    """A parameter: its values and its filter."""

    type: ParameterKind = "entity"
    kinds: tuple[Name, ...] = ()
    column: ColumnName | None = None
    required: bool = False
    series: bool = False
    text_column: Name | None = None
    through: Member | None = None
    like: ColumnName | None = None
    squash: bool = False
    or_unknown: bool = False
    drop: str = ""

    @model_validator(mode="after")
    def _filters(self) -> "ParameterPart":
        if sum(one is not None for one in (self.column, self.through, self.like)) != 1:
            raise ValueError("it needs one of `column`, `through` and `like`")
        if (self.type == "entity") != bool(self.kinds):
            raise ValueError("an entity has `kinds`, and nothing else has")
        return self


class Facet(Part):
    """A key that stands for another function over the same entity: `get_person(x)["music"]`."""

    function: Name  # the other function
    show: tuple[Name, ...] = ()  # keys that are shown
    where: dict[Name, Fixed] = Field(default_factory=dict)  # conditions on that function, key -> value
    aggregate: Aggregate | None = None  # of the rows
    aliases: tuple[str, ...] = ()  # other spellings


class FunctionPart(Part):
    """A function over a view."""

    summary: Annotated[str, Field(min_length=1)]
    aliases: tuple[Name, ...] = ()
    parameters: dict[Name, ParameterPart]
    view: Annotated[str, Field(min_length=1)]
    keys: Annotated[dict[Name, KeyPart], Field(min_length=1)]
    subject: Annotated[tuple[Name, ...], Field(min_length=1)]
    default: Annotated[tuple[Name, ...], Field(min_length=1)]
    default_of: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    order: tuple[Annotated[str, Field(pattern=r"^-?_?[a-z][a-z0-9_]*$")], ...] = ()
    pair: tuple[Name, Name] | None = None
    totals: dict[Total, str] = Field(default_factory=dict)
    event: Name | None = None
    facets: dict[Name, Facet] = Field(default_factory=dict)
    presets: dict[Name, Fixed] = Field(default_factory=dict)
    span: tuple[Name, Name] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    dynamic: bool = False
    prose: str = ""
    percent: tuple[str, ...] = ()
    spellings: dict[str, str] = Field(default_factory=dict)
    apart: dict[Name, Name] = Field(default_factory=dict)
    narrates: bool = False
    conditioned: bool = False
    whole: bool = False
    hidden: bool = False
    python: str = ""
    row: str = ""
    rows: str = ""


class TextsPart(Part):
    """The wording of the domain, as templates."""

    row: str = ""
    rows: str = ""
    owner: str = ""
    owner_names: bool = False
    missing: str = ""
    totals: str = ""


class DomainFile(Part):
    """`domain.yaml`."""

    summary: Annotated[str, Field(min_length=1)]  # for people who read the file
    timed: bool = False
    warm_up: str = ""
    kinds: dict[Name, KindPart] = Field(default_factory=dict)
    views: dict[Name, str] = Field(default_factory=dict)
    functions: Annotated[dict[Name, FunctionPart], Field(min_length=1)]
    texts: TextsPart = TextsPart()
    # Parts of the file for anchors.
    shared: Any = None
