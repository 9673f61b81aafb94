"""Rows from answers of CRAG's API, merged into the kinds that the domains' mappings describe.

They have the shape `{"domain", "kind", "entity", "attrs"}` and some 40 kinds: a company's snapshot, its market value,
the films of a person in a year, a team's games of a day. Rows about a question and not about the graph are left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from services.kg.domains import CATALOGUE
from services.kg.load.identity import slug
from services.kg.store.names import normalise

Row = dict[str, Any]
Attrs = Mapping[str, Any]

# About the question: how a name was looked up, what a condition selected, an empty result.
_NO_FACTS = frozenset(
    {"oscar_mention", "title_lookup", "cast_member", "crew_count", "genre_count", "price_empty", "grammy_ceremony"}
)
_STATISTICS = {
    "Field Goal Made": "fgm", "Field Goal Attempt": "fga", "Field Goal Percentage": "fg_pct",
    "Free Throw Made": "ftm", "Free Throw Attempt": "fta", "Free Throw Percentage": "ft_pct",
    "Offensive Rebound": "oreb", "Defensive Rebound": "dreb", "Rebound": "reb", "Assist": "ast", "Steal": "stl",
    "Block": "blk", "Turnover": "tov", "Personal Foul": "pf",
}  # fmt: skip
_MATCH = {
    "GF": "gf", "GA": "ga", "xG": "xg", "xGA": "xga", "Possession": "possession", "Captain": "captain",
    "number of Attendance": "attendance", "Formation": "formation", "Referee": "referee",
}  # fmt: skip
_CONDITION = re.compile(r"\s+(?:when|that)\s+.*", re.DOTALL)
# Words in capitals that questions treat as companies.
_NO_COMPANIES = frozenset({"NASDAQ", "SILVER", "JAPAN", "CRYPTO", "STOCK", "INDEX"})
_BEST = {"best grammy song": "Song Of The Year", "best grammy album": "Album Of The Year"}
# The performer in such a text was looked up by the title alone, and is often somebody else.
_PERFORMER = re.compile(r",\s*(?:sung|made|performed) by .*", re.DOTALL)
_PERIOD = re.compile(r"\d{4}(?:-\d{2}){0,2}")
_FACTS = {"market_cap": "marketCap", "eps": "forwardEps", "pe_ratio": "forwardPE"}


def records(rows: Iterable[Row]) -> Iterator[Row]:
    """Records that the mappings describe.

    Raises:
        ValueError: a row is of an unknown kind.
    """
    games: dict[tuple[str, str], Row] = {}
    for row in rows:
        kind, entity, attrs = row["kind"], row["entity"], row["attrs"]
        if kind in _NO_FACTS:
            continue
        if kind in {"no_match", "nba_period", "soccer_period"}:
            yield from _period(kind, entity, attrs, games)
            continue
        if (row["domain"], kind) not in _KINDS:
            raise ValueError(f"no kind {kind!r} in domain {row['domain']!r}")
        yield from ({"domain": row["domain"], **one} for one in _KINDS[row["domain"], kind](entity, attrs))
    for (team, day), game in games.items():
        pair = sorted([f"nba-{slug(team)}", *([slug(game["opponent"])] if "opponent" in game else [])])
        attrs = {"game_id": f"{day}/{'/'.join(pair)}", "date": day, **game}
        yield {"domain": "sports", "kind": "nba_game", "entity": team, "attrs": attrs}


def _record(kind: str, entity: str, **attrs: Any) -> list[Row]:
    return [{"kind": kind, "entity": entity, "attrs": attrs}]


def _film(kind: str) -> Callable[[str, Attrs], list[Row]]:
    def film(entity: str, attrs: Attrs) -> list[Row]:
        cast = [*(attrs.get("cast") or ()), *(attrs.get("top_cast") or ())]
        crew = [{"name": name, "job": job} for key, job in (("directors", "Director"), ("producers", "Producer"))
                for name in attrs.get(key) or ()]  # fmt: skip
        return _record(kind, entity, **{**attrs, "cast": cast, "crew": [*crew, *(attrs.get("crew") or ())]})

    return film


def _in_year(entity: str, attrs: Attrs) -> list[Row]:
    return _record("films_of_year", entity, year=attrs["year"], titles=attrs["titles"])


def _times_nominated(entity: str, attrs: Attrs) -> list[Row]:
    """All nominations, not those that won or are of one category."""
    if attrs.get("role", "nominee") != "nominee" or attrs.get("category"):
        return []
    return _record("oscar_count", entity, count=attrs.get("count"))


def _films_made(entity: str, attrs: Attrs) -> list[Row]:
    """All films that someone acted in or directed; "participated" counts a selection.

    A count of 0 is of a namesake that was looked up in error: nobody asks about people without films.
    """
    is_total = attrs.get("count") and attrs.get("role") in {"acted", "directed", None}
    return _record("movie_count", entity, **attrs) if is_total else []


def _company(entity: str, attrs: Attrs) -> list[Row]:
    facts = {name: attrs[key] for key, name in _FACTS.items() if key in attrs}
    return _record("company", entity, ticker=attrs["ticker"], facts=facts)


def _of_company(kind: str) -> Callable[[str, Attrs], list[Row]]:
    def of_company(entity: str, attrs: Attrs) -> list[Row]:
        name = _CONDITION.sub("", entity).strip()
        return [] if name in _NO_COMPANIES else _record(kind, name, **attrs)

    return of_company


def _fact(key: str) -> Callable[[str, Attrs], list[Row]]:
    of_company = _of_company("company_fact")
    return lambda entity, attrs: of_company(entity, {"key": key, "value": attrs.get("value")})


def _minute(entity: str, attrs: Attrs) -> list[Row]:
    """The one price of a minute."""
    price = {"at": attrs["at"], "open": attrs.get("value"), "close": attrs.get("value")}
    return _of_company("price_minute")(entity, price)


def _no_dividend(entity: str, attrs: Attrs) -> list[Row]:
    """A company that never paid a dividend, not just none within a period."""
    return [] if attrs.get("start") or attrs.get("end") else _of_company("dividend_empty")(entity, {})


def _count(kind: str) -> Callable[[str, Attrs], list[Row]]:
    return lambda entity, attrs: _record(kind, entity.removesuffix(" until now").strip(), count=attrs.get("count"))


def _best(category: str) -> Callable[[str, Attrs], list[Row]]:
    return lambda entity, attrs: _record("grammy", entity, year=attrs["year"], category=category)


def _best_of_year(entity: str, attrs: Attrs) -> list[Row]:
    grammys: list[Row] = []
    if attrs.get("best_new_artist"):
        grammys += _record("grammy", attrs["best_new_artist"], year=entity, category="Best New Artist")
    for award in attrs.get("awards") or ():
        category = _BEST.get(str(award.get("category", "")).casefold())
        title = _PERFORMER.sub("", str(award.get("winner") or "")).strip()
        if category and title and title.casefold() != "none":
            grammys += _record("grammy", title, year=entity, category=category)
    return grammys


def _match(entity: str, attrs: Attrs) -> list[Row]:
    return _record("soccer_match", entity, **{_MATCH.get(key, key): value for key, value in attrs.items()})


def _period(kind: str, entity: str, attrs: Attrs, games: dict[tuple[str, str], Row]) -> Iterator[Row]:
    """Totals of a team over a day, month or year, but not "last week"; a day's only game also goes to `games`."""
    period = str(attrs.get("when" if kind == "no_match" else "period") or "")
    if not _PERIOD.fullmatch(period):
        return
    is_nba = normalise(entity) in CATALOGUE.kinds["nba_team"].aliases
    totals: Row = {"wins": 0, "draws": 0, "losses": 0, "games": 0} if kind == "no_match" else dict(attrs)
    totals |= {"period": period, "points_for": attrs.get("points_for", attrs.get("GF")),
               "points_against": attrs.get("points_against", attrs.get("GA"))}  # fmt: skip
    if len(period) == 10 and kind != "no_match":
        totals["as_of"] = period
    name = f"{'nba' if is_nba else 'soccer'}_{'no_match' if kind == 'no_match' else 'period'}"
    yield {"domain": "sports", "kind": name, "entity": entity, "attrs": totals}
    if is_nba and len(period) == 10 and attrs.get("games") == 1:
        game = games.setdefault((entity, period), {})
        game |= {key: value for key, value in _game(attrs).items() if value is not None}


