"""Questions about games of basketball and soccer: opponents, scores, wins, dates, and games that were not played."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from lab.trainer.synthesise import dialects
from lab.trainer.synthesise.names import LEAGUES, Names
from lab.trainer.synthesise.record import Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import MONTHS, Voice, listed

DOMAIN = "sports"
STATS = (
    "Field Goal Made",
    "Field Goal Attempt",
    "3-Point Field Goal Made",
    "3-Point Field Goal Attempt",
    "Free Throw Made",
    "Free Throw Attempt",
    "Offensive Rebound",
    "Defensive Rebound",
    "Rebound",
    "Assist",
    "Steal",
    "Block",
    "Turnover",
    "Personal Foul",
)
FOREIGN = (
    "the [coach|captain|owner|mascot|sponsor|doctor] of {x}",
    "the name of {x}'s [stadium|arena|youngest player]",
    "the [salary|height|age] of {x}'s best player",
    "the number of [fans|titles|trophies|foreign players] {x} has",
    "the odds of {x} to win the title",
    "{x}'s [top scorer|highest paid player|record signing]",
)
FOREIGN_WHOLE = (
    "who [coaches|owns|sponsors] {x}",
    "how many [titles|championships|cups] has {x} won",
    "who was the [top scorer|best player|mvp] of {x}",
    "which player did {x} [draft first|sell last summer]",
    "how many [red cards|triple doubles|penalties] did {x} get",
    "who was injured in {x}'s game",
    "when was {x} founded",
    "what is the nickname of {x}'s fans",
    "how much does a ticket for {x} cost",
    "who commented {x}'s game on tv",
)


# Results as the sources of games write them, and as they are answered.
LETTERS = {"won": "W", "drew": "D", "lost": "L"}


@dataclass(frozen=True, slots=True)
class Totals:
    """Wins and losses of one team in one time, at home and away."""

    home_wins: int
    away_wins: int
    home_losses: int
    away_losses: int
    home_points: int
    away_points: int
    home_lost: int
    away_lost: int

    @property
    def games(self) -> int:
        return self.wins + self.losses

    @property
    def wins(self) -> int:
        return self.home_wins + self.away_wins

    @property
    def losses(self) -> int:
        return self.home_losses + self.away_losses

    @property
    def points(self) -> int:
        return self.home_points + self.away_points

    @property
    def lost(self) -> int:
        return self.home_lost + self.away_lost


def _season(v: Voice, games: int) -> Totals:
    home = v.between(games // 3, games - games // 3) if games > 1 else v.between(0, 1)
    home_wins, away_wins = v.between(0, home), v.between(0, games - home)

    def points(count: int) -> int:
        return sum(v.between(86, 134) for _ in range(count))

    numbers = [points(home), points(games - home), points(home), points(games - home)]
    if games == 1:
        at, won = (0 if home else 1), bool(home_wins or away_wins)
        if (numbers[at] > numbers[at + 2]) != won:
            numbers[at], numbers[at + 2] = numbers[at + 2], numbers[at]
        if numbers[at] == numbers[at + 2]:
            numbers[at + (0 if won else 2)] += 3
    return Totals(home_wins, away_wins, home - home_wins, games - home - away_wins, *numbers)


def _opponents(v: Voice, n: Names, record: Totals, team: str) -> tuple[list[str], list[str], list[str], list[str]]:
    def some(count: int) -> list[str]:
        return [t for t in n.teams(min(count, 8)) if t != team] or [n.team()] if count else []

    return some(record.home_wins), some(record.home_losses), some(record.away_wins), some(record.away_losses)


def _totals(
    v: Voice, n: Names, team: str, period: str, r: Totals, beaten: Sequence[Sequence[str]] | None, details: int
) -> str:
    """The totals of a team in one time as the API puts them into words, with so many details of the season."""
    point = ".0" if v.chance(0.7) else ""
    against = ""
    if beaten is not None:
        hw, hl, aw, al = beaten
        against = (
            f"At home {team} beat {list(hw)} and was beaten by {list(hl)}. "
            f"Away it beat {list(aw)} and was beaten by {list(al)}. "
        )
    text = v.pick(
        (
            (
                f"{team} has {r.games} games in {period}: {r.wins} wins "
                f"({r.home_wins} at home, {r.away_wins} away) and {r.losses} losses "
                f"({r.home_losses} at home, {r.away_losses} away), no game open. "
                f"{against}Points (score) in all: {r.points}{point}, of these "
                f"{r.home_points}{point} at home and {r.away_points}{point} away. Points of the opponents "
                f"in all: {r.lost}{point}, of these {r.home_lost}{point} at home and "
                f"{r.away_lost}{point} away."
            ),
            (
                f"In {period} {team} took part in {r.games} games and won {r.wins} of them "
                f"(home {r.home_wins}, away {r.away_wins}), it lost {r.losses} "
                f"(home {r.home_losses}, away {r.away_losses}). {against}It made {r.points}{point} "
                f"points, {r.home_points}{point} at home and {r.away_points}{point} away, "
                f"and allowed {r.lost}{point}."
            ),
            (
                f"{team} ({period}): {r.games} games, {r.wins} won, {r.losses} lost, at home "
                f"{r.home_wins} won and {r.home_losses} lost, away {r.away_wins} won and "
                f"{r.away_losses} lost, {r.points} scored in total against {r.lost} of the opponents. "
                f"{against}"
            ),
        )
    )
    if details:
        lines = "; ".join(_statistic(v, name, r) for name in STATS[:details])
        season = v.pick(("Regular Season", "Playoffs", "Pre Season"))
        text += f"\n{season} of {team}, {period}: {r.games} games, {r.wins} won, {r.losses} lost; {lines}."
    return text


def _statistic(v: Voice, name: str, r: Totals) -> str:
    """What a team did in all games, at home and away; none where it played none."""
    home = (r.home_wins + r.home_losses) * v.between(3, 60)
    away = (r.away_wins + r.away_losses) * v.between(3, 60)
    return f"the {name} is {home + away}.0 ({home}.0 home, {away}.0 away)"


def _long(v: Voice) -> int:
    return v.weighted({0: 3.0, 3: 1.5, 8: 1.5, 14: 2.0})


def game(v: Voice, n: Names) -> Record:
    """One game of basketball on a day: the score, the opponent, who won, where."""
    when = v.moment()
    team = n.team()
    day = v.day(2019, 2023).isoformat()
    r = _season(v, 1)
    beaten = _opponents(v, n, r, team)
    opponent = next(name for names in beaten for name in names)
    asked = n.called(team)
    case = v.weighted(
        {
            "points": 3.0,
            "opponent": 3.0,
            "won": 1.2,
            "where": 0.6,
            "foreign": 0.8,
            "stranger": 0.5,
            "no game": 0.7,
            "against": 0.5,
        }
    )
    found = _totals(v, n, team, day, r, beaten if case == "opponent" or v.chance(0.3) else None, _long(v))
    match case:
        case "points":
            query = v.ask(
                (
                    "the [score|final score|point total|scoring output|number of points] of {x} on {d}",
                    "{x}'s [point total|score|points|final score] on {d}",
                    "the [points|score] {x} [had|made|put up] on {d}",
                    "the [final score|result in points] of {x}'s game on {d}",
                ),
                (
                    "how many points did {x} [score|have|make|get|put up] [on|in their game on|in the game of] {d}",
                    "on {d}, how many points did {x} [score|have]",
                    "on {d}, what was {x}'s [score|point total|points]",
                    "how much did {x} score on {d}",
                ),
                x=asked,
                d=day,
            )
            return answered(
                v.typed(query), when, DOMAIN, "simple_w_condition", str(r.points), (found,), (str(r.points),)
            )
        case "opponent":
            query = v.ask(
                (
                    "the [opponent|opposing team|rival|opposition] of {x} on {d}",
                    "{x}'s [opponent|opposing team|rival] on {d}",
                    "the team {x} [played|faced|met] on {d}",
                ),
                (
                    "who did {x} [play|face|meet|take on|play against|go up against] on {d}",
                    "on {d}, who did {x} [play|face|meet]",
                    "[which|what] team did {x} [play|face|meet|take on] on {d}",
                    "against whom did {x} play on {d}",
                    "on {d}, [which|what] team did {x} [face|play against]",
                ),
                x=asked,
                d=day,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", opponent, (found,), (opponent,))
        case "won":
            query = v.ask(
                (),
                (
                    "did {x} win [on|their game on] {d}",
                    "were {x} [the winners|victorious] on {d}",
                    "did {x} [get|pull off|secure] a win on {d}",
                ),
                x=asked,
                d=day,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if r.wins else "no", (found,))
        case "where":
            query = v.ask(
                (),
                ("did {x} play at home or away on {d}", "was {x}'s game on {d} a home game or an away game"),
                x=asked,
                d=day,
            )
            return answered(
                v.typed(query), when, DOMAIN, "simple_w_condition", "home" if r.home_points else "away", (found,)
            )
        case "against":
            query = v.say("how many points did {x}'s opponent score on {d}", x=asked, d=day)
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", str(r.lost), (found,), (str(r.lost),))
        case "no game":
            query = v.say(
                "[how many points did {x} score on {d}|who did {x} [beat|lose to|play] on {d}|did {x} win on {d}]",
                x=asked,
                d=day,
            )
            return invalid(v.typed(query), when, DOMAIN, (_no_match(v, team, day),))
        case "stranger":
            query = v.say("how many points did {x} score on {d}", x=asked, d=day)
            other = next(t for t in n.teams(2) if t != team)
            return unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (_totals(v, n, other, day, r, None, 0),))
        case _:
            query = v.ask(FOREIGN, FOREIGN_WHOLE, x=asked)
            return unknown(v.typed(query), when, DOMAIN, "simple", (found,))


def season(v: Voice, n: Names) -> Record:
    """The totals of a month or a year."""
    when = v.moment()
    team = n.team()
    year, month = v.between(2018, 2023), v.between(1, 12)
    period = v.pick((f"{year}", f"{year}-{month:02d}", f"{year}-{month:02d}"))
    said = v.pick((period, period, f"{MONTHS[month - 1].lower()} {year}" if "-" in period else f"the year {year}"))
    r = _season(v, v.between(8, 18) if "-" in period else v.between(60, 96))
    asked = n.called(team)
    against = _opponents(v, n, r, team)
    case = v.weighted(
        {
            "wins": 2.0,
            "losses": 2.0,
            "home wins": 1.0,
            "home losses": 1.6,
            "away wins": 0.8,
            "away losses": 0.8,
            "games": 1.0,
            "points": 2.0,
            "beat": 0.8,
            "compare": 2.6,
            "truth": 1.0,
            "foreign": 1.0,
            "stranger": 0.4,
            "lost points": 0.5,
        }
    )
    details = _long(v)
    if case in ("compare", "truth"):
        other = next(t for t in n.teams(2) if t != team)
        s = _season(v, r.games + v.between(-2, 2))
        what, mine, theirs = v.pick(
            (("wins", r.wins, s.wins), ("losses", r.losses, s.losses), ("points", r.points, s.points))
        )
        texts = (
            _totals(v, n, team, period, r, None, min(details, 3)),
            _totals(v, n, other, period, s, None, min(details, 3)),
        )
        if mine == theirs:
            return season(v, n)
        if case == "truth":
            verb = {
                "wins": "[win more games|have more wins]",
                "losses": "[lose more games|have more losses]",
                "points": "score more points",
            }[what]
            query = v.say(f"did {{a}} {verb} than {{b}} [in|during] {said}", a=asked, b=n.called(other))
            return answered(v.typed(query), when, DOMAIN, "comparison", "yes" if mine > theirs else "no", texts)
        verb = {
            "wins": "[had more wins|won more games|won more often]",
            "losses": "[had more losses|lost more games]",
            "points": "[scored more points|had more points]",
        }[what]
        query = v.say(f"[who|which team] {verb} [in|during] {said}[:|,] {{a}} or {{b}}", a=asked, b=n.called(other))
        return answered(
            v.typed(query), when, DOMAIN, "comparison", team if mine > theirs else other, dialects.shuffled(v, texts)
        )
    found = _totals(v, n, team, period, r, against if case == "beat" or v.chance(0.3) else None, details)
    inside = f"[in|during|over] {said}"
    forms: dict[str, tuple[tuple[str, ...], int]] = {
        "wins": (
            (
                f"how many [games|times] did {{x}} win {inside}",
                f"how many wins did {{x}} have {inside}",
                f"{inside}, how many games did {{x}} win",
                f"how often did {{x}} win {inside}",
            ),
            r.wins,
        ),
        "losses": (
            (
                f"how many [games|times] did {{x}} lose {inside}",
                f"how many losses did {{x}} have {inside}",
                f"how often [was {{x}} beaten|did {{x}} lose] {inside}",
            ),
            r.losses,
        ),
        "home wins": (
            (
                f"how many [home games did {{x}} win|home wins did {{x}} have] {inside}",
                f"as the home team, how many wins did {{x}} have {inside}",
                f"how many times did {{x}} win at home {inside}",
            ),
            r.home_wins,
        ),
        "home losses": (
            (
                f"how many [home games did {{x}} lose|home losses did {{x}} have] {inside}",
                f"how many losses did {{x}} have at home {inside}",
                f"as [the |]hosts, how many times did {{x}} lose {inside}",
                f"how many times did {{x}} lose as the home team {inside}",
            ),
            r.home_losses,
        ),
        "away wins": (
            (
                f"how many away [games did {{x}} win|wins did {{x}} have] {inside}",
                f"how many times did {{x}} win on the road {inside}",
            ),
            r.away_wins,
        ),
        "away losses": (
            (
                f"how many away [games did {{x}} lose|losses did {{x}} have] {inside}",
                f"how many times did {{x}} lose on the road {inside}",
            ),
            r.away_losses,
        ),
        "games": (
            (f"how many games did {{x}} play {inside}", f"how many games were there for {{x}} {inside}"),
            r.games,
        ),
        "points": (
            (
                f"how many points did {{x}} score [in total |overall |]{inside}",
                f"what was the [total|overall] [score|point total|number of points] of {{x}} {inside}",
                f"{inside}, how many points did {{x}} score [in total|altogether]",
            ),
            r.points,
        ),
        "lost points": (
            (
                f"how many points did {{x}} [allow|concede|give up] {inside}",
                f"how many points did opponents score against {{x}} {inside}",
            ),
            r.lost,
        ),
    }
    if case in forms:
        whole, number = forms[case]
        return answered(
            v.typed(v.ask((), whole, x=asked)), when, DOMAIN, "aggregation", str(number), (found,), (str(number),)
        )
    if case == "beat":
        won = v.chance(0.5)
        hw, hl, aw, al = against
        teams = sorted({*hw, *aw} if won else {*hl, *al})
        if not teams or len(teams) > 7:
            return season(v, n)
        query = v.say(
            f"which teams [did {{x}} {'beat|were beaten by {x}' if won else 'lose to|beat {x}'}] {inside}", x=asked
        )
        return answered(v.typed(query), when, DOMAIN, "set", listed(teams), (found,), tuple(teams))
    if case == "stranger":
        other = next(t for t in n.teams(2) if t != team)
        found = _totals(v, n, other, period, r, None, 0)
        query = v.say(f"how many games did {{x}} win {inside}", x=asked)
    else:
        query = v.ask(FOREIGN, tuple(f"{text} {inside}" for text in FOREIGN_WHOLE), x=asked)
    return unknown(v.typed(query), when, DOMAIN, "aggregation", (found,))


def _no_match(v: Voice, team: str, time: str) -> str:
    return v.pick(
        (
            f"There is no match of {team} on record for {time}.",
            f"No match record of {team}: {time}.",
            f"no match of {team} {time}",
            f"{team} had no game in the time asked for: {time}.",
            f"There is no record of a game of {team} on {time}.",
            f"{team}, {time}: 0 games",
        )
    )


_TODAY = (
    "[what's|what is] the [current |latest |live |]score of {x}'s game [today|that is on today]",
    "did {x} win [today|today's game]",
    "how many goals has {x} [scored|made] today",
    "who [is|are] {x} playing [today|tonight]",
    "is {x} [winning|leading] today",
    "[can you tell me|tell me] the [latest |]score of {x}'s [game|match] today",
)
_YESTERDAY = (
    "did {x} [win|lose|draw] [yesterday|their match yesterday]",
    "[was|were] {x} able to [win|get a win] yesterday",
    "how many goals did {x} score yesterday",
    "who did {x} [play|beat|lose to] yesterday",
    "what was the [score|result] of {x}'s [game|match] yesterday",
    "with what [score|result] did {x} finish yesterday's game",
)
_WEEK = (
    "[who|which team] did {x} [play|face|beat|lose to] last week",
    "how many goals did {x} [score|concede] [last week|in last week's matches]",
    "did {x} win last week",
    "in last week's games, how many goals did {x} [score|get]",
    "what was the result of {x}'s game last week",
)
_THIS_WEEK = (
    "[who|which team] [will|does|is] {x} play[ing|] this week",
    "[when|what day] does {x} play this week",
    "against whom [does|will] {x} play this week",
)


def no_match(v: Voice, n: Names) -> Record:
    """A question about a game that was not played."""
    when = v.moment()
    team = n.club() if v.chance(0.8) else n.team()
    day = when.date()
    words, time = v.pick(
        (
            (_TODAY, "today"),
            (_TODAY, day.isoformat()),
            (_YESTERDAY, (day - timedelta(days=1)).isoformat()),
            (_YESTERDAY, "yesterday"),
            (_WEEK, "last week"),
            (_THIS_WEEK, "this week"),
        )
    )
    query = v.say(v.pick(words), x=team)
    return invalid(v.typed(query), when, DOMAIN, (_no_match(v, team, time),))


@dataclass(frozen=True, slots=True)
class Match:
    """One game of soccer from a club's side."""

    club: str
    opponent: str
    league: str
    day: date
    home: bool
    scored: int
    conceded: int
    played: bool
    clock: str
    captain: str
    formation: str
    referee: str
    crowd: int

    @property
    def result(self) -> str:
        return "won" if self.scored > self.conceded else "drew" if self.scored == self.conceded else "lost"


