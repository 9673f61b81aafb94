"""The live backend: what one program needs of a running CRAG mock API, fetched into a private graph in memory.

The API finds names by words alone and puts the best match anywhere, so nothing is taken from it by place: what a search
returns is indexed, and our own index decides. Whatever could be meant stays in the private graph; the program is then
compiled against it as against any other, and resolves its names again.

    wanted = requests_for("movie", {"movie": ["Heat"]}, ["get_movie"])
    with private_graph() as engine:
        report = await fill(engine, client, wanted, query_time=now, budget=budget)
        executor = Executor(engine, NameIndex(engine, CATALOGUE), CATALOGUE)
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Engine, StaticPool, create_engine, select, update

from services.kg.domains import CATALOGUE
from services.kg.domains.finance.company_names import company_names
from services.kg.domains.finance.tables import price_daily, price_minute
from services.kg.domains.music import grammys
from services.kg.domains.music.tables import grammy, grammy_artist
from services.kg.entities import NameIndex
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.payloads import finance, movie, music, sports
from services.kg.load.payloads.awards import put_grammy
from services.kg.load.payloads.open import put_page
from services.kg.load.rows import drop_unplaced
from services.kg.load.surfaces import index_names
from services.kg.load.team_names import all_teams, names_of
from services.kg.load.values import text, whole
from services.kg.store.base import METADATA
from services.kg.store.names import Surface, create_index, refresh, replace_names
from services.kg.store.tables import source, stated_total
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure, ServiceRejected
from services.kit.telemetry import log

# Requests at a time; the mock API answers one after the other.
CONCURRENCY = 16
# For one request; searches scan the whole corpus.
CALL_CAP_S = 5.0
# Kept back for putting and indexing what came.
RESERVE_S = 0.4
MAX_REQUESTS = 400
MAX_NAMES = 8
# Entities of a name whose details are fetched.
MAX_CHOSEN = 3
MAX_FILMS = 150
MAX_WORKS = 120
MAX_YEARS = 12
MAX_GAMES = 20
# Years that the API has; outside of them its Oscars are an error.
OSCAR_YEARS: Final = range(1990, 2022)
GRAMMY_YEARS: Final = range(1957, 2020)
CHART_DAYS = 7

_TICKER = re.compile(r"[A-Za-z]{1,5}(?:[.^-][A-Za-z]{1,3})?")
_CREDITS = frozenset({"get_person", "get_movie_person_cast", "get_movie_person_crew"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a program mentions. Make one with `requests_for`."""

    domain: str
    names: Mapping[str, tuple[str, ...]]
    functions: frozenset[str]
    years: tuple[int, ...] = ()
    dates: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


@dataclass(slots=True)
class LiveReport:
    """What was fetched. `failed` names requests that got no answer, `skipped` counts payloads that made no sense."""

    requests: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0
    # The time ran out, or there was more than is fetched for one question.
    truncated: bool = False


def requests_for(
    domain: str,
    names: Mapping[str, Sequence[str]],
    functions: Iterable[str],
    *,
    years: Iterable[int] = (),
    dates: Iterable[str] = (),
    ranks: Iterable[int] = (),
) -> Wanted:
    """What to fetch for a program.

    Args:
        domain: movie, finance, music, sports or open.
        names: kind of entity -> names as the program spells them; "game" takes identifiers of NBA games.
        functions: of the catalogue, by their canonical names.
        years: that the program names as numbers.
        dates: days, months or years, ISO 8601, that its time arguments resolve to.
        ranks: of the Hot 100.
    """
    return Wanted(
        domain,
        {
            kind: tuple(dict.fromkeys(one.strip() for one in some if one.strip()))[:MAX_NAMES]
            for kind, some in names.items()
        },
        frozenset(functions),
        tuple(dict.fromkeys(years))[:MAX_YEARS],
        tuple(dict.fromkeys(dates))[:MAX_YEARS],
        tuple(dict.fromkeys(ranks))[:MAX_YEARS],
    )


