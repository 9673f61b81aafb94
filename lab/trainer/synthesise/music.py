"""Questions about artists, songs, bands and the Grammys."""

from collections.abc import Sequence

from lab.trainer.synthesise import dialects
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.record import Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import Voice, listed, named, spoken

DOMAIN = "music"
COUNTRIES = ("US", "GB", "CA", "AU", "DE", "FR", "JP", "SE", "NO", "ES", "BR", "XW", "XE", "IE", "IT", "NZ", "KR", "MX")
INSTRUMENTS = ("drummer", "singer", "guitarist", "bassist", "lead singer", "keyboard player", "saxophonist")
SONG: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "author": (
        (
            "the [singer|artist|author|writer|songwriter|performer] of [the song |]{x}",
            "the [artist|band|musician] behind {x}",
            "the name of the [artist|singer] who [made|released|wrote] {x}",
        ),
        (
            "who [wrote|sings|sang|performed|made|recorded|released|composed] [the song |]{x}",
            "[which|what] [artist|singer|band|musician] [wrote|sang|released|recorded|performed] {x}",
            "whose song is {x}",
            "by whom is [the song |]{x}",
        ),
    ),
    "release date": (
        (
            "the release date of [the song |the album |]{x}",
            "{x}'s release date",
            "the [day|date] {x} [came out|was released]",
        ),
        (
            "when [was|did] [the song |the album |]{x} [released|come out]",
            "on [what|which] [date|day] was {x} released",
            "when did [the song |]{x} come out",
        ),
    ),
    "release country": (
        (
            "the [release country|country of release] of [the song |]{x}",
            "the country [in which|where] {x} was [first |]released",
        ),
        ("in [what|which] country was [the song |]{x} [first |]released", "where was {x} [first |]released"),
    ),
}
ARTIST: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "birth date": (
        (
            "the [birthday|birth date|birthdate|date of birth] of [the [singer|musician|artist] |]{x}",
            "{x}'s [birthday|date of birth]",
        ),
        (
            "when was [the [singer|musician] |]{x} born",
            "on [what|which] [date|day] was {x} born",
            "when is {x}'s birthday",
        ),
    ),
    "birth place": (
        ("the [birthplace|birth country|country of birth] of {x}", "{x}'s [birthplace|country of birth]"),
        (
            "where was {x} born",
            "[in which|what] country [was {x} born in|is {x} from]",
            "where [is|does] {x} [from|come from]",
        ),
    ),
}
FOREIGN = (
    "the name of {x}'s [tour|upcoming tour|fashion line|podcast|record label|first manager]",
    "the number of [streams|monthly listeners|followers|music videos|number one hits] of {x}",
    "{x}'s [net worth|height|real name|vocal range]",
    "the [wife|husband|spouse|mother] of {x}",
    "the number of [emmys|american music awards|mtv awards] {x} has won",
    "the best-selling [album|single] of {x}",
    "the number of [tours|concerts] {x} [has done|gave in 2019]",
    "the instrument {x} learnt first",
    "the first song on {x}'s [second|third|last] album",
    "the [price|number] of tickets of {x}'s last concert",
    "the number of weeks {x} spent at number one",
)
FOREIGN_WHOLE = (
    "how many [tours|concerts|music videos|number one hits|singles on the uk chart] [has|did] {x} [had|made|done]",
    "who is {x} [married to|dating]",
    "which artist is streamed more, {x} or [someone else|anyone else]",
    "how many [records|albums|copies] has {x} sold [in total|worldwide|in the us]",
    "how many times has {x} been [named artist of the year|on the cover of time magazine|nominated for an emmy]",
    "who is {x}'s [last|new] song about",
    "how long did {x} [take a break|stay off the stage]",
    "where did {x} play [last summer|the first concert]",
    "what did {x} wear at the awards",
    "what are {x}'s top [3|5] selling albums",
    "how many views does {x}'s most watched video have",
    "which song of {x} [stayed longest at number one|is used in a film]",
    "what school did {x} attend",
    "how many times did {x} perform at the superbowl",
    "when does {x}'s next album come out",
    "which label is {x} signed to",
)
FOREIGN_SONG = (
    "the [number of streams|chart position|length|key|tempo] of {x}",
    "the [producer|video director|meaning] of {x}",
    "the film that features {x}",
    "the number of weeks {x} was number one",
    "the inspiration for {x}",
)
FOREIGN_SONG_WHOLE = (
    "how many [weeks was {x} number one|copies of {x} were sold|views does the video of {x} have]",
    "what is {x} about",
    "who [produced|mixed|directed the video of] {x}",
    "which film [used|features] {x}",
    "how high did {x} get on the [billboard hot 100|uk chart]",
    "which game has {x} in its soundtrack",
    "who covered {x} first",
)


