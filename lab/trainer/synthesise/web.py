"""Questions answered from web pages: long passages in which one sentence or one row matters, or none does."""

from collections.abc import Callable, Sequence

from lab.trainer.synthesise import prose
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.prose import Fact, a_person, number_between, year_between
from lab.trainer.synthesise.record import Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import MONTHS, Voice

DOMAIN = "open"
# Of one passage, like the parent chunks that the gateway shows, shortened for the time that reading takes in training.
PASSAGE_CHARS = (500, 1_400)
PASSAGES = (1, 3)
# Rows of a table, and its columns beside the name.
ROWS, COLUMNS = (4, 9), (2, 4)


def _coined(prefix: str) -> Callable[[Voice, Names], str]:
    return lambda v, n: f"{v.say(prefix)} {n.coined()}"


def _day(v: Voice, n: Names) -> str:
    day = v.between(1, 28)
    month, year = MONTHS[v.between(0, 11)], v.between(1840, 2022)
    return f"{day} {month} {year}" if v.chance(0.5) else f"{month} {day}, {year}"


# The words of a question are often not those of the page: so for each fact both are written apart.
STORIES: dict[str, tuple[tuple[str, ...], tuple[Fact, ...]]] = {
    "expedition": (
        (
            "[In the years before it|For a decade], {x} [had been|was] little more than a plan [on paper|in a drawer] "
            "in {p}.",
            "{x} set out from {p} with [more hope than money|a borrowed map|three sledges].",
        ),
        (
            Fact(
                ("The [whole party|crew] was picked up by the {y} [two days later|in heavy seas|near the coast].",),
                ("the [ship|vessel] that [rescued|picked up|took home] the [men|people|team] of {x}",),
                ("which [ship|vessel] [rescued|picked up|took home] the [team|people|party] of {x}",),
                _coined("[SS|HMS|MV|icebreaker]"),
                "ship",
            ),
            Fact(
                (
                    "{y} [stepped ashore|went] ahead of [all the others|everyone else], and the rest followed "
                    "[an hour|a few minutes] later.",
                    "It was {y} who [set foot there|reached the spot] before anyone else.",
                ),
                ("the first [person|one|human] to [arrive|set foot there] during {x}",),
                ("who [was the first to arrive|got there first|set foot there first] during {x}",),
                a_person,
                "first arrival",
            ),
            Fact(
                ("{y} [led|commanded] the [party|undertaking] [from start to end|until the winter].",),
                ("the [leader|commander|head] of {x}",),
                ("who [led|was in charge of|commanded] {x}",),
                a_person,
                "leader",
            ),
            Fact(
                ("They [left|departed] on {y}, [a day late|in fog|before dawn].",),
                ("the [date|day] {x} [began|set out|started]",),
                ("when did {x} [begin|set out|start|leave]", "on what day did {x} [begin|start]"),
                _day,
                "departure",
            ),
            Fact(
                ("[Altogether|In all] it [took|lasted] {y}, [twice the time planned|a month less than feared].",),
                ("the [length|duration] of {x}",),
                ("how long did {x} [last|take|go on]",),
                number_between(9, 900, " days"),
                "duration",
            ),
            Fact(
                ("{y} [of them|members] came home.", "Of all who went, {y} came back."),
                ("the number of [survivors|people who returned] of {x}",),
                ("how many people [survived|came back from|returned from] {x}",),
                number_between(3, 90),
                "survivors",
            ),
        ),
    ),
    "nature": (
        (
            "{x} [rises|begins] [in the hills|among the marshes] [north|south] of {p}.",
            "[Few maps|Old charts] of {p} [show|mark] {x} [where it is|correctly].",
        ),
        (
            Fact(
                (
                    "[It measures|Its course measures] {y} from end to end.",
                    "From [source|end] to [mouth|end] it is {y}.",
                ),
                ("the length of {x}",),
                ("how long is {x}",),
                number_between(20, 4000, " km"),
                "length",
            ),
            Fact(
                ("[Nobody stood on top|The summit was not reached] [before|until] {y}.",),
                ("the year of the first ascent of {x}",),
                ("[when|in which year] was {x} first climbed", "when did people first [climb|reach the top of] {x}"),
                year_between(1780, 1975),
                "first ascent",
            ),
            Fact(
                ("[At its deepest|In the middle] the water goes down {y}.",),
                ("the depth of {x}",),
                ("how deep is {x}",),
                number_between(12, 1600, " m"),
                "depth",
            ),
            Fact(
                ("It [empties|flows] into the {y} [after many bends|at last].",),
                ("the sea that {x} flows into",),
                ("[which sea|where] does {x} [flow into|end]",),
                _coined("[Sea of|Gulf of|Bay of]"),
                "mouth",
            ),
            Fact(
                ("[The first to describe it was|It was first drawn by] {y}.",),
                ("the discoverer of {x}",),
                ("who [discovered|first described] {x}",),
                a_person,
                "discoverer",
            ),
        ),
    ),
    "contest": (
        (
            "{x} [brought|drew] [crowds|visitors] to {p} [once more|despite the rain].",
            "[Tickets|Seats] for {x}, held in {p}, were gone [in a day|within hours].",
        ),
        (
            Fact(
                (
                    "The [title|cup|crown] went to {y} [after a long evening|by a narrow margin|against all odds].",
                    "{y} [finished on top|took the trophy home].",
                ),
                ("the winner of {x}",),
                ("who [won|was the winner of] {x}",),
                a_person,
                "winner",
            ),
            Fact(
                ("{y} [came second|had to settle for silver|lost the last round].",),
                ("the runner-up of {x}",),
                ("who [was the runner-up|came second] in {x}",),
                a_person,
                "runner-up",
            ),
            Fact(
                ("[Doors opened|It was held] on {y}.",),
                ("the date of {x}",),
                ("when [was {x} held|did {x} take place]", "what date was {x}"),
                _day,
                "date",
            ),
            Fact(
                ("{y} [looked on|were in the stands|people came].",),
                ("the attendance of {x}",),
                ("how many [people|spectators] [attended|watched|saw] {x}",),
                number_between(400, 90000),
                "attendance",
            ),
            Fact(
                ("[First prize was|The best of them got] {y}.",),
                ("the prize money of {x}",),
                ("how much [money did the winner of {x} get|was the first prize of {x}]",),
                lambda v, n: f"${v.between(1, 900)},000",
                "prize",
            ),
        ),
    ),
    "invention": (
        (
            "[The story of {x} begins|Like much else, {x} began] in a [shed|kitchen|laboratory] in {p}.",
            "{x} was [once a household name|sold on every corner] in {p}.",
        ),
        (
            Fact(
                ("[It came from the mind of|Behind it stood|The idea was that of] {y}.",),
                ("the inventor of {x}",),
                ("who [invented|came up with|is the inventor of] {x}",),
                a_person,
                "inventor",
            ),
            Fact(
                ("The patent [was granted|came] in {y}.",),
                ("the year {x} was patented",),
                ("when was {x} patented", "in what year did {x} get its patent"),
                year_between(1820, 2015),
                "patent",
            ),
            Fact(
                ("It was [sold to|taken over by|bought by] {y} [for a song|in the end].",),
                ("the [buyer|new owner] of {x}",),
                ("who [bought|acquired|took over] {x}",),
                lambda v, n: n.company().words,
                "buyer",
            ),
            Fact(
                ("It [weighed|tipped the scales at] {y}.",),
                ("the weight of {x}",),
                ("how [heavy|much] [was|is] {x}[| in weight]",),
                number_between(2, 4000, " kg"),
                "weight",
            ),
            Fact(
                ("{y} [were made|left the factory] [before the line closed|in all].",),
                ("the number of units of {x} [made|produced]",),
                ("how many [of {x} were made|units of {x} were produced]",),
                number_between(40, 900000),
                "units",
            ),
        ),
    ),
}
KINDS = {**prose.KINDS, **STORIES}
_NAMED: dict[str, tuple[str, ...]] = {
    "expedition": ("the {c} Expedition", "the {c} Crossing", "the {c} Mission", "{c} {i}"),
    "nature": ("the {c} River", "Mount {c}", "Lake {c}", "the {c} Glacier", "{c} Falls"),
    "contest": ("the {i}th {c} Cup", "the {c} Open {y}", "the {y} {c} Prize", "the {c} Marathon"),
    "invention": ("the {c} engine", "the {c} lamp", "the {c} machine", "the {c} process", "the {c} valve"),
}
# Sentences of pages that answer nothing: what stands around, beside and between.
_FILLER = (
    "[Historians|Writers|Locals] [still argue|have long disagreed] about [what came next|how much of it is true].",
    "[Photo|Picture]: {p}. [Share this page|Print|Save for later] {k} comments",
    "[Read more|See also]: {a} {b}s of {q}, [ten things to know|a short guide].",
    "[Letters|Diaries] from {q} [speak of|mention] [cold nights|bad food] [and little else|more than once].",
    "In {y} the [council|museum] of {q} [opened|paid for] a small [exhibition|plaque] about it.",
    "[The weather|The mood] [changed|turned] [quickly|for the worse] [that week|in the spring], {p} [wrote|recalled].",
    "{p}, [a teacher|an engineer|a nurse] from {q}, [has collected|keeps] [papers|stories] about it since {y}.",
    "[Subscribe|Sign up] to our [newsletter|letter] and [never miss|get] [a story|the {a} {b} of the week].",
    "[About|Nearly|More than] {k} [people|visitors] [come|ask about it] [each year|every summer].",
    "[Filed under|Topics]: {a}, {b}, {q}. [Updated|Last changed] in {y}.",
    "[Others|Some] [say|think] [it was luck|nothing else could have been done]; {p} [did not|never agreed].",
    "[At the time|Back then] {q} had {k} [inhabitants|houses] and [one road|no railway].",
)


