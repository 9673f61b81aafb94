"""The calls of the CRAG mock API for a program about music; the results of some lead to others."""

from datetime import date, timedelta
from typing import Final

from services.kg.live.fill import Live, record, texts
from services.kg.load.values import leniently, text, whole
from services.kit.concurrency import all_of

GRAMMY_YEARS: Final = range(1957, 2020)
CHART_DAYS = 7
MAX_WORKS = 120
_whole = leniently(whole)
_CHART_ATTRIBUTES = ("rank_last_week", "top_position", "weeks_in_chart")


async def fetch(live: Live) -> None:
    """Artists and songs by name, Grammys of the years, places of the chart."""
    years = live.years(GRAMMY_YEARS) if live.uses("get_grammy_year") else []
    await all_of(
        [
            *(_artists(live, name) for name in live.names("artist")),
            *(_songs(live, name) for name in live.names("song")),
            *(_grammys(live, year) for year in years),
            *(_chart(live, rank) for rank in live.lookup.ranks if live.uses("get_billboard")),
        ]
    )


async def _artists(live: Live, name: str) -> None:
    chosen = await live.search("artist", "music/search_artist_entity_by_name", name)
    await all_of(_artist(live, one) for one in chosen)


async def _artist(live: Live, name: str) -> None:
    is_person = live.uses("get_person", "get_artist_works")
    calls = ["get_artist_birth_place", "get_lifespan", "get_artist_birth_date"]
    calls += ["get_members"] if live.uses("get_person", "get_members", "get_bands") else []
    calls += ["get_artist_all_works"] if is_person else []
    results = await all_of(live.call(f"music/{call}", query=name) for call in calls)
    await live.put(
        record(f"music/{call}", result, query=name) for call, result in zip(calls, results, strict=True)
        if result is not None or call == "get_artist_birth_place"
    )  # fmt: skip
    if is_person and isinstance(results[-1], list):
        await all_of(_song(live, title, name) for title in list(dict.fromkeys(texts(results[-1])))[:MAX_WORKS])
    if live.uses("get_grammy_person"):
        await all_of(live.fetch(f"music/grammy_get_award_{key}_by_artist", query=name) for key in ("count", "date"))


async def _song(live: Live, title: str, by: str | None) -> None:
    """A work's date and country, unless the API's only work of that title is of another author."""
    author, country, released = await all_of(
        live.call(f"music/get_song_{key}", query=title) for key in ("author", "release_country", "release_date")
    )
    if by is not None and text(author) not in (None, by):
        return
    song = {"author": by or author, "country": country, "date": released}
    await live.put([record("music/get_song", song, query=title)])


async def _songs(live: Live, name: str) -> None:
    for title in await live.search("song", "music/search_song_entity_by_name", name):
        await _song(live, title, None)
        if live.uses("get_grammy_song"):
            await live.fetch("music/grammy_get_award_count_by_song", query=title)
        if live.uses("get_billboard_song"):
            await all_of(_charted(live, title, of_day) for of_day in _chart_days(live))


async def _grammys(live: Live, year: int) -> None:
    artists, *_ = await all_of(
        live.fetch(f"music/grammy_get_best_{key}_by_year", query=year) for key in ("artist", "song", "album")
    )
    # The best new artist leads on to their birthplace, members and works.
    if live.uses("get_person", "get_artist_works", "get_members"):
        await all_of(_artist(live, name) for name in texts(artists))


def _chart_days(live: Live) -> list[str]:
    """The week of days before each date: charts are weekly, and the API finds one by its own date alone."""
    dates = [one for one in live.lookup.dates if len(one) == 10] or [live.now.date().isoformat()]
    days = [date.fromisoformat(one) - timedelta(days=back) for one in dates[:3] for back in range(CHART_DAYS)]
    return list(dict.fromkeys(day.isoformat() for day in days))


async def _chart(live: Live, rank: int) -> None:
    await all_of(live.fetch("music/get_billboard_rank_date", rank=rank, date=of_day) for of_day in _chart_days(live))


async def _charted(live: Live, title: str, of_day: str) -> None:
    call = "music/get_billboard_attributes"
    rank = _whole(await live.call(call, date=of_day, attribute="rank", song_name=title))
    if rank is None:
        return
    values = await all_of(live.call(call, date=of_day, attribute=key, song_name=title) for key in _CHART_ATTRIBUTES)
    charted = await live.call("music/get_billboard_rank_date", rank=rank, date=of_day)
    performer = charted[1][0] if isinstance(charted, list) and len(charted) == 2 and texts(charted[1]) else None
    if performer is None:
        performer = text(await live.call("music/get_song_author", query=title)) or "unknown"
    place = record("music/get_billboard_rank_date", [[title], [performer]], rank=rank, date=of_day)
    await live.put([place | {"attributes": dict(zip(_CHART_ATTRIBUTES, values, strict=True))}])
