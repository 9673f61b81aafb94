"""Which calls of the CRAG mock API a program about films needs, as what one returns leads to others."""

from typing import Any, Final

from services.kg.live.fill import Live, objects, record
from services.kg.load.values import text
from services.kg.store.names import Surface
from services.kit.concurrency import all_of

# Years that the API has; outside of them its Oscars are an error.
OSCAR_YEARS: Final = range(1990, 2022)
MAX_FILMS = 150
_CREDITS = ("get_person", "get_movie_person_cast", "get_movie_person_crew")


async def fetch(live: Live) -> None:
    """Films and people by name, the nominations of the years, and the films of whoever is meant."""
    years = live.years(OSCAR_YEARS) if live.uses("get_movie_person_oscar", "get_year_movies") else []
    films, people, _ = await all_of(
        [
            live.call_each("movie/get_movie_info", "query", live.names("movie")),
            live.call_each("movie/get_person_info", "query", live.names("movie_person")),
            all_of(live.fetch("movie/get_year_info", query=str(year)) for year in years),
        ]
    )
    found = [one for result in people for one in objects(result)]
    await live.put([record("movie/get_movie_info", one) for result in films for one in objects(result)])
    await live.put([record("movie/get_person_info", one) for one in found])
    if live.uses(*_CREDITS):
        await _films_of(live, found)


async def _films_of(live: Live, people: list[dict[str, Any]]) -> None:
    """The films of whoever is meant, which people refer to by identifier."""
    wanted: list[int] = []
    surfaces = [
        Surface(str(one["id"]), str(one["name"]), float(len(one.get("acted_movies") or ())))
        for one in people
        if one.get("id") is not None and text(one.get("name"))
    ]
    for name in live.names("movie_person"):
        chosen = await live.choose("movie_person", name, surfaces)
        for one in people:
            if str(one.get("id")) in chosen:
                for key in ("directed_movies", "acted_movies"):
                    wanted += [film for film in one.get(key) or () if isinstance(film, int)]
    unique = list(dict.fromkeys(wanted))
    live.report.truncated |= len(unique) > MAX_FILMS
    films = await live.call_each("movie/get_movie_info_by_id", "query", unique[:MAX_FILMS])
    await live.put([record("movie/get_movie_info_by_id", one) for one in films if isinstance(one, dict)])