def _thing(v: Voice, n: Names, kind: str) -> str:
    if kind not in _NAMED:
        return prose.named_thing(v, n, kind)
    return v.pick(_NAMED[kind]).format(c=n.coined(), i=v.between(2, 40), y=v.between(1950, 2022))


def filler(v: Voice, n: Names) -> str:
    return v.say(
        v.pick(_FILLER),
        p=n.person(),
        q=n.place(),
        y=v.between(1880, 2023),
        k=v.between(12, 900),
        a=n.adjective(),
        b=n.noun(),
    )


def _told(v: Voice, n: Names, facts: Sequence[Fact], values: dict[str, str]) -> list[str]:
    """Sentences that say the facts of one thing, other sentences between them."""
    told: list[str] = []
    for fact in facts:
        told += [filler(v, n) for _ in range(v.between(0, 2))]
        told.append(v.say(v.pick(fact.sentences), x="it", y=values[fact.key]))
    return told


def _beside(v: Voice, n: Names, kind: str) -> str:
    """A few sentences about something else, which may well say of it what is asked of another."""
    leads, facts = KINDS[kind]
    name = _thing(v, n, kind)
    told = [v.say(v.pick(fact.sentences), x=name, y=fact.value(v, n)) for fact in v.some(facts, v.between(1, 3))]
    return " ".join([v.say(v.pick(leads), x=name, p=n.place()), *told])


