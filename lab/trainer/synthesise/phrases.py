"""A domain's phrasebook: its made-up world, and the patterns of questions about it, read from `phrases.yaml`."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab.trainer.errors import BadDataset
from lab.trainer.synthesise.record import QuestionType

FILE = "phrases.yaml"
# Folders of a team's own domains, as the knowledge graph's service reads them.
OWN = "CRAGMESH_KG_DOMAINS"
# A value by chance: a literal, a template with slots, or a mapping whose one key is named in `drawing.RECIPES`.
Recipe = Any


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(_Strict):
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
    holds: dict[Literal["lt", "gt", "eq"], str] = {}
    say: dict[str, str] = {}
    years: bool = False
    refuted: str = ""


class Variant(_Strict):
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
    slots: dict[str, str] = {}
    nouns: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    draw: dict[str, Recipe] = {}
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
    variants: dict[str, Variant] = {}


class Fact(_Strict):
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


class Rows(_Strict):
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
    each: dict[str, Any] = {}
    rows: int | tuple[int, int] = 1
    share: float = 1.0
    draw: dict[str, Recipe] = {}
    columns: dict[str, Recipe]
    distinct: tuple[str, ...] = ()


class Phrasebook(_Strict):
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
    names: dict[str, tuple[str, ...]] = {}
    lists: dict[str, list[Any]] = {}
    facts: dict[str, dict[str, Fact]] = {}
    world: tuple[Rows, ...]
    pools: dict[str, str]
    about: dict[str, tuple[str, ...]] = {}
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


def read(path: Path) -> Phrasebook:
    """The phrasebook of a file.

    Raises:
        BadDataset: it cannot be read, or is none; the message names file and key.
    """
    try:
        return Phrasebook.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadDataset(f"{path}: {error}") from None
    except ValidationError as error:
        wrong = error.errors()[0]
        raise BadDataset(f"{path}: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None


def load(domains: Mapping[str, object]) -> dict[str, Phrasebook]:
    """The phrasebooks of these domains, by name; a domain without one makes no questions.

    Raises:
        BadDataset: see `read`.
    """
    return {name: _cached(path) for name in domains if (path := _path(name)) is not None}


@cache
def _cached(path: Path) -> Phrasebook:
    return read(path)


def _path(domain: str) -> Path | None:
    return next((path for path in _paths(domain) if path.is_file()), None)


def _paths(domain: str) -> Iterator[Path]:
    yield Path(str(files("services.kg.domains"))) / domain / FILE
    if own := os.environ.get(OWN):
        yield Path(own) / domain / FILE