@contextmanager
def private_graph() -> Iterator[Engine]:
    """An empty graph in memory, gone afterwards."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    try:
        METADATA.create_all(engine)
        yield engine
    finally:
        engine.dispose()


async def fill(
    engine: Engine, client: ServiceClient, wanted: Wanted, *, query_time: datetime, budget: Budget
) -> LiveReport:
    """Fetch what a program needs and put it into the graph, with its names indexed.

    Args:
        engine: of a private graph.
        client: of the mock API.
        query_time: of the question; decides which years of games are fetched.
        budget: what has not come when it nearly ends is left out.

    Raises:
        ServiceFailure: not one request got an answer.
    """
    fetcher = _Fetcher(client, budget)
    live = _Live(engine, fetcher, wanted, query_time)
    await _DOMAINS[wanted.domain](live)
    if fetcher.error and len(fetcher.report.failed) == fetcher.report.requests:
        raise fetcher.error
    await asyncio.to_thread(live.finish)
    return fetcher.report


class _Fetcher:
    """Asks the API, a few requests at a time, until the budget nearly ends."""

    def __init__(self, client: ServiceClient, budget: Budget) -> None:
        self.report = LiveReport()
        self.error: ServiceFailure | None = None
        self._client = client
        self._budget = budget
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def ask(self, path: str, **body: object) -> Any:
        """The result; null if there is none, or no answer came."""
        async with self._slots:
            allow = self._budget.allow(CALL_CAP_S, reserve_s=RESERVE_S)
            if allow <= 0 or self.report.requests >= MAX_REQUESTS:
                self.report.truncated = True
                return None
            self.report.requests += 1
            try:
                reply = await self._client.request("POST", path, json.dumps(body).encode(), allow_s=allow)
                return await asyncio.to_thread(_result, reply)
            except ServiceRejected as error:
                # A year that it does not have is an error of the server; so is an apostrophe in a team's name.
                log.debug("live", path=path, status=error.status)
                return None
            except ServiceFailure as error:
                self.error = error
                self.report.failed.append(path)
                return None

    async def ask_all(self, path: str, key: str, values: Iterable[object], **body: object) -> list[Any]:
        """Results of one request a value, in order."""
        return await all_of(self.ask(path, **{key: value}, **body) for value in values)


def _result(reply: bytes) -> Any:
    try:
        stated = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    return stated.get("result") if isinstance(stated, dict) else None


class _Live:
    """One filling. What is put runs in a thread, one at a time."""

    def __init__(self, engine: Engine, fetcher: _Fetcher, wanted: Wanted, query_time: datetime) -> None:
        self.engine = engine
        self.wanted = wanted
        self.now = query_time
        self.ask = fetcher.ask
        self.ask_all = fetcher.ask_all
        self.report = fetcher.report
        self.as_of: str | None = None
        # One connection, so one transaction at a time.
        self._writing = asyncio.Lock()

    def names(self, kind: str) -> tuple[str, ...]:
        return self.wanted.names.get(kind, ())

    def uses(self, *functions: str) -> bool:
        return not self.wanted.functions.isdisjoint(functions)

    async def put(self, steps: Iterable[Callable[[Graph], object]]) -> None:
        """Run steps against the tables; one that finds its payload senseless is left out."""
        async with self._writing:
            await asyncio.to_thread(self._put, list(steps))

    def _put(self, steps: list[Callable[[Graph], object]]) -> None:
        with self.engine.begin() as connection:
            graph = Graph(connection)
            for step in steps:
                try:
                    step(graph)
                except (BadRow, AttributeError, TypeError, KeyError) as error:
                    self.report.skipped += 1
                    log.debug("live", skipped=str(error)[:80])
            graph.flush()
            self.as_of = max(filter(None, (self.as_of, graph.as_of.get(self.wanted.domain))), default=None)

    async def choose(self, kind: str, name: str, surfaces: Iterable[Surface]) -> tuple[str, ...]:
        """The entities that a name means among these, best first; if that is open, the nearest."""
        return await asyncio.to_thread(_choose, kind, name, list(surfaces))

    def finish(self) -> None:
        with self.engine.begin() as connection:
            graph = Graph(connection)
            drop_unplaced(graph)
            graph.put(
                source, name="live", domain=self.wanted.domain, digest="", as_of=self.as_of, rows=self.report.requests,
                loaded_at=datetime.now(self.now.tzinfo).isoformat(timespec="seconds"), skipped=self.report.skipped,
            )  # fmt: skip
            graph.flush()
            index_names(connection, CATALOGUE, [self.wanted.domain])


def _choose(kind: str, name: str, surfaces: list[Surface]) -> tuple[str, ...]:
    if not surfaces:
        return ()
    with private_graph() as engine:
        with engine.begin() as connection:
            create_index(connection)
            replace_names(connection, kind, surfaces)
            refresh(connection, [kind])
        resolution = NameIndex(engine, CATALOGUE).resolve(name, [kind])
    found = resolution.entities or tuple(one.entity_id for one in resolution.candidates)
    return tuple(dict.fromkeys(found))[:MAX_CHOSEN]


def _texts(result: object) -> list[str]:
    return [one for one in result if isinstance(one, str)] if isinstance(result, list) else []


def _objects(result: object) -> list[dict[str, Any]]:
    return [one for one in result if isinstance(one, dict)] if isinstance(result, list) else []


def _surfaces(names: Iterable[str]) -> list[Surface]:
    """Names as entities of their own; the first of a search counts a little more."""
    unique = list(dict.fromkeys(names))
    return [Surface(one, one, 1.0 - place / (2 * len(unique))) for place, one in enumerate(unique)]


# -- movie -------------------------------------------------------------------------------------------------------------


async def _movie(live: _Live) -> None:
    films, people, years = await all_of(
        [
            live.ask_all("/movie/get_movie_info", "query", live.names("movie")),
            live.ask_all("/movie/get_person_info", "query", live.names("movie_person")),
            live.ask_all("/movie/get_year_info", "query", [str(year) for year in _oscar_years(live)]),
        ]
    )
    found = [one for result in people for one in _objects(result)]
    await live.put([_step(movie.put_movie, one) for result in films for one in _objects(result)])
    await live.put([_step(movie.put_person, one, credits=True) for one in found])
    await live.put([_step(movie.put_year, one) for one in years if isinstance(one, dict)])
    if live.uses(*_CREDITS):
        await _films_of(live, found)


def _oscar_years(live: _Live) -> list[int]:
    if not live.uses("get_movie_person_oscar", "get_year_movies"):
        return []
    stated = [*live.wanted.years, *(int(one[:4]) for one in live.wanted.dates if one[:4].isdecimal())]
    return [year for year in dict.fromkeys(stated) if year in OSCAR_YEARS]


async def _films_of(live: _Live, people: list[dict[str, Any]]) -> None:
    """The films of whoever is meant, which people refer to by identifier."""
    wanted: list[int] = []
    for name in live.names("movie_person"):
        surfaces = [
            Surface(str(one["id"]), str(one["name"]), float(len(one.get("acted_movies") or ())))
            for one in people
            if one.get("id") is not None and text(one.get("name"))
        ]
        chosen = await live.choose("movie_person", name, surfaces)
        for one in people:
            if str(one.get("id")) in chosen:
                for key in ("directed_movies", "acted_movies"):
                    wanted += [film for film in one.get(key) or () if isinstance(film, int)]
    unique = list(dict.fromkeys(wanted))
    live.report.truncated |= len(unique) > MAX_FILMS
    films = await live.ask_all("/movie/get_movie_info_by_id", "query", unique[:MAX_FILMS])
    await live.put([_step(movie.put_movie, one) for one in films if isinstance(one, dict)])


def _step(put: Callable[..., object], *arguments: Any, **named: Any) -> Callable[[Graph], object]:
    return lambda graph: put(graph, *arguments, **named)


# -- finance -----------------------------------------------------------------------------------------------------------


async def _finance(live: _Live) -> None:
    tickers = [
        ticker for some in await all_of(_tickers(live, name) for name in live.names("company")) for ticker in some
    ]
    await all_of(_company(live, ticker) for ticker in dict.fromkeys(tickers))


async def _tickers(live: _Live, name: str) -> list[str]:
    """Tickers of a name: itself, if a company has it, and those of companies that our index finds among the API's."""
    guess = name.upper() if _TICKER.fullmatch(name) else None
    found, info = await all_of(
        [
            live.ask("/finance/get_company_name", query=name),
            _maybe(guess, lambda: live.ask("/finance/get_info", query=guess)),
        ]
    )
    tickers: list[str] = []
    if guess and isinstance(info, dict) and info:
        tickers.append(guess)
        await live.put([_step(finance.put_info, guess, info)])
    names = _texts(found)
    surfaces = [Surface(full, surface, weight) for full in names for surface, weight in company_names(full, "")]
    chosen = await live.choose("company", name, surfaces)
    symbols = await live.ask_all("/finance/get_ticker_by_name", "query", chosen)
    for full, symbol in zip(chosen, symbols, strict=True):
        if text(symbol):
            tickers.append(str(symbol))
            await live.put([_step(finance.put_company, str(symbol), full)])
    return tickers


