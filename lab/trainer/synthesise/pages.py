"""Questions about anything, answered from prose and web pages: texts in which one sentence or one row matters, or none.

The words of a question are often not those of the page: so for each fact both are written apart, in `entries.yaml` for
an encyclopaedia and in `pages.yaml` for the web.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

import yaml

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrasing import MONTHS, Phrasing
from lab.trainer.synthesise.record import Record, open_record

# Shares of the ways to write several facts about one thing.
FORMS = {"details": 4.0, "json": 1.0, "dict": 1.0, "lines": 1.0, "table": 0.7, "sentences": 1.0}
# Of one passage, like the parent chunks that the gateway shows, shortened for the time that reading takes in training.
PASSAGE_CHARS = (500, 1_400)
PASSAGES = (1, 3)
# Rows of a table, and its columns beside the name.
ROWS, COLUMNS = (4, 9), (2, 4)
_ENDINGS = {
    "building": ("Tower", "Bridge", "Palace", "Hall", "Hotel", "Museum", "Cathedral", "Dam", "Arena"),
    "organisation": ("University", "Society", "Foundation", "Federation", "Group", "Institute", "Union"),
}
Pattern = Callable[[Phrasing, Names], Record]


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence about {x} that holds {y}, the ways to ask for it, and what may stand for {y}."""

    sentences: tuple[str, ...]
    nouns: tuple[str, ...]
    whole: tuple[str, ...]
    value: Callable[[Phrasing, Names], str]
    key: str


# What is said of any thing of a kind, and its facts.
Kind = tuple[tuple[str, ...], tuple[Fact, ...]]


def _value(recipe: Mapping[str, Any]) -> Callable[[Phrasing, Names], str]:
    """What may stand for a fact: words by chance, a year, a day, or a number with what stands before and behind it."""
    match recipe:
        case {"words": words}:
            return lambda v, n: n.called(words)
        case {"year": [low, high]}:
            return lambda v, n: str(v.between(low, high))
        case {"day": [low, high]}:
            return lambda v, n: _day(v, low, high)
        case {"date": [low, high]}:
            return lambda v, n: f"{(day := v.day(low, high)):%B} {day.day}, {day.year}"
        case {"number": [low, high]}:
            before, unit = recipe.get("before", ""), recipe.get("unit", "")
            return lambda v, n: f"{before}{v.between(low, high):,}{unit}"
        case _:
            raise ValueError(f"{recipe} is no value")


def _day(v: Phrasing, low: int, high: int) -> str:
    day = v.between(1, 28)
    month, year = MONTHS[v.between(0, 11)], v.between(low, high)
    return f"{day} {month} {year}" if v.chance(0.5) else f"{month} {day}, {year}"


def _kind(thing: Mapping[str, Any]) -> Kind:
    facts = (
        Fact(tuple(one["sentences"]), tuple(one["nouns"]), tuple(one["whole"]), _value(one["value"]), key)
        for key, one in thing["facts"].items()
    )
    return tuple(thing["leads"]), tuple(facts)