def _day(v: Voice, first: int = 1955, last: int = 2024) -> str:
    day = v.day(first, last).isoformat()
    return v.pick((day, day, day, day, day[:7], day[:4]))


def song(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    title = n.song()
    facts = {"author": n.artist(), "release date": _day(v), "release country": v.pick(COUNTRIES)}
    what = v.weighted({"author": 3.0, "release date": 2.5, "release country": 0.8})
    value = facts[what]
    right = dialects.state(v, style, what, title, value)
    case = v.weighted(
        {
            "right": 5.0,
            "foreign": 1.5,
            "other": 0.8,
            "stranger": 1.3,
            "none": 0.8,
            "sheet": 0.8,
            "among": 0.8,
            "sang": 1.3,
            "truth": 0.8,
        }
    )
    if case == "foreign":
        query = v.ask(FOREIGN_SONG, FOREIGN_SONG_WHOLE, x=title)
        return unknown(v.typed(query), when, DOMAIN, "simple", (right,))
    if case == "sang":
        # The author shown is someone else: the singer asked about never had this song.
        query = v.say(
            "[when|in what year|where] did {a} [release|record|sing|write] [the song |]{x}", a=n.artist(), x=title
        )
        found = dialects.state(v, style, "author", title, facts["author"])
        return invalid(v.typed(query), when, DOMAIN, (found,))
    if case == "truth":
        year = v.between(1960, 2023)
        day = f"{year + v.pick((-12, -5, -2, -1, 1, 2, 6))}-{v.between(1, 12):02d}-{v.between(1, 28):02d}"
        before = v.chance(0.5)
        query = v.say(
            "[was|did] [the song |]{x} [released|come out] {p} {y}".replace("[was|did]", "was").replace(
                "[released|come out]", "released"
            ),
            x=title,
            p="before" if before else "after",
            y=year,
        )
        found = dialects.state(v, style, "release date", title, day)
        return answered(
            v.typed(query),
            when,
            DOMAIN,
            "simple_w_condition",
            "yes" if (int(day[:4]) < year) == before else "no",
            (found,),
        )
    query = v.typed(v.ask(*SONG[what], x=title))
    match case:
        case "right":
            return answered(query, when, DOMAIN, "simple", value, (right,), (value,))
        case "sheet":
            found = dialects.sheet(v, style, "song", title, list(facts.items()))
            return answered(query, when, DOMAIN, "simple", value, (found,), (value,))
        case "among":
            other = dialects.state(v, style, what, n.near(title), n.artist() if what == "author" else _day(v))
            return answered(query, when, DOMAIN, "simple", value, dialects.shuffled(v, (right, other)), (value,))
        case "other":
            other_what = v.pick([k for k in facts if k != what])
            found = dialects.state(v, style, other_what, title, facts[other_what])
        case "stranger":
            found = dialects.state(v, style, what, n.near(title) if v.chance(0.8) else n.song(), value)
        case _:
            found = dialects.nothing(v, style, what, title)
    return unknown(query, when, DOMAIN, "simple", (found,))


BEGAN = (
    ("the year {x} [began|started|formed]", "the start of {x}'s career as a band"),
    (
        "when did {x} [begin performing|start performing|form|start as a band|get together]",
        "when was [the band |]{x} [formed|founded]",
        "since when [has|have] {x} been [playing|performing|around]",
    ),
)
ENDED = ("when did {x} [break up|disband|split up|stop performing]", "in what year did {x} [break up|disband|split]")
DIED = (
    "when did {x} die",
    "[on what day|in what year|how] did {x} [die|pass away]",
    "how old was {x} when [he|she] died",
    "where was {x} buried",
)


def _lifespan(v: Voice, who: str, begin: object, end: object) -> str:
    return v.pick(
        (
            f"the lifespan of {who} begins in {begin}, ends in {end}.",
            f"lifespan of {who}: ({begin}, {end})",
            f"{who}: begin date {begin}, end date {end}",
            f"The begin date of {who} is {begin}. The end date of {who} is {end}.",
            f"{{'name': '{who}', 'begin': '{begin}', 'end': {end!r}}}",
        )
    )


def lifespan(v: Voice, n: Names) -> Record:
    when = v.moment()
    band = v.chance(0.5)
    who = n.band() if band else n.person()
    begin = _day(v, 1940, 2012)
    end = _day(v, 2013, 2024) if v.chance(0.5) else "None"
    case = v.weighted(
        {"begin": 3.0, "end": 1.5, "alive": 2.0, "none": 1.5, "foreign": 2.5, "longer": 1.2, "stranger": 0.6}
    )
    begins = BEGAN if band else ARTIST["birth date"]
    match case:
        case "begin":
            return answered(
                v.typed(v.ask(*begins, x=who)),
                when,
                DOMAIN,
                "simple",
                begin,
                (_lifespan(v, who, begin, end),),
                (begin,),
            )
        case "end" if end != "None":
            query = v.say(v.pick(ENDED if band else DIED[:1]), x=who)
            return answered(v.typed(query), when, DOMAIN, "simple", end, (_lifespan(v, who, begin, end),), (end,))
        case "alive":
            query = v.say(v.pick(ENDED if band else DIED), x=who)
            return invalid(v.typed(query), when, DOMAIN, (_lifespan(v, who, begin, "None"),))
        case "none":
            return unknown(v.typed(v.ask(*begins, x=who)), when, DOMAIN, "simple", (_lifespan(v, who, "None", "None"),))
        case "longer":
            other = n.band() if band else n.person()
            day = _day(v, 1940, 2012)
            query = v.say(
                "[who|which [band|artist]] [has been [performing|around|active] longer|is older], {a} or {b}",
                a=who,
                b=other,
            )
            if other == who or day[:4] == begin[:4] or v.chance(0.2):
                pair = (_lifespan(v, who, begin, "None"), _lifespan(v, other, "None", "None"))
                return unknown(v.typed(query), when, DOMAIN, "comparison", pair)
            pair = (_lifespan(v, who, begin, "None"), _lifespan(v, other, day, "None"))
            return answered(v.typed(query), when, DOMAIN, "comparison", who if begin < day else other, pair)
        case "stranger":
            return unknown(
                v.typed(v.ask(*begins, x=who)), when, DOMAIN, "simple", (_lifespan(v, n.near(who), begin, end),)
            )
        case _:
            return unknown(
                v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=who)), when, DOMAIN, "simple", (_lifespan(v, who, begin, end),)
            )


