"""Programs about games."""

from datetime import datetime, timedelta

from lab.trainer.synthesise.programs.drawn import Drawn, Gold, made, quoted
from lab.trainer.synthesise.record import QuestionType
from lab.trainer.synthesise.voice import MONTHS
from lab.trainer.synthesise.world import Game, World


def _period(w: World, when: datetime) -> tuple[str, str]:
    """Words for a month or a year, and the program's."""
    v = w.voice
    day = w.last - timedelta(days=v.between(20, 330))
    month = MONTHS[day.month - 1].lower()
    return v.pick(
        (
            (f"{day.year}-{day.month:02d}", f"{day.year}-{day.month:02d}"),
            (f"{day.year}-{day.month:02d}", f"{day.year}-{day.month:02d}"),
            (f"{month} {day.year}", f"{day.year}-{day.month:02d}"),
            (f"{day.year}", f"{day.year}"),
            (f"the year {day.year}", f"{day.year}"),
        )
    )


def nba_game(w: World) -> Drawn | None:
    v = w.voice
    game = v.pick(w.nba)
    asked = w.names.called(game.team)
    day = game.day.isoformat()
    said = day if v.chance(0.8) else f"{MONTHS[game.day.month - 1].lower()} {game.day.day}, {game.day.year}"
    call = f'get_nba_on_date({quoted(asked)}, "{day}")'
    key, nouns, whole, gold = v.pick(
        (
            (
                "gf",
                (
                    "the [score|final score|point total|number of points|scoring output] of {x} on {d}",
                    "{x}'s [point total|score|points|final score] on {d}",
                    "the [final score|result in points] of {x}'s game on {d}",
                ),
                (
                    "how many points did {x} [score|have|make|get|put up] [on|in their game on|in the game of] {d}",
                    "on {d}, how many points did {x} score",
                    "on {d}, what was {x}'s [score|point total]",
                ),
                game.scored,
            ),
            (
                "gf",
                (),
                (
                    "how many points did {x} score in [their|its] [contest|matchup] on {d}",
                    "what was the point total for {x} on {d}",
                ),
                game.scored,
            ),
            (
                "opponent",
                (
                    "the [opponent|opposing team|rival|opposition] of {x} on {d}",
                    "{x}'s [opponent|opposing side] on {d}",
                ),
                (
                    "who did {x} [play|face|meet|take on|play against|go up against] on {d}",
                    "on {d}, who did {x} [play|face]",
                    "[which|what] team did {x} [play|face|meet] on {d}",
                    "on {d}, which team did {x} [take on|go against]",
                ),
                game.opponent,
            ),
            ("result", (), ("did {x} win [on|their game on] {d}", "were {x} victorious on {d}"), game.result),
            (
                "venue",
                (),
                ("did {x} play at home or away on {d}", "were {x} at home on {d}"),
                "Home" if game.home else "Away",
            ),
            (
                "reb",
                ("the [number of |]rebounds of {x} on {d}",),
                ("how many rebounds did {x} [get|have] on {d}",),
                game.facts["reb"],
            ),
            (
                "ast",
                ("the [number of |]assists of {x} on {d}",),
                ("how many assists did {x} have on {d}",),
                game.facts["ast"],
            ),
            (
                "ga",
                (),
                ("how many points did {x}'s opponent score on {d}", "how many points did {x} [allow|concede] on {d}"),
                game.conceded,
            ),
        )
    )
    return made(w, v.ask(nouns, whole, x=asked, d=said), f'{call}["{key}"]', (gold,), "simple_w_condition")


