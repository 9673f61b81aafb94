"""Row files: JSON objects, one a line, each a fact or several about one entity.

    {"domain": "movie", "kind": "movie", "entity": "Heat", "attrs": {"release_date": "1995-12-15", ...}}

A kind is one function here and its name in `KINDS`. Rows of one entity may come apart, in any order and in different
case: they are merged. Entities that the attributes name (directors, members, opponents) are made on the way.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import exists, select, update

from services.kg.domains.finance.tables import company, dividend, price_daily, price_minute
from services.kg.domains.movie.tables import movie, movie_cast, movie_crew, movie_genre, movie_person
from services.kg.domains.music.tables import artist, artist_work, band_member, billboard
from services.kg.domains.sports.tables import nba_game, soccer_match, team_period
from services.kg.load.errors import BadRow
from services.kg.load.files import Line, lines
from services.kg.load.graph import UNPLACED, Graph
from services.kg.load.identity import slug
from services.kg.load.payloads.awards import performers, put_grammy, put_oscar
from services.kg.load.payloads.finance import put_fact
from services.kg.load.payloads.open import put_entity
from services.kg.load.payloads.sports import NBA_STATISTICS
from services.kg.load.team_names import is_nba
from services.kg.load.values import (
    beginning,
    day,
    following,
    items,
    moment,
    needed,
    number,
    positive,
    text,
    truth,
    whole,
)
from services.kg.store.tables import stated_total

_STATISTICS = {
    "Field Goal Made": "fgm", "Field Goal Attempt": "fga", "Field Goal Percentage": "fg_pct",
    "Free Throw Made": "ftm", "Free Throw Attempt": "fta", "Free Throw Percentage": "ft_pct",
    "Offensive Rebound": "oreb", "Defensive Rebound": "dreb", "Rebound": "reb", "Assist": "ast", "Steal": "stl",
    "Block": "blk", "Turnover": "tov", "Personal Foul": "pf",
}  # fmt: skip
_RESULTS = {"w": "W", "win": "W", "d": "D", "draw": "D", "l": "L", "lose": "L", "loss": "L"}

Attrs = Mapping[str, Any]
Put = Callable[["RowLoader", str, Attrs], None]


class RowLoader:
    """Loads row files into a graph.

    Args:
        graph: where rows go.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        # Games of a day whose parts come in several rows.
        self.games: dict[tuple[str, str], dict[str, Any]] = {}
        self.last_price: str | None = None
        self.last_minute: str | None = None
        self.priced: set[str] = set()

    def finish(self) -> None:
        """What only the whole of a source tells."""
        for (team_id, of_day), values in self.games.items():
            opponent = values.get("opponent")
            pair = sorted([team_id, slug(opponent)]) if opponent else [team_id]
            self.graph.put(nba_game, game_id=f"{of_day}/{'/'.join(pair)}", team_id=team_id, date=of_day, **values)
        self.games.clear()
        self.graph.flush()
        connection = self.graph.connection
        # A source that has minutes of its last day was taken while that day went on.
        if self.last_price and self.last_minute and self.last_minute.startswith(self.last_price):
            for ticker in sorted(self.priced):
                connection.execute(
                    update(price_daily)
                    .where(price_daily.c.ticker == ticker, price_daily.c.date == self.last_price)
                    .values(is_partial=True)
                )
        drop_unplaced(self.graph)

    def price_day(self, ticker: str, of_day: str) -> None:
        if self.last_price is None or of_day > self.last_price:
            self.last_price = of_day
            self.priced.clear()
        if of_day == self.last_price:
            self.priced.add(ticker)
        self.graph.seen("finance", of_day)


def drop_unplaced(graph: Graph) -> None:
    """Forget the unplaced credit of whoever has a place in the same cast."""
    graph.flush()
    placed = movie_cast.alias()
    graph.connection.execute(
        movie_cast.delete().where(
            movie_cast.c.ord == UNPLACED,
            exists().where(
                placed.c.movie_id == movie_cast.c.movie_id,
                placed.c.person_id == movie_cast.c.person_id,
                placed.c.ord != UNPLACED,
            ),
        )
    )


