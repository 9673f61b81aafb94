"""Rules for artists, songs, the Grammys and the Hot 100."""

import re

from services.kg.generate.rules.question import Question, quote

_FIRST_CEREMONY = 1957
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b(?: annual)? grammy")
_GRAMMY_KEYS = (
    (r"new artist", "best_new_artist"),
    (r"album", "best_album"),
    (r"song", "best_song"),
    (r"record", "best_record"),
)
_CATEGORIES = {
    "best_new_artist": "best new artist",
    "best_album": "album of the year",
    "best_song": "song of the year",
    "best_record": "record of the year",
}
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
# What the graph does not know of artists.
_UNKNOWN = (
    r"\btours?\b|concerts?|videos?\b|number.one|#1|streams?\b|streamed|spotify|followers?|following|"
    r"net worth|married|wife|"
    r"husband|dating|child(?:ren)?\b|parents?\b|genre|soul train|billboard music|\bmtv\b|brit awards?|chart"
)
_RANK = re.compile(
    r"(?:number|no\.?|#|rank(?:ed)?|position|spot)\s*(\d{1,3}|one|two|three|four|five|ten)\b|\btop (?:song|of)\b"
)


def statements(question: Question) -> list[str]:
    """The statements for a question, none when no rule fits."""
    artists, songs = _kinds(question)
    if question.says(r"grammy"):
        found = _grammys(question, artists, songs)
        if found:
            return found
    if question.says(r"billboard|hot 100|\bcharts?\b"):
        found = _charts(question, songs)
        if found:
            return found
    if songs and (
        not artists
        or question.says(
            r"who (?:wrote|sang|sings|made|performed|released|is (?:the )?(?:singer|artist|author))|wrote|author|writer"
        )
    ):
        return [f'get_song({quote(name)})["{_song_key(question)}"]' for name in songs[:3]]
    if question.says(_UNKNOWN):
        return []
    if not artists:
        guessed = question.guess()
        artists = [guessed] if guessed else []
    return [_artist(question, name) for name in artists[:3]]


def _kinds(question: Question) -> tuple[list[str], list[str]]:
    """Artists and songs; a name that is both is what the question's words make of it."""
    artists, songs = question.names("artist"), question.names("song")
    both = set(artists) & set(songs)
    if both:
        song = question.says(
            r"who (?:wrote|sang|sings|performed|made)|(?:song|track|album|single)\W+_|author|lyrics|"
            r"which (?:singer|artist|band|musician)|(?:wrote|sang|sings)\b"
        ) and not question.says(r"\bband\W+_|singer\W+_|\bby\W+_|artist\W+_")
        if song:
            artists = [name for name in artists if name not in both]
        else:
            songs = [name for name in songs if name not in both]
    return artists, songs


def _song_key(question: Question) -> str:
    if question.says(r"countr|where"):
        return "release_country"
    if question.says(r"when|date|year|day|released?\b.*\b(?:first|earlier)|older|newer"):
        return "release_date"
    return "author"


def _grammys(question: Question, artists: list[str], songs: list[str]) -> list[str]:
    ordinals = [int(number) + _FIRST_CEREMONY for number in _ORDINAL.findall(question.words)]
    years = question.years or ordinals
    key = next((key for pattern, key in _GRAMMY_KEYS if question.says(pattern)), "")
    if not artists and not songs and years and key:
        second = f', "{max(years)}"' if len(set(years)) > 1 and question.says(r"from|between|through|to\b") else ""
        found = [f'get_grammy_year("{min(years) if second else years[0]}"{second})["{key}"]']
        if key == "best_new_artist" and question.says(r"\bborn\b|birth|countr|where|how many songs|number of songs"):
            facet = "birth_date" if question.says(r"when|date") else "birth_place"
            if question.says(r"songs"):
                found.append(f'LEN get_person(*["{key}"])["music"]')
            else:
                found.append(f'get_person(*["{key}"])["{facet}"]')
        return found
    names = [("get_grammy_person", name) for name in artists] or [("get_grammy_song", name) for name in songs]
    if question.says(r"\bsong\b") and songs:
        names = [("get_grammy_song", name) for name in songs]
    if not names:
        guessed = question.guess()
        names = [("get_grammy_song" if question.says(r"\bsong\b") else "get_grammy_person", guessed)] if guessed else []
    if question.says(r"which year|what year|when|first"):
        return [f'{function}({quote(name)})["award_date"]' for function, name in names[:3]]
    where = (
        f' where(eq(category, "{_CATEGORIES[key]}"))' if key and artists and question.says(r"of the year|best") else ""
    )
    if years and question.says(r"(?:at|in|during) the (?:\d|grammy)") and not question.says(r"until|up to|by the"):
        where = f" where(eq(year, {years[0]}))"
    return [f"LEN {function}({quote(name)}){where}" for function, name in names[:3]]