async def _maybe(condition: object, make: Callable[[], Awaitable[Any]]) -> Any:
    return await make() if condition else None


async def _company(live: _Live, ticker: str) -> None:
    asked: list[tuple[str, Callable[..., object]]] = [
        ("get_info", finance.put_info),
        ("get_market_capitalization", _put_fact("marketCap")),
    ]
    if live.uses("get_stock_price", "get_stock_latest"):
        asked += [
            ("get_price_history", finance.put_prices),
            ("get_detailed_price_history", finance.put_minutes),
        ]
    if live.uses("get_stock_pe_ratio"):
        asked.append(("get_pe_ratio", _put_fact("forwardPE")))
    if live.uses("get_stock_eps"):
        asked.append(("get_eps", _put_fact("forwardEps")))
    if live.uses("get_stock_dividend", "get_stock_info"):
        asked.append(("get_dividends_history", finance.put_dividends))
    results = await all_of(live.ask(f"/finance/{name}", query=ticker) for name, _ in asked)
    failed = set(live.report.failed)
    await live.put(
        [
            _step(put, ticker, result)
            for (name, put), result in zip(asked, results, strict=True)
            # No answer about dividends is not the answer that there are none.
            if result is not None or (name == "get_dividends_history" and f"/finance/{name}" not in failed)
        ]
    )
    await live.put([_step(_mark_partial, ticker)])


