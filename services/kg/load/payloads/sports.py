"""Games as the CRAG mock API and its files hold them: tables by column, a soccer game once for each team."""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.kg.domains.sports.tables import nba_event, nba_game, soccer_match
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.values import day, needed, number, text, whole

NBA_STATISTICS = (
    "fgm", "fga", "fg_pct", "fg3m", "fg3a", "fg3_pct", "ftm", "fta", "ft_pct", "oreb", "dreb", "reb", "ast", "stl",
    "blk", "tov", "pf", "plus_minus",
)  # fmt: skip
# "1 (4)" is a draw that the penalties decided.
_GOALS = re.compile(r"(\d+)(?:\.0)?(?:\s*\((\d+)\))?")
_MAX_KEY = 500


def columns(stated: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a table by column, {"date": {"0": ..}}, with their keys. The table may come as a text.

    Raises:
        BadRow: it is no such table.
    """
    if isinstance(stated, str):
        try:
            stated = json.loads(stated)
        except (ValueError, RecursionError):
            raise BadRow("", "is no table") from None
    if not stated:
        return
    if not isinstance(stated, Mapping) or not all(isinstance(column, Mapping) for column in stated.values()):
        raise BadRow("", "is no table")
    keys = dict.fromkeys(key for column in stated.values() for key in column)
    for key in keys:
        yield key, {name: column.get(key) for name, column in stated.items()}


def soccer_key(key: str) -> tuple[str, str, str]:
    """League, season and team of a soccer row's key, which is a tuple as text.

    Raises:
        BadRow: it is none.
    """
    try:
        parts = ast.literal_eval(key[:_MAX_KEY])
        league, season, team = (str(part) for part in parts[:3])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadRow("", f"{key[:40]!r} is no league, season and team") from None
    return league, season, team


def put_soccer(graph: Graph, league: str, season: str, team: str, row: Mapping[str, Any]) -> None:
    """One team's side of a game; a game to come has no result."""
    of_day, opponent = day(row.get("date")), needed(row, "opponent")
    if of_day is None:
        raise BadRow("date", "is missing")
    gf, ga = _goals(row.get("GF"), "GF"), _goals(row.get("GA"), "GA")
    shot = f"{gf[1]}-{ga[1]} on penalties" if gf[1] is not None and ga[1] is not None else None
    result = text(row.get("result"))
    graph.put(
        soccer_match,
        team_id=graph.make_team("soccer", team, league),
        date=of_day,
        opponent=opponent,
        opponent_id=graph.make_team("soccer", opponent),
        league=league,
        season=season,
        time=text(row.get("time")),
        day=text(row.get("day")),
        round=text(row.get("round")),
        venue=text(row.get("venue")),
        result=result,
        gf=gf[0],
        ga=ga[0],
        xg=number(row.get("xG"), "xG"),
        xga=number(row.get("xGA"), "xGA"),
        possession=number(row.get("Poss"), "Poss"),
        attendance=whole(row.get("Attendance"), "Attendance"),
        captain=text(row.get("Captain")),
        formation=text(row.get("Formation")),
        referee=text(row.get("Referee")),
        notes="; ".join(filter(None, (shot, text(row.get("Notes"))))) or None,
    )
    if result:
        graph.seen("sports", of_day)


def _goals(value: object, field: str) -> tuple[int | None, int | None]:
    plain = text(value)
    if plain is None:
        return None, None
    match = _GOALS.fullmatch(plain)
    if not match:
        raise BadRow(field, f"{plain[:20]!r} is no number of goals")
    return int(match[1]), int(match[2]) if match[2] else None


def put_nba(graph: Graph, row: Mapping[str, Any]) -> None:
    """Both sides of a game."""
    game_id, of_day = needed(row, "game_id"), day(row.get("game_date"), "game_date")
    if of_day is None:
        raise BadRow("game_date", "is missing")
    names = {side: needed(row, f"team_name_{side}") for side in ("home", "away")}
    season_type = (text(row.get("season_type")) or "").replace("-", " ") or None
    for side, other in (("home", "away"), ("away", "home")):
        statistics: dict[str, Any] = {key: number(row.get(f"{key}_{side}"), key) for key in NBA_STATISTICS}
        graph.put(
            nba_game,
            game_id=game_id,
            team_id=graph.make_team("nba", names[side], "NBA"),
            date=of_day,
            season_id=text(row.get("season_id")),
            season_type=season_type,
            opponent=names[other],
            opponent_id=graph.make_team("nba", names[other], "NBA"),
            venue=side.capitalize(),
            result=text(row.get(f"wl_{side}")),
            gf=whole(row.get(f"pts_{side}"), "pts"),
            ga=whole(row.get(f"pts_{other}"), "pts"),
            **statistics,
        )
    if row.get("wl_home"):
        graph.seen("sports", of_day)


def put_plays(graph: Graph, rows: Iterable[Mapping[str, Any]]) -> None:
    """Events of games."""
    for row in rows:
        event = whole(row.get("eventnum"), "eventnum")
        if event is None:
            raise BadRow("eventnum", "is missing")
        graph.put(
            nba_event,
            game_id=needed(row, "game_id"),
            event=event,
            period=whole(row.get("period"), "period"),
            clock=text(row.get("pctimestring")),
            home=text(row.get("homedescription")),
            neutral=text(row.get("neutraldescription")),
            visitor=text(row.get("visitordescription")),
            player=text(row.get("player1_name")),
            score=text(row.get("score")),
            margin=text(row.get("scoremargin")),
        )
