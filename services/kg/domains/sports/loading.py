"""Games of the CRAG mock API, which a mapping cannot describe: tuples as keys, goals with penalties, two sides."""

import ast
import re
from typing import Any

from services.kg.load.errors import BadRow
from services.kg.load.transforms import TRANSFORMS as COMMON
from services.kg.load.transforms import Transform
from services.kg.load.values import text

# "1 (4)" is a draw, decided by penalties.
_GOALS = re.compile(r"(\d+)(?:\.0)?(?:\s*\((\d+)\))?")
_RESULTS = {"w": "W", "win": "W", "d": "D", "draw": "D", "l": "L", "lose": "L", "loss": "L"}
_MAX_KEY = 500
_SIDES = (("home", "away"), ("away", "home"))


def _soccer(value: object) -> list[dict[str, Any]]:
    """A team's side of a game for each row of a table by column, whose key is league, season and team."""
    rows: list[dict[str, Any]] = COMMON["by_column"](value)
    for row in rows:
        try:
            row["league"], row["season"], row["team"] = (
                str(part) for part in ast.literal_eval(row["key"][:_MAX_KEY])[:3]
            )
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise BadRow("", f"{str(row['key'])[:40]!r} is no league, season and team") from None
        row["notes"] = _notes(row)
    return rows


def _goals(value: object) -> int | None:
    """Goals without those of a penalty shoot-out."""
    match = _match(value)
    return int(match[1]) if match else None


def _match(value: object) -> re.Match[str] | None:
    plain = text(value)
    match = _GOALS.fullmatch(plain) if plain else None
    if plain and not match:
        raise BadRow("", f"{plain[:20]!r} is no number of goals")
    return match


def _notes(row: dict[str, Any]) -> str | None:
    scored, conceded = _match(row.get("GF")), _match(row.get("GA"))
    shot = f"{scored[2]}-{conceded[2]} on penalties" if scored and conceded and scored[2] and conceded[2] else None
    return "; ".join(filter(None, (shot, text(row.get("Notes"))))) or None


def _sides(value: object) -> list[dict[str, Any]]:
    """Both sides of each game of a table by column: `team`, `opponent`, and statistics without their side's name."""
    return [_side(row, one, other) for row in COMMON["by_column"](value) for one, other in _SIDES]


def _side(row: dict[str, Any], one: str, other: str) -> dict[str, Any]:
    mine = {key.removesuffix(f"_{one}"): value for key, value in row.items() if key.endswith(f"_{one}")}
    opponent, conceded = row.get(f"team_name_{other}"), row.get(f"pts_{other}")
    season_type = (text(row.get("season_type")) or "").replace("-", " ") or None
    return row | mine | {"venue": one.capitalize(), "opponent": opponent, "ga": conceded, "season_type": season_type}


def _result(value: object) -> str | None:
    """W, D or L of a result in words; null for a game to come."""
    plain = text(value)
    if plain is not None and plain.casefold() not in _RESULTS:
        raise BadRow("", f"{plain[:20]!r} is neither win, draw nor loss")
    return _RESULTS[plain.casefold()] if plain else None


TRANSFORMS: dict[str, Transform] = {"soccer": _soccer, "goals": _goals, "sides": _sides, "result": _result}