def birth(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    who, what = n.person(), v.pick(("birth place", "birth date"))
    value = v.pick(COUNTRIES) if what == "birth place" else _day(v, 1930, 2004)
    right = dialects.state(v, style, what, who, value)
    case = v.weighted({"right": 4.0, "foreign": 1.2, "none": 0.8, "stranger": 0.7})
    if case == "foreign":
        return unknown(v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=who)), when, DOMAIN, "simple", (right,))
    query = v.typed(v.ask(*ARTIST[what], x=who))
    if case == "right":
        return answered(query, when, DOMAIN, "simple", value, (right,), (value,))
    found = (
        dialects.nothing(v, style, what, who) if case == "none" else dialects.state(v, style, what, n.person(), value)
    )
    return unknown(query, when, DOMAIN, "simple", (found,))


def _members(v: Voice, who: str, names: Sequence[str]) -> str:
    dated = [name + (f" (born {_day(v, 1940, 2000)})" if v.chance(0.5) else "") for name in names]
    return v.pick(
        (
            f"{who} has {len(names)} members, namely {'; '.join(dated)}.",
            f"{who}, a band of {len(names)} members: {'; '.join(dated)}.",
            f"Members of {who} ({len(names)}): {'; '.join(names)}.",
            f"members of {who}: {list(names)}",
        )
    )


