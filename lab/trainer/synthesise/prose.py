"""Questions about anything, answered from prose: encyclopaedia entries and web pages."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.trainer.synthesise import dialects
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.record import Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import MONTHS, Voice

DOMAIN = "open"


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence about {x} that holds {y}, the ways to ask for it, and what may stand for {y}."""

    sentences: tuple[str, ...]
    nouns: tuple[str, ...]
    whole: tuple[str, ...]
    value: Callable[[Voice, Names], str]
    key: str


def year_between(low: int, high: int) -> Callable[[Voice, Names], str]:
    return lambda v, n: str(v.between(low, high))


def number_between(low: int, high: int, unit: str = "") -> Callable[[Voice, Names], str]:
    return lambda v, n: f"{v.between(low, high):,}{unit}"


def a_person(v: Voice, n: Names) -> str:
    return n.person()


def a_place(v: Voice, n: Names) -> str:
    return n.place()


def _date(v: Voice, n: Names) -> str:
    day = v.day(1820, 2022)
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


KINDS: dict[str, tuple[tuple[str, ...], tuple[Fact, ...]]] = {
    "building": (
        (
            "{x} is a [landmark|tower|monument|hotel|museum|bridge|stadium|palace] in {p}.",
            "{x} is [a|the best known] [building|sight] of {p}.",
        ),
        (
            Fact(
                ("It was [completed|opened|finished] in {y}.", "Work on it ended in {y}."),
                ("the year {x} was [opened|completed|finished]",),
                ("when [was {x} completed|did {x} open|was {x} built]",),
                year_between(1500, 2021),
                "opened",
            ),
            Fact(
                ("It stands {y} tall.", "Its height is {y}."),
                ("the height of {x}",),
                ("how [tall|high] is {x}",),
                number_between(18, 640, " m"),
                "height",
            ),
            Fact(
                ("It was designed by {y}.", "The architect was {y}."),
                ("the architect of {x}",),
                ("who [designed|was the architect of] {x}",),
                a_person,
                "architect",
            ),
            Fact(
                ("It has {y} [floors|storeys].",),
                ("the number of floors of {x}",),
                ("how many floors does {x} have",),
                number_between(3, 120),
                "floor count",
            ),
            Fact(
                ("It holds {y} [people|visitors].", "Its capacity is {y}."),
                ("the capacity of {x}",),
                ("how many people does {x} hold",),
                number_between(800, 90000),
                "capacity",
            ),
            Fact(
                ("It cost ${y} million [to build|].",),
                ("the cost of building {x}",),
                ("how [much did {x} cost|expensive was {x}] to build",),
                number_between(2, 900),
                "cost",
            ),
        ),
    ),
    "place": (
        (
            "{x} is a [town|city|municipality|village] in [the [north|south|east|west] of |]{p}.",
            "{x} [lies|is located] in {p}.",
        ),
        (
            Fact(
                ("It has a population of {y}.", "As of the last census, {y} people lived there."),
                ("the population of {x}", "the number of [people|inhabitants] in {x}"),
                ("how many people live in {x}",),
                number_between(300, 4000000),
                "population",
            ),
            Fact(
                ("The mayor is {y}.", "{y} was elected mayor."),
                ("the mayor of {x}",),
                ("who is the mayor of {x}",),
                a_person,
                "mayor",
            ),
            Fact(
                ("It was founded in {y}.", "It was settled in {y}."),
                ("the year {x} was founded",),
                ("when was {x} founded",),
                year_between(900, 1950),
                "founded",
            ),
            Fact(
                ("It covers an area of {y}.",),
                ("the area of {x}",),
                ("how large is {x}",),
                number_between(4, 2000, " km2"),
                "area",
            ),
            Fact(
                ("It lies at an elevation of {y}.",),
                ("the elevation of {x}",),
                ("how high does {x} lie", "at what elevation is {x}"),
                number_between(2, 3000, " m"),
                "elevation",
            ),
            Fact(
                ("Its twin town is {y}.",),
                ("the twin town of {x}",),
                ("which town is {x} twinned with",),
                a_place,
                "twin town",
            ),
        ),
    ),
    "person": (
        (
            "{x} [is|was] a [writer|politician|chemist|painter|athlete|physicist|explorer] from {p}.",
            "{x}, [born|raised] in {p}, [is|was] a [scientist|journalist|poet|lawyer].",
        ),
        (
            Fact(
                ("[He|She] was born on {y}.",),
                ("the [birthday|birth date] of {x}",),
                ("when was {x} born",),
                _date,
                "birth date",
            ),
            Fact(
                ("[He|She] studied at the University of {y}.",),
                ("the university {x} [attended|went to]",),
                ("where did {x} study",),
                lambda v, n: n.coined(),
                "alma mater",
            ),
            Fact(
                ("[He|She] married {y}.", "[His|Her] spouse is {y}."),
                ("the [spouse|partner] of {x}",),
                ("who [is|was] {x} married to", "who did {x} marry"),
                a_person,
                "spouse",
            ),
            Fact(
                ("[He|She] has {y} children.",),
                ("the number of children {x} has",),
                ("how many [children|kids] does {x} have",),
                number_between(2, 9),
                "children",
            ),
            Fact(
                ("[He|She] received the {y} Prize.",),
                ("the prize {x} received",),
                ("which prize did {x} [win|receive]",),
                lambda v, n: n.coined(),
                "award",
            ),
            Fact(
                ("[He|She] took office in {y}.",),
                ("the year {x} took office",),
                ("when did {x} take office",),
                year_between(1850, 2022),
                "term start",
            ),
        ),
    ),
    "organisation": (
        (
            "{x} is a [company|society|university|federation|charity] [based|with its head office] in {p}.",
            "{x} [is|has been] [one of|among] the largest [employers|associations] of {p}.",
        ),
        (
            Fact(
                ("It was founded by {y}.", "Its founder is {y}."),
                ("the founder of {x}",),
                ("who [founded|started] {x}",),
                a_person,
                "founder",
            ),
            Fact(
                ("It was [founded|established] in {y}.",),
                ("the year {x} was founded",),
                ("when was {x} [founded|established|started]",),
                year_between(1780, 2020),
                "founded",
            ),
            Fact(
                ("It has {y} [members|employees].",),
                ("the number of [members|employees|people] of {x}",),
                ("how many [members|employees|people] does {x} have",),
                number_between(20, 400000),
                "members",
            ),
            Fact(
                ("Its [chairman|president|director] is {y}.",),
                ("the [head|leader|president|director] of {x}",),
                ("who [leads|heads|runs] {x}",),
                a_person,
                "president",
            ),
            Fact(
                ('Its motto is "{y}".',),
                ("the motto of {x}",),
                ("what is the motto of {x}",),
                lambda v, n: n.song(),
                "motto",
            ),
        ),
    ),
    "product": (
        (
            "{x} is a [video game|software|board game|car model|phone] made in {p}.",
            "{x} is a [television series|comic|magazine|book series] [from|set in] {p}.",
        ),
        (
            Fact(
                ("It was first released in {y}.", "It came out in {y}."),
                ("the year {x} [came out|was released]",),
                ("when [was {x} released|did {x} come out]",),
                year_between(1970, 2023),
                "released",
            ),
            Fact(
                ("It was developed by {y}.", "{y} is behind it."),
                ("the [developer|maker|creator] of {x}",),
                ("who [developed|made|created] {x}",),
                lambda v, n: n.company().words,
                "developer",
            ),
            Fact(
                ("It sold {y} copies.",),
                ("the number of copies {x} sold",),
                ("how many [copies|units] did {x} sell",),
                number_between(900, 9000000),
                "sales",
            ),
            Fact(
                ("It has {y} [episodes|levels|volumes|versions].",),
                ("the number of [episodes|parts] of {x}",),
                ("how many [episodes|parts] does {x} have",),
                number_between(3, 300),
                "parts",
            ),
        ),
    ),
}
FALSE_QUESTIONS = {
    "building": ("who bought {x} in {y} after the fire", "why was {x} torn down in {y}"),
    "place": ("when did {x} win the olympic bid for {y}", "who became king of {x} in {y}"),
    "person": ("in what year did {x} die", "where is {x} buried"),
    "organisation": ("when did {x} go bankrupt", "who closed {x} down in {y}"),
    "product": ("why was {x} never released", "who stopped the release of {x} in {y}"),
}
CONTRADICTIONS = {
    "building": "It has never changed hands, has never burned and still stands.",
    "place": "It has never had a king and has never taken part in an Olympic bid.",
    "person": "[He|She] is alive and lives in {p}.",
    "organisation": "It is still active and has never been closed or bankrupt.",
    "product": "It was released as planned and is sold to this day.",
}


