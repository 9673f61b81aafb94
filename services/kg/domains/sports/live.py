"""The calls of the CRAG mock API for a program about games. It has no search: our list of teams has the spellings."""

from functools import lru_cache

from services.kg.definition.kinds import AliasesFile
from services.kg.domains import CATALOGUE
from services.kg.live.fill import Live
from services.kg.load.surfaces import OTHER_NAME
from services.kg.store.names import Surface
from services.kit.concurrency import all_of

MAX_GAMES = 20
MAX_WINDOWS = 12


async def fetch(live: Live) -> None:
    """Games of the teams, and the events of games that are named."""
    await all_of(
        [
            *(_games(live, "soccer", name) for name in live.names("soccer_team")),
            *(_games(live, "nba", name) for name in live.names("nba_team")),
        ]
    )
    games = live.names("game_id")[:MAX_GAMES]
    if games and live.uses("get_nba_plays"):
        await live.fetch("sports/nba/get_play_by_play_data_by_game_ids", game_ids=list(games))


def _windows(live: Live) -> list[str]:
    """Months or years of games: those of the program's dates, else the question's year and the ones beside it."""
    windows = [one[:7] for one in live.lookup.dates] + [str(year) for year in live.lookup.years]
    if windows and not live.uses("get_soccer_last_game", "get_soccer_next_game"):
        return list(dict.fromkeys(windows))[:MAX_WINDOWS]
    return [str(live.now.year + offset) for offset in (0, -1, 1)]


@lru_cache(maxsize=2)
def _teams(sport: str) -> tuple[Surface, ...]:
    file = CATALOGUE.domains["sports"].folder.model(f"{sport}_teams.yaml", AliasesFile)[0]
    return tuple(
        Surface(full, surface, 1.0 if surface == full else OTHER_NAME)
        for full, others in file.root.items()
        for surface in (full, *others)
    )


async def _games(live: Live, sport: str, name: str) -> None:
    """Games of a team, by its full name, else by the name in the program."""
    chosen = await live.choose(f"{sport}_team", name, _teams(sport))
    for team in dict.fromkeys((*chosen[:1], name)):
        call = f"sports/{sport}/get_games_on_date"
        results = await all_of(live.fetch(call, date=window, team_name=team) for window in _windows(live))
        if any(results):
            return
