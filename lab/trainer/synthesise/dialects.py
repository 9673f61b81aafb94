"""Several facts about one thing as different sources write them: dictionaries, tables, lists, sentences."""

import json
from collections.abc import Sequence

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.voice import Style, Voice, named


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