_ENTRIES, _PAGES = (
    yaml.load((files(__package__) / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for name in ("entries.yaml", "pages.yaml")
)
ENTRIES, STORIES = ({kind: _kind(one) for kind, one in data["kinds"].items()} for data in (_ENTRIES, _PAGES))
KINDS = {**ENTRIES, **STORIES}


def _thing(v: Phrasing, n: Names, kind: str) -> str:
    """What a thing of a kind is called."""
    match kind:
        case _ if kind in STORIES:
            names: list[str] = _PAGES["kinds"][kind]["names"]
            return v.pick(names).format(c=n.coined(), i=v.between(4, 20), y=v.between(1950, 2022))
        case "building" | "organisation":
            return f"{n.coined()} {v.pick(_ENDINGS[kind])}"
        case "place":
            return n.place()
        case "person":
            return n.person()
        case _:
            return n.film()


def filler(v: Phrasing, n: Names) -> str:
    """A sentence of a page that answers nothing."""
    template = v.pick(_PAGES["filler"])
    slots = {"p": n.person(), "q": n.place(), "y": v.between(1880, 2023), "k": v.between(12, 900)}
    return v.say(template, **slots, a=n.word("adjective"), b=n.word("noun"))


def _untrue(v: Phrasing, kind: str, who: str) -> str:
    """A question about a thing of an encyclopaedia that takes for given what `_denial` denies."""
    return v.typed(v.say(v.pick(_ENTRIES["kinds"][kind]["untrue"]), x=who, y=v.between(1950, 2020)))


def _denial(v: Phrasing, kind: str, place: str) -> str:
    return v.say(_ENTRIES["kinds"][kind]["denial"], p=place)


def _record(query: str, when: datetime, passages: Sequence[str], fact: Fact, value: str) -> Record:
    """A record of a question for a fact, whose value the passages say unless it is empty."""
    if not value:
        return open_record(query, when, "unknown", passages)
    # As it is answered: with what the sentences around it say of its unit.
    answer = f"${value} million" if fact.key == "cost" else value
    return open_record(query, when, "answer", passages, answer, (value,))


def passage(v: Phrasing, n: Names) -> Record:
    """A fact in an entry of some sentences, or in an infobox; among other pages now and then."""
    when = v.moment()
    kind = v.pick(list(ENTRIES))
    leads, facts = ENTRIES[kind]
    who, place = _thing(v, n, kind), n.place()
    chosen = v.some(facts, v.between(2, len(facts)))
    wanted = chosen[0]
    values = {fact.key: fact.value(v, n) for fact in chosen}
    case = v.weighted({"right": 5.0, "absent": 2.0, "stranger": 1.0, "false": 1.0, "pages": 2.0})
    stated = [fact for fact in chosen if not (case == "absent" and fact is wanted)]
    v.rng.shuffle(stated)
    subject = n.near(who) if case == "stranger" else who
    if v.chance(0.25) and case != "false":
        body = _sheet(v, kind, subject, [(fact.key, values[fact.key]) for fact in stated] or [("country", place)])
    else:
        sentences = [v.say(v.pick(leads), x=subject, p=place)]
        sentences += [v.say(v.pick(fact.sentences), x=subject, y=values[fact.key]) for fact in stated]
        body = " ".join(sentences)
        if v.chance(0.3):
            body = f"summary of {subject}: {body}"
    if case == "false":
        query = _untrue(v, kind, who)
        return open_record(query, when, "invalid_question", (f"{body} {_denial(v, kind, place)}",))
    query = v.typed(v.ask(wanted.nouns, wanted.whole, x=who))
    passages = [body]
    passages += [_page(v, n) for _ in range(v.between(1, 3))] if case == "pages" or v.chance(0.1) else []
    v.rng.shuffle(passages)
    return _record(query, when, passages, wanted, "" if case in ("absent", "stranger") else values[wanted.key])


def _sheet(v: Phrasing, kind: str, who: str, facts: Sequence[tuple[str, object]]) -> str:
    """Several facts about one thing."""
    # `release_date` or `release date`: a source writes all names of attributes alike.
    joint = "_" if v.chance(0.65) else " "
    attributes = [(what.replace(" ", joint), value) for what, value in facts]
    match v.weighted(FORMS):
        case "details":
            text = "; ".join(f"the {what} is {value}" for what, value in attributes)
            return v.pick(
                (f"{who} ({kind}): {text}.", f"{kind} {who}: {text}.", f"{who}, what is known of it: {text}.")
            )
        case "json":
            return json.dumps({"name": who, **dict(attributes)}, ensure_ascii=False)
        case "dict":
            return str({"title": who, **dict(attributes)})
        case "lines":
            return f"{who}\n" + "\n".join(f"- {what}: {value}" for what, value in attributes)
        case "table":
            heads, cells = " | ".join(what for what, _ in attributes), " | ".join(str(value) for _, value in attributes)
            return f"| {kind} | {heads} |\n|{'---|' * (len(attributes) + 1)}\n| {who} | {cells} |"
        case _:
            return " ".join(f"The {what} of {who} is {value}." for what, value in facts)


def _page(v: Phrasing, n: Names) -> str:
    """A passage of a web page about nothing in particular."""
    slots: dict[str, object] = {"place": n.place(), "p": n.person()}
    template = v.pick(_ENTRIES["pages"])
    slots |= {"y": v.between(1950, 2023), "k": v.between(200, 9000), "a": n.word("adjective"), "b": n.word("noun")}
    return v.say(template, **slots)


def _sentences(v: Phrasing, n: Names, facts: Sequence[Fact], values: dict[str, str]) -> list[str]:
    """Sentences with the facts of one thing, other sentences between them."""
    sentences: list[str] = []
    for fact in facts:
        sentences += [filler(v, n) for _ in range(v.between(0, 2))]
        sentences.append(v.say(v.pick(fact.sentences), x="it", y=values[fact.key]))
    return sentences


def _beside(v: Phrasing, n: Names, kind: str) -> str:
    """A few sentences about another thing, which may hold the same facts of it."""
    leads, facts = KINDS[kind]
    name = _thing(v, n, kind)
    sentences = [v.say(v.pick(fact.sentences), x=name, y=fact.value(v, n)) for fact in v.some(facts, v.between(1, 3))]
    return " ".join([v.say(v.pick(leads), x=name, p=n.place()), *sentences])


def _passages(v: Phrasing, n: Names, title: str, telling: Sequence[str], others: Sequence[str]) -> list[str]:
    """Passages of a page and of others, the telling sentences together somewhere in one of them."""
    passages: list[str] = []
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
        passages.append(start + " ".join(sentences))
    return passages


def story(v: Phrasing, n: Names) -> Record:
    """A fact in a long page, in other words than the question's; other things on the page have similar ones."""
    when = v.moment()
    kind = v.weighted({name: 2.0 if name in STORIES else 1.0 for name in KINDS})
    leads, facts = KINDS[kind]
    who, other = _thing(v, n, kind), _thing(v, n, kind)
    case = v.weighted({"right": 6.5, "absent": 2.0, "stranger": 1.0, "false": 0.7})
    chosen = v.some(facts, v.between(2, len(facts)))
    target = chosen[0]
    values = {fact.key: fact.value(v, n) for fact in chosen}
    known = [fact for fact in chosen if not (case == "absent" and fact is target)]
    v.rng.shuffle(known)
    subject = other if case == "stranger" else who
    telling = [v.say(v.pick(leads), x=subject, p=n.place()), *_sentences(v, n, known, values)]
    others = [_beside(v, n, kind if v.chance(0.6) else v.pick(list(KINDS))) for _ in range(v.between(1, 5))]
    if case == "false" and kind in ENTRIES:
        telling.append(_denial(v, kind, n.place()))
        query = _untrue(v, kind, who)
        return open_record(query, when, "invalid_question", _passages(v, n, subject, telling, others))
    query = v.typed(v.ask(target.nouns, target.whole, x=who))
    passages = _passages(v, n, subject, telling, others)
    return _record(query, when, passages, target, "" if case in ("absent", "stranger") else values[target.key])


def table(v: Phrasing, n: Names) -> Record:
    """A cell of a Markdown table on a page, asked by its row; a missing row or column makes an abstention."""
    when = v.moment()
    kind = v.pick(list(KINDS))
    columns = v.some(KINDS[kind][1], v.between(*COLUMNS))
    things = list(dict.fromkeys(_thing(v, n, kind) for _ in range(v.between(*ROWS))))
    body = [[thing, *(fact.value(v, n) for fact in columns)] for thing in things]
    case = v.weighted({"right": 7.0, "row": 1.5, "column": 1.5})
    row = v.pick(body)
    column = v.pick(columns)
    place = 1 + columns.index(column)
    rows, heads = body, [kind, *(fact.key for fact in columns)]
    if case == "column" and len(columns) > 1:
        heads.pop(place)
        rows = [[cell for index, cell in enumerate(cells) if index != place] for cells in body]
    elif case != "right":
        rows = [cells for cells in body if cells is not row]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *(f"| {' | '.join(cells)} |" for cells in rows)]
    title = v.say("[{p}|{p} and {q}]: [{kind}s compared|a list of {kind}s]", p=n.place(), q=n.place(), kind=kind)
    passages = [f"{title}\n" + "\n".join(lines)]
    passages += [" ".join(filler(v, n) for _ in range(v.between(3, 9))) for _ in range(v.between(0, 2))]
    v.rng.shuffle(passages)
    query = v.typed(v.ask(column.nouns, column.whole, x=row[0]))
    return _record(query, when, passages, column, row[place] if case == "right" else "")


# Patterns by their source, with their weights within it.
PATTERNS: dict[str, dict[Pattern, float]] = {"prose": {passage: 1.0}, "web": {story: 3.0, table: 1.0}}