def members(v: Voice, n: Names) -> Record:
    """Who is in a band, which bands somebody was in, and who never was."""
    when = v.moment()
    band = n.band()
    people = n.people(v.weighted({1: 1.0, 3: 2.0, 4: 2.0, 5: 1.5, 7: 0.7}))
    found = _members(v, band, people)
    case = v.weighted(
        {
            "all": 2.5,
            "count": 1.5,
            "not member": 3.4,
            "is member": 0.8,
            "bands": 1.5,
            "foreign": 1.3,
            "stranger": 1.4,
            "empty": 0.7,
        }
    )
    ask_all = (
        "who [are|were] the [members|musicians|people] [of|in] [the band |]{x}",
        "[name|list|tell me] the members of {x}",
        "who [is|are|plays] in [the band |]{x}",
        "which musicians make up {x}",
    )
    match case:
        case "all":
            return answered(
                v.typed(v.say(v.pick(ask_all), x=spoken(v, band))),
                when,
                DOMAIN,
                "set",
                listed(people),
                (found,),
                tuple(people),
            )
        case "count":
            query = v.say("how many [members|people|musicians] [are|were] [in|part of] [the band |]{x}", x=band)
            return answered(v.typed(query), when, DOMAIN, "aggregation", str(len(people)), (found,))
        case "bands":
            who = n.person()
            bands = [n.band() for _ in range(v.between(1, 4))]
            found = _members(v, who, bands)
            query = v.say("[which|what] [band|bands] [was|is] {x} [in|a member of|part of]", x=who)
            return answered(v.typed(query), when, DOMAIN, "set", listed(bands), (found,), tuple(bands))
        case "not member":
            who = n.person()
            played = v.pick(INSTRUMENTS)
            query = v.say(
                v.pick(
                    (
                        "[how long|when|from when to when] was {a} the {i} [of|for] [the band |]{x}",
                        "when did {a} [join|leave] [the band |]{x}",
                        "how long did {a} [play|perform] [in|with|for] [the band |]{x}",
                        "why did {a} leave {x}",
                        "in which year did {a} become the {i} of {x}",
                    )
                ),
                a=who,
                i=played,
                x=band,
            )
            found = _members(v, who, [n.band() for _ in range(v.between(1, 6))]) if v.chance(0.6) else found
            return invalid(v.typed(query), when, DOMAIN, (found,))
        case "is member":
            inside = v.chance(0.5)
            query = v.say(
                "[is|was] {a} [a member of|in] [the band |]{x}", a=v.pick(people) if inside else n.person(), x=band
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if inside else "no", (found,))
        case "stranger":
            return unknown(
                v.typed(v.say(v.pick(ask_all), x=band)), when, DOMAIN, "set", (_members(v, n.near(band), people),)
            )
        case "empty":
            found = v.pick(
                (
                    f"{band} has no members on file.",
                    f"Number of members of {band}: 0.",
                    "[]",
                )
            )
            return unknown(v.typed(v.say(v.pick(ask_all), x=band)), when, DOMAIN, "set", (found,))
        case _:
            return unknown(v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=band)), when, DOMAIN, "simple", (found,))


