"""The same fact as different sources write it: calls of an API, dictionaries, tables, lists, prose."""

import json
from collections.abc import Sequence

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.voice import Style, Voice, named

# Of a value that is not known.
NOTHING = ("None", "none", "null", "unknown", "N/A", "-", "nan")


def state(v: Voice, style: Style, what: str, who: str, value: object) -> str:
    """One fact, one line."""
    attribute = named(what, style)
    form = v.weighted(
        {"call": 5.5, "capital": 1.2, "label": 0.7, "equals": 0.5, "prose": 0.8, "json": 0.5, "table": 0.5}
    )
    match form:
        case "call":
            return f"the {attribute} of {who} is {value}{style.stop}"
        case "capital":
            return f"The {what} of {who} is {value}."
        case "label":
            return v.pick(
                (f"{who}: {attribute} {value}", f"{who} ({attribute}): {value}", f"{attribute} of {who}: {value}")
            )
        case "equals":
            return f"{who}.{attribute.replace(' ', '_')} = {value}"
        case "prose":
            return v.pick(
                (
                    f"{who} has a {what} of {value}.",
                    f"For {who}, the {what} stands at {value}.",
                    f"According to the record, the {what} of {who} is {value}.",
                )
            )
        case "json":
            return json.dumps({"name": who, attribute: value}, ensure_ascii=False)
        case _:
            return f"| name | {attribute} |\n|---|---|\n| {who} | {value} |"


def sheet(v: Voice, style: Style, kind: str, who: str, pairs: Sequence[tuple[str, object]]) -> str:
    """Several facts about one thing."""
    match v.weighted({"details": 4.0, "json": 1.0, "dict": 1.0, "lines": 1.0, "table": 0.7, "sentences": 1.0}):
        case "details":
            facts = "; ".join(f"the {named(what, style)} is {value}" for what, value in pairs)
            return v.pick(
                (
                    f"{who} ({kind}): {facts}.",
                    f"{kind} {who}: {facts}.",
                    f"{who}, what is known of it: {facts}.",
                )
            )
        case "json":
            return json.dumps({"name": who, **{named(what, style): value for what, value in pairs}}, ensure_ascii=False)
        case "dict":
            return str({"title": who, **{named(what, style): value for what, value in pairs}})
        case "lines":
            return f"{who}\n" + "\n".join(f"- {named(what, style)}: {value}" for what, value in pairs)
        case "table":
            heads = " | ".join(named(what, style) for what, _ in pairs)
            cells = " | ".join(str(value) for _, value in pairs)
            return f"| {kind} | {heads} |\n|{'---|' * (len(pairs) + 1)}\n| {who} | {cells} |"
        case _:
            return " ".join(f"The {what} of {who} is {value}." for what, value in pairs)


def rows(v: Voice, heads: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    """A table, as Markdown, as tuples after the names of their places, or as dictionaries."""
    match v.weighted({"tuples": 2.0, "table": 1.0, "dicts": 1.0, "lines": 1.0}):
        case "tuples":
            columns = v.pick((" [{}]", ", columns {}", ", each with {}")).format(", ".join(heads))
            return f"{columns}: {[tuple(row) for row in body]}"
        case "table":
            lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
            return "\n" + "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in body)])
        case "dicts":
            return ": " + str([dict(zip(heads, row, strict=True)) for row in body])
        case _:
            return ":\n" + "\n".join("; ".join(f"{h} {c}" for h, c in zip(heads, row, strict=True)) for row in body)


def nothing(v: Voice, style: Style, what: str, who: str) -> str:
    """An absence: an empty result, or a value that is none."""
    if v.chance(0.45):
        return state(v, style, what, who, v.pick(NOTHING))
    return (
        v.say(v.pick(_LITERAL), what=what, x=who)
        if v.chance(0.6)
        else v.pick(("[]", "{}", "None", "0 results", "null"))
    )


_LITERAL = (
    "There is no [record|entry|data] [of|about|for] the {what} of {x}.",
    "No {what} of {x} is known.",
    "The knowledge graph knows nothing of this: {what} of {x}.",
    "no {what} [found|available|listed] for {x}",
    "{x}: not found.",
    "the {what} of {x} is None.",
    "{x} was not found in the [database|knowledge graph].",
)


def shuffled(v: Voice, passages: Sequence[str]) -> tuple[str, ...]:
    """Passages in any order."""
    order = list(passages)
    v.rng.shuffle(order)
    return tuple(order)


def page(v: Voice, n: Names) -> str:
    """A passage of a web page about nothing in particular."""
    place, person = n.place(), n.person()
    return v.say(
        v.pick(
            (
                (
                    "{place} [hosted|welcomed] its [first|annual|largest] [{a} festival|{b} fair] "
                    "[in|back in] {y}. [Local|City] officials said that {k} visitors came, {p} among "
                    "them."
                ),
                (
                    "{p} [is|was] a [{b} maker|columnist|teacher] from {place}. In {y} [he|she] "
                    "published a book about the {a} {b}."
                ),
                "Sign up for our newsletter. Share this story: {p} visits {place}. Comments ({k}).",
                "The {b} of {place} was [built|restored|opened] in {y} and [attracts|draws] {k} people a year.",
            )
        ),
        place=place,
        p=person,
        y=v.between(1950, 2023),
        k=v.between(200, 9000),
        a=n.adjective(),
        b=n.noun(),
    )