def _put_fact(key: str) -> Callable[[Graph, str, object], None]:
    return lambda graph, ticker, value: finance.put_fact(graph, ticker, key, value)


def _mark_partial(graph: Graph, ticker: str) -> None:
    """The last day was not over when the API's data were taken, if its minutes end that day."""
    graph.flush()
    last = graph.connection.scalar(
        select(price_daily.c.date).where(price_daily.c.ticker == ticker).order_by(price_daily.c.date.desc()).limit(1)
    )
    minute = graph.connection.scalar(
        select(price_minute.c.at).where(price_minute.c.ticker == ticker).order_by(price_minute.c.at.desc()).limit(1)
    )
    if last and minute and minute.startswith(last):
        graph.connection.execute(
            update(price_daily)
            .where(price_daily.c.ticker == ticker, price_daily.c.date == last)
            .values(is_partial=True)
        )


# -- music -------------------------------------------------------------------------------------------------------------


async def _music(live: _Live) -> None:
    await all_of(
        [
            *(_artist(live, name) for name in live.names("artist")),
            *(_song(live, name) for name in live.names("song")),
            *(_grammy_year(live, year) for year in _grammy_years(live)),
            *(_chart(live, rank) for rank in live.wanted.ranks if live.uses("get_billboard")),
        ]
    )


async def _found(live: _Live, kind: str, path: str, name: str) -> tuple[str, ...]:
    return await live.choose(kind, name, _surfaces(_texts(await live.ask(path, query=name))))


async def _artist(live: _Live, name: str) -> None:
    chosen = await _found(live, "artist", "/music/search_artist_entity_by_name", name)
    await all_of(_one_artist(live, one) for one in chosen)