def _charts(question: Question, songs: list[str]) -> list[str]:
    time = question.time
    when = f', "{time}"' if time else ""
    if songs:
        key = (
            "weeks_in_chart"
            if question.says(r"weeks|how long")
            else "top_position"
            if question.says(r"peak|highest|top position|best")
            else "rank"
        )
        when = when if key == "rank" else ""
        return [f'get_billboard_song({quote(song)}{when})["{key}"]' for song in songs[:3]]
    match = _RANK.search(question.words)
    if match is None:
        return []
    rank = _COUNTS.get(match[1] or "one") or int(match[1])
    return [f'get_billboard({rank}{when})["{"artist" if question.says(r"^who|artist|singer") else "song"}"]']


def _artist(question: Question, name: str) -> str:
    person = f"get_person({quote(name)})"
    if question.says(
        r"members?\b|line-?up|who(?:'s| is| are| was| were) in\b|lead singer|vocalist|drummer|guitarist|"
        r"bassist|\bpart of\b|how many people"
    ):
        return f'{"LEN " if question.says(r"how many") else ""}{person}["members"]'
    works = question.says(r"songs?|albums?|releas|single|record|music|track|discography|works?\b|put out")
    if works and not question.says(r"start|began|begin|birth|born"):
        years = sorted(set(question.years))
        where = ""
        if len(years) == 1:
            sign = "ge" if question.says(r"since|after") else "le" if question.says(r"before|until") else "eq"
            where = f' where({sign}(release_date, "{years[0]}"))'
        elif years:
            where = f' where(ge(release_date, "{years[0]}"), le(release_date, "{years[-1]}"))'
        music = f'{person}["music"]'
        if question.says(r"how many|number of|count|more songs|most songs"):
            return f"LEN {music}{where}"
        shown = "release_date" if question.says(r"\bdate\b|\bwhen\b|what (?:day|year)|which (?:day|year)") else "title"
        if where:
            return f'{music}{where}["{shown}"]'
        number = re.search(
            r"\b(?:last|latest|first|recent|newest) (\d{1,2}|two|three|four|five|ten)\b|"
            r"\b(\d{1,2}|two|three|four|five|ten) (?:last|latest|first|most recent|newest)\b",
            question.words,
        )
        said = (number[1] or number[2]) if number else "1"
        rows = _COUNTS.get(said) or int(said)
        if question.says(r"last|latest|most recent|newest|recent"):
            return f'{music} sort(None, -release_date)["{shown}"][:{max(1, rows)}]'
        if question.says(r"first|debut|earliest"):
            return f'{music} sort(None, release_date)["{shown}"][:{max(1, rows)}]'
        return f'ALL {music}["{shown}"]'
    if question.says(r"born|birth(?:day|date)|date of birth|how old|older|younger|\bage\b") and not question.says(
        r"where|place|countr"
    ):
        return f'{person}["birth_date"]'
    if question.says(r"\bdie\b|died|death|break up|broke up|disband|split|end\b|stop"):
        return f'{person}["end_date"]'
    if question.says(r"where|birth ?place|countr|origin|from|national|hail"):
        return f'{person}["birth_place"]'
    if question.says(r"how long|lifespan|active"):
        return f'{person}["lifespan"]'
    if question.says(r"start|begin|began|form(?:ed)?\b|found|career|when|since|earlier|get together"):
        return f'{person}["begin_date"]'
    if question.says(r"\bbands?\b|group"):
        return f'{person}["bands"]'
    return person
