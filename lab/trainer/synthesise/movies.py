"""Questions about films, the people in them and the Academy Awards."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from lab.trainer.synthesise import dialects
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.record import Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import Style, Voice, listed, named, spoken

DOMAIN = "movie"
LANGUAGES = ("en", "en", "en", "en", "fr", "de", "es", "it", "ja", "ko", "hi", "ru", "sv", "pt", "zh", "da", "nl", "pl")
GENRES = (
    "drama",
    "comedy",
    "thriller",
    "action",
    "horror",
    "romance",
    "western",
    "animation",
    "documentary",
    "crime",
    "fantasy",
    "musical",
    "war",
    "science fiction",
    "mystery",
)
# Name of an attribute in sources -> noun phrases, whole questions.
ATTRIBUTES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "budget": (
        (
            "the [production |]budget of [the film |the movie |]{x}",
            "{x}'s [production |]budget",
            "the cost of making {x}",
        ),
        (
            "how much did [the movie |]{x} cost to [make|produce]",
            "how much money was spent on [making |]{x}",
            "how big was the budget of {x}",
            "how expensive was {x} to make",
        ),
    ),
    "revenue": (
        (
            "the [worldwide |global |total |]box office [|gross |revenue |takings |sales ]of {x}",
            "the [revenue|earnings] of [the movie |]{x}",
            "{x}'s [worldwide |total |]box office",
            "the worldwide [gross|sales|takings] of {x}",
        ),
        (
            (
                "how much [money |]did {x} [make|earn|take in|gross|bring in][| worldwide| at the "
                "box office| in cinemas| around the world]"
            ),
            "how [successful|big] was {x} at the [|global |worldwide ]box office in dollars",
            "how much box office did {x} [make|have] worldwide",
        ),
    ),
    "release date": (
        (
            "the [release|premiere] date of [the film |the movie |]{x}",
            "{x}'s release date",
            "the date when {x} [came out|was released|hit theaters|was first shown]",
            "the day [the movie |]{x} [premiered|opened]",
        ),
        (
            (
                "when [did [the film |]{x} come out|was {x} released|did {x} hit theaters|did {x} "
                "premiere|was {x} first shown]"
            ),
            "on [what|which] [date|day] [was {x} released|did {x} come out]",
            "how long ago was the release of {x}, what date",
        ),
    ),
    "original title": (
        (
            "the original [title|name] of {x}",
            "{x}'s original title",
            "the title {x} [first|originally] had",
            "what {x} was originally called",
        ),
        (
            "what was {x} [originally|first|initially] [called|titled|named]",
            "under which title was {x} [first|originally] known",
            "how was {x} titled originally",
        ),
    ),
    "original language": (
        (
            "the [original |]language of {x}",
            "{x}'s original language",
            "the language {x} was [made|shot|filmed|released] in",
        ),
        (
            "[in what|in which|what|which] language was {x} [made|shot|filmed|originally released]",
            "what language do they speak in {x}",
        ),
    ),
    "length": (
        ("the [length|running time|runtime|duration] of [the movie |]{x}", "{x}'s [length|runtime|running time]"),
        (
            "how long is [the movie |the film |]{x}",
            "how many minutes [long is|does] {x}[| last| run]",
            "how many minutes is {x}",
        ),
    ),
    "rating": (
        ("the [average |user |]rating of {x}", "{x}'s [rating|score]"),
        ("how [is|was] {x} rated", "how high is {x} rated", "what rating does {x} have"),
    ),
    "director name": (
        ("the [director|filmmaker|name of the director] [of|behind] [the movie |]{x}", "{x}'s director"),
        (
            "who directed [the movie |the film |]{x}",
            "who [was|is] the director of {x}",
            "who made [the film |]{x}",
            "which director [made|is behind] {x}",
            "who was in the director's chair for {x}",
        ),
    ),
    "producer name": (
        ("the producer of [the movie |]{x}", "{x}'s producer"),
        ("who produced [the movie |the film |]{x}", "who [was|is] the producer of {x}"),
    ),
    "genres": (
        ("the [genre|genres] of {x}", "{x}'s genre"),
        ("what [kind|genre] of [movie|film] is {x}", "which genre does {x} belong to"),
    ),
}
# What no fact about a film or its people says.
FOREIGN = (
    "the opening weekend [gross |]of {x}",
    "the [filming location|place of filming] of {x}",
    "the name of the [dog|car|ship|villain|planet] in {x}",
    "the composer of {x}'s soundtrack",
    "the [streaming service|platform] that shows {x}",
    "the [plot|moral] of {x}",
    "the number of sequels {x} has",
    "the rotten tomatoes score of {x}",
    "{x}'s tagline",
    "the last line of {x}",
    "the novel that {x} is based on",
    "the age rating of {x}",
    "the number of tickets sold for {x}",
    "the costume designer of {x}",
)
FOREIGN_WHOLE = (
    "where was {x} filmed",
    "how many [sequels|spin-offs] does {x} have",
    "who [wrote|sang] the theme song of {x}",
    "how does {x} end",
    "who dies at the end of {x}",
    "what book is {x} based on",
    "how many people saw {x} in theaters",
    "which studio turned {x} down",
    "what car does the hero drive in {x}",
    "where does {x} take place",
    "is there a post-credit scene in {x}",
    "how much did {x} make in its [first|opening] weekend",
    "what year does {x} take place in",
    "who was first cast for the lead in {x}",
    "when does the next season of {x} come out",
    "what is the name of the tv show based on {x}",
    "how many episodes does {x} have",
)
FOREIGN_PERSON = (
    "the [wife|husband|spouse|first wife|partner] of {x}",
    "the [net worth|height|salary|zodiac sign] of {x}",
    "the name of {x}'s [daughter|son|dog|cat|first child|mother|yacht]",
    "the [school|university|high school] {x} [went to|attended]",
    "{x}'s favorite [food|movie|color]",
    "the number of [children|siblings|houses|tattoos] {x} has",
    "the [date|place] of {x}'s wedding",
    "{x}'s agent",
    "the brand {x} advertises",
    "{x}'s religion",
)
FOREIGN_PERSON_WHOLE = (
    "who is {x} married to",
    "how many [children|kids|siblings] does {x} have",
    "where did {x} [grow up|go to school|study]",
    "how tall is {x}",
    "how much is {x} worth",
    "who did {x} [date|divorce] in [2005|2011|2016|2019]",
    "where does {x} live [now|today]",
    "how many times has {x} been [married|divorced|arrested|on the cover of time magazine]",
    "what sport did {x} play in college",
    "what was {x}'s first job",
    "how many [emmys|tonys|golden globes|razzies] has {x} won",
    "what languages does {x} speak",
    "how many followers does {x} have",
    "when did {x} retire from acting",
    "who is {x}'s best friend",
)
JOBS = (
    "Director",
    "Producer",
    "Screenplay",
    "Editor",
    "Original Music Composer",
    "Director of Photography",
    "Costume Design",
    "Sound Editor",
    "Casting",
)


@dataclass(frozen=True, slots=True)
class Film:
    """A made-up film."""

    title: str
    facts: dict[str, object]
    released: date


def film(v: Voice, n: Names, title: str = "", year: int = 0) -> Film:
    title = title or n.film()
    released = v.day(year or 1935, year or 2024)
    language = v.pick(LANGUAGES)
    original = title if language == "en" or v.chance(0.4) else f"{n.coined()} {n.coined().lower()}"
    day = released.isoformat() if year or v.chance(0.93) else str(released.year)
    facts: dict[str, object] = {
        "budget": v.money(),
        "revenue": v.money() + v.between(0, 999),
        "release date": day,
        "original title": original,
        "original language": language,
        "length": v.between(62, 198),
        "rating": round(v.rng.uniform(2, 9), v.pick((1, 1, 3))),
        "director name": n.person(),
        "producer name": n.person(),
        "genres": listed(v.some(GENRES, v.between(1, 3))),
    }
    return Film(title, facts, released)


def _fact(v: Voice, style: Style, title: str, what: str, value: object) -> str:
    own = {"budget", "revenue"}
    if what in own and v.chance(0.12):
        return f'The {what} of the film "{title}" is ${value:,}.'
    return dialects.state(v, style, what, title, value)


def _missing(v: Voice, style: Style, title: str, what: str) -> str:
    if what in ("budget", "revenue") and v.chance(0.6):
        return _fact(v, style, title, what, 0)
    return dialects.nothing(v, style, what, title)


def attribute(v: Voice, n: Names) -> Record:
    """One fact about one film."""
    style, when = v.style(), v.moment()
    one = film(v, n)
    what = v.weighted(
        {
            "budget": 1.0,
            "revenue": 2.2,
            "release date": 2.4,
            "original title": 1.0,
            "original language": 1.2,
            "length": 0.8,
            "rating": 0.5,
            "director name": 1.6,
            "producer name": 0.6,
            "genres": 0.3,
        }
    )
    value = one.facts[what]
    title = one.title
    case = v.weighted(
        {"right": 6.0, "foreign": 1.6, "other": 0.9, "stranger": 1.3, "none": 0.8, "sheet": 1.2, "among": 0.8}
    )
    right = _fact(v, style, title, what, value)
    if case == "foreign":
        query = v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=title))
        pairs = [(k, one.facts[k]) for k in v.some(list(one.facts), v.between(2, 6))]
        found = right if v.chance(0.6) else dialects.sheet(v, style, "movie", title, pairs)
        return unknown(query, when, DOMAIN, "simple", (found,))
    query = v.typed(v.ask(*ATTRIBUTES[what], x=spoken(v, title)))
    match case:
        case "right":
            return answered(query, when, DOMAIN, "simple", str(value), (right,), _support(what, value))
        case "sheet":
            pairs = [(k, one.facts[k]) for k in v.some([k for k in one.facts if k != what], v.between(1, 6))]
            pairs.insert(v.between(0, len(pairs)), (what, value))
            found = dialects.sheet(v, style, "movie", title, pairs)
            return answered(query, when, DOMAIN, "simple", str(value), (found,), _support(what, value))
        case "among":
            others = [_fact(v, style, f.title, what, f.facts[what]) for f in (film(v, n, n.near(title)), film(v, n))]
            found_all = dialects.shuffled(v, [right, *v.some(others, v.between(1, 2))])
            return answered(query, when, DOMAIN, "simple", str(value), found_all)
        case "other":
            other = v.pick([k for k in ATTRIBUTES if k != what and k != "original title"])
            found = _fact(v, style, title, other, one.facts[other])
        case "stranger":
            found = _fact(v, style, n.near(title) if v.chance(0.75) else n.film(), what, value)
        case _:
            found = _missing(v, style, title, what)
    return unknown(query, when, DOMAIN, "simple", (found,))


def _support(what: str, value: object) -> tuple[str, ...]:
    return () if what in ("budget", "revenue") else (str(value),)


SAME = (
    "is {x} the original title of [the|that] [movie|film]",
    "was {x} [the title originally chosen for|what they first called|the first title of] that [movie|film]",
    "is {x} how [that|the] [movie|film] was [first|originally] [named|titled]",
    "was [the movie |]{x} called {x} from the [start|beginning]",
)
BEFORE = (
    "[is|was] there [an|any] [original|earlier|other] title before {x}",
    "did {x} have [a different|another] [title|name] [before|originally|at first]",
    "was {x} [first|originally] known under [another|a different] [title|name]",
)


def original_title(v: Voice, n: Names) -> Record:
    """Whether a title was the first one; of a film that nobody knows by that name, the question is invalid."""
    style, when = v.style(), v.moment()
    title = n.film()
    other = f"{n.coined()} {n.coined().lower()}"
    match v.weighted({"same": 2.0, "no other": 2.0, "other": 1.0, "different": 0.7, "wrong": 1.3}):
        case "same":
            query, answer, value = v.say(v.pick(SAME), x=title), "yes", title
        case "no other":
            query, answer, value = v.say(v.pick(BEFORE), x=title), "no", title
        case "other":
            query, answer, value = v.say(v.pick(BEFORE), x=title), "yes", other
        case "different":
            query, answer, value = v.say(v.pick(SAME), x=title), "no", other
        case _:
            wrong = v.pick(
                (
                    f"{n.noun()} {title}",
                    f"{title} {v.pick(('too', 'again', 'forever', 'part zero'))}",
                    f"{title} {n.adjective()}",
                )
            )
            query = v.say(v.pick(SAME), x=wrong)
            found = f"the {named('original title', style)} of {title} is {title}{style.stop}"
            return invalid(v.typed(query), when, DOMAIN, (found,))
    found = dialects.state(v, style, "original title", title, value)
    return answered(v.typed(query), when, DOMAIN, "simple_w_condition", answer, (found,))


def premise(v: Voice, n: Names) -> Record:
    """What the facts contradict, or show that it is not so."""
    style, when = v.style(), v.moment()
    one, person, other = film(v, n), n.person(), n.person()
    year = v.between(1990, 2027)
    match v.weighted(
        {
            "together": 1.6,
            "in year": 1.2,
            "no award": 1.6,
            "not in cast": 1.2,
            "genre": 0.7,
            "crew": 0.8,
            "won most": 0.4,
        }
    ):
        case "together":
            query = v.say(
                (
                    "[what|which] [{g} |]movie [did {a} and {b} make together|were {a} and {b} both "
                    "in|starred both {a} and {b}|had {a} alongside {b}]"
                ),
                a=person,
                b=other,
                g=v.pick(GENRES),
            )
            found = v.pick(
                (
                    f"{person} and {other} have no film in common.",
                    f"number of films in which {person} and {other} both acted: 0",
                    f"Number of films with {person} and {other}: 0.",
                )
            )
        case "in year":
            query = v.say(
                (
                    "[what is the [name|title] of|what's the name of] {a}'s [upcoming |new |]movie "
                    "[of|for release in|coming out in] {y}"
                ),
                a=person,
                y=max(year, when.year + 1),
            )
            found = v.pick(
                (
                    f"{person}, films of {max(year, when.year + 1)}: none.",
                    f"Number of films with {person} ({max(year, when.year + 1)}): 0.",
                )
            )
        case "no award":
            who = v.pick((one.title, person))
            query = v.say(
                v.pick(
                    (
                        (
                            "[what|which] [award|oscar|academy award] [did {x} win|was given to "
                            "{x}|did {x} get] [at the oscars|in {y}|]"
                        ),
                        "[when|in what year] did {x} win [its|the] [first |]oscar",
                        "for which category did {x} [win|take] [the|an] academy award",
                        "who handed {x} the oscar in {y}",
                    )
                ),
                x=who,
                y=year,
            )
            found = v.pick(
                (
                    f"{who} does not have any oscar awards",
                    f"{who} did not get oscar awards",
                    f"the number of oscar awards of {who} is 0.",
                    f"Number of Oscars of {who}: 0.",
                )
            )
        case "not in cast":
            cast = n.people(v.between(2, 9))
            query = v.say(
                v.pick(
                    (
                        "[who|what character] did {a} play in {x}",
                        "what was the name of {a}'s [role|character] in {x}",
                        "how old was {a} when [he|she] played in {x}",
                    )
                ),
                a=person,
                x=one.title,
            )
            found = cast_list(v, n, one.title, cast, [_role(v, n) for _ in cast], whole=True)
        case "genre":
            genre, real = v.some(GENRES[:11], 2)
            query = v.say(
                "[when did the {g} {x} come out|who directed the {g} {x}|how much did the {g} {x} earn]",
                g=genre,
                x=one.title,
            )
            found = dialects.sheet(
                v,
                style,
                "movie",
                one.title,
                [
                    ("genres", real),
                    *((k, one.facts[k]) for k in v.some(("budget", "release date", "director name", "revenue"), 2)),
                ],
            )
        case "crew":
            query = v.say(
                "[when did {a} direct {x}|what made {a} direct {x}|did {a} direct {x} before or after {y}]",
                a=person,
                x=one.title,
                y=n.film(),
            )
            found = v.pick(
                (
                    f"{one.title}: a crew of 0, none of it {person}",
                    f"{person} has not directed a film.",
                    f"the director name of {one.title} is {other}",
                )
            )
        case _:
            query = v.say("in what year did {x} win [the most|a record number of] [oscars|academy awards]", x=one.title)
            found = f"the number of Oscars won by {one.title} is 0."
    return invalid(v.typed(query), when, DOMAIN, (found,))


CATEGORIES: tuple[tuple[str, str, str, bool], ...] = (
    # What people say, the ceremony's own words, the short name in sources, whether a person wins it.
    ("best picture", "BEST PICTURE", "best picture", False),
    ("best [actor|leading actor|actor in a leading role]", "ACTOR IN A LEADING ROLE", "best actor", True),
    ("best [actress|leading actress|actress in a leading role]", "ACTRESS IN A LEADING ROLE", "best actress", True),
    ("best supporting actor", "ACTOR IN A SUPPORTING ROLE", "best supporting actor", True),
    ("best supporting actress", "ACTRESS IN A SUPPORTING ROLE", "best supporting actress", True),
    ("best [director|directing]", "DIRECTING", "best director", True),
    (
        "best [animated feature|animated feature film|animated film]",
        "ANIMATED FEATURE FILM",
        "best animated feature film",
        False,
    ),
    (
        "best [documentary|documentary feature|feature documentary]",
        "DOCUMENTARY (Feature)",
        "best documentary feature",
        False,
    ),
    ("best visual effects", "VISUAL EFFECTS", "best visual effects", False),
    ("best cinematography", "CINEMATOGRAPHY", "best cinematography", True),
    ("best [score|original score]", "MUSIC (Original Score)", "best original score", True),
    ("best [song|original song]", "MUSIC (Original Song)", "best original song", False),
    (
        "best [foreign language film|international feature film]",
        "INTERNATIONAL FEATURE FILM",
        "best international feature film",
        False,
    ),
    ("best [film editing|editing]", "FILM EDITING", "best film editing", False),
    ("best [costumes|costume design]", "COSTUME DESIGN", "best costume design", False),
    ("best original screenplay", "WRITING (Original Screenplay)", "best original screenplay", True),
    ("best sound", "SOUND", "best sound", False),
)
_OSCAR = "[oscar|academy award]"
_SHOW = "[the oscars|the academy awards|the academy awards ceremony]"
FILM_WON = (
    (
        f"{{when}}, [which|what] [movie|film] [won|took home|got|received|was given|earned|was "
        f"awarded] the {_OSCAR} for {{c}}"
    ),
    f"[which|what] [movie|film] [won|took home|got|received] the {_OSCAR} for {{c}} {{when}}",
    f"[which|what] [movie|film] won {{c}} at {_SHOW} {{when}}",
    f"[which|what] [film|movie] was [honored|awarded] for {{c}} at {_SHOW} {{when}}",
)
FILM_NOUNS = (
    f"the [film|movie] that [won|took|got|received] the {_OSCAR} for {{c}} {{when}}",
    f"the name of the [film|movie] that won {{c}} at {_SHOW} {{when}}",
    f"the {{c}} winner at {_SHOW} {{when}}, the [film|movie]",
    "the title of the [film|movie] awarded {c} {when}",
)
WHO_WON = (
    f"who [won|took home|got|received|was given] the {_OSCAR} for {{c}} {{when}}",
    f"{{when}}, who won the {{c}} {_OSCAR}",
    f"who was [named|honored as|praised as] {{c}} at {_SHOW} {{when}}",
    f"which person won the {_OSCAR} for {{c}} {{when}}",
    f"{{when}}, whose work was awarded the {_OSCAR} for {{c}}",
)
WHO_NOUNS = (
    f"the winner of the {_OSCAR} for {{c}} {{when}}",
    f"the name of the person who won {{c}} at {_SHOW} {{when}}",
    f"the person who got {{c}} {{when}} at {_SHOW}",
)


def oscar_of_year(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    words, official, short, personal = v.pick(CATEGORIES[:9]) if v.chance(0.75) else v.pick(CATEGORIES)
    year = v.between(1934, 2024)
    title, winner = n.film(), n.person() if personal or v.chance(0.4) else listed(n.people(v.between(2, 4)))
    ask_film = not personal or v.chance(0.2)
    asked_when = v.say(
        v.pick(("in {y}", "in {y}", "in {y}", "in the year {y}", "during {y}", "of {y}", "at the {y} ceremony")), y=year
    )
    nouns, whole = (FILM_NOUNS, FILM_WON) if ask_film else (WHO_NOUNS, WHO_WON)
    query = v.typed(v.ask(nouns, whole, c=v.say(words), when=asked_when))
    details = {
        "year_ceremony": year,
        "ceremony": year - 1928,
        "category": official,
        "name": winner,
        "film": title,
        "winner": True,
    }
    case = v.weighted({"right": 8.0, "year": 0.6, "category": 0.5, "empty": 0.8, "many": 1.6})
    key = "film" if ask_film else "name"
    answer = title if ask_film else winner

    def fact(y: int, c: str, full: dict[str, object]) -> str:
        return v.pick(
            (
                f"Oscar for {c}, {y}, {key}: {full[key]}. The entry: {full}",
                f"In {y} the Oscar for {c} went to {full[key]}. {full}",
                f'Winners ({y}): {full["name"]} won the Oscar for {c} with "{full["film"]}".',
                f"{y} Academy Awards, {c}: {full['film']} ({full['name']})",
                f"the {c} Oscar of {y} went to {full[key]}",
                str(full),
                dialects.sheet(v, style, "award", c, list(full.items())),
            )
        )

    if case == "right":
        return answered(query, when, DOMAIN, "simple_w_condition", answer, (fact(year, short, details),), (answer,))
    if case == "many":
        rows = [details]
        for _ in range(v.between(2, 6)):
            _, other_official, _, _ = v.pick([c for c in CATEGORIES if c[1] != official])
            rows.append({**details, "category": other_official, "name": n.person(), "film": n.film()})
        v.rng.shuffle(rows)
        heads = list(details)
        found = f"Oscar winners of {year}" + dialects.rows(v, heads, [list(r.values()) for r in rows])
        return answered(query, when, DOMAIN, "simple_w_condition", answer, (found,), (answer,))
    if case == "empty":
        found = v.pick(
            (
                f"Oscar for {short}, {year}, {key}: None.",
                "[]",
                f"No Oscar for {short} in {year} is known.",
                f"there is no record of the {year} Oscar for {short}",
            )
        )
    elif case == "year":
        other = year + v.pick((-9, -3, -2, -1, 1, 2, 5))
        found = (
            f"Oscar for {short}, {other}, {key}: {answer}. The entry: "
            f"{ ({**details, 'year_ceremony': other, 'ceremony': other - 1928}) }"
        )
    else:
        _, other_official, other_short, _ = v.pick([c for c in CATEGORIES if c[1] != official])
        found = (
            f"Oscar for {other_short}, {year}, {key}: {answer}. The entry: "
            f"{ ({**details, 'category': other_official}) }"
        )
    return unknown(query, when, DOMAIN, "simple_w_condition", (found,))


def oscars_of_one(v: Voice, n: Names) -> Record:
    """How many awards, for which film, in which category."""
    when = v.moment()
    person = v.chance(0.6)
    who = n.person() if person else n.film()
    count = v.weighted({1: 3.0, 2: 2.5, 3: 1.5, 4: 0.8, 5: 0.4})
    categories = [c[2] for c in v.some(CATEGORIES, count)]
    partners = n.films(count) if person else n.people(count)
    won = v.chance(0.75)
    verb, label = ("won", "winner") if won else ("was nominated for", "nominee")
    lines = [
        f"{who if person else p} {verb} the Oscar for {c}, with {p if person else who}."
        for c, p in zip(categories, partners, strict=True)
    ]
    found = v.pick(
        (
            f"{who}, {count} times Oscar {label}:\n" + "\n".join(lines),
            f"{who}: {count} Oscar {label} entries. " + " ".join(lines),
            f"Number of Oscars {verb} by {who}: {count}. "
            + "; ".join(f"{c} ({p})" for c, p in zip(categories, partners, strict=True))
            + ".",
        )
    )
    case = v.weighted({"count": 3.0, "film": 1.5, "names": 0.8, "foreign": 2.0, "mismatch": 1.0, "zero": 0.8})
    asked = "won" if won else "been nominated for"
    if case == "count" or (case == "film" and not person):
        query = v.ask(
            ((f"the number of [oscars|academy awards] {{x}} [has |]{asked}",)),
            (
                f"how many [oscars|academy awards] [has|did] {{x}} {asked if won else 'get nominated for'}",
                f"how many times has {{x}} {asked} an [oscar|academy award]",
            ),
            x=who,
        )
        return answered(v.typed(query), when, DOMAIN, "aggregation", str(count), (found,), (str(count),))
    if case == "mismatch":
        query = v.say(f"how many [oscars|academy awards] has {{x}} {'been nominated for' if won else 'won'}", x=who)
        return unknown(v.typed(query), when, DOMAIN, "aggregation", (found,))
    if case == "film" and count == 1:
        query = v.say(
            (
                "[for which|which|what] [movie|film] [did {x} win an oscar|earned {x} an oscar]"
                if won
                else "[for which|which|what] [movie|film] [did {x} get|earned {x}] an oscar nomination"
            ),
            x=who,
        )
        return answered(v.typed(query), when, DOMAIN, "simple", partners[0], (found,), (partners[0],))
    if case in ("film", "names"):
        if person:
            at = v.between(0, count - 1)
            query = v.say(
                (
                    f"for which [movie|film] [did {{x}} {'win' if won else 'get nominated for'}] the "
                    f"{categories[at]} oscar"
                ),
                x=who,
            )
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", partners[at], (found,), (partners[at],))
        at = v.between(0, count - 1)
        query = v.say(
            f"who {'won' if won else 'was nominated for'} the {categories[at]} [oscar|academy award] [for|with] {{x}}",
            x=who,
        )
        return answered(v.typed(query), when, DOMAIN, "simple_w_condition", partners[at], (found,), (partners[at],))
    if case == "zero":
        query = v.say(
            f"how many [oscars|academy awards] [has|did] {{x}} {'won' if won else 'been nominated for'}", x=who
        )
        found = v.pick((f"{who}, 0 times Oscar {label}", f"Number of Oscars of {who}: 0."))
        return answered(v.typed(query), when, DOMAIN, "aggregation", "0", (found,), ("0",))
    query = v.typed(v.ask(*((FOREIGN_PERSON, FOREIGN_PERSON_WHOLE) if person else (FOREIGN, FOREIGN_WHOLE)), x=who))
    return unknown(query, when, DOMAIN, "simple", (found,))


_ROLES = (
    "Detective",
    "Dr.",
    "Captain",
    "Officer",
    "Aunt",
    "Uncle",
    "Professor",
    "Sergeant",
    "Mrs.",
    "Mr.",
    "Agent",
    "King",
    "Princess",
)


def _role(v: Voice, n: Names) -> str:
    role = (
        n.person() if v.chance(0.5) else f"{v.pick(_ROLES)} {n.coined()}" if v.chance(0.5) else n.person().split(" ")[0]
    )
    return role + (" (voice)" if v.chance(0.08) else "")


def cast_list(v: Voice, n: Names, title: str, cast: Sequence[str], roles: Sequence[str], *, whole: bool = False) -> str:
    """The actors of a film with their characters, in the order of their importance."""
    size = len(cast) if whole or len(cast) < 10 else len(cast) + v.between(0, 80)
    pairs = list(zip(cast, roles, strict=True))
    return v.pick(
        (
            f"{title} has a cast of {size}. The first {len(cast)}:\n" + "\n".join(f"{a} played {r}" for a, r in pairs),
            f"{title}, cast ({size}): " + "; ".join(f"{a} as {r}" for a, r in pairs),
            f'Cast of the film "{title}" ({size}): ' + "; ".join(f"{a} (character {r})" for a, r in pairs) + ".",
            f"Cast of {title}" + dialects.rows(v, ("actor", "character"), pairs),
            f"In {title}, " + ", ".join(f"{a} plays {r}" for a, r in pairs) + ".",
        )
    )


def cast(v: Voice, n: Names) -> Record:
    """Who played whom, who leads, how many there are."""
    when = v.moment()
    title = n.film()
    people = n.people(v.weighted({3: 1.0, 5: 1.0, 8: 1.0, 10: 4.0}))
    roles = [_role(v, n) for _ in people]
    at = v.between(0, len(people) - 1)
    found = cast_list(v, n, title, people, roles)
    role = roles[at].removesuffix(" (voice)")
    case = v.weighted(
        {
            "actor": 2.2,
            "role": 1.2,
            "lead": 1.0,
            "count": 0.7,
            "top": 0.7,
            "absent": 1.5,
            "foreign": 1.4,
            "stranger": 0.7,
            "empty": 0.9,
            "truth": 0.6,
        }
    )
    who_played = (
        "who [played|plays|portrayed|acted as|was] {r} in [the movie |]{x}",
        "which [actor|actress|performer] [played|plays] {r} in {x}",
        "what's the name of the [actor|actress] who played [the role of |]{r} in {x}",
        "in {x}, who played {r}",
    )
    match case:
        case "actor":
            query = v.say(v.pick(who_played), r=role, x=spoken(v, title))
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", people[at], (found,), (people[at],))
        case "role":
            query = v.say("[who|which character|what role] did {a} play in {x}", a=people[at], x=title)
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", role, (found,), (role,))
        case "lead":
            query = v.say(
                (
                    "[who [played|plays] the [lead|main role|lead role|main character] in {x}|who is "
                    "the [star|lead actor|main actor] of {x}|who has the leading role in {x}]"
                ),
                x=title,
            )
            return answered(v.typed(query), when, DOMAIN, "simple", people[0], (found,), (people[0],))
        case "top":
            k = min(3, len(people))
            query = v.say(
                "who are the [{k}|{k} first] [main|lead|top billed] [actors|cast members|stars] [in|of] {x}",
                x=title,
                k=k,
            )
            return answered(v.typed(query), when, DOMAIN, "set", listed(people[:k]), (found,), tuple(people[:k]))
        case "count":
            shown_count = found.split(" is ", 1)[-1].split(".", 1)[0] if found.startswith("the number") else ""
            if not shown_count.isdigit():
                return cast(v, n)
            query = v.say("how many [actors|people|cast members] [are|were] in [the cast of |]{x}", x=title)
            return answered(v.typed(query), when, DOMAIN, "aggregation", shown_count, (found,), (shown_count,))
        case "truth":
            inside = v.chance(0.5) and len(people) < 10
            whom = people[at] if inside else n.person()
            found = cast_list(v, n, title, people, roles, whole=True)
            query = v.say("[is {a} in the cast of {x}|did {a} act in {x}|was {a} in {x}]", a=whom, x=title)
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if inside else "no", (found,))
        case "absent":
            query = v.say(v.pick(who_played), r=_role(v, n), x=title)
        case "stranger":
            query = v.say(v.pick(who_played), r=_role(v, n), x=title)
            found = cast_list(v, n, n.near(title), people, roles)
        case "empty":
            query = v.say(v.pick(who_played), r=role, x=title)
            where = n.near(title) if v.chance(0.5) else title
            found = v.pick(
                (
                    f"{where}: nobody is listed in the cast.",
                    f"Number of cast of {where}: 0.",
                    "[]",
                )
            )
        case _:
            query = v.ask(FOREIGN, FOREIGN_WHOLE, x=title)
    return unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (found,))


BORN = (
    (
        "the [birthday|birth date|birthdate|date of birth] of [the [actor|actress|filmmaker|director] |]{x}",
        "{x}'s [birthday|birth date|date of birth]",
        "the [date|day] [on which |]{x} was born",
    ),
    (
        "when was [the [actor|director] |]{x} born",
        "on [what|which] [date|day] was {x} born",
        "how old is {x}, when was [he|she] born",
        "when is {x}'s birthday",
    ),
)


def profile(v: Voice, n: Names, who: str, born: object, films: Sequence[tuple[str, object]], awards: str = "") -> str:
    """A person with what is known of him or her."""
    works = "; ".join(f"'{t}'({d})" for t, d in films)
    facts = f"the birthday is {born};" if born else ""
    played = f" {len(films)} films: {works};" if films else ""
    return v.pick(
        (
            f"{who} (actor): {facts}{played}{awards}",
            f"{who}: {facts}{played}{awards}",
            f"the details of {who}: {facts}{played}{awards}",
            f"The birthday of {who} is {born}. Films: {works}. {awards}"
            if films
            else f"The birthday of {who} is {born}.",
        )
    ).replace("  ", " ")


def _honours(v: Voice, n: Names, who: str) -> str:
    """A person's nominations, now and then."""
    if v.chance(0.7):
        return ""
    listed_awards = "; ".join(
        f"{v.between(1950, 2023)} {v.pick(CATEGORIES)[1]} in movie '{n.film()}'" for _ in range(v.between(1, 5))
    )
    return f" the Oscar nominations (wins) of {who}: {listed_awards};"