async def _one_artist(live: _Live, name: str) -> None:
    place, born, members, span, works = await all_of(
        [
            live.ask("/music/get_artist_birth_place", query=name),
            live.ask("/music/get_artist_birth_date", query=name),
            _maybe(
                live.uses("get_person", "get_members", "get_bands"), lambda: live.ask("/music/get_members", query=name)
            ),
            live.ask("/music/get_lifespan", query=name),
            _maybe(
                live.uses("get_person", "get_artist_works"), lambda: live.ask("/music/get_artist_all_works", query=name)
            ),
        ]
    )
    begin, end = [*span, None, None][:2] if isinstance(span, list) else (None, None)
    stated = {"country": place, "birth_date": born or begin, "end_date": end, "members": _texts(members)}
    await live.put([_step(music.put_artist, name, stated)])
    if isinstance(works, list):
        titles = list(dict.fromkeys(_texts(works)))
        await live.put([_step(music.put_works, name, titles)])
        live.report.truncated |= len(titles) > MAX_WORKS
        if live.uses("get_person", "get_artist_works"):
            await all_of(_one_work(live, title, name) for title in titles[:MAX_WORKS])
    if live.uses("get_grammy_person"):
        count, years = await all_of(
            [
                live.ask("/music/grammy_get_award_count_by_artist", query=name),
                live.ask("/music/grammy_get_award_date_by_artist", query=name),
            ]
        )
        await live.put([_step(_put_awards, name, count, years)])


async def _one_work(live: _Live, title: str, by: str | None) -> None:
    """A work's date and country. Of works of one title the API knows only one; its author tells whether it is this."""
    author, country, released = await all_of(
        live.ask(f"/music/get_song_{key}", query=title) for key in ("author", "release_country", "release_date")
    )
    if by is not None and text(author) not in (None, by):
        return
    await live.put([_step(music.put_song, title, {"author": by or author, "country": country, "date": released})])


def _put_awards(graph: Graph, name: str, count: object, years: object) -> None:
    """How many Grammys, and in which years; for what, the API does not say."""
    identifier = graph.make_artist(name)
    total = whole(count, "count")
    if total is not None:
        graph.put(stated_total, relation="music.grammys", entity_id=identifier, total=total)
    for year in years if isinstance(years, list) else ():
        awarded = whole(year, "year")
        if awarded is None:
            continue
        key = f"{awarded}/not-stated/{identifier}"
        graph.put(
            grammy, grammy_id=key, year=awarded, edition=grammys.edition(awarded), category="not stated",
            category_key="not_stated", nominee=name, artist=name, winner=True,
        )  # fmt: skip
        graph.put(grammy_artist, grammy_id=key, artist_id=identifier)


async def _song(live: _Live, name: str) -> None:
    for title in await _found(live, "song", "/music/search_song_entity_by_name", name):
        await _one_work(live, title, None)
        if live.uses("get_grammy_song"):
            count = await live.ask("/music/grammy_get_award_count_by_song", query=title)
            await live.put([_step(_put_song_awards, title, count)])
        if live.uses("get_billboard_song"):
            await all_of(_charted(live, title, of_day) for of_day in _chart_days(live))


def _put_song_awards(graph: Graph, title: str, count: object) -> None:
    total = whole(count, "count")
    found = graph.work(title)
    if total is not None and found:
        graph.put(stated_total, relation="music.song_grammys", entity_id=found, total=total)


def _grammy_years(live: _Live) -> list[int]:
    if not live.uses("get_grammy_year"):
        return []
    stated = [*live.wanted.years, *(int(one[:4]) for one in live.wanted.dates if one[:4].isdecimal())]
    return [year for year in dict.fromkeys(stated) if year in GRAMMY_YEARS]


async def _grammy_year(live: _Live, year: int) -> None:
    asked = {"artist": "Best New Artist", "song": "Song Of The Year", "album": "Album Of The Year"}
    results = await all_of(live.ask(f"/music/grammy_get_best_{key}_by_year", query=year) for key in asked)
    steps = [
        _step(put_grammy, year=year, category=category, nominee=nominee, winner=True)
        for category, result in zip(asked.values(), results, strict=True)
        for nominee in _texts(result)
    ]
    await live.put(steps)
    # Who the best new artist is leads on to their birthplace, members and works.
    if live.uses("get_person", "get_artist_works", "get_members"):
        await all_of(_one_artist(live, name) for name in _texts(results[0]))


def _chart_days(live: _Live) -> list[str]:
    """A week of days for each date: charts are weekly, and only their own date finds one."""
    stated = [one for one in live.wanted.dates if len(one) == 10] or [live.now.date().isoformat()]
    days = [
        (date.fromisoformat(one) - timedelta(days=back)).isoformat() for one in stated[:3] for back in range(CHART_DAYS)
    ]
    return list(dict.fromkeys(days))