def parse(line: Line) -> tuple[str, str, str, Attrs]:
    """Domain, kind, entity and attributes of a row.

    Raises:
        BadRow: it is none.
    """
    try:
        row = json.loads(line.checked())
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRow):
            raise
        raise BadRow("", f"is no JSON: {str(error)[:80]}") from None
    if not isinstance(row, dict):
        raise BadRow("", "is no JSON object")
    domain, kind = needed(row, "domain"), needed(row, "kind")
    if (domain, kind) not in KINDS:
        raise BadRow("kind", f"no kind {kind[:40]!r} in domain {domain[:40]!r}")
    attrs = row.get("attrs", {})
    if not isinstance(attrs, dict):
        raise BadRow("attrs", "is no JSON object")
    return domain, kind, needed(row, "entity"), attrs


def load_rows(
    loader: RowLoader,
    path: Path,
    *,
    turn: int,
    domain: str | None,
    bad: Callable[[int, BadRow], None],
    done: Callable[[str, int], None],
) -> None:
    """One pass over a row file, taking the kinds whose turn it is.

    Args:
        domain: take only rows of this one.
        bad: told the line of a row that cannot be used, and why.
        done: told the domain of each row that was put, and the bytes read so far.
    """
    for line in lines(path):
        mine = turn == 0
        try:
            of_domain, kind, entity, attrs = parse(line)
            mine = KINDS[of_domain, kind][0] == turn and domain in (None, of_domain)
            if mine:
                KINDS[of_domain, kind][1](loader, entity, attrs)
                done(of_domain, line.end)
        except BadRow as error:
            if mine:
                bad(line.number, error)


# -- movie -------------------------------------------------------------------------------------------------------------


