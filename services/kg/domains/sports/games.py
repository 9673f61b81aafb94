"""The last game, the next one, and the games of a period; a period without a game is a fact of its own.

Python, because kick-offs are on each league's clock, and a source's own totals replace those of an incomplete list.
"""

from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Table, case, func, select

from services.kg.scope import Scope
from services.kit.text.times import Window

# Kick-offs are local to the league.
ZONES = {
    "ENG": "Europe/London",
    "ESP": "Europe/Madrid",
    "FRA": "Europe/Paris",
    "GER": "Europe/Berlin",
    "ITA": "Europe/Rome",
}
DEFAULT_ZONE = "Europe/Paris"
COUNTS = ("games", "wins", "draws", "losses", "home_wins", "home_losses", "away_wins", "away_losses", "gf", "ga")


def last_game(scope: Scope) -> None:
    """Narrow games to the newest one that had kicked off when the question was asked."""
    scope.narrow(_kickoff(scope) <= _stamp(scope))
    scope.only(scope.columns["date"], last=True)


def next_game(scope: Scope) -> None:
    """Narrow games to the first one to come; its result is hidden, though a later source may have it."""
    scope.narrow(_kickoff(scope) > _stamp(scope))
    scope.only(scope.columns["date"], last=False)
    if scope.projected & {"result", "gf", "ga"}:
        scope.findings.notes.append("the next game has no result yet")


def periods(scope: Scope) -> None:
    """Narrow games to a window, with its totals: the source's own if it states more games than it lists."""
    window = scope.windows.get("time")
    if window is None:
        scope.narrow(scope.columns["date"] <= scope.today.isoformat())
        return
    if window.kind in ("latest", "previous_event"):
        _nearest(scope, last=True)
        return
    if window.kind == "next_event":
        _nearest(scope, last=False)
        return
    start, end = window.start or date.min, window.end or date.max
    scope.narrow(scope.columns["date"] >= start.isoformat(), scope.columns["date"] < end.isoformat())
    teams = scope.entities.get("team", ())
    listed = _totals(scope, teams, start, end)
    scope.findings.summary = listed
    team_period = scope.tables["team_period"]
    source_totals = select(team_period).where(
        team_period.c.team_id.in_(teams), team_period.c.start == start.isoformat(), team_period.c.end == end.isoformat()
    )
    for row in scope.all(source_totals.limit(1)):
        if row._mapping["games"] > listed.get("games", 0):
            scope.findings.summary = {name: row._mapping[name] for name in COUNTS}
            scope.findings.stated = True
        elif not listed:
            scope.findings.status = "no_event"
        return
    if not listed:
        _no_event(scope, window, teams, start)


def _totals(scope: Scope, teams: tuple[str, ...], start: date, end: date) -> dict[str, Any]:
    """Games, results and scores over the window; empty without games."""
    games = _games(scope)
    home, away = games.c.venue == "Home", games.c.venue == "Away"
    won, drawn, lost = (games.c.result == result for result in "WDL")
    counted = (won, drawn, lost, home & won, home & lost, away & won, away & lost)
    counts = [func.coalesce(func.sum(case((one, 1), else_=0)), 0) for one in counted]
    columns = [func.count(), *counts, func.sum(games.c.gf), func.sum(games.c.ga)]
    statement = select(*(column.label(name) for name, column in zip(COUNTS, columns, strict=True))).where(
        games.c.team_id.in_(teams), games.c.date >= start.isoformat(), games.c.date < end.isoformat()
    )
    totals = dict(scope.all(statement)[0]._mapping)
    return totals if totals["games"] else {}


def _games(scope: Scope) -> Table:
    return scope.tables["soccer_match" if scope.function.name.startswith("get_soccer") else "nba_game"]


def _nearest(scope: Scope, *, last: bool) -> None:
    if "time" in scope.columns:
        (last_game if last else next_game)(scope)
        return
    today = scope.today.isoformat()
    scope.narrow(scope.columns["date"] <= today if last else scope.columns["date"] > today)
    scope.only(scope.columns["date"], last=last)


def _no_event(scope: Scope, window: Window, teams: tuple[str, ...], start: date) -> None:
    """Report that the teams had no game, if the window is within a month of their games: the question is wrong."""
    games = _games(scope)
    own = games.c.team_id.in_(teams)
    first = scope.scalar(select(func.min(games.c.date)).where(own))
    last = scope.scalar(select(func.max(games.c.date)).where(own))
    margin = timedelta(days=31)
    if first is not None and date.fromisoformat(first) - margin <= start <= date.fromisoformat(last) + margin:
        scope.findings.status = "no_event"
        scope.findings.notes.append(f"no game in {window.label}")


def _kickoff(scope: Scope) -> Any:
    return scope.columns["date"] + "T" + func.coalesce(scope.columns["time"], "00:00:00")


def _stamp(scope: Scope) -> str:
    """The query time on the clock of the club's league."""
    teams = scope.entities.get("team", ())
    soccer_match = scope.tables["soccer_match"]
    own = soccer_match.c.team_id.in_(teams)
    league = scope.scalar(select(soccer_match.c.league).where(own, soccer_match.c.league.is_not(None)).limit(1))
    zone = ZoneInfo(ZONES.get(str(league or "")[:3].upper(), DEFAULT_ZONE))
    return scope.now.astimezone(zone).replace(tzinfo=None).isoformat(timespec="seconds")
