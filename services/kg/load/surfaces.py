"""The names by which entities are found, weighted by popularity in 0..1, gathered from the tables after a load."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from sqlalchemy import Connection, TextualSelect, select

from services.kg.definition.schema import Popularity
from services.kg.language.catalogue import Catalogue, Kind
from services.kg.store.names import Surface, create_index, normalise, refresh, replace_names
from services.kg.store.tables import stated_total

# An entity's other names are less its own.
OTHER_NAME = 0.9


def index_names(
    connection: Connection,
    catalogue: Catalogue,
    domains: Iterable[str],
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Store and index all names of those domains anew; `progress` is called with the step, its rows and the total."""
    create_index(connection)
    kinds = [kind for domain in sorted(set(domains)) for kind in catalogue.domains[domain].kinds.values()]
    for kind in kinds:
        replace_names(connection, kind.name, surfaces(connection, kind, catalogue.kinds))
    refresh(connection, [kind.name for kind in kinds], progress=progress)


def surfaces(connection: Connection, kind: Kind, kinds: Mapping[str, Kind]) -> Iterator[Surface]:
    """All names of a kind."""
    weigh = _weights(connection, kind, kinds)
    for identifier, name, *others in connection.execute(kind.entities):
        # A number may be a name: order 1005.
        main, weight = str(name), weigh(identifier)
        if kind.spellings is not None:
            for surface, share in kind.spellings(main, identifier):
                yield Surface(identifier, surface, share * weight)
            continue
        yield Surface(identifier, main, weight)
        for other, share in zip(others, kind.also, strict=True):
            if other and other != main:
                yield Surface(identifier, other, weight * share)
        for other in kind.aliases.get(normalise(main), ()) if kind.aliases else ():
            yield Surface(identifier, other, weight * OTHER_NAME)
        short = main.rpartition(" (")[0] if kind.without_brackets and main.endswith(")") else ""
        if short:
            yield Surface(identifier, short, weight * kind.without_brackets)


def _weights(connection: Connection, kind: Kind, kinds: Mapping[str, Kind]) -> Callable[[str], float]:
    """What tells the popularity of an entity by its identifier."""
    measures = [(part.share, _measured(connection, part, numbers, kinds)) for part, numbers in kind.popularity]

    def weigh(identifier: str) -> float:
        weight = kind.base
        for share, of in measures:
            weight += share * of.get(identifier, 0.0)
        return weight

    return weigh


def _measured(
    connection: Connection, part: Popularity, numbers_of: TextualSelect, kinds: Mapping[str, Kind]
) -> dict[str, float]:
    rows = connection.execute(numbers_of)
    if part.of:
        popular = cache(_weights(connection, kinds[part.of], kinds))
        best: dict[str, float] = {}
        for identifier, other in rows:
            best[identifier] = max(best.get(identifier, 0.0), popular(other))
        return best
    numbers = {identifier: float(number or 0) for identifier, number in rows}
    for relation in part.stated:
        totals = select(stated_total.c.entity_id, stated_total.c.total).where(stated_total.c.relation == relation)
        for identifier, total in connection.execute(totals):
            numbers[identifier] = max(numbers.get(identifier, 0.0), float(total or 0))
    # The logarithm within 0..1.
    top = math.log1p(part.top or 0.0)
    return {identifier: min(1.0, math.log1p(max(0.0, number)) / top) for identifier, number in numbers.items()}