def _passages(v: Voice, n: Names, title: str, telling: Sequence[str], others: Sequence[str]) -> list[str]:
    """Passages of a page and of others, the telling sentences together somewhere in one of them."""
    found: list[str] = []
    count = v.between(*PASSAGES)
    right = v.between(0, count - 1)
    spare = list(others)
    for index in range(count):
        sentences = list(telling) if index == right else []
        goal = v.between(*PASSAGE_CHARS)
        while sum(map(len, sentences)) < goal:
            extra = spare.pop() if spare and v.chance(0.5) else filler(v, n)
            sentences.insert(0 if v.chance(0.5) else len(sentences), extra)
        start = f"{title}: " if index == right and v.chance(0.5) else ""
        # Chunks begin and end anywhere.
        if v.chance(0.4) and index != right:
            sentences[0] = sentences[0][v.between(0, 20) :].partition(" ")[2] or sentences[0]
        found.append(start + " ".join(sentences))
    return found


def story(v: Voice, n: Names) -> Record:
    """A fact told in a long page, in other words than the question's; other things on the page have the like."""
    when = v.moment()
    kind = v.weighted({name: 2.0 if name in STORIES else 1.0 for name in KINDS})
    leads, facts = KINDS[kind]
    who, other = _thing(v, n, kind), _thing(v, n, kind)
    case = v.weighted({"right": 6.5, "absent": 2.0, "stranger": 1.0, "false": 0.7})
    chosen = v.some(facts, v.between(2, len(facts)))
    wanted = chosen[0]
    values = {fact.key: fact.value(v, n) for fact in chosen}
    shown = [fact for fact in chosen if not (case == "absent" and fact is wanted)]
    v.rng.shuffle(shown)
    subject = other if case == "stranger" else who
    telling = [v.say(v.pick(leads), x=subject, p=n.place()), *_told(v, n, shown, values)]
    others = [_beside(v, n, kind if v.chance(0.6) else v.pick(list(KINDS))) for _ in range(v.between(1, 5))]
    if case == "false" and kind in prose.CONTRADICTIONS:
        telling.append(v.say(prose.CONTRADICTIONS[kind], p=n.place()))
        query = v.say(v.pick(prose.FALSE_QUESTIONS[kind]), x=who, y=v.between(1950, 2020))
        return invalid(v.typed(query), when, DOMAIN, tuple(_passages(v, n, subject, telling, others)))
    query = v.typed(v.ask(wanted.nouns, wanted.whole, x=who))
    found = tuple(_passages(v, n, subject, telling, others))
    if case in ("absent", "stranger"):
        return unknown(query, when, DOMAIN, "simple", found)
    value = values[wanted.key]
    return answered(query, when, DOMAIN, "simple", prose.said(wanted, value), found, (value,))


