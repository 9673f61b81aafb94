"""The names that entities are found by, with their popularity in 0..1, gathered from the tables after a load."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, Select, func, select, union_all

from services.kg.domains.finance.tables import company, company_fact
from services.kg.domains.movie.tables import movie, movie_cast, movie_crew, movie_person, oscar_nominee
from services.kg.domains.music.tables import artist, artist_work, billboard, grammy, grammy_artist, work
from services.kg.domains.open.tables import open_entity, open_fact
from services.kg.domains.sports.tables import team
from services.kg.load.team_names import names_of
from services.kg.store.names import Surface, company_names, create_index, refresh, replace_names
from services.kg.store.tables import stated_total

# What counts as the most popular of its kind; the logarithm of anything is set against its logarithm.
TOP_REVENUE = 3e9
TOP_CREDITS = 300
TOP_MARKET_CAP = 4e12
TOP_WORKS = 1_000
TOP_SONG = 40
TOP_SUMMARY = 20_000
# An entity's other names are less its own.
OTHER_NAME = 0.9
# A name without its bracket, "Ms." of "Ms. (magazine)", is first of all that of the page without one.
WITHOUT_BRACKET = 0.7


def scaled(value: float | None, top: float) -> float:
    """The logarithm of a count or an amount within 0..1."""
    return min(1.0, math.log1p(max(0.0, value or 0.0)) / math.log1p(top))


def _counts(connection: Connection, statement: Select[Any]) -> dict[str, float]:
    return {key: float(count or 0) for key, count in connection.execute(statement)}


def _movies(connection: Connection) -> Iterator[Surface]:
    cast = _counts(connection, select(movie_cast.c.movie_id, func.count()).group_by(movie_cast.c.movie_id))
    stated = _stated(connection, "movie.cast")
    rows = connection.execute(
        select(movie.c.movie_id, movie.c.title, movie.c.original_title, movie.c.revenue, movie.c.rating)
    )
    for identifier, title, original, revenue, rating in rows:
        people = max(cast.get(identifier, 0.0), stated.get(identifier, 0.0))
        weight = 0.7 * scaled(revenue, TOP_REVENUE) + 0.25 * scaled(people, TOP_CREDITS) + (0.05 if rating else 0.0)
        yield Surface(identifier, title, weight)
        if original and original != title:
            yield Surface(identifier, original, weight * OTHER_NAME)


def _movie_people(connection: Connection) -> Iterator[Surface]:
    parts = union_all(
        select(movie_cast.c.person_id.label("key")),
        select(movie_crew.c.person_id),
        select(oscar_nominee.c.person_id),
    ).subquery()
    credits = _counts(connection, select(parts.c.key, func.count()).group_by(parts.c.key))
    for relation in ("movie.acted", "movie.directed"):
        for key, total in _stated(connection, relation).items():
            credits[key] = max(credits.get(key, 0.0), total)
    for identifier, surface in connection.execute(select(movie_person.c.person_id, movie_person.c.name)):
        yield Surface(identifier, surface, scaled(credits.get(identifier), TOP_CREDITS))


def _companies(connection: Connection) -> Iterator[Surface]:
    cap = _counts(
        connection,
        select(company_fact.c.ticker, company_fact.c.number).where(company_fact.c.key == "marketCap"),
    )
    for ticker, full in connection.execute(select(company.c.ticker, company.c.name)):
        size = 0.4 + 0.6 * scaled(cap.get(ticker), TOP_MARKET_CAP)
        for surface, telling in company_names(full, ticker):
            yield Surface(ticker, surface, telling * size)


def _artists(connection: Connection) -> Iterator[Surface]:
    works = _counts(connection, select(artist_work.c.artist_id, func.count()).group_by(artist_work.c.artist_id))
    for key, total in _stated(connection, "music.works").items():
        works[key] = max(works.get(key, 0.0), total)
    awards = _counts(
        connection,
        select(grammy_artist.c.artist_id, func.count())
        .join(grammy, grammy.c.grammy_id == grammy_artist.c.grammy_id)
        .where(grammy.c.winner)
        .group_by(grammy_artist.c.artist_id),
    )
    for identifier, surface in connection.execute(select(artist.c.artist_id, artist.c.name)):
        made = scaled(works.get(identifier), TOP_WORKS)
        won = scaled(awards.get(identifier), 30)
        yield Surface(identifier, surface, 0.6 * made + 0.4 * won)


def _songs(connection: Connection) -> Iterator[Surface]:
    weeks = _counts(
        connection,
        select(billboard.c.work_id, func.count()).where(billboard.c.work_id.is_not(None)).group_by(billboard.c.work_id),
    )
    awards = _counts(
        connection,
        select(grammy.c.work_id, func.count()).where(grammy.c.work_id.is_not(None)).group_by(grammy.c.work_id),
    )
    popular = {surface.entity_id: surface.weight for surface in _artists(connection)}
    by = {
        key: max((popular.get(maker, 0.0) for maker in makers), default=0.0)
        for key, makers in _grouped(connection.execute(select(artist_work.c.work_id, artist_work.c.artist_id)))
    }
    rows = connection.execute(select(work.c.work_id, work.c.title))
    for identifier, title in rows:
        noted = scaled(weeks.get(identifier, 0.0) + 10 * awards.get(identifier, 0.0), TOP_SONG)
        yield Surface(identifier, title, 0.6 * noted + 0.4 * by.get(identifier, 0.0))


def _grouped(rows: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    yield from groups.items()


def _teams(sport: str) -> Callable[[Connection], Iterator[Surface]]:
    def surfaces(connection: Connection) -> Iterator[Surface]:
        for identifier, full in connection.execute(select(team.c.team_id, team.c.name).where(team.c.sport == sport)):
            yield Surface(identifier, full, 1.0)
            for other in names_of(sport, full):
                yield Surface(identifier, other, OTHER_NAME)

    return surfaces


def _open(connection: Connection) -> Iterator[Surface]:
    told = _counts(connection, select(open_fact.c.entity, func.count()).group_by(open_fact.c.entity))
    rows = connection.execute(select(open_entity.c.entity, func.length(open_entity.c.summary)))
    for entity, length in rows:
        weight = 0.5 * scaled(length, TOP_SUMMARY) + 0.5 * scaled(told.get(entity), 100)
        yield Surface(entity, entity, weight)
        short = entity.rpartition(" (")[0] if entity.endswith(")") else ""
        if short:
            yield Surface(entity, short, weight * WITHOUT_BRACKET)


def _stated(connection: Connection, relation: str) -> dict[str, float]:
    return _counts(
        connection,
        select(stated_total.c.entity_id, stated_total.c.total).where(stated_total.c.relation == relation),
    )


_OF_KIND: dict[str, Callable[[Connection], Iterator[Surface]]] = {
    "movie": _movies,
    "movie_person": _movie_people,
    "company": _companies,
    "artist": _artists,
    "song": _songs,
    "nba_team": _teams("nba"),
    "soccer_team": _teams("soccer"),
    "open": _open,
}
KINDS_OF_DOMAIN = {
    "movie": ("movie", "movie_person"),
    "finance": ("company",),
    "music": ("artist", "song"),
    "sports": ("nba_team", "soccer_team"),
    "open": ("open",),
}


def index_names(
    connection: Connection, domains: Iterable[str], progress: Callable[[str, int, int], None] | None = None
) -> None:
    """Store and index all names of those domains anew.

    Args:
        connection: an open transaction.
        progress: told the step, what is done and what there is in all.
    """
    create_index(connection)
    kinds = [kind for domain in sorted(set(domains)) for kind in KINDS_OF_DOMAIN[domain]]
    for kind in kinds:
        replace_names(connection, kind, _OF_KIND[kind](connection))
    refresh(connection, kinds, progress=progress)
