"""Artists, works and charts as the CRAG mock API and its files hold them."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.kg.domains.music.tables import artist, band_member, billboard
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.payloads.awards import performers
from services.kg.load.values import day, items, text, whole
from services.kg.store.tables import stated_total


def put_artist(graph: Graph, name: str, stated: Mapping[str, Any]) -> str:
    """An artist or band. Dates that cannot be read are unknown. The identifier."""
    identifier = graph.make_artist(name)
    graph.put(
        artist,
        artist_id=identifier,
        name=graph.spelling(artist, identifier, name),
        birth_place=text(stated.get("country")),
        begin_date=_day(stated.get("birth_date")),
        end_date=_day(stated.get("end_date")),
    )
    put_members(graph, name, stated.get("members"))
    return identifier


def put_members(graph: Graph, name: str, members: object) -> None:
    """Members of a band; of a person, the source lists the bands. In no order, so by name."""
    names = sorted({one for one in (text(member) for member in items(members, "members")) if one})
    if not names:
        return
    identifier = graph.make_artist(name)
    for place, member in enumerate(names):
        graph.put(band_member, band_id=identifier, member_name=member, member_id=graph.make_artist(member), ord=place)
    graph.put(stated_total, relation="music.members", entity_id=identifier, total=len(names))


def put_song(graph: Graph, title: str, stated: Mapping[str, Any]) -> str:
    """A song with its author. The identifier."""
    return graph.make_work(
        title, text(stated.get("author")), country=text(stated.get("country")), release_date=_day(stated.get("date"))
    )


def put_works(graph: Graph, name: str, titles: Iterable[object]) -> None:
    """All works of an artist, which the source lists by title."""
    stated = [title for title in (text(one) for one in titles) if title]
    for title in stated:
        graph.make_work(title, name)
    graph.put(stated_total, relation="music.works", entity_id=graph.make_artist(name), total=len(dict.fromkeys(stated)))


def put_charted(graph: Graph, date: str, rank: object, song: str, by: str, **attributes: object) -> None:
    """One place of the Hot 100; attributes are texts, "-" for a song that was not there the week before."""
    place = whole(rank, "rank")
    of_day = day(date)
    if place is None or of_day is None:
        raise BadRow("rank" if place is None else "date", "is missing")
    named = performers(by)
    places: dict[str, Any] = {key: _place(value, key) for key, value in attributes.items()}
    graph.put(
        billboard,
        date=of_day,
        rank=place,
        song=song,
        artist=by,
        work_id=graph.make_work(song, named[0] if named else by),
        **places,
    )
    graph.seen("music", of_day)


def _place(value: object, field: str) -> int | None:
    return None if str(value).strip() == "-" else whole(value, field)


def chart_attributes(row: list[Any]) -> dict[str, Any]:
    """Rank, last week's rank, best rank and weeks of a chart row; a new entry's "-" stands at the end, and shifts."""
    new = len(row) > 6 and row[6] == "-"
    last, top, weeks = (row[6], row[4], row[5]) if new else (row[4], row[5], row[6])
    return {"rank": row[3], "rank_last_week": last, "top_position": top, "weeks_in_chart": weeks}


def _day(value: object) -> str | None:
    try:
        return day(value)
    except BadRow:
        return None
