"""Made-up questions with their programs, executed on a made-up world: the data of both tasks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from string import Formatter
from typing import Any, Literal

from sqlalchemy.exc import SQLAlchemyError

from lab.trainer.dataset import Kind
from lab.trainer.errors import BadDataset
from lab.trainer.synthesise import phrases
from lab.trainer.synthesise.drawing import Slots, Thing, chosen
from lab.trainer.synthesise.graph import Graph, Statement, shown, stored
from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrases import Answer, Pattern, Phrasebook, Variant
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.record import QuestionType
from lab.trainer.synthesise.settling import refuted, settle
from lab.trainer.synthesise.times import Time
from lab.trainer.synthesise.world import invent
from services.kg.definition.domain import read_catalogue
from services.kg.definition.folder import BrokenDomain
from services.kg.domains import CATALOGUE
from services.kg.language.catalogue import Catalogue
from services.kg.settings import KgSettings
from services.kit.text.times import PACIFIC

# Questions about one world; the next world has other names and another last day.
PER_WORLD = 1_000
# Draws until a question can be made: a pattern may have no row that it fits.
TRIES = 60
NONE = "none"
Section = Literal["patterns", "premises", "beyond"]


class _Programs(Formatter):
    """Fills the slots of a program: names and times in quotes, words of the pattern's own and numbers as they are."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "raw":
            return str(value)
        if isinstance(value, Time):
            return quoted(value.program)
        return quoted(str(value)) if isinstance(value, Thing | str) and not isinstance(value, _Words) else str(value)


class _Words(str):
    """Words that a pattern brings for its program."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its program, and what executing that returned.

    Args:
        kind: `answer`; `invalid_question` where the premise is false; `unknown` where no program answers it.
        program: "none" where no program answers it.
        answer: empty for another kind than `answer`.
        slots: of its words and its program.
        way: its variant of a pattern.
    """

    query: str
    when: datetime
    question_type: QuestionType
    program: str
    slots: Slots
    way: "Way"
    kind: Kind = "unknown"
    answer: str = ""
    statements: tuple[Statement, ...] = ()

    @property
    def domain(self) -> str:
        return self.way.domain

    @property
    def pattern(self) -> str:
        """`domain.pattern`, and the variant behind a colon."""
        return f"{self.way.domain}.{self.way.name}"


@dataclass(frozen=True, slots=True)
class Way:
    """A variant of a pattern, with the fields that it inherits from the pattern."""

    domain: str
    section: Section
    name: str
    weight: float
    moment: str
    variant: Variant