_AWARD_FOREIGN = (
    "how many times has {x} been nominated for [a|the] [american music award|mtv award|brit award|emmy]",
    "how many grammys did {x} win at the {k}th [annual |]grammy awards",
    (
        "how many times has {x} won [a|the] grammy [award |]for [best music video|album of the "
        "year|record of the year|song of the year]"
    ),
    "which album [won|got] {x} [a|the first] grammy",
    "how many grammy nominations does {x} have",
    "in which category did {x} win [a|the last] grammy",
    "who presented {x} with the grammy",
    "for which song did {x} win a grammy",
    "how many times has {x} been named [artist of the decade|woman of the year]",
)


def grammys_of_one(v: Voice, n: Names) -> Record:
    when = v.moment()
    who = n.artist()
    count = v.between(1, 30)
    years = v.some([str(y) for y in range(1965, 2020)], min(count, v.between(1, 9)))
    years_shown = f"[{', '.join(years)}]"
    found = v.pick(
        (
            f"the grammy award count of {who} is {count} so far, award dates: {years_shown}.",
            f"grammy awards of {who}: {count}; years: {years_shown}",
            f"Number of Grammys of {who}: {count}. Years: {'; '.join(years)}.",
            f"{{'artist': '{who}', 'grammy_count': {count}, 'years': {years_shown}}}",
        )
    )
    none = v.pick(
        (
            f"the grammy award count of {who} is 0 so far, award dates: [].",
            f"Number of Grammys of {who}: 0.",
            f"{who} has 0 grammy awards",
        )
    )
    counted = (
        "how many grammys [does|did|has] {x} [have|won|win]",
        "how many grammy awards [has|did] {x} [won|win]",
        "how often has {x} won a grammy",
        "how many times has {x} won a grammy[| award]",
    )
    match v.weighted(
        {"count": 3.0, "years": 1.4, "first": 1.0, "foreign": 3.0, "zero": 0.8, "false": 1.8, "truth": 0.8, "more": 0.8}
    ):
        case "count":
            return answered(
                v.typed(v.say(v.pick(counted), x=who)), when, DOMAIN, "aggregation", str(count), (found,), (str(count),)
            )
        case "years":
            query = v.say("[in [which|what] years|when] did {x} win grammys", x=who)
            return answered(v.typed(query), when, DOMAIN, "set", listed(years), (found,), tuple(years))
        case "first":
            first = v.chance(0.5)
            query = v.say(
                "[when|in what year] did {x} win [the|a] {w} grammy".replace("[the|a]", "the"),
                x=who,
                w="first" if first else "last",
            )
            return answered(v.typed(query), when, DOMAIN, "post-processing", (min if first else max)(years), (found,))
        case "zero":
            return answered(v.typed(v.say(v.pick(counted), x=who)), when, DOMAIN, "aggregation", "0", (none,), ("0",))
        case "false":
            query = v.say(
                v.pick(
                    (
                        "[when|in what year] did {x} win [the|a] grammy[| for best new artist| for album of the year]",
                        "[for which|which] song [earned {x} a|did {x} win the] grammy [for|]",
                        "who did {x} thank for [his|her|their] [first |]grammy",
                    )
                ),
                x=who,
            )
            return invalid(v.typed(query), when, DOMAIN, (none,))
        case "truth":
            yes = v.chance(0.5)
            query = v.say("[has|did] {x} [ever |]win a grammy".replace("[has|did]", "did"), x=who)
            return answered(
                v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if yes else "no", (found if yes else none,)
            )
        case "more":
            other, k = n.artist(), v.between(0, 30)
            if other == who or k == count:
                return grammys_of_one(v, n)
            query = v.say("who [has|won] more grammys, {a} or {b}", a=who, b=other)
            pair = (found, f"the grammy award count of {other} is {k} so far, award dates: [].")
            return answered(
                v.typed(query), when, DOMAIN, "comparison", who if count > k else other, dialects.shuffled(v, pair)
            )
        case _:
            query = (
                v.say(v.pick(_AWARD_FOREIGN), x=who, k=v.between(24, 66))
                if v.chance(0.7)
                else v.ask(FOREIGN, FOREIGN_WHOLE, x=who)
            )
            return unknown(v.typed(query), when, DOMAIN, "simple", (found,))