async def _chart(live: _Live, rank: int) -> None:
    days = _chart_days(live)
    results = await live.ask_all("/music/get_billboard_rank_date", "date", days, rank=rank)
    steps = []
    for of_day, result in zip(days, results, strict=True):
        if isinstance(result, list) and len(result) == 2 and all(_texts(one) for one in result):
            steps.append(_step(music.put_charted, of_day, rank, result[0][0], result[1][0]))
    await live.put(steps)


async def _charted(live: _Live, title: str, of_day: str) -> None:
    place = await live.ask("/music/get_billboard_attributes", date=of_day, attribute="rank", song_name=title)
    if text(place) is None:
        return
    keys = ("rank_last_week", "top_position", "weeks_in_chart")
    values = await all_of(
        live.ask("/music/get_billboard_attributes", date=of_day, attribute=key, song_name=title) for key in keys
    )
    by = await live.ask("/music/get_billboard_rank_date", rank=whole(place), date=of_day)
    performer = by[1][0] if isinstance(by, list) and len(by) == 2 and _texts(by[1]) else None
    if performer is None:
        performer = text(await live.ask("/music/get_song_author", query=title)) or "unknown"
    await live.put([_step(music.put_charted, of_day, place, title, performer, **dict(zip(keys, values, strict=True)))])


# -- sports ------------------------------------------------------------------------------------------------------------


async def _sports(live: _Live) -> None:
    await all_of(
        [
            *(_games(live, "soccer", name) for name in live.names("soccer_team")),
            *(_games(live, "nba", name) for name in live.names("nba_team")),
        ]
    )
    games = live.names("game")[:MAX_GAMES]
    if games and live.uses("get_nba_plays"):
        result = await live.ask("/sports/nba/get_play_by_play_data_by_game_ids", game_ids=list(games))
        await live.put([lambda graph: sports.put_plays(graph, (row for _, row in sports.columns(result)))])


def _windows(live: _Live) -> list[str]:
    """Months or years of games: of the dates that are asked for, else the year of the question and those beside it."""
    stated = [one[:7] for one in live.wanted.dates] + [str(year) for year in live.wanted.years]
    if stated and not live.uses("get_soccer_last_game", "get_soccer_next_game"):
        return list(dict.fromkeys(stated))[:MAX_YEARS]
    return [str(live.now.year + offset) for offset in (0, -1, 1)]


async def _games(live: _Live, sport: str, name: str) -> None:
    """Games of a team. The API has no search: our list of teams tells its spelling; other names go as they are."""
    known = [
        Surface(full, surface, 1.0 if surface == full else 0.9)
        for full in all_teams(sport)
        for surface in (full, *names_of(sport, full))
    ]
    chosen = await live.choose(f"{sport}_team", name, known)
    for team in dict.fromkeys((*chosen[:1], name)):
        results = await live.ask_all(f"/sports/{sport}/get_games_on_date", "date", _windows(live), team_name=team)
        put = _put_soccer if sport == "soccer" else _put_nba
        await live.put([_step(put, result) for result in results if result])
        if any(results):
            return


def _put_soccer(graph: Graph, result: object) -> None:
    for key, row in sports.columns(result):
        sports.put_soccer(graph, *sports.soccer_key(key), row)


def _put_nba(graph: Graph, result: object) -> None:
    for _, row in sports.columns(result):
        sports.put_nba(graph, row)


# -- open --------------------------------------------------------------------------------------------------------------


async def _open(live: _Live) -> None:
    await all_of(_page(live, name) for name in live.names("open"))


async def _page(live: _Live, name: str) -> None:
    chosen = await _found(live, "open", "/open/search_entity_by_name", name)
    pages = await live.ask_all("/open/get_entity", "query", chosen)
    await live.put(
        [_step(put_page, title, page) for title, page in zip(chosen, pages, strict=True) if isinstance(page, dict)]
    )


_DOMAINS: dict[str, Callable[[_Live], Awaitable[None]]] = {
    "movie": _movie,
    "finance": _finance,
    "music": _music,
    "sports": _sports,
    "open": _open,
}
