"""What the words of a question are to one function: names, values, thresholds, superlatives, keys, nouns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from services.kg.generate.rules.english import english
from services.kg.generate.rules.interrogatives import asks_when, means_date
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.question import quote
from services.kg.generate.rules.tokens import BESIDE, NEAR, Mention, Range, Tokens, apart, apart_from
from services.kg.generate.rules.values import Values, condition, exact, is_joint, said_of
from services.kg.generate.spans import Spot
from services.kg.language.catalogue import NUMERIC, Function, Key, Parameter

COUNTED = "number of "
# Shorter words of a key's name say nothing by themselves.
MIN_SAID = 4
_BEFORE_NOUNS = frozenset(("which", "what", "many", "list", "name", "all", "every", "number"))


def subject_of(function: Function) -> Key:
    """The key that names a row of a function."""
    return function.exact_keys[function.subject[0]]


@dataclass
class Roles:
    """The words of one question as one function reads them; what is read is taken from the tokens."""

    lexicon: Lexicon  # of the domain
    function: Function  # whose rows the question may mean
    tokens: Tokens  # with the names taken already
    values: Values | None = None  # knows the texts that `open` keys have in the store
    # Conditions that names are.
    named: list[str] = field(default_factory=list)
    # Values that stand where the rows' noun does: "which halogens".
    classes: list[Range] = field(default_factory=list)

    @cached_property
    def subject(self) -> Key:
        """The key that names a row."""
        return subject_of(self.function)

    @property
    def named_rows(self) -> bool:
        """Whether rows have names; a number that only tells them apart is none."""
        return self.subject.kind not in NUMERIC

    @property
    def coded_rows(self) -> bool:
        """Whether rows are told by codes, which are no names either: P-514."""
        values = self.values.of(self.function, self.subject.name) if self.values is not None else ()
        return bool(values) and all(any(map(str.isdigit, one)) for one in values)

    @cached_property
    def primary(self) -> Parameter | None:
        """The parameter that takes the names of the rows themselves; None where nothing names them."""
        return next(
            (one for one in self.function.parameters if one.kind == "entity" and one.column == self.subject.id_column),
            None,
        )

    @cached_property
    def of_their_like(self) -> tuple[str, ...]:
        """Parameters that take things of the rows' own kind beside the rows themselves: managers of employees."""
        kinds = frozenset(self.primary.entities) if self.primary is not None else frozenset()
        return tuple(
            one.name for one in self.function.parameters if one is not self.primary and kinds.intersection(one.entities)
        )

    def says(self, parameter: Parameter) -> bool:
        """Whether the question may mean this parameter: whom a project is led by only where it says "lead"."""
        nouns = [noun for kind in parameter.entities for noun in self.lexicon.nouns(kind)]
        named = parameter.name.replace("_", " ") in nouns or parameter is self.primary or self.function.pair is not None
        return named or bool(self.tokens.find(self.phrases(parameter.name)))

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """What the rows are called."""
        return tuple(dict.fromkeys((*self.lexicon.rows(self.function), *self.phrases(self.subject.name))))

    @cached_property
    def mentions(self) -> list[Mention]:
        """Keys and facets in the order of the question; of several that words speak of, the one called so."""
        found: dict[Range, Mention] = {}
        for own in self.function.keys:
            if own != self.subject and not self.lexicon.key(self.function.name, own.name).only:
                for place in self.tokens.find((own.words,)):
                    found[place] = Mention(place, own.name)
        for key in self.function.projected:
            if key == self.subject.name:
                continue
            for place in self.tokens.find_joined(self.phrases(key)):
                found.setdefault(place, Mention(place, key))
            for place in self.tokens.find(self._counted(key)):
                found.setdefault(place, Mention(place, key, counted=True))
        for own in self.function.keys:
            if len(own.words.split()) > 1 and (spread := self._spread(own, found)) is not None:
                found.setdefault(spread, Mention(spread, own.name))
        return [found[place] for place in apart(found)]

    def _spread(self, key: Key, found: Mapping[Range, Mention]) -> Range | None:
        """Where the first word of a key stands whose words are said apart: "sold the fewest copies", copies sold."""
        words = key.words.split()
        if any(one.key == key.name for one in found.values()) or min(map(len, words)) < MIN_SAID:
            return None
        said: list[Range] = []
        for word in words:
            place = next(iter(apart_from(self.tokens.find((word,)), found)), None)
            if place is None or (said and place.near(said[0]) > NEAR):
                return None
            said.append(place)
        return said[0]

    def numeric(self, mention: Mention) -> bool:
        key = self.function.exact_keys.get(mention.key)
        return key is not None and key.kind in NUMERIC

    # Values

    def conditions(self) -> list[tuple[str, str]]:
        """Key and `eq` for each value that the question says; the key's own words beside it are read with it."""
        claims = self._claims()
        found: list[tuple[str, str]] = []
        for place in apart(claims):
            key, value = self._claimant(place, claims[place])
            self.tokens.take(place)
            found.append((key.name, condition(key, value)))
            if self.opens(place):
                self.classes.append(place)
            if (beside := self._beside(place, key)) is not None and self.tokens.free(beside):
                self.tokens.take(beside)
        self.take_idle([key for key, _ in found])
        return found

    def outside_values(self, places: Sequence[Range]) -> list[Range]:
        """Those that are no part of a longer value, as the cheese of a Bath Cheese Show is."""
        values = list(self._claims()) if places else []
        return [place for place in places if not any(place != one and place.within(one) for one in values)]

    def _claims(self) -> dict[Range, list[tuple[Key, str]]]:
        """Where values stand that are words of questions, each with the keys that have it."""
        claims: dict[Range, list[tuple[Key, str]]] = {}
        nouns = self.tokens.find(self.nouns)
        for key in self.function.keys:
            own = self.lexicon.key(self.function.name, key.name)
            spoken = dict(own.values)
            for text in self.values.of(self.function, key.name) if self.values is not None and own.open else ():
                spoken[text] = (*spoken.get(text, ()), *exact(text))
            if key.kind == "flag":
                spoken = {**said_of(key, own.words), **spoken}
            for value, phrases in spoken.items():
                # Who is called a lecturer need not have the position of one.
                for place in [one for one in self.tokens.find(phrases) if one not in nouns][:1]:
                    around = (*nouns, *(one.place for one in self.mentions if one.key == key.name))
                    if not means_date(self, place) and not is_joint(self.tokens, place, around):
                        claims.setdefault(place, []).append((key, value))
        return claims

    def _claimant(self, place: Range, claims: Sequence[tuple[Key, str]]) -> tuple[Key, str]:
        """Whose value is meant: of a key that is named beside it, else of the row's own; else there is a doubt."""
        spoken = [one for one in claims if self._beside(place, one[0]) is not None]
        joined = tuple(f"{one.name}_" for one in self.function.parameters if one is not self.primary)
        owned = spoken or [one for one in claims if not one[0].name.startswith(joined)] or claims
        # Of what is called as the country that it lies in, people mean the country.
        owned = [one for one in owned if one[0].name.endswith("country")] or owned
        owned = [one for one in claims if self._leads(place, one[0])] or owned
        if len({key.name for key, _ in owned}) > 1:
            self.tokens.doubt = True
        return owned[0]

    def _leads(self, place: Range, key: Key) -> bool:
        """Whether the word before a value is that of one end of a way: from its origin, to its destination."""
        before = self.tokens.word(place.first - 1) if place.first else ""
        return before in ("from", "to") and any(one.endswith(f" {before}") for one in self.phrases(key.name))

    def _beside(self, place: Range, key: Key) -> Range | None:
        """Where a key is named beside some words."""
        named = [one.place for one in self.mentions if one.key == key.name]
        nearest = min(named, key=place.near, default=None)
        return nearest if nearest is not None and nearest.near(place) <= NEAR else None

    def take_idle(self, keys: Sequence[str]) -> None:
        """Read what may stand beside a key and asks nothing."""
        # "Which stops" asks for stops, though trains of a line stop.
        nouns = self.tokens.find(self.nouns)
        asked = [one for one in nouns if self.opens(one)]
        for key in keys:
            if key in self.function.exact_keys:
                idle = self.tokens.find(self.lexicon.key(self.function.name, key).also)
                own = [one for one in self.function.exact_keys[key].words.split() if len(one) >= MIN_SAID]
                others = [one.place for one in self.mentions if one.key != key]
                self.take(*apart_from(idle, asked), *apart_from(self.tokens.find(own), [*nouns, *others]))

    def opens(self, place: Range) -> bool:
        """Whether the words stand where a noun does: which halogens, how many of the halogens."""
        before = (self.tokens.word(index) for index in range(place.first - 1, -1, -1))
        return next((word for word in before if word not in ("of", "the")), "") in _BEFORE_NOUNS

    def above(self, place: Range, spots: Sequence[Spot]) -> str:
        """Read a name that stands above rows of its own kind, whom they report to, and return what takes it.

        That is a parameter, or a key that is read as a condition; empty where nothing says so or nothing takes it.
        """
        said = [one for one in self.tokens.find(english().beneath) if 0 <= place.first - one.end <= 1]
        spot = next((one for one in spots if self.primary and one.kind in self.primary.entities), None)
        if not said or spot is None:
            return ""
        texts = {one.name: text for one in self.function.keys if not one.entity and (text := self._said_of(one, spot))}
        takers = [*self.of_their_like, *texts]
        if len(takers) != 1:
            return ""
        self.take(*said)
        self.named += [f"eq({key}, {quote(text)})" for key, text in texts.items()]
        return takers[0]

    def take_value(self, place: Range, spots: Sequence[Spot]) -> bool:
        """Read a name as the value of a key that is named beside it: the country whose capital is X."""
        for mention in self.mentions:
            key = self.function.exact_keys.get(mention.key)
            said = next((text for one in spots if key is not None and (text := self._said_of(key, one))), "")
            if not said or mention.place.near(place) > NEAR or not self.tokens.free(mention.place):
                continue
            self.take(mention.place)
            self.named.append(f"eq({mention.key}, {quote(said)})")
            return True
        return False

    def takes_value_before(self, place: Range, spots: Sequence[Spot]) -> bool:
        """Read a name behind a key of texts as its value where rows are asked for: which river flows into the Harn."""
        nouns = [noun for noun in self.tokens.find(self.nouns) if noun.first > 0 and noun.end <= place.first]
        if not any(self.tokens.word(noun.first - 1) in _BEFORE_NOUNS for noun in nouns):
            return False
        before = [one for one in self.mentions if 0 <= place.first - one.place.end <= 1]
        keys = [self.function.exact_keys.get(one.key) for one in before]
        texts = [key for key in keys if key is not None and not key.entity]
        return any(self._said_of(key, spot) for key in texts for spot in spots) and self.take_value(place, spots)

    def _said_of(self, key: Key, spot: Spot) -> str:
        """A name where it is of the key's kind, or as a row has it there: rivers flow into seas; else empty."""
        if key.entity or key.kind != "text" or self.values is None:
            return spot.text if key.entity == spot.kind else ""
        bare = spot.text[4:] if spot.text[:4].lower() == "the " else spot.text
        stored = (self.values.stored(self.function, key.name, text) for text in dict.fromkeys((spot.text, bare)))
        return next(filter(None, stored), "")

    # Dates

    @cached_property
    def dated(self) -> tuple[str, ...]:
        """Keys of dates and years."""
        return tuple(
            key.name
            for key in self.function.keys
            if key.kind == "date" or (key.kind == "integer" and "year" in key.words.split())
        )

    def dated_key(self, keys: Sequence[str]) -> str:
        """The one that is named, else the first; where "when" asks for one of several, the year is another's."""
        named = [one for one in self.mentions if one.key in keys and self.tokens.free(one.place)]
        others = [key for key in keys if not named or key != named[0].key]
        if named and others and asks_when(self):
            return others[0]
        if named:
            self.tokens.take(named[0].place)
        return named[0].key if named else keys[0]

    def units(self, key: Key) -> tuple[str, ...]:
        """What is said behind the numbers of a key."""
        return (*self.lexicon.key(self.function.name, key.name).unit, *((key.unit,) if key.unit else ()))

    # Nouns

    def own_words(self) -> list[Range]:
        """Where is said what is said of this function's rows and of no others of their kind, or what names them."""
        own = self.tokens.find(self.lexicon.words.function(self.function.name).words)
        return own or self.tokens.find(self.phrases(self.subject.name))

    def head(self) -> Range | None:
        """What the question wants: its first noun or key, of whatever function."""
        return min(self.tokens.find(self.lexicon.every_word), key=lambda one: one.first, default=None)

    def apposed(self, place: Range, kind: str) -> bool:
        """Whether a noun for the kind stands beside a name: the city of X, X airport."""
        return any(
            one.near(place) <= BESIDE and self._joined(one, place) for one in self.tokens.find(self.lexicon.nouns(kind))
        )

    def _joined(self, noun: Range, name: Range) -> bool:
        between = range(min(noun.end, name.end), max(noun.first, name.first))
        return all(self.tokens.word(index) in ("of", "the", "called", "named", "in") for index in between)

    def take_apposed(self, names: Mapping[str, Sequence[str]]) -> None:
        """Read nouns that only say what kind of thing a name is."""
        kinds = {kind for one in self.function.parameters if one.name in names for kind in one.entities}
        for kind in kinds:
            for noun in self.tokens.find(self.lexicon.nouns(kind)):
                if any(self._joined(noun, place) for place in self.tokens.names()):
                    self.tokens.take(noun)

    def _counted(self, key: str) -> tuple[str, ...]:
        """The noun that a key counts: airports of "number of airports"."""
        found = self.function.exact_keys.get(key)
        if found is None or found.kind != "integer" or not found.words.startswith(COUNTED):
            return ()
        return (found.words.removeprefix(COUNTED),)

    def phrases(self, key: str) -> tuple[str, ...]:
        """All that asks for a key or facet but comparatives and superlatives."""
        return self.lexicon.plain(self.function.name, key)

    def take(self, *places: Range) -> None:
        for place in places:
            self.tokens.take(place)