def nba_period(w: World) -> Drawn | None:
    v = w.voice
    team = v.pick(w.nba).team
    words, program = _period(w, w.moment())
    games = [g for g in w.nba if g.team == team and g.day.isoformat().startswith(program)]
    if len(games) < 2:
        return None
    asked = w.names.called(team)
    call = f'get_nba_on_date({quoted(asked)}, "{program}")'
    inside = v.say(f"[in|during|over] {words}")
    won, lost = [g for g in games if g.result == "W"], [g for g in games if g.result == "L"]
    kind = v.weighted(
        {
            "wins": 2.0,
            "losses": 2.0,
            "home wins": 1.0,
            "home losses": 1.6,
            "away wins": 0.8,
            "away losses": 0.8,
            "games": 1.0,
            "points": 2.0,
            "average": 0.8,
            "beat": 1.0,
            "lost to": 1.0,
            "best": 0.5,
        }
    )
    forms: dict[str, tuple[tuple[str, ...], str, Gold, QuestionType]] = {
        "wins": (
            (
                "how many [games|times] did {x} win {d}",
                "how many wins did {x} have {d}",
                "{d}, how many games did {x} win",
                "the number of {x}'s [wins|victories] {d}",
            ),
            f'LEN {call} where(eq(result, "W"))',
            (len(won),),
            "aggregation",
        ),
        "losses": (
            (
                "how many [games|times] did {x} lose {d}",
                "how many losses did {x} have {d}",
                "how often [was|were] {x} [beaten|defeated] {d}",
            ),
            f'LEN {call} where(eq(result, "L"))',
            (len(lost),),
            "aggregation",
        ),
        "home wins": (
            (
                "how many home games did {x} win {d}",
                "how many home wins did {x} [have|get] {d}",
                "how many times did {x} win as the home team {d}",
                "as the home team, how many [total |]wins did {x} have {d}",
                "{d}, how [often|many times] did {x} win [at home|as the home team]",
            ),
            f'LEN {call} where(eq(venue, "Home"), eq(result, "W"))',
            (sum(g.home for g in won),),
            "aggregation",
        ),
        "home losses": (
            (
                "how many home games did {x} lose {d}",
                "how many losses did {x} have at home {d}",
                "as the home team, how many [total |]losses did {x} have {d}",
                "how many times did {x} lose [at home|as the home team] {d}",
                "how many times [was|were] {x} on the losing side [at home|as the home team] {d}",
                "{d}, how [often|many times] did {x} lose [at home|as the home team]",
            ),
            f'LEN {call} where(eq(venue, "Home"), eq(result, "L"))',
            (sum(g.home for g in lost),),
            "aggregation",
        ),
        "away wins": (
            ("how many away games did {x} win {d}", "how many times did {x} win [on the road|as the away team] {d}"),
            f'LEN {call} where(eq(venue, "Away"), eq(result, "W"))',
            (sum(not g.home for g in won),),
            "aggregation",
        ),
        "away losses": (
            ("how many away games did {x} lose {d}", "how many times did {x} lose [on the road|as the away team] {d}"),
            f'LEN {call} where(eq(venue, "Away"), eq(result, "L"))',
            (sum(not g.home for g in lost),),
            "aggregation",
        ),
        "games": (
            ("how many games did {x} play {d}", "the number of games of {x} {d}"),
            f"LEN {call}",
            (len(games),),
            "aggregation",
        ),
        "points": (
            (
                "how many points did {x} score [in total |overall |]{d}",
                "what was the [total|overall] [score|point total|number of points|scoring figure] [of|for] {x} {d}",
                "{d}, how many points did {x} score [in total|altogether]",
            ),
            f'SUM {call}["gf"]',
            (sum(g.scored for g in games),),
            "aggregation",
        ),
        "average": (
            ("how many points [a|per] game did {x} [score|average] {d}", "what was the average score of {x} {d}"),
            f'AVG {call}["gf"]',
            (sum(g.scored for g in games) / len(games),),
            "aggregation",
        ),
        "beat": (
            (
                "which teams did {x} [beat|win against|defeat] {d}",
                "who did {x} [beat|defeat] {d}",
                "which teams lost to {x} {d}",
            ),
            f'{call} where(eq(result, "W"))["opponent"]',
            tuple(g.opponent for g in won),
            "set",
        ),
        "lost to": (
            (
                "which teams did {x} lose to {d}",
                "which teams [beat|outplayed|defeated|won against] {x} {d}",
                "who [beat|defeated] {x} {d}",
            ),
            f'{call} where(eq(result, "L"))["opponent"]',
            tuple(g.opponent for g in lost),
            "set",
        ),
        "best": (
            ("what was the highest score of {x} {d}", "the most points {x} scored in a game {d}"),
            f'MAX {call}["gf"]',
            (max(g.scored for g in games),),
            "post-processing",
        ),
    }
    whole, text, gold, question_type = forms[kind]
    if not gold:
        return None
    return made(w, v.ask((), whole, x=asked, d=inside), text, gold, question_type)


