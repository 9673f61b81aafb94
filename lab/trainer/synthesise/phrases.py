"""A domain's phrasebook: its made-up world, and the patterns of questions about it, read from `phrases.yaml`."""

from functools import cache
from typing import Any, Literal

from pydantic import Field, model_validator

from lab.trainer.errors import BadDataset
from lab.trainer.synthesise.record import QuestionType
from services.kg.definition.folder import BrokenDomain, Folder, Part
from services.kg.language.catalogue import Catalogue

FILE = "phrases.yaml"
# A value by chance: a literal, a template with slots, or a mapping whose one key is named in `drawing.RECIPES`.
Recipe = Any


class Answer(Part):
    """How the answer follows from what executing the program returns; one field at most, the values shown by default.

    Args:
        more: of two statements, the name whose value is the larger.
        less: the name whose value is the smaller.
        than: whether the first of two values is the larger, or the smaller; yes or no.
        key: of several keys shown, the one that is asked for.
        has: yes if this value is among those shown, else no.
        holds: an operator and a value; yes if the first value shown compares so, else no.
        say: the values and what each of them is called.
        years: whole years between the dates of two statements.
        refuted: what executing returns where the question's premise is false: no rows, or other values than this one.
    """

    more: bool = False
    less: bool = False
    than: Literal["", "more", "less"] = ""
    key: str = ""
    has: str = ""
    holds: dict[Literal["lt", "gt", "eq"], str] = Field(default_factory=dict)
    say: dict[str, str] = Field(default_factory=dict)
    years: bool = False
    refuted: str = ""


class Variant(Part):
    """What one way of a pattern has for itself; the rest is its pattern's.

    Args:
        weight: how often, beside the others.
        slots: words for the question and the program; `key` is the variant's name unless it is here.
        nouns: noun phrases for what is asked for.
        whole: whole questions.
        draw: slot -> pool, or recipe.
        program: a program with slots; names are quoted in it.
    """

    weight: float = 1.0
    slots: dict[str, str] = Field(default_factory=dict)
    nouns: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    draw: dict[str, Recipe] = Field(default_factory=dict)
    program: str = ""
    answer: Answer | None = None
    type: QuestionType | None = None


class Pattern(Variant):
    """Questions of one kind.

    Args:
        moment: when they are asked: any time, on a weekday, or on the last day that the world knows.
        per: makes a variant of each fact, or of each fact by which two can be compared.
    """

    name: str
    moment: Literal["any", "weekday", "last day"] = "any"
    per: Literal["", "facts", "compared"] = ""
    variants: dict[str, Variant] = Field(default_factory=dict)


class Fact(Part):
    """One of the facts of things of a kind, kept as key and value.

    Args:
        value: a recipe.
        stored: the key in the table, where programs call it otherwise.
        more: words of a comparison that the larger value wins.
        less: words of one that the smaller wins.
    """

    value: Recipe
    nouns: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    stored: str = ""
    more: str = ""
    less: str = ""
    weight: float = 1.0


class Rows(Part):
    """Rows of one table of the made-up world.

    Args:
        table: of the graph; with a leading underscore, rows that only others refer to.
        each: slot -> source; rows are made for each combination.
        rows: how many for each combination, or between which bounds.
        share: of these rows so many are kept.
        draw: slot -> recipe, drawn for each row before its columns.
        columns: column -> recipe; one with a leading underscore is for other rows and pools only.
        distinct: columns that no two rows share.
    """

    table: str
    each: dict[str, Any] = Field(default_factory=dict)
    rows: int | tuple[int, int] = 1
    share: float = 1.0
    draw: dict[str, Recipe] = Field(default_factory=dict)
    columns: dict[str, Recipe]
    distinct: tuple[str, ...] = ()


class Phrasebook(Part):
    """See `docs/training.md`.

    Args:
        share: of all questions, beside the other domains'.
        names: kind of thing -> how such things are called, in words by chance.
        lists: values that rows and questions pick from.
        facts: kind of thing -> key -> fact.
        world: the rows, in an order in which what is referred to comes first.
        pools: things that questions are about, as SQL over the made-up world; `name` is what they are called.
        about: pool -> programs that show facts of one of its things.
        patterns: questions and programs.
        premises: questions whose premise executing the program refutes.
        beyond: questions that no program answers.
    """

    share: float = Field(10.0, gt=0)
    names: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    lists: dict[str, list[Any]] = Field(default_factory=dict)
    facts: dict[str, dict[str, Fact]] = Field(default_factory=dict)
    world: tuple[Rows, ...]
    pools: dict[str, str]
    about: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    patterns: tuple[Pattern, ...]
    premises: tuple[Pattern, ...] = ()
    beyond: tuple[Pattern, ...] = ()

    @model_validator(mode="after")
    def _knows_its_pools(self) -> "Phrasebook":
        for pattern in (*self.patterns, *self.premises, *self.beyond):
            for one in (pattern, *pattern.variants.values()):
                for slot, pool in one.draw.items():
                    if isinstance(pool, str) and pool not in self.pools:
                        raise ValueError(f"{pattern.name}: {slot} is drawn from {pool!r}, which is no pool")
        if unknown := set(self.about) - set(self.pools):
            raise ValueError(f"about: {', '.join(sorted(unknown))} is no pool")
        names = [pattern.name for pattern in (*self.patterns, *self.premises, *self.beyond)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"patterns: {', '.join(sorted(twice))} is there twice")
        return self


def load(catalogue: Catalogue) -> dict[str, Phrasebook]:
    """The phrasebooks of the domains, by name; a domain without one makes no questions.

    Raises:
        BadDataset: one is none; the message names file, line and key.
    """
    books: dict[str, Phrasebook] = {}
    for name, domain in catalogue.domains.items():
        try:
            if (book := _read(domain.folder)) is not None:
                books[name] = book
        except BrokenDomain as error:
            raise BadDataset(str(error)) from None
    return books


@cache
def _read(folder: Folder) -> Phrasebook | None:
    return folder.read(FILE, Phrasebook)
