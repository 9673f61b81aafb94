"""Briefs for a model that writes passages: a kind of text, an invented thing, and facts about it.

Some passages in a row are of one article: they are about the same thing and tell different facts about it.
"""

import random
import re
from dataclasses import dataclass
from importlib.resources import files

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrasing import MONTHS, Phrasing, lines_of

# Passages of an article.
PARTS = 3
# Facts that a passage shall tell, and facts that only the questions without an answer know: the first is of the
# article's next passage, the second of none.
MIN_FACTS, MAX_FACTS = 4, 5
# Of an article's passages so many are of the article's own kind of text, the others of any.
OWN_KIND = 0.75
MIN_WORDS, MAX_WORDS = 60, 220


def _columns(line: str) -> tuple[str, str, str]:
    """A kind's name, its order, and the title; the order may hold bars itself."""
    name, _, rest = line.partition(" | ")
    order, _, title = rest.rpartition(" | ")
    return name, order, title


TOPICS, FACTS, WORDS = (lines_of(__package__, f"{name}.txt") for name in ("topics", "facts", "words"))
_CURRENCIES, _ORGANISATIONS = WORDS["currencies"], WORDS["organisations"]
KINDS = tuple(_columns(line) for line in (files(__package__) / "kinds.txt").read_text(encoding="utf-8").splitlines())
_BEFORE_A_VOWEL = re.compile(r"\b([Aa]) (?=[aeio])")
_THINGS = [(category, topic) for category, topics in TOPICS.items() for topic in topics]


@dataclass(frozen=True, slots=True)
class Brief:
    """The order for one passage.

    Args:
        kind: of text, in a word or two, and `order`: the request for it.
        title: of the passage.
        topic: the thing: "a footbridge over a river".
        name: of the thing.
        facts: for the passage to tell.
        open_facts: true of the thing, and not in the passage; the article's next passage tells the first.
        style: of writing.
        way: first words of the second question; the first asks for a reason, which a model seldom does by itself.
        spare: a number and a name that the passage has no reason to hold.
        words: about how many it has.
    """

    kind: str
    order: str
    title: str
    topic: str
    name: str
    facts: tuple[str, ...]
    open_facts: tuple[str, ...]
    style: str
    way: str
    spare: tuple[str, str]
    words: int


# Questions that one call writes for a passage.
QUESTIONS = 6


def article(index: int) -> int:
    """The number of the article that a brief's passage belongs to."""
    return index // PARTS


def draw(seed: int, index: int) -> Brief:
    """The brief of a number; the same for the same seed and number."""
    about = Phrasing(random.Random(f"{seed}:{article(index)}"))  # noqa: S311 - repeatable is the point
    names = Names(about)
    category, topic = about.pick(_THINGS)
    name = names.person() if category == "person" else _name(about, names, topic)
    values = _Values(about, names)
    count = PARTS * MAX_FACTS
    templates = about.some(FACTS[category], count + PARTS)
    texts = (" ".join(about.say(template).format_map(values).split()) for template in templates)
    facts = [_BEFORE_A_VOWEL.sub(r"\1n ", text) for text in texts]
    own_kind = about.pick(KINDS)
    part = index % PARTS
    phrasing = Phrasing(random.Random(f"{seed}:{article(index)}:{part}"))  # noqa: S311 - as above
    kind, order, title = own_kind if phrasing.chance(OWN_KIND) else phrasing.pick(KINDS)
    first, of_next = part * MAX_FACTS, (part + 1) % PARTS * MAX_FACTS
    return Brief(
        kind=kind,
        order=order,
        title=title.format(name=name, headline=f"{name}: {phrasing.pick(WORDS['causes'])}"),
        topic=topic,
        name=name,
        facts=tuple(facts[first : first + phrasing.between(MIN_FACTS, MAX_FACTS)]),
        open_facts=(facts[of_next], facts[count + part]),
        style=phrasing.pick(WORDS["styles"]),
        way=phrasing.pick(WORDS["ways"]),
        spare=(str(phrasing.between(3, 9)), Names(phrasing).coined()),
        words=phrasing.between(MIN_WORDS // 10, MAX_WORDS // 10) * 10,
    )


def _name(phrasing: Phrasing, names: Names, topic: str) -> str:
    """ "Marlenstad Footbridge": the topic's head noun under a name, or a name alone."""
    head = topic.removeprefix("the ").removeprefix("a ").removeprefix("an ")
    for stop in (" of ", " with ", " for ", " about ", " in ", " on ", " that ", " over ", " between ", " to ", " by "):
        head = head.partition(stop)[0]
    noun = head.split(" ")[-1]
    noun = noun[:1].upper() + noun[1:]
    coined = names.coined()
    return phrasing.pick(
        (f"the {coined} {noun}", f"the {coined} {noun}", f"the {names.word('adjective').capitalize()} {noun}", coined)
    )


class _Values(dict[str, str]):
    """Draws a value whenever a template names its kind."""

    def __init__(self, phrasing: Phrasing, names: Names) -> None:
        self._phrasing, self._names = phrasing, names

    def __missing__(self, kind: str) -> str:
        v, n = self._phrasing, self._names
        match kind:
            case "person" | "place" | "coined":
                return str(getattr(n, kind)())
            case "org":
                return v.pick((n.company(), f"the {n.coined()} {v.pick(WORDS['organisations'])}"))
            case "thing":
                return n.word("noun").capitalize()
            case "object" | "cause" | "job" | "material":
                return v.pick(WORDS[f"{kind}s"])
            case "adjective":
                return n.word("adjective").capitalize()
            case _ if kind in _BETWEEN:
                return str(v.between(*_BETWEEN[kind]))
            case "month":
                return v.pick(MONTHS)
            case "date":
                return f"{v.between(1, 28)} {v.pick(MONTHS)} {v.between(1850, 2024)}"
            case "clock":
                return v.say(f"{v.between(1, 12)}[:15|:30|:45|] [a.m.|p.m.]")
            case "number":
                return f"{v.pick((v.between(31, 999), v.between(10, 99) * 100, v.between(1_000, 90_000))):,}"
            case "money":
                amount = v.pick((f"{v.between(2, 900)},000", f"{v.between(2, 90)}.{v.between(1, 9)} million"))
                return amount + " " + v.pick(_CURRENCIES)
            case "price":
                return f"{v.between(2, 900)} {v.pick(WORDS['currencies'])}"
        raise KeyError(kind)


_BETWEEN = {"year": (1780, 2024), "future": (2025, 2039), "age": (18, 99), "digit": (1, 9), "small": (2, 30)}