_CATEGORIES = (
    ("best new artist", "best new artist", False),
    ("[best album|album of the year]", "Album Of The Year", True),
    ("[best song|song of the year]", "Song Of The Year", True),
    ("record of the year", "Record Of The Year", True),
    ("best dance recording", "Best Dance Recording", True),
    ("best pop solo performance", "Best Pop Solo Performance", True),
    ("best rock album", "Best Rock Album", True),
    ("best rap song", "Best Rap Song", True),
    ("best country album", "Best Country Album", True),
)


def ordinal(number: int) -> str:
    tail = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{tail}"


def _ceremony(v: Voice, n: Names, year: int) -> tuple[str, dict[str, tuple[str, str]]]:
    """The winners of one year: text, and category -> work, artist."""
    number = year - 1957
    shown = [_CATEGORIES[0], *v.some(_CATEGORIES[1:], v.between(2, 7))]
    won: dict[str, tuple[str, str]] = {}
    parts = []
    for _, label, work in shown:
        title, who = n.song(), n.artist()
        won[label] = (title, who) if work else (who, who)
        parts.append(
            f"the {label} in {year} is {title}, sung by {who}."
            if work
            else f"the {ordinal(number)} grammy {label} in {year} is {who}."
        )
    if v.chance(0.3):
        return f"Grammys of {year} ({ordinal(number)}): " + "; ".join(
            f"{k}: {t}" + (f" by {w}" if t != w else "") for k, (t, w) in won.items()
        ), won
    return " ".join(parts), won


def grammys_of_year(v: Voice, n: Names) -> Record:
    when = v.moment()
    year = v.between(1960, 2019)
    text, won = _ceremony(v, n, year)
    said = v.pick(
        (
            f"in {year}",
            f"in {year}",
            f"at the {ordinal(year - 1957)} grammy ({year})",
            f"in the {ordinal(year - 1957)} grammy ({year})",
            f"at the {year} grammys",
        )
    )
    chosen = v.pick([c for c in _CATEGORIES if c[1] in won])
    words, label, work = chosen
    title, who = won[label]
    match v.weighted({"right": 4.0, "artist": 1.0, "range": 1.0, "hop": 1.2, "absent": 1.0, "birth": 0.6}):
        case "right":
            query = v.say(
                f"[who|[which|what] artist] [won|got|received|was awarded] {words} {said}"
                if not work
                else f"[what|which] [song|work|title] [won|got|received] [the grammy for |]{words} {said}"
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", title, (text,), (title,))
        case "artist" if work:
            query = v.say(
                f"[who sang|which artist sang|who performed] the [song|work] that won [the grammy for |]{words} {said}"
            )
            return answered(v.typed(query), when, DOMAIN, "multi-hop", who, (text,), (who,))
        case "range":
            others = [_ceremony(v, n, year + i) for i in (1, 2)][: v.between(1, 2)]
            names = [won["best new artist"][0], *(o[1]["best new artist"][0] for o in others)]
            last = year + len(others)
            query = v.say(
                "who [won|were awarded|got] [the |]best new artist from [the "
                f"|]{ordinal(year - 1957)} grammy ({year}) to [the |]{ordinal(last - 1957)} "
                f"grammy ({last})"
            )
            return answered(
                v.typed(query), when, DOMAIN, "set", listed(names), (text, *(o[0] for o in others)), tuple(names)
            )
        case "birth":
            country = v.pick(COUNTRIES)
            artist = won["best new artist"][0]
            fact = v.pick((f"the birth place of {artist} is {country}", f"The birthplace of {artist} is {country}."))
            query = v.say(
                f"[in which|what] country was the [artist|act] that won best new artist {said} born[| in]".replace(
                    "[| in]", ""
                )
            )
            return answered(v.typed(query), when, DOMAIN, "multi-hop", country, (text, fact), (country,))
        case "hop":
            query = v.say(
                "[how many [songs|albums|tours] [did|has] the [artist|act] that won best new "
                f"artist {said} [made|released]|when was the best new artist {said} born|how many "
                f"children does the best new artist {said} have]"
            )
            return unknown(v.typed(query), when, DOMAIN, "multi-hop", (text,))
        case _:
            missing = [c for c in _CATEGORIES if c[1] not in won]
            if missing and v.chance(0.6):
                query = v.say(f"who won [the grammy for |]{v.pick(missing)[0]} {said}")
            else:
                query = v.say(f"who won [the grammy for |]{words} in {year + v.pick((-4, -2, -1, 1, 2, 3))}")
            return unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (text,))