def _match(v: Voice, n: Names, day: date, *, played: bool) -> Match:
    club, opponent = n.clubs(2)
    return Match(
        club,
        opponent,
        v.pick(LEAGUES),
        day,
        v.chance(0.5),
        v.weighted({0: 3, 1: 4, 2: 3, 3: 1.5, 4: 0.6}),
        v.weighted({0: 3, 1: 4, 2: 2.5, 3: 1, 5: 0.2}),
        played,
        f"{v.between(12, 21)}:{v.pick(('00', '30', '45', '15'))}:00",
        n.person(),
        v.pick(("4-3-3", "4-4-2", "3-5-2", "4-2-3-1", "3-4-3")),
        n.person(),
        v.between(4000, 80000),
    )


def _report(v: Voice, m: Match, time: str) -> str:
    """A game in words, with the totals before it, on a line or in a table."""
    win, lose, draw = (int(m.played and m.result == r) for r in ("won", "lost", "drew"))
    scored, conceded = (m.scored, m.conceded) if m.played else (0, 0)
    open_games = int(not m.played)
    side = (
        f"{win} wins, {lose} losses, {draw} draws, {scored} points made, {conceded} points against",
        "0 wins, 0 losses, 0 draws, 0 points made, 0 points against",
    )
    home, away = side if m.home else side[::-1]
    verb = {"won": "win", "drew": "draw", "lost": "lose"}[m.result] if m.played else "have no result yet in"
    stamp = f"{m.day.isoformat()} {m.clock[:5]}"
    game_text = (
        f"{v.pick((stamp, stamp, m.day.isoformat()))} ({m.day.strftime('%a')}, {m.clock} local time), {m.league}, "
        f"season {m.day.year}/{(m.day.year + 1) % 100:02d}: {m.club} {'at home' if m.home else 'away'} against "
        f"{m.opponent}; they {verb} the game."
    )
    if m.played:
        game_text += (
            f" {m.club}: goals {m.scored}, conceded {m.conceded}, possession {v.between(30, 70)}. Captain {m.captain}, "
            f"formation {m.formation}. Attendance {m.crowd}, referee {m.referee}."
        )
    long = (
        f"{m.club}, {time}: 1 match, {win} won, {lose} lost, {draw} drawn, {open_games} without a result yet; "
        f"points {scored} against {conceded}. At home {int(m.home)}: {home}. Away {int(not m.home)}: {away}.\n"
        f"{game_text}"
    )
    place = "at home" if m.home else "away"
    outcome = f"{m.result} {m.scored}-{m.conceded}" if m.played else "not played yet"
    row = (
        f"| {m.day.isoformat()} | {m.league} | {m.club} | {m.opponent} | "
        f"{'Home' if m.home else 'Away'} | {f'{m.scored}-{m.conceded}' if m.played else '-'} |"
    )
    return v.weighted(
        {
            long: 4.0,
            game_text: 2.0,
            (
                f"{m.club} ({time}): {m.day.isoformat()}, {m.league}, {place} against {m.opponent}, "
                f"{outcome}. Kick-off {m.clock[:5]}."
            ): 1.5,
            f"| date | league | team | opponent | venue | score |\n|---|---|---|---|---|---|\n{row}": 0.7,
            (
                f"On {m.day.isoformat()} {m.club} {'met' if m.played else 'will meet'} {m.opponent} "
                f"{place} in the {m.league}"
            )
            + (f" and {m.result} {m.scored}-{m.conceded}." if m.played else "."): 1.2,
        }
    )