@dataclass(slots=True)
class Engine:
    """Makes questions about one world after the other.

    Args:
        catalogue: the domains; those with a phrasebook are asked about.
    """

    phrasing: Phrasing
    catalogue: Catalogue
    names: Names = field(init=False)
    _books: dict[str, Phrasebook] = field(default_factory=dict)
    _ways: dict[tuple[Section, str], tuple[list[Way], list[float]]] = field(default_factory=dict)
    _graph: Graph | None = None
    _open: ExitStack = field(default_factory=ExitStack)
    _left: int = 0

    def __post_init__(self) -> None:
        self.names = Names(self.phrasing)
        self._books = phrases.load(self.catalogue)
        for domain, book in self._books.items():
            for section in ("patterns", "premises", "beyond"):
                ways = [way for pattern in getattr(book, section) for way in _ways_of(domain, section, pattern, book)]
                self._ways[section, domain] = ways, [way.weight for way in ways]

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._graph = None

    @property
    def ways(self) -> tuple[Way, ...]:
        """All variants of all patterns."""
        return tuple(way for ways, _ in self._ways.values() for way in ways)

    @property
    def sections(self) -> frozenset[Section]:
        """The sections of which any domain has patterns."""
        return frozenset(section for (section, _), (ways, _) in self._ways.items() if ways)

    @property
    def graph(self) -> Graph:
        """The world that questions are about at present."""
        if self._graph is None:
            world = invent(self.catalogue, self._books, self.phrasing, self.names)
            self._graph = self._open.enter_context(stored(world))
            self._left = PER_WORLD
        return self._graph

    def make(self, section: Section) -> Question:
        """A question of a section, domains and patterns by their weights.

        Raises:
            BadDataset: none can be made; the message names the patterns that were tried.
        """
        if section not in self.sections:
            raise BadDataset(f"no domain has {section} in its phrases")
        if self._left == 0:
            self._open.close()
            self._graph = None
        # A new world sets the number of its questions.
        _ = self.graph
        shares = {domain: book.share for domain, book in self._books.items() if self._ways[section, domain][0]}
        failures: Counter[str] = Counter()
        for _ in range(TRIES):
            ways, weights = self._ways[section, self.phrasing.weighted(shares)]
            way = self.phrasing.rng.choices(ways, weights)[0]
            if (question := self.of(way)) is not None:
                self._left -= 1
                return question
            failures[f"{way.domain}.{way.name}"] += 1
        raise BadDataset(f"no question could be made in {TRIES} tries: {', '.join(failures)}")

    def of(self, way: Way) -> Question | None:
        """A question of one way; None where executing does not bear it out.

        Raises:
            BadDataset: its pattern names something unknown; the message names both.
        """
        variant = way.variant
        when = self.graph.world.moment(way.moment)
        try:
            filled = self._draw(way, when)
            if filled is None:
                return None
            program = _Programs().vformat(variant.program, (), filled).strip() if variant.program else NONE
            query = self.wording(variant, filled)
        except (AttributeError, IndexError, KeyError, ValueError, SQLAlchemyError) as error:
            raise BadDataset(f"{way.domain}: {way.name}: {type(error).__name__}: {error}") from error
        question = Question(query, when, variant.type or "simple", program, filled, way)
        return question if way.section == "beyond" else self._executed(question)

    def wording(self, variant: Variant, slots: Slots) -> str:
        """A question in the words of a variant, as people type it."""
        return self.phrasing.typed(self.phrasing.ask(variant.nouns, variant.whole, **slots))

    def run(self, program: str, question: Question) -> list[Statement]:
        """What another program returns, at the time of a question and with its slots."""
        filled = _Programs().vformat(program, (), question.slots)
        return self.graph.execute(filled, question.domain, question.when)

    def about(self, question: Question) -> list[tuple[str, str]]:
        """Programs that show facts of what a question is about, by its slots: with `x` in place of the slot."""
        book = self._books[question.domain]
        return [
            (slot, program)
            for slot, pool in question.way.variant.draw.items()
            if isinstance(pool, str)
            for program in book.about.get(pool, ())
        ]

    def _draw(self, way: Way, when: datetime) -> dict[str, Any] | None:
        """The slots of a variant; None where a pool has nothing that fits."""
        book, drawing = self._books[way.domain], self.graph.world.drawings[way.domain]
        own = {key: _Words(self.phrasing.say(words)) for key, words in way.variant.slots.items()}
        slots: dict[str, Any] = {**own, "today": when.astimezone(PACIFIC).date()}
        for slot, recipe in way.variant.draw.items():
            value = self._thing(recipe, book, slots) if isinstance(recipe, str) else drawing.draw(recipe, slots)
            if value is None:
                return None
            slots[slot] = value
        return slots

    def _thing(self, pool: str, book: Phrasebook, slots: Slots) -> Thing | None:
        things = self.graph.pool(book.pools[pool], slots)
        used = {str(value) for value in slots.values() if isinstance(value, Thing)}
        for _ in range(TRIES if things else 0):
            thing = chosen(self.phrasing, things)
            if str(thing.values["name"]) not in used and str(thing) not in used:
                return thing
        return None

    def _executed(self, question: Question) -> Question | None:
        statements = tuple(self.graph.execute(question.program, question.domain, question.when))
        how = question.way.variant.answer or Answer()
        if not _means(statements, question):
            return None
        if question.way.section == "premises":
            if not refuted(how, statements, question.slots):
                return None
            return replace(question, kind="invalid_question", question_type="false_premise", statements=statements)
        if any(statement.outcome.status != "ok" for statement in statements) or not _holds(statements, question):
            return None
        answer = settle(how, statements, question.slots)
        return replace(question, kind="answer", answer=answer, statements=statements) if answer else None