def person(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    who = n.person()
    born = v.day(1900, 2006).isoformat()
    films = [
        (title, v.day(1960, 2024).isoformat())
        for title in n.films(v.weighted({0: 2.5, 1: 1.5, 3: 1.0, 6: 1.2, 12: 2.5}))
    ]
    found = (
        profile(v, n, who, born, films, _honours(v, n, who))
        if v.chance(0.75)
        else dialects.state(v, style, "birthday", who, born)
    )
    case = v.weighted({"born": 4.5, "foreign": 4.0, "stranger": 1.0, "none": 0.8, "film date": 1.0, "older": 1.4})
    match case:
        case "born":
            return answered(v.typed(v.ask(*BORN, x=who)), when, DOMAIN, "simple", born, (found,), (born,))
        case "film date" if films:
            title, day = v.pick(films)
            found = profile(v, n, who, born, films)
            query = v.ask(
                ("the release date of {t} with {x}",),
                ("when did {t} with {x} come out", "in what year did {x} [play|appear] in {t}"),
                x=who,
                t=title,
            )
            answer = str(day)[:4] if "year" in query else str(day)
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", answer, (found,), (answer,))
        case "older":
            other, day = n.person(), v.day(1900, 2006).isoformat()
            if other == who or day == born:
                return person(v, n)
            older = v.chance(0.5)
            query = v.say(
                "[who is|which [actor|one] is] {w}[:|,] {a} or {b}", w="older" if older else "younger", a=who, b=other
            )
            pair = (found, profile(v, n, other, day, films[:2]))
            first = (born < day) == older
            if v.chance(0.25):
                return unknown(
                    v.typed(query), when, DOMAIN, "comparison", (found, profile(v, n, n.near(other), day, []))
                )
            return answered(
                v.typed(query), when, DOMAIN, "comparison", who if first else other, dialects.shuffled(v, pair)
            )
        case "stranger":
            found = profile(v, n, n.person() if v.chance(0.5) else f"{who.split(' ')[0]} {n.coined()}", born, films)
            return unknown(v.typed(v.ask(*BORN, x=who)), when, DOMAIN, "simple", (found,))
        case "none":
            found = profile(v, n, who, "None", films) if v.chance(0.5) else dialects.nothing(v, style, "birthday", who)
            return unknown(v.typed(v.ask(*BORN, x=who)), when, DOMAIN, "simple", (found,))
        case _:
            return unknown(
                v.typed(v.ask(FOREIGN_PERSON, FOREIGN_PERSON_WHOLE, x=who)), when, DOMAIN, "simple", (found,)
            )


def _entry(v: Voice, style: Style, one: Film, stars: Sequence[str] = ()) -> str:
    keys = ("budget", "release date", "revenue", "rating", "length", "original language", "original title")
    facts = "; ".join(f"the {named(k, style)} is {one.facts[k]}" for k in keys)
    cast_of = f" A cast of {v.between(5, 90)}, led by {listed(stars)}." if stars else ""
    return f'Film "{one.title}": {facts}.{cast_of}'


def filmography(v: Voice, n: Names) -> Record:
    """Which films of a person: by year, the newest, the most successful, how many."""
    style, when = v.style(), v.moment()
    who, job = n.person(), v.pick(("acted", "acted", "directed"))
    films = [film(v, n, title) for title in n.films(v.weighted({1: 1.6, 2: 2.0, 3: 2.0, 5: 2.0, 7: 1.2}))]
    case = v.weighted({"year": 2.5, "count": 1.0, "top": 2.0, "newest": 1.0, "foreign": 1.5, "empty": 2.0, "all": 1.0})
    verb = "[star in|act in|play in|appear in|make]" if job == "acted" else "[direct|make]"
    if case == "year":
        year = v.between(1970, 2023)
        films = [film(v, n, f.title, year) for f in films[:2]]
        head = v.pick(
            (
                f"{who}, films {job} in {year} ({len(films)}): ",
                f"Films {job} by {who} ({year}): ",
            )
        )
        query = v.say(
            (
                f"[[what|which] [movie|movies|film|films] did {{x}} {verb} in {year}|[what|which] "
                f"{year} [movie|film] did {{x}} {verb}]"
            ),
            x=who,
        )
        found = head + " ".join(_entry(v, style, f, n.people(3)) for f in films)
        return answered(
            v.typed(query),
            when,
            DOMAIN,
            "simple_w_condition",
            listed([f.title for f in films]),
            (found,),
            tuple(f.title for f in films),
        )
    if case == "empty":
        year = v.between(1990, 2024)
        found = v.pick(
            (
                f"{who}, films {job}: none on file.",
                f"Number of films {job} by {who} ({year}): 0.",
                f"{who}, films {job} in {year}: []",
            )
        )
        query = v.say(
            (
                f"[what|which] [movies|films] did {{x}} {verb} [in the last {v.between(2, 9)} "
                f"years|since {year}|before {year}|with a dog]"
            ),
            x=who,
        )
        return unknown(v.typed(query), when, DOMAIN, "set", (found,))
    if case == "foreign" or len(films) == 1:
        found = f"{who}, films {job} ({len(films)}): " + " ".join(_entry(v, style, f) for f in films)
        query = v.ask(
            FOREIGN_PERSON,
            (
                *FOREIGN_PERSON_WHOLE,
                "what car did {x} drive in the second movie",
                "which of {x}'s films was shot in [paris|tokyo|iceland]",
                "what score did {x} get on the test in the movie",
            ),
            x=who,
        )
        return unknown(v.typed(query), when, DOMAIN, "simple", (found,))
    if case == "count":
        found = f"{who}, films {job} ({len(films)}): " + " ".join(_entry(v, style, f) for f in films)
        query = v.say(
            f"how many [movies|films] [did {{x}} {verb}|has {{x}} {'been in' if job == 'acted' else 'directed'}]", x=who
        )
        return answered(v.typed(query), when, DOMAIN, "aggregation", str(len(films)), (found,), (str(len(films)),))
    key = {"top": "revenue", "newest": "release date", "all": "title"}[case]
    if key != "title":
        films.sort(key=lambda f: f.facts["revenue"] if key == "revenue" else f.released.isoformat(), reverse=True)  # type: ignore[arg-type, return-value]
    head = f"top {len(films)} movies {job} by {who}, in order of {named(key, style)}: "
    found = head + " ".join(_entry(v, style, f) for f in films)
    titles = [f.title for f in films]
    if case == "all":
        query = v.say(
            f"[what|which] [movies|films] [did {{x}} {verb}|has {{x}} {'been in' if job == 'acted' else 'directed'}]",
            x=who,
        )
        return answered(v.typed(query), when, DOMAIN, "set", listed(titles), (found,), tuple(titles))
    if case == "top":
        k = v.pick((1, 1, 2, 3)) if len(films) > 2 else 1
        which = "[highest-grossing|most successful|highest earning|best selling|biggest]"
        query = v.say(
            f"[what is|what's|tell me] {{x}}'s {which} [movie|film]"
            if k == 1
            else f"what are the {k} {which} [movies|films] of {{x}}",
            x=who,
        )
        return answered(
            v.typed(query), when, DOMAIN, "post-processing", listed(titles[:k]), (found,), tuple(titles[:k])
        )
    query = v.say("[what is|what's|tell me] {x}'s [latest|newest|most recent|last] [movie|film]", x=who)
    return answered(v.typed(query), when, DOMAIN, "simple_w_condition", titles[0], (found,), (titles[0],))


def compare(v: Voice, n: Names) -> Record:
    """Two films: which came first, cost more, took more, is longer; together, or by how much."""
    style, when = v.style(), v.moment()
    one, two = (film(v, n, title) for title in n.films(2))
    what, words, least = v.pick(
        (
            ("revenue", "[made|earned|grossed] more [money|at the box office]", False),
            ("budget", "had the [bigger|larger|higher] budget", False),
            ("budget", "had the smaller budget", True),
            ("release date", "[came out|was released] first", True),
            ("length", "is longer", False),
            ("release date", "is [newer|more recent]", False),
            ("rating", "has the [higher|better] rating", False),
            ("length", "is shorter", True),
        )
    )
    a, b = one.facts[what], two.facts[what]
    query = v.say(
        (
            "[[which [movie|film|one]|which] {w}[,|:] {a} or {b}|between {a} and {b}, which "
            "[movie|film|one] {w}|{a} or {b}, which one {w}]"
        ),
        w=v.say(words),
        a=one.title,
        b=two.title,
    )
    facts = [_fact(v, style, one.title, what, a), _fact(v, style, two.title, what, b)]
    case = v.weighted({"right": 5.0, "missing": 1.0, "foreign": 1.6, "stranger": 0.8, "truth": 1.4})
    if str(a) == str(b) or case == "foreign":
        foreign = (
            "opened in more theaters",
            "has more sequels",
            "made more in its opening weekend",
            "sold more tickets",
            "has the better soundtrack",
            "was streamed more",
            "had more stunts",
            "has more fans",
        )
        query = v.say("[which [movie|film]|which one] {w}, {a} or {b}", w=v.pick(foreign), a=one.title, b=two.title)
        return unknown(v.typed(query), when, DOMAIN, "comparison", tuple(facts))
    if case == "missing":
        facts[1] = _missing(v, style, two.title, what)
        return unknown(v.typed(query), when, DOMAIN, "comparison", dialects.shuffled(v, facts))
    if case == "stranger":
        facts[1] = _fact(v, style, n.near(two.title), what, b)
        return unknown(v.typed(query), when, DOMAIN, "comparison", tuple(facts))
    if case == "truth":
        year = one.released.year + v.pick((-8, -3, -1, 1, 3, 9))
        before = v.chance(0.5)
        query = v.say(
            "[did {x} come out|was {x} released] {p} {y}", x=one.title, p="before" if before else "after", y=year
        )
        yes = (one.released.year < year) == before
        found = _fact(v, style, one.title, "release date", one.facts["release date"])
        return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if yes else "no", (found,))
    smaller = _less(a, b)
    answer = one.title if smaller == least else two.title
    return answered(v.typed(query), when, DOMAIN, "comparison", answer, dialects.shuffled(v, facts))


