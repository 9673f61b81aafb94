"""Everything else: entities of an encyclopedia with a summary and the facts of their infobox."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import literal, select, union_all

from services.kg.domains.open.tables import open_entity, open_fact
from services.kg.language.catalogue import Domain, Function, Key, Parameter
from services.kg.outcome import Outcome

FACTS = union_all(
    select(
        open_entity.c.entity,
        literal("summary").label("key"),
        open_entity.c.summary.label("value"),
        literal(-1).label("ord"),
    ).where(open_entity.c.summary.is_not(None)),
    select(open_fact.c.entity, open_fact.c.key, open_fact.c.value, open_fact.c.ord),
).subquery("facts")

ENTITY = Function(
    "get_open",
    "open",
    "an entity's summary, or one of its facts by key: founder, death_date, elevation, owner, capital ...",
    (Parameter("name", column="_entity", entities=("open",), required=True),),
    select(
        FACTS.c.entity.label("_entity"), FACTS.c.entity, FACTS.c.key, FACTS.c.value, FACTS.c.ord.label("order")
    ).select_from(FACTS),
    (
        Key("entity", aliases=("name", "title"), entity="open", id_column="_entity"),
        Key("key"),
        Key("value"),
        Key("order", "integer"),
    ),
    subject=("entity", "key"),
    default=("key", "value"),
    order=("order",),
    dynamic=True,
    spellings={
        "founders": "founder",
        "founded_by": "founder",
        "birthday": "birth_date",
        "born": "birth_date",
        "died": "death_date",
        "death": "death_date",
        "height": "elevation",
        "altitude": "elevation",
        "opened": "opening_date",
        "launched": "launch_date",
        "ticker": "traded_as",
        "parent_company": "parent",
        "builder": "architect",
        "population": "population_total",
        "area": "area_total_km2",
        "floors": "floor_count",
        "number_of_floors": "floor_count",
        "employees": "num_employees",
        "children": "children",
        "wife": "spouse",
        "husband": "spouse",
    },
    aliases=("get_entity",),
)


def describe(function: str, row: Mapping[str, Any]) -> str:
    """A row's subject in words."""
    return str(row["entity"])


def lead(outcome: Outcome) -> str:
    """What a statement's rows are in words."""
    return "what is known of " + " and ".join(dict.fromkeys(entity.surface for entity in outcome.entities))


DOMAIN = Domain("open", "encyclopedia entries about anything else", (ENTITY,), describe, lead)