def every_domain(only: str = "") -> Catalogue:
    """The bundled domains and those of `CRAGMESH_KG_DOMAINS`.

    Args:
        only: one of them, without the others.

    Raises:
        BadDataset: a folder is no domain's, or there is none of that name; the message says what is wrong where.
    """
    try:
        catalogue = read_catalogue(CATALOGUE, KgSettings().kg_domains)
    except BrokenDomain as error:
        raise BadDataset(str(error)) from None
    if not only:
        return catalogue
    if only not in phrases.load(catalogue):
        raise BadDataset(f"{only} is no domain with phrases; there are {', '.join(phrases.load(catalogue))}")
    return Catalogue((catalogue.domains[only],))


def quoted(name: str) -> str:
    """A name as programs write it."""
    return '"' + name.lower().replace('"', "") + '"'


def _ways_of(domain: str, section: Section, pattern: Pattern, book: Phrasebook) -> Iterator[Way]:
    variants = dict(pattern.variants)
    if pattern.per:
        variants |= dict(_of_facts(pattern, book))
    total = sum(variant.weight for variant in variants.values())
    for key, variant in (variants or {"": Variant()}).items():
        whole = Variant(
            slots={"key": key, **pattern.slots, **variant.slots},
            nouns=variant.nouns or (() if variant.whole else pattern.nouns),
            whole=variant.whole or (() if variant.nouns else pattern.whole),
            draw={**pattern.draw, **variant.draw},
            program=variant.program or pattern.program,
            answer=variant.answer or pattern.answer,
            type=variant.type or pattern.type,
        )
        name = f"{pattern.name}:{key}" if key else pattern.name
        share = variant.weight / total if variants else 1.0
        yield Way(domain, section, name, pattern.weight * share, pattern.moment, whole)


def _of_facts(pattern: Pattern, book: Phrasebook) -> Iterator[tuple[str, Variant]]:
    """A variant of each fact, or of each that two things can be compared by, in either direction."""
    for kind, facts in book.facts.items():
        for key, fact in facts.items():
            slots = {"kind": kind, "key": key}
            if pattern.per == "facts" and (fact.nouns or fact.whole):
                yield f"{kind}.{key}", Variant(weight=fact.weight, slots=slots, nouns=fact.nouns, whole=fact.whole)
            if pattern.per == "facts":
                continue
            for way, words in (("more", fact.more), ("less", fact.less)):
                if words:
                    answer = Answer(more=way == "more", less=way == "less")
                    yield f"{kind}.{key}.{way}", Variant(slots={**slots, "w": words}, answer=answer)


def _means(statements: Sequence[Statement], question: Question) -> bool:
    """Whether each name was resolved to the drawn thing."""
    entities = [entity for statement in statements for entity in statement.outcome.entities]
    things = [thing for thing in question.slots.values() if isinstance(thing, Thing) and "id" in thing.values]
    for thing in things:
        resolved = [entity for entity in entities if entity.name.casefold() == str(thing).replace('"', "").casefold()]
        if any(tuple(entity.entity_ids) != (str(thing.values["id"]),) for entity in resolved):
            return False
        if not resolved and quoted(str(thing)) in question.program and not thing.values.get("text"):
            return False
    return True


def _holds(statements: Sequence[Statement], question: Question) -> bool:
    """Whether the facts hold the drawn row's value of the question's key, where it has one."""
    key = str(question.slots.get("key", ""))
    values = [value for one in statements for value in (one.outcome.value, *shown(one.outcome)) if value is not None]
    texts = [str(value).casefold() for value in values]
    for thing in question.slots.values():
        if isinstance(thing, Thing) and thing.values.get(key) is not None:
            value = str(thing.values[key]).casefold()
            if not any(value == one or (len(value) > 3 and value in one) for one in texts):
                return False
    return True