def _less(a: object, b: object) -> bool:
    return a < b if isinstance(a, int | float) and isinstance(b, int | float) else str(a) < str(b)


_WORK = {
    "Director": "[who directed {x}|who is the director of {x}|the director of {x}]",
    "Producer": "[who produced {x}|who was a producer of {x}]",
    "Screenplay": "[who wrote {x}|who wrote the screenplay of {x}|the screenwriter of {x}]",
    "Editor": "[who edited {x}|who was the editor of {x}]",
    "Original Music Composer": "[who composed the [score|music] [of|for] {x}|the composer of {x}]",
    "Costume Design": "who designed the costumes of {x}",
    "Director of Photography": "[who was the cinematographer of {x}|who shot {x}|the director of photography of {x}]",
    "Casting": "who did the casting of {x}",
}


def crew(v: Voice, n: Names) -> Record:
    """Who did what behind a film."""
    when = v.moment()
    title = n.film()
    jobs = v.some(JOBS, v.between(2, len(JOBS)))
    people = n.people(len(jobs))
    size = len(jobs) + v.pick((0, 0, 40, 180))
    pairs = list(zip(people, jobs, strict=True))
    found = v.pick(
        (
            f"the crew of {title}, {size} people: " + "; ".join(f"{who} as {job}" for who, job in pairs),
            f'Crew of the film "{title}" ({size}): ' + "; ".join(f"{who} (job {job})" for who, job in pairs) + ".",
            f"crew of {title}" + dialects.rows(v, ("name", "job"), pairs),
        )
    )
    who, job = v.pick([pair for pair in pairs if pair[1] in _WORK] or pairs[:1])
    if job not in _WORK:
        return crew(v, n)
    match v.weighted({"right": 3.0, "absent": 1.2, "foreign": 1.0, "yes": 0.8}):
        case "right":
            return answered(
                v.typed(v.say(_WORK[job], x=title)), when, DOMAIN, "simple_w_condition", who, (found,), (who,)
            )
        case "yes":
            inside = v.chance(0.5)
            query = v.say("was {a} involved in [the making of |]{x}", a=who if inside else n.person(), x=title)
            return answered(v.typed(query), when, DOMAIN, "simple_w_condition", "yes" if inside else "no", (found,))
        case "absent" if missing := [other for other in _WORK if other not in jobs]:
            query = v.say(_WORK[v.pick(missing)], x=title)
        case _:
            query = v.ask(FOREIGN, FOREIGN_WHOLE, x=title)
    return unknown(v.typed(query), when, DOMAIN, "simple_w_condition", (found,))


