"""A made-up world in rows of the knowledge graph: companies, films, artists, games, encyclopaedia entries.

Rows are what the domains' `sources/entities.yaml` describe: `{"domain", "kind", "entity", "attrs"}`. Questions and
programs are made from the same objects, so that a program can be executed on the rows to prove that it finds what it
shall.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from lab.trainer.synthesise import entries
from lab.trainer.synthesise.movies import CATEGORIES, GENRES, JOBS, LANGUAGES
from lab.trainer.synthesise.music import COUNTRIES
from lab.trainer.synthesise.names import CLUBS, LEAGUES, NBA, Company, Names
from lab.trainer.synthesise.voice import PACIFIC, Voice

COMPANIES, FILMS, PEOPLE, ARTISTS, SONGS, ENTRIES, CLUB_COUNT, TEAM_COUNT = 90, 130, 170, 110, 330, 110, 24, 12
# Days of prices before the world's last one.
DAYS = 150
SECTORS = (
    "Technology",
    "Energy",
    "Healthcare",
    "Utilities",
    "Industrials",
    "Real Estate",
    "Basic Materials",
    "Financial Services",
)
Row = dict[str, Any]


@dataclass(slots=True)
class Share:
    """A listed company: bars by day, dividends by ex-date, facts by the names of its snapshot."""

    company: Company
    bars: dict[date, dict[str, float]]
    dividends: list[tuple[date, float]]
    facts: dict[str, Any]


@dataclass(slots=True)
class Picture:
    """A film with its cast in order, its crew by job, and its figures."""

    title: str
    facts: dict[str, Any]
    cast: list[tuple[str, str]]
    crew: list[tuple[str, str]]


@dataclass(slots=True)
class Artist:
    name: str
    band: bool
    begin: str
    end: str
    country: str
    members: list[str]
    works: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Award:
    """An Oscar or a Grammy."""

    year: int
    category: str
    words: str
    work: str
    person: str


@dataclass(slots=True)
class Place:
    """A song's place in the chart of a week."""

    day: date
    rank: int
    song: str
    artist: str
    best: int
    weeks: int


@dataclass(slots=True)
class Game:
    """A game from one side."""

    team: str
    opponent: str
    day: date
    home: bool
    scored: int
    conceded: int
    league: str
    played: bool
    facts: dict[str, Any]

    @property
    def result(self) -> str:
        return "W" if self.scored > self.conceded else "L" if self.scored < self.conceded else "D"


@dataclass(slots=True)
class Entry:
    """An encyclopaedia entry; `kind` is one of `entries.KINDS`."""

    name: str
    kind: str
    facts: dict[str, str]