def _game(attrs: Attrs) -> Row:
    game: Row = {"gf": attrs.get("points_for"), "ga": attrs.get("points_against")}
    if len(attrs.get("season_types") or ()) == 1:
        game["season_type"] = attrs["season_types"][0]
    for venue, result in (("home", "W"), ("home", "L"), ("away", "W"), ("away", "L")):
        if attrs.get(f"{venue}_{'wins' if result == 'W' else 'losses'}") == 1:
            game |= {"venue": venue.capitalize(), "result": result}
        for name in attrs.get(f"{venue}_{'beat' if result == 'W' else 'lost_to'}") or ():
            game["opponent"] = str(name)
    statistics = attrs.get("stats") or {}
    return game | {column: statistics.get(key) for key, column in _STATISTICS.items()}


def _as(kind: str, **names: str) -> Callable[[str, Attrs], list[Row]]:
    """What renames a row's kind and its attributes."""
    return lambda entity, attrs: _record(kind, entity, **{names.get(key, key): one for key, one in attrs.items()})


_KINDS: dict[tuple[str, str], Callable[[str, Attrs], list[Row]]] = {
    ("movie", "movie"): _film("movie"),
    ("movie", "movie_attr"): _film("movie_attr"),
    ("movie", "person"): _as("person"),
    ("movie", "filmography"): _as("filmography"),
    ("movie", "filmography_year"): _in_year,
    ("movie", "oscar"): _as("oscar"),
    ("movie", "movie_count"): _films_made,
    ("movie", "oscar_count"): _times_nominated,
    ("movie", "oscar_none"): _times_nominated,
    ("finance", "company_snapshot"): _company,
    ("finance", "price"): _of_company("price"),
    ("finance", "price_latest"): _minute,
    ("finance", "dividend"): _of_company("dividend"),
    ("finance", "dividend_empty"): _no_dividend,
    ("finance", "market_cap"): _fact("marketCap"),
    ("finance", "eps"): _fact("forwardEps"),
    ("finance", "pe_ratio"): _fact("forwardPE"),
    ("music", "artist"): _as("artist"),
    ("music", "band"): _as("artist"),
    ("music", "lifespan"): _as("artist"),
    ("music", "work"): _as("work"),
    ("music", "song"): _as("work", author="artist"),
    ("music", "work_count"): _count("work_count"),
    ("music", "grammy_count"): _count("grammy_count"),
    ("music", "grammy_song_count"): _count("grammy_song_count"),
    ("music", "grammy_best_artist"): _best("Best New Artist"),
    ("music", "grammy_best_song"): _best("Song Of The Year"),
    ("music", "grammy_best_album"): _best("Album Of The Year"),
    ("music", "grammy_year"): _best_of_year,
    ("sports", "soccer_match"): _match,
    ("open", "wiki"): _as("wiki"),
}