def table(v: Voice, n: Names) -> Record:
    """A cell of a Markdown table on a page, asked by its row; a row or a column that is not there is not known."""
    when = v.moment()
    kind = v.pick(list(KINDS))
    columns = v.some(KINDS[kind][1], v.between(*COLUMNS))
    things = list(dict.fromkeys(_thing(v, n, kind) for _ in range(v.between(*ROWS))))
    body = [[thing, *(fact.value(v, n) for fact in columns)] for thing in things]
    case = v.weighted({"right": 7.0, "row": 1.5, "column": 1.5})
    row = v.pick(body)
    wanted = v.pick(columns)
    place = 1 + columns.index(wanted)
    shown = [cells for cells in body if case != "row" or cells is not row]
    heads = [kind, *(fact.key for fact in columns)]
    if case == "column" and len(columns) > 1:
        heads.pop(place)
        shown = [[cell for index, cell in enumerate(cells) if index != place] for cells in shown]
    elif case == "column":
        case, shown = "row", [cells for cells in body if cells is not row]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *(f"| {' | '.join(cells)} |" for cells in shown)]
    title = v.say("[{p}|{p} and {q}]: [{kind}s compared|a list of {kind}s]", p=n.place(), q=n.place(), kind=kind)
    passages = [f"{title}\n" + "\n".join(lines)]
    passages += [" ".join(filler(v, n) for _ in range(v.between(3, 9))) for _ in range(v.between(0, 2))]
    v.rng.shuffle(passages)
    query = v.typed(v.ask(wanted.nouns, wanted.whole, x=row[0]))
    if case != "right":
        return unknown(query, when, DOMAIN, "simple", tuple(passages))
    value = row[place]
    return answered(query, when, DOMAIN, "simple", prose.said(wanted, value), tuple(passages), (value,))


PATTERNS = ((3.0, story), (1.0, table))