def soccer(v: Voice, n: Names) -> Record:
    """The last or the next game of a club: when, against whom, where, how it ended."""
    when = v.moment()
    following = v.chance(0.35)
    today = when.date()
    day = today + timedelta(days=v.between(1, 9)) if following else today - timedelta(days=v.between(1, 9))
    m = _match(v, n, day, played=not following or v.chance(0.3))
    time = "next time" if following else v.pick(("last time", "last time", "last week"))
    found = _report(v, m, time)
    league = m.league.lower()
    inside = v.pick((f" in {league}", f" in {league}", f" in the {league}", ""))
    which = "[next|upcoming]" if following else "[last|latest|most recent|previous]"
    x = m.club
    case = v.weighted(
        {
            "date": 3.0,
            "opponent": 2.5,
            "where": 1.0,
            "goals": 0 if following else 2.0,
            "result": 0 if following else 2.5,
            "won": 0 if following else 1.0,
            "foreign": 1.2,
            "referee": 0 if following else 0.5,
            "stranger": 0.5,
            "time": 0.6 if following else 0.0,
        }
    )
    if (case == "referee" and "Captain" not in found) or (case == "time" and m.clock[:5] not in found):
        case = "date"
    whens = (f"when did {{x}} play last week{inside}",) if time == "last week" else ()
    match case:
        case "date":
            whole = whens or (
                (
                    f"when [does|will] {{x}} [play|compete|take the field] next{inside}",
                    f"when is {{x}}'s {which} [game|match]{inside}",
                    f"on what date does {{x}} play [its|their] next [game|match]{inside}",
                )
                if following
                else (
                    f"when did {{x}} last [play|compete|take the field]{inside}",
                    f"on [what|which] [date|day] [did {{x}} play its|was {{x}}'s] {which} [game|match]{inside}",
                    f"when was {{x}}'s {which} [game|match]{inside}",
                )
            )
            query = v.ask(
                (
                    f"the date of {{x}}'s {which} [game|match]{inside}",
                    f"the [day|date] of the {which} [game|match] of {{x}}{inside}",
                ),
                whole,
                x=x,
            )
            return answered(
                v.typed(query), when, DOMAIN, "simple_w_condition", m.day.isoformat(), (found,), (m.day.isoformat(),)
            )
        case "opponent":
            whole = (
                (
                    f"who [will|does] {{x}} [play|face|meet] next{inside}",
                    f"[who|which team] [is|will be] {{x}}'s next opponent{inside}",
                    f"against which team does {{x}} play next{inside}",
                )
                if following
                else (
                    f"who did {{x}} [play|face|meet] [last|most recently]{inside}",
                    f"[which team|who] did {{x}} play against in their {which} [game|match]{inside}",
                    f"who was {{x}}'s {which} opponent{inside}",
                )
            )
            return answered(
                v.typed(v.ask((f"the opponent of {{x}} in their {which} [game|match]{inside}",), whole, x=x)),
                when,
                DOMAIN,
                "simple_w_condition",
                m.opponent,
                (found,),
                (m.opponent,),
            )
        case "where":
            verb = "is" if following else "was"
            query = v.say(
                f"{verb} {{x}}'s {which} [game|match]{inside} [at home or away|a home game or an away game]", x=x
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "home" if m.home else "away", (found,))
        case "goals":
            lost = v.chance(0.2)
            query = v.ask(
                (f"the [goal total|number of goals|goals] of {{x}} in their {which} [game|match]{inside}",)
                if not lost
                else (),
                (
                    (
                        f"how many goals did {{x}} {'concede|allow' if lost else 'score|make|get'} in "
                        f"their {which} [game|match]{inside}"
                    )
                    .replace("concede|allow", "[concede|allow]")
                    .replace("score|make|get", "[score|make|get]"),
                ),
                x=x,
            )
            return answered(
                v.typed(query),
                when,
                DOMAIN,
                "simple_w_condition",
                str(m.conceded if lost else m.scored),
                (found,),
                (str(m.conceded if lost else m.scored),),
            )
        case "result":
            query = v.say(
                v.pick(
                    (
                        f"did {{x}} win or lose [their|its] {which} [game|match]{inside}",
                        f"how did {{x}} [do|fare] in their {which} [game|match]{inside}[|, win or loss]",
                        (
                            f"what was the [result|outcome] of {{x}}'s {which} [game|match]{inside}, "
                            "[a win, a draw or a loss|win or loss]"
                        ),
                        f"in [their|its] {which} [game|match]{inside}, did {{x}} win, lose or draw",
                    )
                ),
                x=x,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", LETTERS[m.result], (found,))
        case "won":
            query = v.say(f"did {{x}} win [their|its] {which} [game|match]{inside}", x=x)
            return answered(
                v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if m.result == "won" else "no", (found,)
            )
        case "referee":
            what, value = v.pick(
                (
                    ("referee", m.referee),
                    ("captain", m.captain),
                    ("formation", m.formation),
                    ("attendance", str(m.crowd)),
                )
            )
            query = v.say(
                f"[what|who] was the {what} [in|of] {{x}}'s {which} [game|match]{inside}"
                if what in ("referee", "captain")
                else f"what was the {what} [in|of] {{x}}'s {which} [game|match]{inside}",
                x=x,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", value, (found,), (value,))
        case "time":
            query = v.say(f"[what time|when] does {{x}}'s next [game|match]{inside} [start|kick off]", x=x)
            return answered(
                v.typed(query),
                when,
                DOMAIN,
                "simple_w_condition",
                m.clock[:5] if m.clock not in found else m.clock,
                (found,),
            )
        case "stranger":
            query = v.say(
                f"[who did {{x}} play|when did {{x}} play] in their {which} [game|match]{inside}"
                if not following
                else f"who does {{x}} play next{inside}",
                x=x,
            )
            other = _match(v, n, day, played=m.played)
            return (
                unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (_report(v, other, time),))
                if other.club != m.club and other.opponent != m.club
                else soccer(v, n)
            )
        case _:
            return unknown(v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=x)), when, DOMAIN, "simple", (found,))


PATTERNS = ((3.8, game), (3.6, season), (3.4, no_match), (4.4, soccer))
