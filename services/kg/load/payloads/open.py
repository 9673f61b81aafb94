"""Encyclopedia entities."""

from collections.abc import Mapping
from typing import Any

from services.kg.domains.open.tables import open_entity, open_fact
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.values import text
from services.kg.wikitext import facts, plain_text


def put_entity(graph: Graph, entity: str, summary: str | None, infobox: Mapping[str, object]) -> None:
    """An entity under its page's title: its summary and the facts of its infobox, both without markup."""
    graph.put(open_entity, entity=entity, summary=plain_text(summary) if summary else None)
    for place, (key, value) in enumerate(facts(infobox)):
        graph.put(open_fact, entity=entity, key=key, value=value, ord=place)


def put_page(graph: Graph, entity: str, stated: Mapping[str, Any]) -> None:
    """An entity as the mock API has it; the article's own text is left out.

    Raises:
        BadRow: its infobox is no object.
    """
    infobox = stated.get("summary_structured") or {}
    if not isinstance(infobox, Mapping):
        raise BadRow("summary_structured", "is no JSON object")
    put_entity(graph, entity, text(stated.get("summary_text")), infobox)