def series(v: Voice, n: Names) -> Record:
    """Films whose titles share a name: how many, in which order, which took most; what the list does not say."""
    style, when = v.style(), v.moment()
    name = n.film()
    titles = list(dict.fromkeys([name, *(n.near(name) for _ in range(v.between(1, 5)))]))
    films = sorted((film(v, n, title) for title in titles), key=lambda one: one.released)
    found = f"{len(films)} films that belong to {name}: " + " ".join(_entry(v, style, one) for one in films)
    match v.weighted({"first": 1.0, "last": 1.0, "top": 1.2, "foreign": 3.0}):
        case "first":
            query, answer = v.say("[which|what] was the first {x} [movie|film]", x=name), films[0].title
        case "last":
            query, answer = (
                v.say("[which|what] is the [newest|latest|most recent] {x} [movie|film]", x=name),
                films[-1].title,
            )
        case "top":
            best = max(films, key=lambda one: str(one.facts["revenue"]).rjust(12))
            query, answer = (
                v.say("which {x} [movie|film] [made|earned] the most [money|at the box office]", x=name),
                best.title,
            )
        case _:
            whole = (
                "what car did the hero drive in the second {x} movie",
                "what are the names of all villains in {x}",
                "who was the first actress in a {x} movie",
                "how many awards did the {x} [franchise|series] win",
                "who sang in the last {x} film",
                "which {x} film has the best reviews by critics",
            )
            return unknown(v.typed(v.ask((), whole, x=name)), when, DOMAIN, "simple", (found,))
    return answered(v.typed(query), when, DOMAIN, "post-processing", answer, (found,), (answer,))


PATTERNS = (
    (1.4, crew),
    (1.0, series),
    (9.0, attribute),
    (2.6, original_title),
    (3.2, premise),
    (6.0, oscar_of_year),
    (3.5, oscars_of_one),
    (4.5, cast),
    (4.5, person),
    (4.0, filmography),
    (3.2, compare),
)
