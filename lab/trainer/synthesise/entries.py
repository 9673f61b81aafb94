"""Encyclopaedia entries that do not exist: their infobox keys, and how people ask for each."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.voice import MONTHS, Voice

Value = Callable[[Voice, Names], str]


@dataclass(frozen=True, slots=True)
class Ask:
    """A key of an infobox with noun phrases and whole questions for it, and what may stand there."""

    key: str
    nouns: tuple[str, ...]
    whole: tuple[str, ...]
    value: Value


def _person(v: Voice, n: Names) -> str:
    return n.person()


def _place(v: Voice, n: Names) -> str:
    return n.place()


def _word(v: Voice, n: Names) -> str:
    return n.coined()


def _year(v: Voice, n: Names) -> str:
    return str(v.between(1100, 2022))


def _day(v: Voice, n: Names) -> str:
    return f"{MONTHS[v.between(0, 11)]} {v.between(1, 28)}, {v.between(1700, 2022)}"


def _count(low: int, high: int, unit: str = "") -> Value:
    return lambda v, n: f"{v.between(low, high):,}{unit}"


KINDS: dict[str, tuple[Ask, ...]] = {
    "company": (
        Ask("sister_newspapers", ("the sister [paper|company] of {x}",), ("which papers are sisters of {x}",), _word),
        Ask(
            "power",
            ("the [power|transmitter power] of {x}",),
            ("how many watts [does {x} send with|of power does {x} have]",),
            _count(250, 50000, " watts"),
        ),
        Ask(
            "founder",
            ("the founder of {x}", "the [people|person] who started {x}"),
            ("who [founded|started|set up] {x}", "[by whom|who] was {x} founded[| by]"),
            _person,
        ),
        Ask(
            "founded",
            ("the [founding year|year of foundation] of {x}",),
            ("when was {x} [founded|established|started]", "what year did {x} [begin|start]", "how old is {x}"),
            _year,
        ),
        Ask(
            "headquarters",
            ("the headquarters of {x}", "{x}'s [headquarters|head office|main office]"),
            ("where is {x} [based|headquartered]",),
            _place,
        ),
        Ask("key_people", ("the key people of {x}",), ("who [leads|runs] {x}",), _person),
        Ask(
            "num_employees",
            ("the number of employees of {x}",),
            ("how many [people work for|employees does] {x}[| have]",),
            _count(20, 90000),
        ),
        Ask("parent", ("the parent company of {x}",), ("[who|which company] is the parent of {x}",), _word),
        Ask("owner", ("the owner of {x}",), ("who owns {x}", "[which company|whom] does {x} belong to"), _word),
        Ask(
            "traded_as",
            ("the [ticker|ticker symbol|stock symbol] of {x}",),
            ("under [what|which] symbol is {x} traded",),
            lambda v, n: n.ticker(),
        ),
        Ask("industry", ("the industry of {x}",), ("what industry is {x} in",), _word),
        Ask(
            "revenue",
            ("the [yearly |annual |]revenue of {x}",),
            ("how much [revenue does {x} have|does {x} earn a year]",),
            _count(2, 900, " million"),
        ),
    ),
    "building": (
        Ask(
            "observatory",
            ("the height of the observatory of {x}",),
            ("how high is the observatory of {x}",),
            _count(90, 600, " m"),
        ),
        Ask("builder", ("the builder of {x}",), ("who [built|had a hand in building] {x}",), _person),
        Ask("architect", ("the architect of {x}",), ("who [designed|was the architect of] {x}",), _person),
        Ask("height", ("the height of {x}",), ("how [tall|high] is {x}",), _count(12, 700, " m")),
        Ask(
            "floor_count",
            ("the number of [floors|storeys] of {x}",),
            ("how many [floors|storeys] does {x} have",),
            _count(2, 140),
        ),
        Ask(
            "opened", ("the opening date of {x}", "the year {x} opened"), ("when [did {x} open|was {x} opened]",), _day
        ),
        Ask(
            "capacity",
            ("the capacity of {x}", "the number of seats in {x}"),
            ("how many [people|spectators] [fit into|does] {x}[| hold]",),
            _count(300, 99000),
        ),
        Ask("location", ("the location of {x}",), ("where is {x}", "[in which|what] city is {x}[| in]"), _place),
        Ask(
            "cost",
            ("the cost of {x}",),
            ("how much did {x} cost", "how expensive was the building of {x}"),
            _count(2, 900, " million"),
        ),
        Ask("owner", ("the owner of {x}",), ("who owns {x}",), _person),
        Ask(
            "minaret_quantity", ("the number of minarets of {x}",), ("how many minarets does {x} have",), _count(1, 12)
        ),
    ),
    "place": (
        Ask("area_code", ("the [telephone |]area code of {x}",), ("which area code does {x} have",), _count(200, 989)),
        Ask(
            "drives_on",
            ("the driving side in {x}",),
            ("on which side do people drive in {x}",),
            lambda v, n: v.pick(("left", "right")),
        ),
        Ask(
            "population_total",
            ("the population of {x}", "the number of [people|inhabitants] in {x}"),
            ("how many people live in {x}",),
            _count(300, 9000000),
        ),
        Ask(
            "elevation_m",
            ("the [elevation|altitude] of {x}",),
            ("how high [is|does] {x}[| lie]", "how far above the sea is {x}"),
            _count(2, 4200),
        ),
        Ask("area_total_km2", ("the area of {x}", "the size of {x}"), ("how [large|big] is {x}",), _count(2, 90000)),
        Ask(
            "leader_name",
            ("the [mayor|leader|governor] of {x}",),
            ("who [governs|leads] {x}", "who is the [mayor|head] of {x}"),
            _person,
        ),
        Ask("capital", ("the capital of {x}",), ("what city is the capital of {x}",), _place),
        Ask(
            "time_zone",
            ("the time zone of {x}",),
            ("what time zone is {x} in", "which time zone does {x} use"),
            lambda v, n: f"UTC+{v.between(1, 11)}",
        ),
        Ask("currency", ("the currency of {x}",), ("what [money|currency] is used in {x}",), _word),
        Ask("official_languages", ("the official language of {x}",), ("what language do they speak in {x}",), _word),
        Ask("largest_city", ("the largest city of {x}",), ("which city is the largest in {x}",), _place),
        Ask("motto", ("the motto of {x}",), ("what motto does {x} have",), lambda v, n: n.song()),
    ),
    "person": (
        Ask("education", ("the [degree|subject] of {x}",), ("what did {x} study",), _word),
        Ask(
            "term_start",
            ("the start of {x}'s term",),
            ("when did {x} take office", "how long has {x} been in [office|power]"),
            _day,
        ),
        Ask(
            "birth_date",
            ("the [birthday|birth date|date of birth] of {x}",),
            ("when was {x} born", "how old is {x}"),
            _day,
        ),
        Ask("birth_place", ("the [birthplace|place of birth] of {x}",), ("where was {x} born",), _place),
        Ask("death_date", ("the date of {x}'s death",), ("when did {x} die",), _day),
        Ask(
            "spouse",
            ("the [wife|husband|spouse] of {x}",),
            ("who [is|was] {x} married to", "who did {x} marry"),
            _person,
        ),
        Ask(
            "children",
            ("the children of {x}", "the number of {x}'s children"),
            ("how many [children|kids] does {x} have",),
            _count(1, 9),
        ),
        Ask(
            "alma_mater",
            ("the [university|alma mater] of {x}",),
            ("where did {x} study", "[what|which] [university|college] did {x} go to"),
            _word,
        ),
        Ask("party", ("the party of {x}",), ("[what|which] party does {x} belong to",), _word),
        Ask("occupation", ("the occupation of {x}",), ("what does {x} do for a living",), _word),
        Ask("known_for", (), ("what is {x} known for",), lambda v, n: n.film()),
        Ask("office", ("the office of {x}",), ("what office does {x} hold",), _word),
        Ask("awards", ("the awards of {x}",), ("which [awards|prizes] did {x} win",), _word),
    ),
    "product": (
        Ask(
            "country",
            ("the country of origin of {x}",),
            ("where does {x} come from", "which country is {x} from"),
            _place,
        ),
        Ask("main_ingredient", ("the [main |]ingredients of {x}",), ("what is {x} made of",), _word),
        Ask(
            "released",
            ("the [first |]release date of {x}",),
            ("when was {x} [first |]released", "when did {x} [first |]come out"),
            _day,
        ),
        Ask("developer", ("the developer of {x}",), ("who [developed|made] {x}",), _word),
        Ask("publisher", ("the publisher of {x}",), ("who published {x}",), _word),
        Ask("license", ("the license of {x}",), ("under what license is {x}",), _word),
        Ask("designer", ("the designer of {x}",), ("who designed {x}",), _person),
        Ask("genre", ("the genre of {x}",), ("what genre is {x}",), _word),
        Ask("author", ("the author of {x}",), ("who wrote {x}", "who is {x} by"), _person),
        Ask("num_episodes", ("the number of episodes of {x}",), ("how many episodes does {x} have",), _count(3, 400)),
        Ask("composer", ("the composer of {x}",), ("who composed [the music of |]{x}",), _person),
    ),
    "nature": (
        Ask("length", ("the length of {x}",), ("how long is {x}",), _count(20, 6000, " km")),
        Ask("depth", ("the depth of {x}",), ("how deep is {x}",), _count(2, 900, " m")),
        Ask(
            "basin_countries",
            ("the countries around {x}",),
            ("[which|how many] [countries|nations] does {x} [touch|stretch across]",),
            _word,
        ),
        Ask("elevation", ("the [elevation|height] of {x}",), ("how [high|tall] is {x}",), _count(100, 8000, " m")),
        Ask("appmag_v", ("the [apparent magnitude|brightness] of {x}",), ("how bright is {x}",), _count(1, 14)),
        Ask("discoverer", ("the discoverer of {x}",), ("who discovered {x}",), _person),
        Ask("mouth", ("the mouth of {x}",), ("where does {x} end",), _place),
        Ask("last_eruption", ("the last eruption of {x}",), ("when did {x} last erupt",), _year),
    ),
    "group": (
        Ask("type", (), ("is {x} private or public",), lambda v, n: v.pick(("private", "public"))),
        Ask("abbreviation", ("the abbreviation of {x}",), ("what is {x} called for short",), lambda v, n: n.ticker()),
        Ask(
            "membership",
            ("the number of members of {x}", "the size of {x}"),
            ("how many members does {x} have",),
            _count(9, 90000),
        ),
        Ask(
            "established",
            ("the founding date of {x}", "the year {x} was founded"),
            ("when was {x} [established|founded]",),
            _year,
        ),
        Ask("president", ("the president of {x}",), ("who is [at the head|president] of {x}",), _person),
        Ask("students", ("the number of students at {x}",), ("how many students does {x} have",), _count(200, 60000)),
        Ask("motto", ("the motto of {x}",), ("what does {x} have as its motto",), lambda v, n: n.song()),
        Ask("location", ("the [seat|location] of {x}",), ("where is {x}[| located]",), _place),
        Ask("mascot", ("the mascot of {x}",), ("what is {x}'s mascot",), _word),
    ),
}
# Pairs that people compare, with the words for it.
COMPARED: tuple[tuple[str, str, str], ...] = (
    ("company", "founded", "is older"),
    ("building", "height", "is taller"),
    ("place", "population_total", "has more [people|inhabitants]"),
    ("building", "opened", "opened first"),
    ("group", "membership", "has [more|fewer] members"),
    ("group", "established", "is older"),
    ("nature", "length", "is longer"),
    ("nature", "elevation", "is higher"),
    ("nature", "appmag_v", "is brighter"),
    ("place", "elevation_m", "lies higher"),
    ("person", "birth_date", "is [older|younger]"),
    ("place", "area_total_km2", "is larger"),
    ("place", "time_zone", "is in the later time zone"),
)
_TAILS = {
    "company": ("Group", "Works", "Holdings", "Stores", "Motors", "Press", ""),
    "building": ("Tower", "Palace", "Bridge", "Hotel", "Mosque", "Stadium", "Museum"),
    "place": ("", "", "City", "Island", "Province", "Valley"),
    "product": ("", "(video game)", "(software)", "(novel)", "Quest", "OS"),
    "nature": ("River", "Lake", "Mountain", "Volcano", "Canyon"),
    "group": ("University", "Federation", "College", "Society", "Union", "School"),
}


def name_of(v: Voice, n: Names, kind: str) -> str:
    """A name of this kind."""
    if kind == "person":
        return n.person()
    stem = n.coined() if v.chance(0.6) else f"{n.adjective().capitalize()} {n.noun().capitalize()}"
    if kind == "nature" and v.chance(0.5):
        return f"{v.pick(('Mount', 'Lake'))} {stem}"
    return f"{stem} {v.pick(_TAILS[kind])}".strip()