def _film(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """A film, whole or a few attributes of it; `id` keeps films of one title and day apart."""
    graph = loader.graph
    date = day(attrs.get("release_date"), "release_date")
    given = text(attrs.get("id"))
    weak = entity.islower()
    if given:
        identifier = given
        graph.put(movie, movie_id=identifier, title=entity, release_date=date)
        graph.know_film(identifier, entity, date)
    else:
        identifier = graph.make_film(entity, release_date=date, weak=weak)
    length = whole(attrs.get("length"), "length")
    graph.put(
        movie,
        movie_id=identifier,
        title=_title(graph, identifier, entity),
        original_title=text(attrs.get("original_title")),
        original_language=text(attrs.get("original_language")),
        budget=positive(attrs.get("budget"), "budget"),
        revenue=positive(attrs.get("revenue"), "revenue"),
        rating=number(attrs.get("rating"), "rating") or None,
        length=length or None,
    )
    for genre in items(attrs.get("genres"), "genres"):
        name = text(genre.get("name") if isinstance(genre, dict) else genre)
        if name:
            graph.put(movie_genre, movie_id=identifier, genre=name)
    _credits(loader, identifier, attrs)
    for attribute, relation in (("n_cast", "movie.cast"), ("n_crew", "movie.crew")):
        total = whole(attrs.get(attribute), attribute)
        if total is not None:
            graph.put(stated_total, relation=relation, entity_id=identifier, total=total)


def _title(graph: Graph, identifier: str, entity: str) -> str:
    """The spelling that is known, if this one is in lower case."""
    if not entity.islower():
        return entity
    return graph.titles.get(identifier, entity)


def _credits(loader: RowLoader, movie_id: str, attrs: Attrs) -> None:
    graph = loader.graph
    for attribute in ("cast", "top_cast"):
        for place, member in enumerate(items(attrs.get(attribute), attribute)):
            stated = member if isinstance(member, dict) else {"name": member}
            name = text(stated.get("name"))
            if name is None:
                continue
            order = whole(stated.get("order"), "order")
            graph.put(
                movie_cast,
                movie_id=movie_id,
                person_id=_person_id(graph, stated, name),
                ord=place if order is None else order,
                character=text(stated.get("character")),
                gender=whole(stated.get("gender"), "gender"),
            )
    jobs = [(job, attrs.get(attribute)) for attribute, job in (("directors", "Director"), ("producers", "Producer"))]
    for job, names in jobs:
        for member in items(names, job.lower()):
            name = text(member.get("name") if isinstance(member, dict) else member)
            if name:
                graph.put(movie_crew, movie_id=movie_id, person_id=graph.make_person(name), job=job)
    for member in items(attrs.get("crew"), "crew"):
        stated = member if isinstance(member, dict) else {"name": member}
        name = text(stated.get("name"))
        if name:
            job = text(stated.get("job")) or "Crew"
            graph.put(movie_crew, movie_id=movie_id, person_id=_person_id(graph, stated, name), job=job)


def _person_id(graph: Graph, stated: Attrs, name: str) -> str:
    given = text(stated.get("person_id"))
    if given is None:
        return graph.make_person(name)
    graph.put(movie_person, person_id=given, name=name)
    graph.know(movie_person, given, name)
    return given


def _person(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    graph = loader.graph
    identifier = _person_id(graph, {"person_id": attrs.get("id")}, entity)
    birthday = day(attrs.get("birthday"), "birthday")
    if birthday:
        graph.put(
            movie_person,
            person_id=identifier,
            name=graph.spelling(movie_person, identifier, entity),
            birthday=birthday,
        )
    for stated in items(attrs.get("movies"), "movies"):
        film = _film_of(graph, stated)
        graph.put(movie_cast, movie_id=film, person_id=identifier, ord=UNPLACED)
    for stated in items(attrs.get("oscars"), "oscars"):
        if not isinstance(stated, dict):
            raise BadRow("oscars", "is no list of objects")
        year = whole(stated.get("year"), "year")
        if year:
            put_oscar(
                graph,
                year=year,
                ceremony=whole(stated.get("ceremony"), "ceremony"),
                category=needed(stated, "category"),
                nominee=text(stated.get("name")) or entity,
                film=text(stated.get("film")),
                winner=str(stated.get("result", "")).startswith("w"),
            )


def _film_of(graph: Graph, stated: object) -> str:
    if not isinstance(stated, dict):
        raise BadRow("movies", "is no list of objects")
    return graph.make_film(needed(stated, "title"), release_date=day(stated.get("release_date"), "release_date"))


def _filmography(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """Films that someone had a part in, who knows which: as crew, unless a credit is known."""
    graph = loader.graph
    person = graph.make_person(entity)
    films = {_film_of(graph, stated) for stated in items(attrs.get("movies"), "movies")}
    graph.flush()
    for table in (movie_crew, movie_cast):
        known = select(table.c.movie_id).where(table.c.person_id == person, table.c.movie_id.in_(films))
        films -= set(graph.connection.scalars(known))
    for film in sorted(films):
        graph.put(movie_crew, movie_id=film, person_id=person, job="Crew")


def _filmography_year(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    graph = loader.graph
    year = whole(attrs.get("year"), "year")
    person = graph.make_person(entity)
    for stated in items(attrs.get("titles"), "titles"):
        title = text(stated)
        if not title or not year:
            continue
        film = graph.film(title, year=year) or graph.make_film(title, release_date=str(year))
        graph.put(movie_cast, movie_id=film, person_id=person, ord=UNPLACED)


def _oscar(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    year = whole(attrs.get("year_ceremony", attrs.get("year")), "year_ceremony")
    if year is None:
        raise BadRow("year_ceremony", "is missing")
    put_oscar(
        loader.graph,
        year=year,
        ceremony=whole(attrs.get("ceremony"), "ceremony"),
        category=needed(attrs, "category"),
        nominee=text(attrs.get("name")),
        film=text(attrs.get("film")),
        winner=truth(attrs.get("winner"), "winner"),
        film_year=whole(attrs.get("year_film"), "year_film"),
    )
    loader.graph.seen("movie", str(year))


def _movie_count(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """How many films someone acted in or directed, all told; "participated" counts a selection, which is no total."""
    count = whole(attrs.get("count"), "count")
    relation = {"acted": "movie.acted", "directed": "movie.directed", None: "movie.directed"}.get(attrs.get("role"))
    # Nobody who is asked about has made no film: a count of 0 tells that someone else was looked up.
    if count and relation:
        person = loader.graph.make_person(entity)
        loader.graph.put(stated_total, weak=True, relation=relation, entity_id=person, total=count)


def _oscar_count(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """How often a film or person was nominated; a number of wins or of one category is no total."""
    if attrs.get("role", "nominee") != "nominee" or text(attrs.get("category")):
        return
    count = whole(attrs.get("count"), "count")
    if count is not None:
        film = loader.graph.film(entity)
        identifier, relation = (
            (film, "movie.film_oscars") if film else (loader.graph.make_person(entity), "movie.oscars")
        )
        loader.graph.put(stated_total, relation=relation, entity_id=identifier, total=count)


# -- finance -----------------------------------------------------------------------------------------------------------

_CONDITION = re.compile(r"\s+(?:when|that)\s+.*", re.DOTALL)


def _ticker(loader: RowLoader, entity: str) -> str:
    name = _CONDITION.sub("", entity).strip()
    ticker = loader.graph.ticker(name)
    if ticker is None and re.fullmatch(r"[A-Z][A-Z.^-]{0,5}", name) and name not in _NO_TICKERS:
        ticker = name
        loader.graph.put(company, weak=True, ticker=ticker, name=ticker)
        loader.graph.know_company(ticker, ticker)
    if ticker is None:
        raise BadRow("entity", f"no company is named {name[:60]!r}")
    return ticker


# Words in capitals that are asked for as if they were companies.
_NO_TICKERS = frozenset({"NASDAQ", "SILVER", "JAPAN", "CRYPTO", "STOCK", "INDEX"})


def _company(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """A company with facts: those of `facts`, and market_cap, eps and pe_ratio under the names of the snapshots."""
    graph = loader.graph
    ticker = needed(attrs, "ticker").upper()
    graph.put(company, weak=entity.islower(), ticker=ticker, name=entity, currency=text(attrs.get("currency")))
    graph.know_company(ticker, entity)
    stated = attrs.get("facts", {})
    if not isinstance(stated, dict):
        raise BadRow("facts", "is no JSON object")
    for attribute, key in (("market_cap", "marketCap"), ("eps", "forwardEps"), ("pe_ratio", "forwardPE")):
        if attribute in attrs:
            stated = {**stated, key: attrs[attribute]}
    for key, value in stated.items():
        put_fact(graph, ticker, key, value)
    graph.seen("finance", day(attrs.get("as_of"), "as_of"))


def _fact(key: str) -> Put:
    def put(loader: RowLoader, entity: str, attrs: Attrs) -> None:
        put_fact(loader.graph, _ticker(loader, entity), key, attrs.get("value"))

    return put


def _price(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    ticker = _ticker(loader, entity)
    date = day(attrs.get("date"))
    if date is None or len(date) != 10:
        raise BadRow("date", "is no day")
    bar: dict[str, Any] = {key: number(attrs.get(key), key) for key in ("open", "high", "low", "close")}
    loader.graph.put(
        price_daily,
        ticker=ticker,
        date=date,
        **bar,
        volume=whole(attrs.get("volume"), "volume"),
        is_partial=True if attrs.get("partial") else None,
    )
    loader.price_day(ticker, date)


def _minute(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """A minute's bar, or the one price of a minute that a source states."""
    ticker = _ticker(loader, entity)
    at = moment(attrs.get("at"))
    value = number(attrs.get("value"))
    loader.graph.put(
        price_minute,
        ticker=ticker,
        at=at,
        open=number(attrs.get("open", value), "open"),
        high=number(attrs.get("high"), "high"),
        low=number(attrs.get("low"), "low"),
        close=number(attrs.get("close", value), "close"),
        volume=whole(attrs.get("volume"), "volume"),
    )
    loader.last_minute = max(at, loader.last_minute or "")
    loader.graph.seen("finance", at)


def _dividend(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    date, amount = day(attrs.get("date")), number(attrs.get("amount", attrs.get("value")), "amount")
    if date is None or amount is None:
        raise BadRow("date" if date is None else "amount", "is missing")
    loader.graph.put(dividend, ticker=_ticker(loader, entity), date=date, value=amount)


def _no_dividend(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """None ever, unless it is said of a stretch of time."""
    ticker = _ticker(loader, entity)
    if text(attrs.get("start")) is None and text(attrs.get("end")) is None:
        loader.graph.put(stated_total, weak=True, relation="finance.dividends", entity_id=ticker, total=0)


# -- music -------------------------------------------------------------------------------------------------------------


def _artist_id(graph: Graph, attrs: Attrs, name: str) -> str:
    given = text(attrs.get("id"))
    if given is None:
        return graph.make_artist(name)
    graph.put(artist, artist_id=given, name=name)
    graph.know(artist, given, name)
    return given


def _artist(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    graph = loader.graph
    band = attrs.get("is_band")
    identifier = _artist_id(graph, attrs, entity)
    graph.put(
        artist,
        artist_id=identifier,
        name=graph.spelling(artist, identifier, entity),
        birth_place=text(attrs.get("birth_place")),
        begin_date=day(attrs.get("begin"), "begin"),
        end_date=day(attrs.get("end"), "end"),
        is_band=None if band is None else truth(band, "is_band"),
    )
    if attrs.get("members"):
        _members(loader, entity, attrs)


def _members(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """Members of a band; of a person, sources list the bands."""
    graph = loader.graph
    identifier = _artist_id(graph, attrs, entity)
    for place, stated in enumerate(items(attrs.get("members"), "members")):
        member = stated if isinstance(stated, dict) else {"name": stated}
        name = text(member.get("name"))
        if name is None:
            continue
        graph.put(
            band_member,
            band_id=identifier,
            member_name=name,
            member_id=_artist_id(graph, member, name),
            ord=place,
        )
        begin, end = day(member.get("begin"), "begin"), day(member.get("end"), "end")
        if begin or end:
            member_id = _artist_id(graph, member, name)
            graph.put(artist, weak=True, artist_id=member_id, name=name, begin_date=begin, end_date=end)
    total = whole(attrs.get("n_members"), "n_members")
    if total is not None:
        graph.put(stated_total, relation="music.members", entity_id=identifier, total=total)


def _work(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    graph = loader.graph
    name = text(attrs.get("artist"))
    identifier = graph.make_work(
        entity,
        name,
        artist_id=text(attrs.get("artist_id")),
        kind=text(attrs.get("work_kind")),
        country=text(attrs.get("country")),
        release_date=day(attrs.get("release_date"), "release_date"),
    )
    for other in items(attrs.get("with"), "with"):
        if text(other):
            graph.put(artist_work, artist_id=graph.make_artist(str(other)), work_id=identifier)


def _song(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    loader.graph.make_work(
        entity,
        needed(attrs, "author"),
        country=text(attrs.get("country")),
        release_date=day(attrs.get("release_date"), "release_date"),
    )


def _stated(relation: str, suffix: str = "") -> Put:
    def put(loader: RowLoader, entity: str, attrs: Attrs) -> None:
        count = whole(attrs.get("count"), "count")
        if count is not None:
            identifier = loader.graph.make_artist(entity.removesuffix(suffix).strip())
            loader.graph.put(stated_total, relation=relation, entity_id=identifier, total=count)

    return put


def _song_grammys(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """How many Grammys a song won, by its title alone."""
    count = whole(attrs.get("count"), "count")
    if count is not None:
        work = loader.graph.work(entity) or loader.graph.make_work(entity, None)
        loader.graph.put(stated_total, relation="music.song_grammys", entity_id=work, total=count)


def _grammy(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    year = _year(attrs)
    put_grammy(
        loader.graph,
        year=year,
        category=needed(attrs, "category"),
        nominee=entity,
        winner=truth(attrs.get("winner", True), "winner"),
        artist=text(attrs.get("artist")),
        workers_text=text(attrs.get("workers")),
    )
    loader.graph.seen("music", str(year))


def _year(attrs: Attrs) -> int:
    year = whole(attrs.get("year"), "year")
    if year is None or not 1900 <= year <= 2200:
        raise BadRow("year", "is no year")
    return year


def _grammy_best(category: str) -> Put:
    def put(loader: RowLoader, entity: str, attrs: Attrs) -> None:
        put_grammy(loader.graph, year=_year(attrs), category=category, nominee=entity, winner=True)

    return put


_BEST = {"best grammy song": "Song Of The Year", "best grammy album": "Album Of The Year"}
# The performer that such a text adds was looked up by the title alone, and is often somebody else.
_PERFORMER = re.compile(r",\s*(?:sung|made|performed) by .*", re.DOTALL)


def _grammy_year(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    year = _year({"year": entity})
    for name in (text(attrs.get("best_new_artist")),):
        if name:
            put_grammy(loader.graph, year=year, category="Best New Artist", nominee=name, winner=True)
    for award in items(attrs.get("awards"), "awards"):
        if not isinstance(award, dict):
            raise BadRow("awards", "is no list of objects")
        category = _BEST.get(str(award.get("category", "")).casefold())
        title = text(_PERFORMER.sub("", str(award.get("winner") or "")))
        if category and title:
            put_grammy(loader.graph, year=year, category=category, nominee=title, winner=True)
    loader.graph.seen("music", str(year))


def _chart(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    date, rank, performer = day(attrs.get("date")), whole(attrs.get("rank"), "rank"), needed(attrs, "artist")
    if date is None or rank is None:
        raise BadRow("date" if date is None else "rank", "is missing")
    last = text(attrs.get("rank_last_week"))
    loader.graph.put(
        billboard,
        date=date,
        rank=rank,
        song=entity,
        artist=performer,
        rank_last_week=None if last == "-" else whole(last, "rank_last_week"),
        top_position=whole(attrs.get("top_position"), "top_position"),
        weeks_in_chart=whole(attrs.get("weeks_in_chart"), "weeks_in_chart"),
        work_id=loader.graph.make_work(entity, performers(performer)[0] if performers(performer) else performer),
    )
    loader.graph.seen("music", date)


# -- sports ------------------------------------------------------------------------------------------------------------


def _soccer_match(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    graph = loader.graph
    date, opponent = day(attrs.get("date")), needed(attrs, "opponent")
    if date is None:
        raise BadRow("date", "is missing")
    result = text(attrs.get("result"))
    league = text(attrs.get("league"))
    graph.put(
        soccer_match,
        team_id=graph.make_team("soccer", entity, league),
        date=date,
        opponent=opponent,
        opponent_id=graph.make_team("soccer", opponent, None),
        league=league,
        season=text(attrs.get("season")),
        time=text(attrs.get("time")),
        day=text(attrs.get("day")),
        round=text(attrs.get("round")),
        venue=text(attrs.get("venue")),
        result=_result(result),
        gf=whole(attrs.get("GF", attrs.get("gf")), "GF"),
        ga=whole(attrs.get("GA", attrs.get("ga")), "GA"),
        xg=number(attrs.get("xG", attrs.get("xg")), "xG"),
        xga=number(attrs.get("xGA", attrs.get("xga")), "xGA"),
        possession=number(attrs.get("Possession", attrs.get("possession")), "Possession"),
        attendance=whole(attrs.get("number of Attendance", attrs.get("attendance")), "attendance"),
        captain=text(attrs.get("Captain", attrs.get("captain"))),
        formation=text(attrs.get("Formation", attrs.get("formation"))),
        referee=text(attrs.get("Referee", attrs.get("referee"))),
        notes=text(attrs.get("notes")),
    )
    if result:
        graph.seen("sports", date)


def _result(value: str | None) -> str | None:
    if value is None:
        return None
    if value.casefold() not in _RESULTS:
        raise BadRow("result", f"{value[:20]!r} is neither win, draw nor loss")
    return _RESULTS[value.casefold()]


def _no_match(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """That a team did not play on a day; what is said of "last week" cannot be kept, for nobody knows which."""
    when = text(attrs.get("when")) or ""
    if re.fullmatch(r"\d{4}(?:-\d{2}){0,2}", when):
        team_id = loader.graph.make_team(_sport(entity), entity)
        loader.graph.put(
            team_period, weak=True, team_id=team_id, start=beginning(when), end=following(when), games=0, wins=0,
            draws=0, losses=0,
        )  # fmt: skip


def _sport(name: str) -> str:
    return "nba" if is_nba(name) else "soccer"


def _period(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """Totals of a team over a day, a month or a year. A day with one NBA game is that game."""
    graph = loader.graph
    period = text(attrs.get("period")) or ""
    if not re.fullmatch(r"\d{4}(?:-\d{2}){0,2}", period):
        return
    start, end = beginning(day(period, "period") or period), following(period)
    sport = "nba" if text(attrs.get("sport")) == "nba" else _sport(entity)
    team_id = graph.make_team(sport, entity)
    games = whole(attrs.get("games"), "games")
    if games is None:
        raise BadRow("games", "is missing")
    counts: dict[str, Any] = {key: whole(attrs.get(key), key) for key in (
        "wins", "draws", "losses", "home_wins", "home_losses", "away_wins", "away_losses"
    )}  # fmt: skip
    opponents: dict[str, Any] = {
        key: "; ".join(str(name) for name in attrs[key]) or None
        for key in ("home_beat", "home_lost_to", "away_beat", "away_lost_to")
        if isinstance(attrs.get(key), list)
    }
    gf = whole(attrs.get("points_for", attrs.get("GF")), "points_for")
    ga = whole(attrs.get("points_against", attrs.get("GA")), "points_against")
    season_types = [str(name) for name in items(attrs.get("season_types"), "season_types")]
    graph.put(
        team_period, team_id=team_id, start=start, end=end, games=games, gf=gf, ga=ga,
        season_types="; ".join(season_types) or None, **counts, **opponents,
    )  # fmt: skip
    if sport == "nba" and len(period) == 10 and games == 1:
        _one_game(loader, team_id, period, attrs, season_types, gf, ga)
    graph.seen("sports", min(end, following(period)) if len(period) == 10 else None)


def _one_game(
    loader: RowLoader, team_id: str, date: str, attrs: Attrs, season_types: list[str], gf: int | None, ga: int | None
) -> None:
    game = loader.games.setdefault((team_id, date), {})
    stated: dict[str, Any] = {"gf": gf, "ga": ga}
    if len(season_types) == 1:
        stated["season_type"] = season_types[0]
    for venue, result in (("home", "W"), ("home", "L"), ("away", "W"), ("away", "L")):
        if attrs.get(f"{venue}_{'wins' if result == 'W' else 'losses'}") == 1:
            stated |= {"venue": venue.capitalize(), "result": result}
        for name in items(attrs.get(f"{venue}_{'beat' if result == 'W' else 'lost_to'}"), venue):
            stated |= {"opponent": str(name), "opponent_id": loader.graph.make_team("nba", str(name))}
    statistics = attrs.get("stats")
    if isinstance(statistics, dict):
        stated |= {column: number(statistics.get(key), key) for key, column in _STATISTICS.items()}
    game.update({key: value for key, value in stated.items() if value is not None})


def _nba_game(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """One side of a game; the other side is a row of its own."""
    graph = loader.graph
    date, opponent = day(attrs.get("date")), needed(attrs, "opponent")
    if date is None:
        raise BadRow("date", "is missing")
    league = text(attrs.get("league"))
    result = _result(text(attrs.get("result")))
    statistics: dict[str, Any] = {key: number(attrs.get(key), key) for key in NBA_STATISTICS if key in attrs}
    graph.put(
        nba_game,
        game_id=needed(attrs, "game_id"),
        team_id=graph.make_team("nba", entity, league),
        date=date,
        season_id=text(attrs.get("season_id")),
        season_type=text(attrs.get("season_type")),
        opponent=opponent,
        opponent_id=graph.make_team("nba", opponent, None),
        venue=text(attrs.get("venue")),
        result=result,
        gf=whole(attrs.get("gf"), "gf"),
        ga=whole(attrs.get("ga"), "ga"),
        **statistics,
    )
    if result:
        graph.seen("sports", date)


# -- open --------------------------------------------------------------------------------------------------------------


def _wiki(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    infobox = attrs.get("infobox", {})
    if infobox is not None and not isinstance(infobox, dict):
        raise BadRow("infobox", "is no JSON object")
    put_entity(loader.graph, entity, text(attrs.get("summary")), infobox or {})


def _nothing(loader: RowLoader, entity: str, attrs: Attrs) -> None:
    """A row about a question rather than about the graph: how a name was looked up, what a condition selected."""


# Of each domain and kind: in which of two turns it is taken, entities before what refers to them, and by what.
KINDS: dict[tuple[str, str], tuple[int, Put]] = {
    ("movie", "movie"): (0, _film),
    ("movie", "movie_attr"): (1, _film),
    ("movie", "person"): (1, _person),
    ("movie", "filmography"): (1, _filmography),
    ("movie", "filmography_year"): (1, _filmography_year),
    ("movie", "oscar"): (1, _oscar),
    ("movie", "movie_count"): (1, _movie_count),
    ("movie", "oscar_count"): (1, _oscar_count),
    ("movie", "oscar_none"): (1, _oscar_count),
    ("movie", "oscar_mention"): (1, _nothing),
    ("movie", "title_lookup"): (1, _nothing),
    ("movie", "cast_member"): (1, _nothing),
    ("movie", "crew_count"): (1, _nothing),
    ("movie", "genre_count"): (1, _nothing),
    ("finance", "company"): (0, _company),
    ("finance", "company_snapshot"): (0, _company),
    ("finance", "price"): (1, _price),
    ("finance", "price_latest"): (1, _minute),
    ("finance", "price_minute"): (1, _minute),
    ("finance", "price_empty"): (1, _nothing),
    ("finance", "dividend"): (1, _dividend),
    ("finance", "dividend_empty"): (1, _no_dividend),
    ("finance", "market_cap"): (1, _fact("marketCap")),
    ("finance", "eps"): (1, _fact("forwardEps")),
    ("finance", "pe_ratio"): (1, _fact("forwardPE")),
    ("music", "artist"): (0, _artist),
    ("music", "band"): (0, _members),
    ("music", "lifespan"): (0, _artist),
    ("music", "work"): (0, _work),
    ("music", "song"): (0, _song),
    ("music", "work_count"): (1, _stated("music.works")),
    ("music", "grammy"): (1, _grammy),
    ("music", "grammy_count"): (1, _stated("music.grammys", " until now")),
    ("music", "grammy_song_count"): (1, _song_grammys),
    ("music", "grammy_ceremony"): (1, _nothing),
    ("music", "grammy_best_artist"): (1, _grammy_best("Best New Artist")),
    ("music", "grammy_best_song"): (1, _grammy_best("Song Of The Year")),
    ("music", "grammy_best_album"): (1, _grammy_best("Album Of The Year")),
    ("music", "grammy_year"): (1, _grammy_year),
    ("music", "billboard"): (1, _chart),
    ("sports", "soccer_match"): (0, _soccer_match),
    ("sports", "soccer_period"): (1, _period),
    ("sports", "nba_game"): (0, _nba_game),
    ("sports", "nba_period"): (1, _period),
    ("sports", "no_match"): (1, _no_match),
    ("open", "wiki"): (0, _wiki),
}
TURNS = (0, 1)