def named_thing(v: Voice, n: Names, kind: str) -> str:
    """What a building, a place ... is called."""
    match kind:
        case "building":
            return (
                f"{n.coined()} "
                f"{v.pick(('Tower', 'Bridge', 'Palace', 'Hall', 'Hotel', 'Museum', 'Cathedral', 'Dam', 'Arena'))}"
            )
        case "place":
            return n.place()
        case "person":
            return n.person()
        case "organisation":
            return (
                f"{n.coined()} "
                f"{v.pick(('University', 'Society', 'Foundation', 'Federation', 'Group', 'Institute', 'Union'))}"
            )
        case _:
            return n.film()


def said(fact: Fact, value: str) -> str:
    """A value as it is answered: with what the sentences around it say of its unit."""
    return f"${value} million" if fact.key == "cost" else value


def passage(v: Voice, n: Names) -> Record:
    """A fact in an entry of some sentences, or in an infobox; among other pages now and then."""
    when = v.moment()
    kind = v.pick(list(KINDS))
    leads, facts = KINDS[kind]
    who, place = named_thing(v, n, kind), n.place()
    chosen = v.some(facts, v.between(2, len(facts)))
    wanted = chosen[0]
    values = {fact.key: fact.value(v, n) for fact in chosen}
    case = v.weighted({"right": 5.0, "absent": 2.0, "stranger": 1.0, "false": 1.0, "pages": 2.0})
    shown = [fact for fact in chosen if not (case == "absent" and fact is wanted)]
    v.rng.shuffle(shown)
    subject = n.near(who) if case == "stranger" else who
    if v.chance(0.25) and case != "false":
        style = v.style()
        body = dialects.sheet(
            v, style, kind, subject, [(fact.key, values[fact.key]) for fact in shown] or [("country", place)]
        )
    else:
        body = " ".join(
            [
                v.say(v.pick(leads), x=subject, p=place),
                *(v.say(v.pick(fact.sentences), x=subject, y=values[fact.key]) for fact in shown),
            ]
        )
        if v.chance(0.3):
            body = f"summary of {subject}: {body}"
    if case == "false":
        query = v.say(v.pick(FALSE_QUESTIONS[kind]), x=who, y=v.between(1950, 2020))
        return invalid(v.typed(query), when, DOMAIN, (f"{body} {v.say(CONTRADICTIONS[kind], p=place)}",))
    query = v.typed(v.ask(wanted.nouns, wanted.whole, x=who))
    others = [dialects.page(v, n) for _ in range(v.between(1, 3))] if case == "pages" or v.chance(0.1) else []
    found = dialects.shuffled(v, [body, *others])
    if case in ("absent", "stranger"):
        return unknown(query, when, DOMAIN, "simple", found)
    value = values[wanted.key]
    return answered(query, when, DOMAIN, "simple", said(wanted, value), found, (value,))


PATTERNS = ((1.0, passage),)
