"""What the words of a question are to one function: names, values, thresholds, superlatives, keys, nouns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from services.kg.generate.rules.english import english
from services.kg.generate.rules.interrogatives import asks_when, means_date
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.orders import comparatives
from services.kg.generate.rules.question import quote
from services.kg.generate.rules.times import date_conditions, is_of_key, never_conditions, sign_of_time
from services.kg.generate.rules.tokens import Mention, Number, Range, Tokens, apart, apart_from
from services.kg.generate.rules.values import Values, condition, exact, is_joint, said_of
from services.kg.generate.spans import Spot
from services.kg.language.catalogue import NUMERIC, Function, Key, Parameter

# Words between a number or an adjective and what it belongs to.
BESIDE = 2
NEAR = 4
COUNTED = "number of "
_BEFORE_NOUNS = frozenset(("which", "what", "many", "list", "name", "all", "every"))
_BEFORE_COUNTS = frozenset(("has", "have", "had", "having", "with", "exactly"))


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
        return [found[place] for place in apart(found)]

    def numeric(self, mention: Mention) -> bool:
        key = self.function.exact_keys.get(mention.key)
        return key is not None and key.kind in NUMERIC

    # Values

    def conditions(self) -> list[tuple[str, str]]:
        """Key and `eq` for each value that the question says; the key's own words beside it are read with it."""
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
                for place in self.tokens.find(phrases)[:1]:
                    around = (*nouns, *(one.place for one in self.mentions if one.key == key.name))
                    if not means_date(self, place) and not is_joint(self.tokens, place, around):
                        claims.setdefault(place, []).append((key, value))
        found: list[tuple[str, str]] = []
        for place in apart(claims):
            key, value = self._claimant(place, claims[place])
            self.tokens.take(place)
            found.append((key.name, condition(key, value)))
            if self._opens(place):
                self.classes.append(place)
            if (beside := self._beside(place, key)) is not None and self.tokens.free(beside):
                self.tokens.take(beside)
        self.take_idle([key for key, _ in found])
        return found

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
        asked = [one for one in self.tokens.find(self.nouns) if self._opens(one)]
        for key in keys:
            if key in self.function.exact_keys:
                idle = self.tokens.find(self.lexicon.key(self.function.name, key).also)
                self.take(*apart_from(idle, asked))

    def _opens(self, place: Range) -> bool:
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

    # Numbers

    def thresholds(self) -> list[str]:
        """Conditions on numbers: over, under, between, with the key that the unit, the adjective or a noun says."""
        numbers = (one for one in self.tokens.numbers if not one.ordinal and self.tokens.free(one.place))
        figures = [one for one in numbers if not is_of_key(self, one.place)]
        ranked = (one for one in self.tokens.numbers if one.ordinal and self.tokens.free(one.place))
        found = [*date_conditions(self), *never_conditions(self), *filter(None, map(self._exactly, ranked))]
        for low, high in pairwise(figures):
            opening = [one for one in self.tokens.find(("between", "from")) if one.end == low.place.first]
            if not opening or high.place.first - low.place.end > BESIDE or not self.tokens.free(low.place):
                continue
            years = self._are_years(low, high)
            if key := self.dated_key(self.dated) if years else self._key_of(high, opening[0], ()):
                self.take(opening[0], low.place, Range(low.place.end, high.place.first), high.place)
                found += [self._compared(key, "ge", low), self._compared(key, "le", high)]
        for figure in figures:
            if self.tokens.free(figure.place) and (
                one := self._year(figure) or self._bound(figure) or self._exactly(figure)
            ):
                found.append(one)
        self.take_idle([one.partition("(")[2].partition(",")[0].rstrip(")") for one in found])
        return found

    def _compared(self, key: str, operator: str, figure: Number) -> str:
        """A condition of the language; dates are texts."""
        dated = self.function.key(key).kind == "date"
        return f"{operator}({key}, {quote(str(figure.value)) if dated else figure.value})"

    def _bound(self, figure: Number) -> str:
        """More or less than a number; empty where nothing says so."""
        words = english()
        for more, phrases, inclusive, strict in ((True, words.over, "ge", "gt"), (False, words.under, "le", "lt")):
            adjectives = comparatives(self, more=more)
            signs = self.tokens.find((*phrases, *(f"{one} than" for one in adjectives)))
            signs = [one for one in signs if 0 <= figure.place.first - one.end <= 1]
            if not signs:
                continue
            sign = min(signs, key=figure.place.near)
            said = self.tokens.said(sign).lower()
            keys = tuple(dict.fromkeys(key for one in adjectives if one in said for key in adjectives[one]))
            if key := self._key_of(figure, sign, keys):
                self.take(sign, figure.place)
                loose = any(word in said for word in ("least", "at most", "no less", "no more"))
                return self._compared(key, inclusive if loose else strict, figure)
        return ""

    def _exactly(self, figure: Number) -> str:
        """Just this number of what is counted in whole ones: period 2, 8 cylinders, the second floor; else empty."""
        before = self.tokens.word(figure.place.first - 1) if figure.place.first else ""
        had = figure.ordinal or before in _BEFORE_COUNTS
        for mention in self.mentions:
            key = self.function.exact_keys.get(mention.key)
            if key is None or key.kind != "integer" or not self.tokens.free(mention.place):
                continue
            counted = had and figure.place.end == mention.place.first
            named = not figure.ordinal and not mention.counted and mention.place.end == figure.place.first
            if counted or named:
                self.take(mention.place, figure.place)
                return self._compared(key.name, "eq", figure)
        return ""

    def _year(self, figure: Number) -> str:
        """A year with what stands before it: in, before, since; empty where it is none."""
        bounds = self.tokens.find((*english().over, *english().under))
        if any(one.end == figure.place.first for one in bounds) or not self._are_years(figure):
            return ""
        # Before the key is looked for: one may be called `since`.
        sign = sign_of_time(self.tokens, figure.place)
        self.take(figure.place)
        return self._compared(self.dated_key(self.dated), sign, figure)

    def _are_years(self, *figures: Number) -> bool:
        """Whether the rows are dated and these may be years: neither order 2050, which is not known, nor 1000 euros."""
        if not self.dated or not all(isinstance(one.value, int) and 1000 <= one.value < 2100 for one in figures):
            return False
        units = self.tokens.find(one for key in self.function.keys for one in self._units(key))
        before, behind = {noun.end for noun in self.tokens.find(self.nouns)}, {unit.first for unit in units}
        return not any(one.place.first in before or one.place.end in behind for one in figures)

    def dated_key(self, keys: Sequence[str]) -> str:
        """The one that is named, else the first; where "when" asks for one of several, the year is another's."""
        named = [one for one in self.mentions if one.key in keys and self.tokens.free(one.place)]
        others = [key for key in keys if not named or key != named[0].key]
        if named and others and asks_when(self):
            return others[0]
        if named:
            self.tokens.take(named[0].place)
        return named[0].key if named else keys[0]

    @cached_property
    def dated(self) -> tuple[str, ...]:
        """Keys of dates and years."""
        return tuple(
            key.name
            for key in self.function.keys
            if key.kind == "date" or (key.kind == "integer" and "year" in key.words.split())
        )

    def _key_of(self, figure: Number, sign: Range, keys: Sequence[str]) -> str:
        """The key that a number is of: by the unit behind it, by the adjective, by a key that is named beside it."""
        for key in self.function.keys:
            behind = [one for one in self.tokens.find(self._units(key)) if 0 <= one.first - figure.place.end <= 1]
            if key.kind in NUMERIC and behind:
                said = [one.place for one in self.mentions if one.key == key.name and one.place.near(sign) <= NEAR]
                self.take(*behind, *said)
                return key.name
        if keys:
            return keys[0]
        beside = [one for one in self.mentions if self.numeric(one) and self.tokens.free(one.place)]
        named = min(beside, key=lambda one: min(one.place.near(sign), one.place.near(figure.place)), default=None)
        if named is None or min(named.place.near(sign), named.place.near(figure.place)) > NEAR:
            return ""
        self.tokens.take(named.place)
        return named.key

    def _units(self, key: Key) -> tuple[str, ...]:
        """What is said behind the numbers of a key."""
        return (*self.lexicon.key(self.function.name, key.name).unit, *((key.unit,) if key.unit else ()))

    # Nouns

    @cached_property
    def own_words(self) -> tuple[str, ...]:
        """What is said of this function's rows and of no others of their kind."""
        return self.lexicon.words.function(self.function.name).words or self.phrases(self.subject.name)

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
