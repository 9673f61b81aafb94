"""Rules for soccer clubs and NBA teams."""

import re

from services.kg.generate.rules.question import Question, quote

_LEAGUE = re.compile(
    r"\b((?:eng|esp|fra|ger|ita)-[a-z]+(?: [a-z]{1,2}\b| liga| league| \d)?|premier league|la liga|"
    r"ligue 1|bundesliga|serie a)\b"
)
KEYS = (
    (r"captain|armband|leader\b|leading (?:member|player)|in charge of", "captain"),
    (r"referee|officiat", "referee"),
    (r"attendance|crowd|spectators|people watched|how many people|fans", "attendance"),
    (r"formation|line ?up", "formation"),
    (r"possession", "possession"),
    (r"kick.?off|what time|at what hour", "time"),
    (r"home (?:game )?or (?:an? )?away|home advantage|at home|away or|venue|location|where\b|home game", "venue"),
    (
        r"who (?:did|do|does|will|is|was|are)|opponent|against|which (?:team|side|club)|what team|face|"
        r"go head|took? on|oppose|up against|rival|play with|meet",
        "opponent",
    ),
    (r"rebound", "reb"),
    (r"assist", "ast"),
    (r"conced", "ga"),
    (r"score|goals?|points?|tally|put up|rack|output", "gf"),
    (r"result|outcome|\bwin\b|\bwon\b|\blose\b|\blost\b|victor|how did|beat|triumph|draw", "result"),
    (r"when|date|what day|which day|schedule|last play|next play|play next|take the field|time", "date"),
)


_BEAT = (
    r"overcome|beat|defeat|take down|took down|get the better of|got the better of|triumph(?:ed)? over|"
    r"prevail(?:ed)? (?:over|against)|won against|win against"
)
# The named team is the one that was beaten: "who beat x".
_BEATEN = rf"(?:{_BEAT})\W+(?:the )?_"


def statements(question: Question) -> list[str]:
    """The statements for a question, none when no rule fits."""
    nba, soccer = question.names("nba_team"), question.names("soccer_team")
    shared = set(nba) & set(soccer)
    if shared:
        football = _LEAGUE.search(question.words) or question.says(r"goal|captain|soccer|football|match")
        nba, soccer = (
            ([one for one in nba if one not in shared], soccer)
            if football
            else (nba, [one for one in soccer if one not in shared])
        )
    if nba:
        return [_nba(question, name) for name in nba[:3]]
    if not soccer:
        guessed = question.guess(r"\b(?:did|does|do|was|were|is|of|for|will)\b")
        soccer = [guessed] if guessed and question.says(r"game|match|play|goal|league|score|captain") else []
    return [_soccer(question, name) for name in soccer[:3]]


def _key(question: Question) -> str:
    if question.says(
        r"\bwhen\b|what date|which date|on what day|which day|what day|the date\b|specific date"
    ) and not question.says(r"home or away"):
        return "date"
    return next((key for pattern, key in KEYS if question.says(pattern)), "")


def _soccer(question: Question, name: str) -> str:
    match = _LEAGUE.search(question.words)
    league = f", {quote(match[1])}" if match else ""
    key = _key(question)
    shown = f'["{key}"]' if key else ""
    time = question.time
    upcoming = question.says(r"\bnext\b|upcoming|coming|scheduled|lined up|will\b") and not time
    if upcoming or time.startswith("next "):
        return f"get_soccer_next_game({quote(name)}{league}){shown}"
    dated = time and not re.search(r"^(?:last|previous|recent|most recent|latest|past) (?:day|time)$", time)
    if dated:
        call = f"get_soccer_on_date({quote(name)}, {quote(time)}{league})"
        return (
            f"{_aggregate(question)}{call}{_where(question)}{shown}"
            if not _counts(question)
            else _count(question, call)
        )
    return f"get_soccer_last_game({quote(name)}{league}){shown}"


def _nba(question: Question, name: str) -> str:
    years = [str(year) for year in question.years]
    time = question.time or (years[0] if years else "")
    if not time:
        time = "last game"
    call = f"get_nba_on_date({quote(name)}, {quote(time)})"
    several = re.fullmatch(r"\d{4}(?:-\d\d)?|.*(?:week|month|year|season)", time) is not None
    if _counts(question) and several:
        return _count(question, call)
    if several and question.says(r"points?|score|scoring|tally|haul"):
        return f'{"AVG" if question.says(r"average|per game|a game") else "SUM"} {call}["gf"]'
    if several and question.says(r"which teams?|who|opponents?|against"):
        where = _where(question, turned=question.says(_BEATEN))
        return f'{call}{where}["opponent"]'
    key = _key(question)
    return call + (f'["{key}"]' if key else "")


def _counts(question: Question) -> bool:
    return question.says(
        r"\bwins?\b|\bwon\b|victor|\bloss(?:es)?\b|\blose\b|\blost\b|losing|fail(?:ed)?|prevail|beaten|"
        r"came out on top|come up short|draws?\b|how many games|number of games"
    ) and not question.says(rf"which teams?\b.*(?:{_BEAT})|points|score")


def _count(question: Question, call: str) -> str:
    return f"LEN {call}{_where(question)}"


def _where(question: Question, *, turned: bool = False) -> str:
    conditions = []
    if question.says(r"home team|at home|home (?:game|loss|win)|as the home|home court"):
        conditions.append('eq(venue, "Home")')
    elif question.says(r"away (?:team|game|loss|win)|as the away|on the road|visiting"):
        conditions.append('eq(venue, "Away")')
    if turned or question.says(
        r"\bloss(?:es)?\b|\blose\b|\blost\b|losing|fail|beaten|come up short|came up short|defeated by"
    ):
        conditions.append('eq(result, "L")')
    elif question.says(r"\bdraws?\b|\btied?\b"):
        conditions.append('eq(result, "D")')
    elif question.says(r"\bwins?\b|\bwon\b|victor|prevail|came out on top|beat\b|defeat"):
        conditions.append('eq(result, "W")')
    return f" where({', '.join(conditions)})" if conditions else ""


def _aggregate(question: Question) -> str:
    return (
        "SUM " if question.says(r"total|in all|altogether|sum|overall") and question.says(r"goal|points|score") else ""
    )
