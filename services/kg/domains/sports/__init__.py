"""Soccer and NBA games, seen from one team."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, func, select

from services.kg.domains.sports.games import last_game, next_game, periods
from services.kg.domains.sports.tables import nba_event, nba_game, soccer_match, team
from services.kg.language.catalogue import Domain, Function, Key, Parameter
from services.kg.language.tree import Operator
from services.kg.outcome import Outcome


def _league(c: Any, values: tuple[Any, ...]) -> ColumnElement[bool]:
    """`esp-la liga`, `La Liga` and `ENG-Premier League` by the part behind the country."""
    wanted = str(values[0]).lower().strip()
    if len(wanted) > 4 and wanted[3] == "-":
        wanted = wanted[4:]
    # A source may not say the league of a game; that is no reason to hide it.
    spelt = func.replace(func.replace(func.lower(c["league"]), "-", ""), " ", "")
    unknown: ColumnElement[bool] = c["league"].is_(None)
    return unknown | spelt.contains(wanted.replace("-", "").replace(" ", ""), autoescape=True)


def _result(c: Any, operator: Operator, values: tuple[Any, ...]) -> ColumnElement[bool]:
    letters = [str(value).strip().upper()[:1] for value in values]
    # W, L, D are also spelt win, won, loss, lost, draw, tie.
    initial: ColumnElement[str] = func.upper(func.substr(c["result"], 1, 1))
    clause: ColumnElement[bool] = initial.in_(["D" if letter == "T" else letter for letter in letters])
    return ~clause if operator == "neq" else clause


def _team(sport: str) -> Parameter:
    return Parameter("team", column="_team_id", entities=(f"{sport}_team",))


LEAGUE = Parameter("league", "text", clause=_league)
GAME_KEYS = (
    Key("date", "date", ("when", "day_of_game")),
    Key("opponent", aliases=("against", "rival", "opposing_team"), id_column="_opponent_id"),
    Key("result", aliases=("outcome", "win", "wl"), compare=_result),
    Key("venue", aliases=("where", "home", "place", "location"), label="venue"),
    Key("gf", "integer", ("score", "points", "goals", "goals_for", "pts", "final_score"), label="score"),
    Key("ga", "integer", ("goals_against", "points_against", "opponent_score"), label="opponent's score"),
    Key("team", aliases=("name",), id_column="_team_id"),
)
SOCCER_VIEW = select(
    soccer_match.c.team_id.label("_team_id"),
    soccer_match.c.opponent_id.label("_opponent_id"),
    team.c.name.label("team"),
    *(column for column in soccer_match.c if column.name not in ("team_id", "opponent_id")),
).select_from(soccer_match.join(team, team.c.team_id == soccer_match.c.team_id))
SOCCER_KEYS = (
    *GAME_KEYS,
    Key("time", aliases=("kickoff", "kick_off"), label="kick-off, local time,"),
    Key("day", aliases=("weekday",)),
    Key("league", aliases=("competition", "tournament")),
    Key("round", aliases=("matchweek",)),
    Key("captain", aliases=("leader",)),
    Key("attendance", "integer", ("crowd", "spectators")),
    Key("referee"),
    Key("formation"),
    Key("possession", "number", ("poss",), unit="%"),
    Key("xg", "number", label="expected goals"),
    Key("xga", "number", label="expected goals against"),
    Key("season"),
    Key("notes"),
)
SOCCER = Function(
    "get_soccer_on_date",
    "sports",
    "soccer games of a club on a day, in a month, last week, this week ...",
    (_team("soccer"), Parameter("time", "time", "date"), LEAGUE),
    SOCCER_VIEW,
    SOCCER_KEYS,
    subject=("team", "opponent", "date", "venue"),
    default=("opponent", "result", "gf", "ga"),
    order=("date",),
    refine=periods,
    aliases=("get_soccer", "get_soccer_game"),
)
SOCCER_LAST = Function(
    "get_soccer_last_game",
    "sports",
    "a club's last game before now",
    (_team("soccer"), LEAGUE),
    SOCCER_VIEW,
    SOCCER_KEYS,
    subject=("team", "opponent", "date", "venue"),
    default=("opponent", "result", "gf", "ga"),
    order=("-date",),
    limit=1,
    refine=last_game,
)
SOCCER_NEXT = Function(
    "get_soccer_next_game",
    "sports",
    "a club's next game after now",
    (_team("soccer"), LEAGUE),
    SOCCER_VIEW,
    SOCCER_KEYS,
    subject=("team", "opponent", "date", "venue"),
    default=("opponent", "time"),
    order=("date",),
    limit=1,
    refine=next_game,
)
STATISTICS = {
    "fgm": "field goals made",
    "fga": "field goals attempted",
    "fg_pct": "field goal share",
    "fg3m": "three-pointers made",
    "fg3a": "three-pointers attempted",
    "fg3_pct": "three-point share",
    "ftm": "free throws made",
    "fta": "free throws attempted",
    "ft_pct": "free throw share",
    "oreb": "offensive rebounds",
    "dreb": "defensive rebounds",
    "reb": "rebounds",
    "ast": "assists",
    "stl": "steals",
    "blk": "blocks",
    "tov": "turnovers",
    "pf": "personal fouls",
    "plus_minus": "plus-minus",
}
NBA = Function(
    "get_nba_on_date",
    "sports",
    "NBA games of a team on a day, in a month, in a year, between two days",
    (_team("nba"), Parameter("time", "time", "date"), Parameter("until", "time", "date")),
    select(
        nba_game.c.team_id.label("_team_id"),
        nba_game.c.opponent_id.label("_opponent_id"),
        team.c.name.label("team"),
        *(column for column in nba_game.c if column.name not in ("team_id", "opponent_id")),
    ).select_from(nba_game.join(team, team.c.team_id == nba_game.c.team_id)),
    (
        *GAME_KEYS,
        Key("season_type", aliases=("season",)),
        Key("game_id"),
        *(Key(name, "number", (label.replace(" ", "_"),), label=label) for name, label in STATISTICS.items()),
    ),
    subject=("team", "opponent", "date", "venue"),
    default=("opponent", "result", "gf", "ga"),
    order=("date",),
    span=("time", "until"),
    refine=periods,
    aliases=("get_nba", "get_nba_game"),
)
PLAYS = Function(
    "get_nba_plays",
    "sports",
    "what happened in an NBA game, by its id",
    (Parameter("game_id", "text", "game_id", required=True),),
    select(*nba_event.c),
    (
        Key("period", "integer", ("quarter",)),
        Key("clock"),
        Key("score"),
        Key("margin"),
        Key("player"),
        Key("home"),
        Key("visitor"),
        Key("neutral"),
        Key("event", "integer"),
        Key("game_id"),
    ),
    subject=("game_id", "event"),
    default=("period", "clock", "home", "visitor", "score"),
    order=("event",),
)


def describe(function: str, row: Mapping[str, Any]) -> str:
    """A row's subject in words."""
    if function == "get_nba_plays":
        return f"event {row['event']} of game {row['game_id']}"
    where = {"Home": "at home", "Away": "away"}.get(str(row.get("venue")), "")
    return " ".join(f"{row['team']} against {row['opponent'] or 'unknown'} on {row['date']} {where}".split())


def lead(outcome: Outcome) -> str:
    """What a statement's rows are in words."""
    names = " and ".join(dict.fromkeys(entity.surface for entity in outcome.entities))
    match outcome.function.name if outcome.function else "":
        case "get_soccer_last_game":
            return f"last game of {names}"
        case "get_soccer_next_game":
            return f"next game of {names}"
        case "get_nba_plays":
            return "plays of the game"
        case _:
            return f"games of {names}"


DOMAIN = Domain(
    "sports",
    "soccer clubs' games and NBA games",
    (SOCCER_LAST, SOCCER_NEXT, SOCCER, NBA, PLAYS),
    describe,
    lead,
)
