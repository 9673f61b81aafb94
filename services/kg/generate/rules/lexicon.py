"""What asks for the functions and keys of a domain: its `words.yaml` and the catalogue together."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from services.kg.definition.folder import BrokenDomain
from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.phrases import vocabulary
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.words import KeyWords, Words, english
from services.kg.language.catalogue import Catalogue, Domain, Function

FILE = "words.yaml"
_PARTICIPLE = re.compile(r"((?:[a-z]+ )*)([a-z]{2,}[^e\W\d_])ed")


@dataclass(eq=False)
class Lexicon:
    """What asks for the keys of a domain's functions."""

    catalogue: Catalogue  # the domains
    domain: str  # the name of this one
    words: Words  # its `words.yaml`

    @property
    def own(self) -> Domain:
        return self.catalogue.domains[self.domain]

    def function(self, name: str) -> Function:
        return self.catalogue.function(name, self.domain)

    def key(self, function: str, name: str) -> KeyWords:
        return self.words.key(function, name)

    def phrases(self, function: str, name: str) -> tuple[str, ...]:
        """All that asks for a key or facet: its words, "how long", longer and longest, and the catalogue's own."""
        own = self.key(function, name)
        forms = (word for one in (*own.more, *own.less) for word in degrees(one))
        return tuple(dict.fromkeys((*self.plain(function, name), *forms)))

    def plain(self, function: str, name: str) -> tuple[str, ...]:
        """As `phrases`, without comparatives and superlatives."""
        own = self.key(function, name)
        phrases = [*own.words, *(f"how {one}" for one in (*own.more, *own.less))]
        if not own.only and not (self.words.guided and own.words):
            phrases += catalogue_words(self.function(function), name)
        return tuple(dict.fromkeys(phrases))

    def adjectives(self, function: str, name: str) -> tuple[str, ...]:
        """Comparatives and superlatives of a key's adjectives."""
        own = self.key(function, name)
        return tuple(form for one in (*own.more, *own.less) for form in (*degrees(one), f"{one}most"))

    def nouns(self, kind: str) -> tuple[str, ...]:
        """What things of a kind are called."""
        own = self.words.kinds.get(kind)
        return (kind.replace("_", " "), *(own.words if own else ()))

    def rows(self, function: Function) -> tuple[str, ...]:
        """What the rows of a function are called: as its own words say, and as what names them."""
        kind = function.exact_keys[function.subject[0]].entity
        return (*self.words.function(function.name).words, *(self.nouns(kind) if kind else ()))

    @cached_property
    def every_noun(self) -> tuple[str, ...]:
        """All that things and rows are called."""
        domain = self.own
        nouns = (*map(self.nouns, domain.kinds), *map(self.rows, domain.functions))
        return tuple(dict.fromkeys(phrase for phrases in nouns for phrase in phrases))

    @cached_property
    def every_word(self) -> tuple[str, ...]:
        """All nouns, and all that asks for any key or facet."""
        keyed = (self.plain(function.name, key) for function in self.own.functions for key in function.projected)
        return tuple(dict.fromkeys(phrase for phrases in (self.every_noun, *keyed) for phrase in phrases))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All single words that ask for something, with their inflections."""
        return vocabulary(self.every_word)

    @cached_property
    def fillers(self) -> frozenset[str]:
        """Words that ask nothing; those that compare, order and add up do, wherever nothing reads them."""
        words = english()
        asking = (*words.greatest, *words.least, *words.greater, *words.lesser, *words.first, *words.last)
        asking += (*words.total, *words.average, *words.over, *words.under)
        return (words.fillers - frozenset(asking)) | vocabulary(self.words.fillers)

    def asks(self, question: Question, function: str, name: str) -> bool:
        """Whether the question's words ask for a key."""
        return question.says(self.phrases(function, name)) and not question.says(self.key(function, name).unless)

    def value(self, question: Question, function: str, name: str) -> str:
        """The value of a key that the question's words narrow to; empty when there is none."""
        values = self.key(function, name).values
        return next((value for value, phrases in values.items() if question.says(phrases)), "")


@cache
def catalogue_words(function: Function, name: str) -> tuple[str, ...]:
    """The catalogue's words for a key or facet: its name, its label and its aliases."""
    key, facet = function.exact_keys.get(name), function.facets.get(name)
    aliases = key.aliases if key else facet.aliases if facet else ()
    label = (re.sub(r"\s*\(.*?\)", "", key.label),) if key and key.label else ()
    words = [one.replace("_", " ").lower() for one in (name, *label, *aliases) if one]
    return tuple(dict.fromkeys((*words, *(verb for one in words for verb in verbs_of(one)))))


@cache
def verbs_of(words: str) -> tuple[str, ...]:
    """The verb of a key that is called as what happened, `enrolled` or `first brewed`: when did she enroll?"""
    match = _PARTICIPLE.fullmatch(words)
    return (f"{match[1]}({match[2]}|{match[2]}e)",) if match else ()


@cache
def lexicons(catalogue: Catalogue) -> Mapping[str, Lexicon]:
    """The lexicon of every domain by its name; read once for a catalogue.

    Raises:
        BrokenDomain: a `words.yaml` cannot be read, or speaks of what its domain does not have.
    """
    return {name: Lexicon(catalogue, name, read_words(domain)) for name, domain in catalogue.domains.items()}


def read_words(domain: Domain) -> Words:
    """What a domain's `words.yaml` says; nothing where it has none.

    Raises:
        BrokenDomain: see `lexicons`.
    """
    if not domain.folder.has(FILE):
        return Words()
    words, content = domain.folder.model(FILE, Words)
    functions = {one.name: keys_of(domain, one) for one in domain.functions}
    if faults := words.faults(functions, frozenset(domain.kinds)):
        raise BrokenDomain(domain.name, [content.fault(path, reason) for path, reason in faults])
    return words


def keys_of(domain: Domain, function: Function) -> frozenset[str] | None:
    """What words can ask of a function: its keys, facets and parameters; None where an entity may have any key."""
    if function.dynamic:
        return None
    linked = {one.function for one in function.facets.values()}
    others = (one.exact_keys for one in domain.functions if one.name in linked)
    return frozenset((*function.projected, *(one.name for one in function.parameters))).union(*others)