def nba_compare(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(sorted({g.team for g in w.nba}), 2)
    words, program = _period(w, w.moment())
    games = [[g for g in w.nba if g.team == t and g.day.isoformat().startswith(program)] for t in (one, two)]
    if min(map(len, games)) < 2:
        return None
    a, b = w.names.called(one), w.names.called(two)
    kind = v.pick(("W", "L", "gf"))
    verb = {
        "W": ("[had more wins|won more games]", "[win more games|have more wins]"),
        "L": ("[had more losses|lost more games]", "[lose more games|have more losses]"),
        "gf": ("[scored more points|had more points]", "[score more points|end up scoring more points]"),
    }[kind]
    query = v.say(
        f"[who|which team] {verb[0]} [in|during] {words}[:|,] {{a}} or {{b}}"
        if v.chance(0.6)
        else f"[in {words}, |]did {{a}} {verb[1]} than {{b}} [in|during] {words}".replace(f"[in {words}, |]", ""),
        a=a,
        b=b,
    )
    if kind == "gf":
        calls, gold = (
            [f'SUM get_nba_on_date({quoted(x)}, "{program}")["gf"]' for x in (a, b)],
            tuple(sum(g.scored for g in gs) for gs in games),
        )
    else:
        calls, gold = (
            [f'LEN get_nba_on_date({quoted(x)}, "{program}") where(eq(result, "{kind}"))' for x in (a, b)],
            tuple(sum(g.result == kind for g in gs) for gs in games),
        )
    return made(w, query, "\n".join(calls), gold, "comparison")


def soccer_game(w: World) -> Drawn | None:
    v = w.voice
    when = w.moment()
    club = v.pick(w.soccer).team
    following = v.chance(0.35)
    # What is a game of today, of last week or before depends on the hour; days away are safe.
    games = sorted((g for g in w.soccer if g.team == club), key=lambda g: g.day)
    today = when.date()
    if any(abs((g.day - today).days) <= 1 for g in games):
        return None
    ahead, behind = [g for g in games if g.day > today], [g for g in games if g.day < today]
    if not (ahead if following else behind):
        return None
    game = ahead[0] if following else behind[-1]
    if not following and not game.played:
        return None
    league = game.league.lower()
    named = v.chance(0.65)
    inside = v.pick((f" in {league}", f" in the {league}")) if named else ""
    call = (
        ("get_soccer_next_game" if following else "get_soccer_last_game")
        + f"({quoted(club)}"
        + (f', "{league}")' if named else ")")
    )
    which = "[next|upcoming]" if following else "[last|latest|most recent|previous]"
    key, nouns, whole, gold = _soccer_form(w, game, inside, which, following=following)
    return made(w, v.ask(nouns, whole, x=club), f"{call}{key}", gold, "simple_w_condition", when)


def _soccer_form(
    w: World, game: Game, inside: str, which: str, *, following: bool
) -> tuple[str, tuple[str, ...], tuple[str, ...], Gold]:
    v = w.voice
    day, home = game.day.isoformat(), "Home" if game.home else "Away"
    forms: list[tuple[str, tuple[str, ...], tuple[str, ...], Gold]]
    if following:
        forms = [
            (
                '["date"]',
                (
                    f"the date of {{x}}'s {which} [game|match]{inside}",
                    f"the [day|date] of the {which} [game|match] of {{x}}{inside}",
                ),
                (
                    f"when [does|will|do] {{x}} [play|compete|take the field] [next|again]{inside}",
                    f"when is {{x}}'s {which} [game|match]{inside}",
                    f"when [does|do] {{x}} [have|play] [their|its] next [game|match]{inside}",
                ),
                (day,),
            ),
            (
                '["opponent"]',
                (f"{{x}}'s next opponent{inside}",),
                (
                    f"who [will|does|do] {{x}} [play|face|meet] next{inside}",
                    f"against which team [does|do] {{x}} play next{inside}",
                    f"[which|what] team will {{x}} [face|play] in [their|its] {which} [game|match]{inside}",
                ),
                (game.opponent,),
            ),
            ('["venue"]', (), (f"is {{x}}'s {which} [game|match]{inside} at home[| or away]",), (home,)),
            (
                '["date", "time"]',
                (),
                (f"[what time|at what time] does {{x}}'s next [game|match]{inside} [start|kick off]",),
                (game.facts["time"][:5],),
            ),
        ]
    else:
        forms = [
            (
                '["date"]',
                (
                    f"the date of {{x}}'s {which} [game|match]{inside}",
                    f"the date of the last time {{x}} [played|competed]{inside}",
                ),
                (
                    f"when did {{x}} last [play|compete|take the field]{inside}",
                    f"on [what|which] [date|day] did {{x}} play [its|their] {which} [game|match]{inside}",
                    f"when was {{x}}'s {which} [game|match]{inside}",
                ),
                (day,),
            ),
            (
                '["opponent"]',
                (f"the opponent of {{x}} in their {which} [game|match]{inside}",),
                (
                    f"who did {{x}} [play|face|meet] in [their|its] {which} [game|match]{inside}",
                    f"which team did {{x}} play against in their {which} [game|match]{inside}",
                ),
                (game.opponent,),
            ),
            (
                '["result"]',
                (f"the [result|outcome] of {{x}}'s {which} [game|match]{inside}",),
                (
                    f"did {{x}} win or lose [their|its] {which} [game|match]{inside}",
                    f"how did {{x}} [do|fare] in their {which} [game|match]{inside}[| in terms of wins and losses]",
                    f"did {{x}} win [their|its] {which} [game|match]{inside}",
                ),
                (game.result,),
            ),
            (
                '["venue"]',
                (f"the venue of {{x}}'s {which} [game|match]{inside}, home or away",),
                (
                    f"was {{x}}'s {which} [game|match]{inside} at home or away",
                    f"did {{x}} play at home in their {which} [game|match]{inside}",
                ),
                (home,),
            ),
            (
                '["gf"]',
                (f"the [goal total|number of goals|goals] of {{x}} in their {which} [game|match]{inside}",),
                (f"how many goals did {{x}} [score|make|get] in their {which} [game|match]{inside}",),
                (game.scored,),
            ),
            (
                '["ga"]',
                (),
                (f"how many goals did {{x}} [concede|allow|let in] in their {which} [game|match]{inside}",),
                (game.conceded,),
            ),
            (
                '["gf", "ga"]',
                (f"the final score of {{x}}'s {which} [game|match]{inside}",),
                (f"what was the final score of the {which} {{x}} [game|match]{inside}",),
                (game.scored, game.conceded),
            ),
            (
                '["captain"]',
                (f"the captain of {{x}} in their {which} [game|match]{inside}",),
                (
                    f"who was [the |]captain of {{x}} in their {which} [game|match]{inside}",
                    f"who captained {{x}} in the {which} [game|match]{inside}",
                ),
                (game.facts["captain"],),
            ),
            (
                '["attendance"]',
                (f"the attendance of {{x}}'s {which} [game|match]{inside}",),
                (f"how many people [watched|attended|were at] {{x}}'s {which} [game|match]{inside}",),
                (game.facts["attendance"],),
            ),
            (
                '["referee"]',
                (f"the referee of {{x}}'s {which} [game|match]{inside}",),
                (f"who [was the referee of|refereed] {{x}}'s {which} [game|match]{inside}",),
                (game.facts["referee"],),
            ),
            (
                '["formation"]',
                (f"the formation of {{x}} in their {which} [game|match]{inside}",),
                (f"[what|which] formation did {{x}} [use|play] in their {which} [game|match]{inside}",),
                (game.facts["formation"],),
            ),
        ]
    return forms[v.weighted({i: (3.0, 2.0, 2.0, 1.5, 1.5)[i] if i < 5 else 0.6 for i in range(len(forms))})]


def soccer_when(w: World) -> Drawn | None:
    v = w.voice
    game = v.pick([g for g in w.soccer if g.played])
    when = w.moment()
    today = when.date()
    sunday = today - timedelta(days=(today.weekday() + 1) % 7)
    spans = {
        "last week": (sunday - timedelta(days=7), sunday - timedelta(days=1)),
        "yesterday": (today - timedelta(days=1),) * 2,
        game.day.isoformat(): (game.day, game.day),
        f"{game.day:%Y-%m}": (game.day.replace(day=1), game.day.replace(day=1) + timedelta(days=30)),
    }
    words = v.weighted({"last week": 3.0, "yesterday": 2.0, game.day.isoformat(): 2.0, f"{game.day:%Y-%m}": 1.0})
    first, last = spans[words]
    games = [
        g
        for g in w.soccer
        if (g.team == game.team and first <= g.day <= last and g.day.month == first.month)
        or (g.team == game.team and first <= g.day <= last)
    ]
    games = [g for g in games if g.played]
    if (
        not games
        or any(not g.played and g.team == game.team and first <= g.day <= last for g in w.soccer)
        or (today - max(g.day for g in games)).days < 1
    ):
        return None
    said = words if words in ("last week", "yesterday") else f"[on] {words}" if len(words) == 10 else f"in {words}"
    said = v.say(said)
    call = f'get_soccer_on_date({quoted(game.team)}, "{words}")'
    forms: dict[str, tuple[tuple[str, ...], str, Gold, QuestionType]] = {
        "opponent": (
            ("[who|which team] did {x} [play|face|meet|play against] {d}", "against whom did {x} play {d}"),
            f'{call}["opponent"]',
            tuple(g.opponent for g in games),
            "simple_w_condition",
        ),
        "result": (
            (
                "did {x} win {d}",
                "did {x} come out as winners {d}",
                "did {x} manage to win [their|its] [game|match] {d}",
                "what was the result of {x}'s [game|match] {d}",
            ),
            f'{call}["result"]',
            tuple(g.result for g in games),
            "simple_w_condition",
        ),
        "goals": (
            (
                "how many goals did {x} score [in total |]{d}",
                "{d}, how many goals did {x} [score|get] in [all|total]",
                "what is the total number of goals {x} scored {d}",
            ),
            f'SUM {call}["gf"]',
            (sum(g.scored for g in games),),
            "aggregation",
        ),
        "score": (
            ("what was the score of {x}'s [game|match] {d}",),
            f'{call}["gf", "ga"]',
            (games[0].scored, games[0].conceded),
            "simple_w_condition",
        ),
        "wins": (
            ("how many [games|matches] did {x} win {d}",),
            f'LEN {call} where(eq(result, "W"))',
            (sum(g.result == "W" for g in games),),
            "aggregation",
        ),
    }
    whole, program, gold, question_type = forms[v.pick(list(forms))]
    return made(w, v.ask((), whole, x=game.team, d=said), program, gold, question_type, when)


PATTERNS = (
    (3.4, nba_game),
    (3.8, nba_period),
    (1.2, nba_compare),
    (4.4, soccer_game),
    (1.6, soccer_when),
)