def _works(v: Voice, who: str, works: Sequence[tuple[str, str, str]], total: int, order: str) -> str:
    items = "; ".join(f"{t} ({d}, {c})" for t, d, c in works)
    if order == "date":
        return v.pick(
            (
                f"{who} has {total} songs. The latest {len(works)} of them: {items}.",
                f"{who}: {total} works, the {len(works)} newest: {items}",
                f"Works of {who} ({total}), by date: {items} (showing {len(works)} of {total}).",
            )
        )
    return v.pick(
        (
            f"{who} has made {total} songs and albums: {items}.",
            f"{total} works of {who}: {items}",
            f"Works of {who} ({total})" + dialects.rows(v, ("name", "date", "country"), works),
        )
    )


def works(v: Voice, n: Names) -> Record:
    """What somebody released: of a year, the newest, the first, how many."""
    when = v.moment()
    who = n.artist()
    count = v.weighted({1: 0.7, 3: 1.0, 6: 1.5, 9: 1.5, 10: 4.0, 20: 1.2, 32: 0.3})
    pool = [(t, v.day(1975, 2023).isoformat(), v.pick(COUNTRIES)) for t in n.songs(count)]
    undated = [(n.song(), "none", "None") for _ in range(v.between(0, 3))]
    case = v.weighted(
        {
            "year": 2.4,
            "newest": 2.0,
            "newest date": 1.4,
            "first": 1.0,
            "count": 1.2,
            "foreign": 4.2,
            "containing": 1.4,
            "empty": 1.2,
            "upcoming": 1.2,
            "year count": 0.8,
        }
    )
    year = v.between(1980, 2023)
    if case in ("year", "year count"):
        dated = [(t, f"{year}{d[4:]}", c) for t, d, c in pool[:8]]
        items = "; ".join(f"{t} ({d}, {c})" for t, d, c in dated)
        found = v.pick(
            (
                f"In {year} {who} released these songs, {len(dated)} in all: {items}.",
                f"Works of {who} ({year}): {items}.",
                f"{who}, released in {year}, {len(dated)} works: {items}",
            )
        )
        if case == "year count":
            query = v.say(f"how many [songs|works|songs and albums] did {{x}} release in {year}", x=who)
            return answered(v.typed(query), when, DOMAIN, "aggregation", str(len(dated)), (found,))
        query = v.say(
            (
                f"[what|which] [songs|works|albums and songs] [did {{x}} release in {year}|were "
                f"released by {{x}} in {year}]"
            ),
            x=who,
        )
        return answered(
            v.typed(query),
            when,
            DOMAIN,
            "set",
            listed([t for t, _, _ in dated]),
            (found,),
            tuple(t for t, _, _ in dated),
        )
    by_date = sorted(pool, key=lambda item: item[1], reverse=True)
    found = _works(
        v,
        who,
        [*by_date, *undated] if v.chance(0.5) else by_date,
        count + len(undated) + v.pick((0, 0, 20, 150)),
        "date",
    )
    title, day, _ = by_date[0]
    match case:
        case "newest":
            query = v.ask(
                (
                    "the [latest|newest|most recent|last] [song|release|work] [of|by] {x}",
                    "{x}'s [latest|newest|most recent] [release|song]",
                ),
                x=who,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", title, (found,), (title,))
        case "newest date":
            query = v.ask(
                (
                    "the date of {x}'s [latest|newest|most recent|last] [release|song]",
                    "the release date of {x}'s [latest|newest] [song|release]",
                ),
                (
                    "when did {x} release [his|her|their] [latest|last|newest] [song|work]",
                    "when was the [latest|most recent] release of {x}",
                ),
                x=who,
            )
            return answered(v.typed(query), when, DOMAIN, "post-processing", day, (found,), (day,))
        case "first":
            title, day, _ = by_date[-1]
            found = _works(v, who, by_date[::-1], count, "date")
            query = v.ask(
                ("the [first|earliest|debut] [song|release] [of|by] {x}", "{x}'s [first|debut] [release|song]"), x=who
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", title, (found,), (title,))
        case "count":
            total = count + v.between(0, 300)
            found = _works(v, who, pool, total, "all")
            query = v.say("how many [songs and albums|works|songs] [does|has|did] {x} [have|released|release]", x=who)
            return answered(v.typed(query), when, DOMAIN, "aggregation", str(total), (found,), (str(total),))
        case "containing":
            query = v.say(
                '[what|which] album did {x} release in {y}, [which included|with] the [song|songs] "{s}" [and|]',
                x=who,
                y=year,
                s=n.song(),
            ).removesuffix("and ")
            only = (n.song(), f"{year}-{v.between(1, 12):02d}-{v.between(1, 28):02d}", v.pick(COUNTRIES))
            found = f"In {year} {who} released one song: {only[0]} ({only[1]}, {only[2]})."
            return unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (found,))
        case "empty":
            query = v.say(
                f"[what|which] [songs|albums] did {{x}} release [in {year}|before {year}|after {year}]", x=who
            )
            found = v.pick(
                (
                    f"In {year} {who} released no songs.",
                    f"{who} has made 0 songs and albums",
                    "[]",
                    f"Number of works of {who} ({year}): 0.",
                )
            )
            return unknown(v.typed(query), when, DOMAIN, "set", (found,))
        case "upcoming":
            query = v.say("[what is the name of|what's|when is] {x}'s [upcoming|next] [album|single|song]", x=who)
            return unknown(v.typed(query), when, DOMAIN, "simple", (found,))
        case _:
            if v.chance(0.25):
                other = n.artist()
                query = v.say(
                    (
                        "[who|which artist] [has sold more [albums|records]|has more "
                        "[streams|followers|fans|number ones]|earns more], {a} or {b}"
                    ),
                    a=who,
                    b=other,
                )
                pair = (_works(v, who, pool, count, "all"), _works(v, other, pool[:2], 2, "all"))
                return unknown(v.typed(query), when, DOMAIN, "comparison", pair)
            if v.chance(0.5):
                found = _works(v, who, pool, count, "all")
            return unknown(v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=who)), when, DOMAIN, "simple", (found,))


def song_awards(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    title, count = n.song(), v.pick((0, 0, 1, 2, 3))
    found = v.pick(
        (
            f"the song {title} get grammy award {count} times.",
            f"the {named('grammy award count', style)} of the song {title} is {count}",
            f'Number of Grammys of "{title}": {count}.',
        )
    )
    if v.chance(0.6):
        query = v.say("how many [grammys|grammy awards] [did|has] [the song |]{x} [win|won|received|get]", x=title)
        return answered(v.typed(query), when, DOMAIN, "aggregation", str(count), (found,), (str(count),))
    return unknown(v.typed(v.ask(FOREIGN_SONG, FOREIGN_SONG_WHOLE, x=title)), when, DOMAIN, "simple", (found,))


PATTERNS = (
    (4.0, song),
    (2.6, lifespan),
    (1.0, birth),
    (3.0, members),
    (3.4, grammys_of_one),
    (1.6, grammys_of_year),
    (5.6, works),
    (0.5, song_awards),
)
