"""Questions about anything, answered from an entry of an encyclopaedia or from other ways to write several facts."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrasing import MONTHS, Phrasing
from lab.trainer.synthesise.record import Record, open_record

# Shares of the ways to write several facts about one thing.
FORMS = {"details": 4.0, "json": 1.0, "dict": 1.0, "lines": 1.0, "table": 0.7, "sentences": 1.0}
_ENDINGS = {
    "building": ("Tower", "Bridge", "Palace", "Hall", "Hotel", "Museum", "Cathedral", "Dam", "Arena"),
    "organisation": ("University", "Society", "Foundation", "Federation", "Group", "Institute", "Union"),
}


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


def read(name: str) -> tuple[dict[str, Kind], Mapping[str, Any]]:
    """The kinds of things of a data file, and all that the file says."""
    text = (files(__package__) / name).read_text(encoding="utf-8")
    content = yaml.load(text, Loader=yaml.CSafeLoader)
    kinds: dict[str, Kind] = {}
    for kind, thing in content["kinds"].items():
        facts = (
            Fact(tuple(one["sentences"]), tuple(one["nouns"]), tuple(one["whole"]), _value(one["value"]), key)
            for key, one in thing["facts"].items()
        )
        kinds[kind] = tuple(thing["leads"]), tuple(facts)
    return kinds, content


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


KINDS, _ENTRIES = read("entries.yaml")
FALSE_QUESTIONS: Mapping[str, Sequence[str]] = {kind: one["untrue"] for kind, one in _ENTRIES["kinds"].items()}
CONTRADICTIONS: Mapping[str, str] = {kind: one["denial"] for kind, one in _ENTRIES["kinds"].items()}


def named_thing(v: Phrasing, n: Names, kind: str) -> str:
    """What a building, a place ... is called."""
    match kind:
        case "building" | "organisation":
            return f"{n.coined()} {v.pick(_ENDINGS[kind])}"
        case "place":
            return n.place()
        case "person":
            return n.person()
        case _:
            return n.film()


def said(fact: Fact, value: str) -> str:
    """A value as it is answered: with what the sentences around it say of its unit."""
    return f"${value} million" if fact.key == "cost" else value


def passage(v: Phrasing, n: Names) -> Record:
    """A fact in an entry of some sentences, or in an infobox; among other pages now and then."""
    when = v.moment()
    kind = v.pick(list(KINDS))
    leads, facts = KINDS[kind]
    who, place = named_thing(v, n, kind), n.place()
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
        query = v.say(v.pick(FALSE_QUESTIONS[kind]), x=who, y=v.between(1950, 2020))
        query = v.typed(query)
        return open_record(query, when, "invalid_question", (f"{body} {v.say(CONTRADICTIONS[kind], p=place)}",))
    query = v.typed(v.ask(wanted.nouns, wanted.whole, x=who))
    passages = [body]
    passages += [_page(v, n) for _ in range(v.between(1, 3))] if case == "pages" or v.chance(0.1) else []
    v.rng.shuffle(passages)
    if case in ("absent", "stranger"):
        return open_record(query, when, "unknown", passages)
    value = values[wanted.key]
    return open_record(query, when, "answer", passages, said(wanted, value), (value,))


def _sheet(v: Phrasing, kind: str, who: str, facts: Sequence[tuple[str, object]]) -> str:
    """Several facts about one thing."""
    # `release_date` or `release date`: a source writes all names of attributes alike.
    joint = "_" if v.chance(0.65) else " "
    attributes = [(what.replace(" ", joint), value) for what, value in facts]
    match v.weighted(FORMS):
        case "details":
            text = "; ".join(f"the {what} is {value}" for what, value in attributes)
            ways = (f"{who} ({kind}): {text}.", f"{kind} {who}: {text}.", f"{who}, what is known of it: {text}.")
            return v.pick(ways)
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


PATTERNS = ((1.0, passage),)