class World:
    """All that the programs of one batch of questions may ask about."""

    def __init__(self, voice: Voice, names: Names) -> None:
        self.voice, self.names = voice, names
        last = date(2023, 3, 1) + timedelta(days=voice.between(0, 900))
        while last.weekday() >= 5:
            last += timedelta(days=1)
        self.last = last
        self.people = names.people(PEOPLE)
        self.birthdays = {name: voice.day(1915, 2004).isoformat() for name in self.people}
        self.shares = self._shares()
        self.films = self._films()
        self.oscars = self._oscars()
        self.artists = self._artists()
        self.grammys = self._grammys()
        self.charts = self._charts()
        self.soccer = self._soccer()
        self.nba = self._nba()
        self.entries = self._entries()
        self.clock = f"{last.isoformat()} 10:{voice.between(10, 50)}:00"
        self.quotes = {share.company.ticker: voice.price() for share in self.shares[: COMPANIES // 3]}

    def moment(self) -> datetime:
        """When a question is asked: on the last days that the world knows."""
        v = self.voice
        day = self.last - timedelta(days=v.weighted({0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0, 5: 1.0, 8: 1.0}))
        return datetime(day.year, day.month, day.day, v.between(8, 17), v.between(0, 59), tzinfo=PACIFIC)

    def now(self) -> datetime:
        """A moment on the last day, after the newest quote."""
        return datetime(self.last.year, self.last.month, self.last.day, 8, self.voice.between(0, 59), tzinfo=PACIFIC)

    def _shares(self) -> list[Share]:
        v = self.voice
        shares: list[Share] = []
        seen: set[str] = set()
        days = [self.last - timedelta(days=i) for i in range(DAYS)][::-1]
        while len(shares) < COMPANIES:
            company = self.names.company()
            if company.ticker in seen or len(company.ticker) < 3:
                continue
            seen.add(company.ticker)
            level = v.price() + 0.5
            bars = {}
            for day in days:
                if day.weekday() >= 5:
                    continue
                start = round(level * v.rng.uniform(0.97, 1.03), 2)
                level = max(0.1, round(start * v.rng.uniform(0.96, 1.045), 2))
                high, low = round(max(start, level) * 1.01, 2), round(min(start, level) * 0.99, 2)
                bars[day] = {
                    "open": start,
                    "high": high,
                    "low": low,
                    "close": level,
                    "volume": v.between(100, 90000) * 100,
                }
            count = v.weighted({0: 1.0, 4: 1.0, 9: 2.0, 20: 1.0})
            newest = self.last - timedelta(days=v.between(3, 80))
            dividends = [(newest - timedelta(days=91 * i), round(v.rng.uniform(0.05, 1.4), 3)) for i in range(count)]
            facts = {
                "marketCap": v.between(10**7, 10**12),
                "forwardPE": round(v.rng.uniform(3, 80), 3),
                "forwardEps": round(v.rng.uniform(0.1, 20), 2),
                "sector": v.pick(SECTORS),
                "industry": f"{self.names.coined()} Products",
                "fullTimeEmployees": v.between(20, 200000),
                "totalRevenue": v.between(10**7, 10**11),
                "dividendYield": round(v.rng.uniform(0.001, 0.09), 4),
                "beta": round(v.rng.uniform(0.2, 2.4), 2),
                "profitMargins": round(v.rng.uniform(0.01, 0.5), 4),
                "priceToBook": round(v.rng.uniform(0.4, 30), 2),
                "city": self.names.place(),
                "country": "United States",
                "fiftyTwoWeekHigh": round(level * 1.5, 2),
                "fiftyTwoWeekLow": round(level * 0.6, 2),
                "totalDebt": v.between(10**6, 10**10),
                "companyOfficers": self.names.person(),
                "targetMeanPrice": round(level * 1.2, 2),
                "totalCash": v.between(10**6, 10**10),
            }
            shares.append(Share(company, bars, sorted(dividends), facts))
        return shares

    def _films(self) -> list[Picture]:
        v, n = self.voice, self.names
        films = []
        directors = self.people[:30]
        for title in n.films(FILMS):
            released = v.day(1960, 2022)
            budget, revenue = v.money() + 1000, v.money() + v.between(1, 999)
            facts = {
                "release_date": released.isoformat(),
                "budget": budget,
                "revenue": revenue,
                "rating": round(v.rng.uniform(2, 9), 1),
                "length": v.between(62, 210),
                "original_language": v.pick(LANGUAGES),
                "original_title": title if v.chance(0.6) else f"{n.coined()} {n.coined().lower()}",
                "genres": [g.title() for g in v.some(GENRES, v.between(1, 2))],
            }
            cast = [(name, n.person()) for name in v.some(self.people, v.between(2, 9))]
            crew = [
                (v.pick(directors), "Director"),
                *((v.pick(self.people), job) for job in v.some(JOBS[1:6], v.between(1, 4))),
            ]
            films.append(Picture(title, facts, cast, crew))
        return films

    def _oscars(self) -> list[Award]:
        v, awards = self.voice, []
        for year in range(1935, 2025):
            # A film is tied to its Oscars by the year before the ceremony; other years' winners are of no known film.
            known = [film.title for film in self.films if film.facts["release_date"].startswith(str(year - 1))]
            for words, official, _, _ in v.some(CATEGORIES, 5):
                work = v.pick(known) if known else self.names.film()
                awards.append(Award(year, official, words, work, v.pick(self.people)))
        return awards

    def _artists(self) -> list[Artist]:
        v, n, artists = self.voice, self.names, []
        seen: dict[str, None] = {}
        while len(seen) < ARTISTS:
            seen[n.artist()] = None
        for name in seen:
            band = name not in self.birthdays and v.chance(0.55)
            begin = v.day(1930, 2005)
            members = n.people(v.between(2, 7)) if band else []
            end = v.day(2008, 2022).isoformat() if v.chance(0.4) else ""
            artists.append(
                Artist(
                    name,
                    band,
                    begin.isoformat() if v.chance(0.7) else str(begin.year),
                    end,
                    v.pick(COUNTRIES[:11]),
                    members,
                )
            )
        for title in n.songs(SONGS):
            v.pick(artists).works.append((title, v.day(1970, 2022).isoformat(), v.pick(COUNTRIES)))
        return artists

    def _grammys(self) -> list[Award]:
        v, awards = self.voice, []
        makers = [artist for artist in self.artists if artist.works]
        for year in range(1960, 2020):
            for category, words in (
                ("Best New Artist", "best new artist"),
                ("Album Of The Year", "[album of the year|best album]"),
                ("Song Of The Year", "[song of the year|best song]"),
                ("Record Of The Year", "[record of the year|best record]"),
            ):
                artist = v.pick(makers)
                work = artist.name if category == "Best New Artist" else v.pick(artist.works)[0]
                awards.append(Award(year, category, words, work, artist.name))
        return awards

    def _charts(self) -> list[Place]:
        """The first ten ranks of the last weeks; a song is in them once a week."""
        v = self.voice
        songs = [(title, artist.name) for artist in self.artists for title, _, _ in artist.works]
        saturday = self.last - timedelta(days=(self.last.weekday() - 5) % 7)
        weeks = [saturday - timedelta(days=7 * week) for week in range(6)]
        return [
            Place(day, rank, title, name, v.between(1, rank), v.between(1, 60))
            for day in weeks
            for rank, (title, name) in enumerate(v.some(songs, 10), 1)
        ]

    def _soccer(self) -> list[Game]:
        v, n, games = self.voice, self.names, []
        clubs = [*v.some(CLUBS, CLUB_COUNT // 2), *n.clubs(CLUB_COUNT)]
        clubs = list(dict.fromkeys(clubs))[: CLUB_COUNT // 2 * 2]
        leagues = {club: v.pick(LEAGUES) for club in clubs}
        for week in range(-6, 3):
            order = v.some(clubs, len(clubs))
            for home, away in zip(order[::2], order[1::2], strict=False):
                day = self.last + timedelta(days=7 * week + v.between(1, 5))
                goals, others = v.between(0, 4), v.between(0, 3)
                played = day < self.last
                common = {
                    "time": f"{v.between(12, 21)}:{v.pick(('00', '30'))}:00",
                    "attendance": v.between(2000, 70000),
                    "referee": n.person(),
                }
                for team, other, at_home, mine, theirs in (
                    (home, away, True, goals, others),
                    (away, home, False, others, goals),
                ):
                    facts = {**common, "captain": n.person(), "formation": v.pick(("4-3-3", "4-4-2", "3-5-2"))}
                    games.append(Game(team, other, day, at_home, mine, theirs, leagues[home], played, facts))
        return games

    def _nba(self) -> list[Game]:
        v, games = self.voice, []
        teams = v.some(NBA, TEAM_COUNT)
        seen: set[tuple[str, date]] = set()
        for _ in range(560):
            home, away = v.some(teams, 2)
            day = self.last - timedelta(days=v.between(1, 420))
            if (home, day) in seen or (away, day) in seen:
                continue
            seen |= {(home, day), (away, day)}
            mine = v.between(86, 132)
            theirs = mine + v.pick((-19, -12, -7, -3, -1, 1, 2, 4, 9, 15))
            for team, other, at_home, scored, conceded in (
                (home, away, True, mine, theirs),
                (away, home, False, theirs, mine),
            ):
                facts = {
                    "fgm": v.between(28, 48),
                    "reb": v.between(30, 60),
                    "ast": v.between(15, 36),
                    "stl": v.between(3, 14),
                    "blk": v.between(1, 11),
                    "tov": v.between(6, 20),
                    "fg3m": v.between(5, 22),
                }
                games.append(Game(team, other, day, at_home, scored, conceded, "NBA", True, facts))
        return games

    def _entries(self) -> list[Entry]:
        v, n = self.voice, self.names
        found: dict[str, Entry] = {}
        while len(found) < ENTRIES:
            kind = v.pick(list(entries.KINDS))
            name = entries.name_of(v, n, kind)
            facts = {ask.key: ask.value(v, n) for ask in entries.KINDS[kind]}
            found[name] = Entry(name, kind, facts)
        owned = [entry for entry in found.values() if entry.kind == "company"]
        for entry in found.values():
            # What belongs to an entry that is known too can be asked for in two steps.
            if "owner" in entry.facts and v.chance(0.5):
                entry.facts["owner"] = v.pick([one for one in owned if one is not entry]).name
            if "capital" in entry.facts and v.chance(0.5):
                entry.facts["capital"] = v.pick([one for one in found.values() if one.kind == "place"]).name
            if "founder" in entry.facts and v.chance(0.5):
                entry.facts["founder"] = v.pick([one for one in found.values() if one.kind == "person"]).name
        return list(found.values())

    def rows(self) -> Iterator[Row]:
        """The world as rows, entities before what names them."""
        for share in self.shares:
            ticker = share.company.ticker
            yield _row(
                "finance",
                "company",
                share.company.name,
                ticker=ticker,
                currency="USD",
                as_of=self.last.isoformat(),
                facts=share.facts,
            )
            for day, bar in share.bars.items():
                yield _row("finance", "price", ticker, date=day.isoformat(), **bar)
            if ticker in self.quotes:
                price = self.quotes[ticker]
                yield _row(
                    "finance",
                    "price_minute",
                    ticker,
                    at=self.clock,
                    open=price,
                    high=price,
                    low=price,
                    close=price,
                    volume=100,
                )
            for day, amount in share.dividends:
                yield _row("finance", "dividend", ticker, date=day.isoformat(), amount=amount)
            if not share.dividends:
                yield _row("finance", "dividend_empty", ticker)
        for film in self.films:
            cast = [
                {"name": name, "character": role, "gender": 2, "order": order}
                for order, (name, role) in enumerate(film.cast)
            ]
            yield _row(
                "movie",
                "movie",
                film.title,
                **film.facts,
                cast=cast,
                crew=[{"name": name, "job": job} for name, job in film.crew],
            )
        for name, born in self.birthdays.items():
            yield _row("movie", "person", name, birthday=born)
        for award in self.oscars:
            yield _row(
                "movie",
                "oscar",
                award.work,
                year_ceremony=award.year,
                year_film=award.year - 1,
                ceremony=award.year - 1928,
                category=award.category,
                name=award.person,
                film=award.work,
                winner=True,
            )
        for artist in self.artists:
            more: dict[str, Any] = {"members": artist.members, "n_members": len(artist.members)} if artist.band else {}
            yield _row(
                "music",
                "artist",
                artist.name,
                birth_place=artist.country,
                begin=artist.begin,
                **({"end": artist.end} if artist.end else {}),
                is_band=artist.band,
                **more,
            )
            for title, released, country in artist.works:
                yield _row(
                    "music", "work", title, artist=artist.name, release_date=released, work_kind="song", country=country
                )
        for award in self.grammys:
            yield _row(
                "music",
                "grammy",
                award.work,
                year=award.year,
                category=award.category,
                artist=award.person,
                winner=True,
            )
        for place in self.charts:
            yield _row(
                "music",
                "billboard",
                place.song,
                date=place.day.isoformat(),
                rank=place.rank,
                artist=place.artist,
                rank_last_week="-",
                top_position=place.best,
                weeks_in_chart=place.weeks,
            )
        for entry in self.entries:
            yield _row("open", "wiki", entry.name, summary=f"{entry.name} is a {entry.kind}.", infobox=entry.facts)
        for game in self.soccer:
            result = (
                {"result": game.result, "gf": game.scored, "ga": game.conceded, **game.facts}
                if game.played
                else {"time": game.facts["time"]}
            )
            yield _row(
                "sports",
                "soccer_match",
                game.team,
                date=game.day.isoformat(),
                opponent=game.opponent,
                league=game.league,
                venue="Home" if game.home else "Away",
                **result,
            )
        for game in self.nba:
            home, away = (game.team, game.opponent) if game.home else (game.opponent, game.team)
            yield _row(
                "sports",
                "nba_game",
                game.team,
                game_id=f"{game.day.isoformat()} {home} {away}",
                date=game.day.isoformat(),
                opponent=game.opponent,
                venue="Home" if game.home else "Away",
                result=game.result,
                gf=game.scored,
                ga=game.conceded,
                season_type="Regular Season",
                league="NBA",
                **game.facts,
            )


def _row(domain: str, kind: str, entity: str, **attrs: Any) -> Row:
    return {"domain": domain, "kind": kind, "entity": entity, "attrs": attrs}
