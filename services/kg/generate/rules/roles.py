"""What the words of a question are to one function: names, values, thresholds, superlatives, keys, nouns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from services.kg.generate.rules.inflection import inflections, singular
from services.kg.generate.rules.interrogatives import asks_what, asks_when
from services.kg.generate.rules.lexicon import Lexicon, verbs_of
from services.kg.generate.rules.tokens import BESIDE, NEAR, Mention, Range, Tokens, apart, apart_from
from services.kg.generate.rules.trees import Name, compared
from services.kg.generate.rules.values import Values, condition, exact, flag_phrases, is_joint, opposite, telling_words
from services.kg.generate.rules.words import KeyWords, english
from services.kg.generate.spans import Spot
from services.kg.language.catalogue import NUMERIC, Function, Key, Parameter
from services.kg.language.tree import Condition

COUNTED = "number of "
# Shorter words of a key's name say nothing by themselves.
MIN_SAID = 4
# Last words of keys that say no more than when rows are of.
_DATES = frozenset(("date", "day", "month", "year", "time"))


def subject_of(function: Function) -> Key:
    """The key that names a row of a function."""
    return function.exact_keys[function.subject[0]]


@dataclass
class Roles:
    """The words of one question as one function reads them; what is read is taken from the tokens."""

    lexicon: Lexicon  # of the domain
    function: Function  # whose rows the question may mean
    tokens: Tokens  # with the names taken already
    values: Values  # knows the texts that `open` keys have in the store
    named: list[Condition] = field(default_factory=list)  # conditions by names
    # Values that stand where the rows' noun does, "which halogens", with the keys that have them.
    classes: dict[Range, str] = field(default_factory=dict)
    negated: bool = False  # whether a value is one that the rows do not have
    assumed: str = ""  # the key of a date that the question does not name

    @cached_property
    def subject(self) -> Key:
        """The key that names a row."""
        return subject_of(self.function)

    @property
    def nameless(self) -> bool:
        """Whether only numbers or codes (P-514) tell the rows apart."""
        if self.subject.kind in NUMERIC:
            return True
        values = self.values.of(self.function, self.subject.name)
        return bool(values) and all(any(map(str.isdigit, one)) for one in values)

    @cached_property
    def primary(self) -> Parameter | None:
        """The parameter that takes the names of the rows themselves; None where nothing names them."""
        column = self.subject.id_column
        takers = (one for one in self.function.parameters if one.kind == "entity" and one.column == column)
        return next(takers, None)

    @cached_property
    def of_their_like(self) -> tuple[str, ...]:
        """Parameters that take things of the rows' own kind beside the rows themselves: managers of employees."""
        kinds = frozenset(self.primary.entities) if self.primary is not None else frozenset()
        return tuple(
            one.name for one in self.function.parameters if one is not self.primary and kinds.intersection(one.entities)
        )

    def key_of(self, mention: Mention) -> Key | None:
        """The key that is mentioned; None where it is a facet."""
        return self.function.exact_keys.get(mention.key)

    def words_of(self, key: str) -> KeyWords:
        """What asks for a key or facet, as the domain's words say."""
        return self.lexicon.key(self.function.name, key)

    def says(self, parameter: Parameter) -> bool:
        """Whether the question may mean this parameter: whom a project is led by only where it says "lead"."""
        nouns = [noun for kind in parameter.entities for noun in self.lexicon.nouns(kind)]
        # The host of rows whose hosts are called by their hostname.
        is_noun = any(noun.startswith(parameter.name.replace("_", " ")) for noun in nouns)
        named = is_noun or parameter is self.primary or self.function.pair is not None
        return named or bool(self.tokens.find(self.phrases(parameter.name)))

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """What the rows are called."""
        return tuple(dict.fromkeys((*self.lexicon.rows(self.function), *self.phrases(self.subject.name))))

    @cached_property
    def mentions(self) -> list[Mention]:
        """Keys and facets in the order of the question; of several that words speak of, the one called so."""
        mentions: dict[Range, Mention] = {}
        for key in self.function.keys:
            if key != self.subject and not self.words_of(key.name).only:
                for place in self.tokens.find((key.words, *verbs_of(key.words))):
                    mentions[place] = Mention(place, key.name)
        for name in self.function.projected:
            if name == self.subject.name:
                continue
            for place in self.tokens.find_joined(self.phrases(name)):
                mentions.setdefault(place, Mention(place, name))
            for place in self.tokens.find(self._counted_noun(name)):
                mentions.setdefault(place, Mention(place, name, counted=True))
        for key in self.function.keys:
            words = key.words.split()
            if len(words) < 2 or min(map(len, words)) < MIN_SAID or key.name in {one.key for one in mentions.values()}:
                continue
            if (spread := self.tokens.spread(words, mentions)) is not None:
                mentions[spread] = Mention(spread, key.name)
        # The code of "violation codes" is what the rows are called.
        larger = self.tokens.find(self.nouns)
        within = [one for one in mentions if any(one != noun and one.within(noun) for noun in larger)]
        # "How much per day" asks for no number of days.
        within += [one for one in mentions if self.tokens.word_before(one) == "per" and self.numeric(mentions[one])]
        return [mentions[place] for place in apart(mentions.keys() - set(within))]

    def numeric(self, mention: Mention) -> bool:
        """Whether a key of numbers is mentioned."""
        return (key := self.key_of(mention)) is not None and key.kind in NUMERIC

    # Values

    def conditions(self) -> list[tuple[str, Condition]]:
        """Key and condition for each value that the question says; the key's own words beside it are read with it."""
        claims = self._claims()
        conditions: list[tuple[str, Condition]] = []
        for place in apart(claims):
            key, value = self._claimant(place, claims[place])
            before = self._negation(place, key)
            self.tokens.take(place, *before)
            self.negated |= bool(before)
            kept = opposite(key, value) if before else condition(key, value)
            if kept is None:
                self.tokens.doubt = True
                continue
            conditions.append((key.name, kept))
            if self.opens(place) or self._ends_order(place):
                self.classes[place] = key.name
            if (beside := self._beside(place, key)) is not None and self.tokens.free(beside):
                self.tokens.take(beside)
        self.take_idle([key for key, _ in conditions])
        return conditions

    def _negation(self, place: Range, key: Key) -> list[Range]:
        """The words before a value that negate it: "not", "doesn't have a"; none where nothing does."""
        beside = self.tokens.find_all((*self.words_of(key.name).also, *self.phrases(key.name)))
        idle = {index for one in beside for index in range(one.first, one.end)}
        first = self.tokens.index_before(place, english().between_not | english().before_values, idle)
        before = Range(first, place.first)
        negates = self.tokens.negates(first) or (self.tokens.word(first) in english().without and key.kind == "flag")
        return [before] if negates and self.tokens.free(before) else []

    def outside_values(self, places: Sequence[Range]) -> list[Range]:
        """Those that are no part of a longer value, as the cheese of a Bath Cheese Show is."""
        values = list(self._claims()) if places else []
        return [place for place in places if not any(place != one and place.within(one) for one in values)]

    def _claims(self) -> dict[Range, list[tuple[Key, str]]]:
        """Where values stand that are words of questions, each with the keys that have it."""
        claims: dict[Range, list[tuple[Key, str]]] = {}
        nouns = self.tokens.find(self.nouns)
        # "What is Ann's email" wants it, though some prefer "email".
        asked = self.mentions if asks_what(self.tokens) and self.tokens.names() else []
        # "When was it closed" wants a date, beside a status `closed`.
        dates = [one.place for one in self.mentions if one.key in self.dated] if asks_when(self.tokens) else []
        for key in self.function.keys:
            words = self.words_of(key.name)
            taken = [*nouns, *(one.place for one in asked if one.key != key.name)]
            values = dict(words.values)
            for text in self.values.of(self.function, key.name) if words.open else ():
                values[text] = (*values.get(text, ()), *exact(text))
            if key.kind == "flag":
                values = {**flag_phrases(key, words.words), **values}
            for value, phrases in values.items():
                # Who is called a lecturer need not have the position of one.
                for place in [one for one in self.tokens.find(phrases) if one not in taken][:1]:
                    around = (*nouns, *(one.place for one in self.mentions if one.key == key.name))
                    # Programs in Go do not go.
                    spelled = value[:1].isupper() and place.first and self.tokens.text_of(place) == value
                    joint = not spelled and is_joint(self.tokens, place, around)
                    if not joint and not any(map(place.overlaps, dates)):
                        claims.setdefault(place, []).append((key, value))
        return {**self._claims_of_parts(nouns, claims), **claims}

    def _claims_of_parts(self, nouns: Sequence[Range], others: Collection[Range]) -> dict[Range, list[tuple[Key, str]]]:
        """As `_claims`, by a word that one value alone has, before what the rows are called: solar plants, Solar PV."""
        starts, asking = {noun.first for noun in nouns}, (self.lexicon.vocabulary, self.tokens.fillers)
        places = apart_from((Range(index, index + 1) for index in range(self.tokens.count)), others)
        places = [one for one in places if self.tokens.free(one) and (one.end in starts or self.opens(one))]
        claims: dict[Range, list[tuple[Key, str]]] = {}
        for key in self.function.keys if places else ():
            texts = self.values.of(self.function, key.name) if self.words_of(key.name).open else ()
            telling = telling_words(tuple(texts))
            for place in places:
                word = singular(self.tokens.word(place.first))
                if word in telling and not any(word in words for words in asking):
                    claims.setdefault(place, []).append((key, telling[word]))
        return claims

    def _claimant(self, place: Range, claims: Sequence[tuple[Key, str]]) -> tuple[Key, str]:
        """The key and value that are meant: of a key named beside the words, else of the row's own; else a doubt."""
        beside = [one for one in claims if self._beside(place, one[0]) is not None]
        likely = beside or [one for one in claims if not one[0].name.startswith(self._joined_prefixes)] or claims
        # Of what is called as the country that it lies in, people mean the country.
        likely = [one for one in likely if one[0].name.endswith("country")] or likely
        likely = [one for one in claims if self._leads(place, one[0])] or likely
        self.tokens.doubt |= len({key.name for key, _ in likely}) > 1
        return likely[0]

    @property
    def _joined_prefixes(self) -> tuple[str, ...]:
        """How keys begin that rows have of the things that they are of: `staff_` of shifts."""
        return tuple(f"{one.name}_" for one in self.function.parameters if one is not self.primary)

    def means_joined(self, asked: Collection[str]) -> bool:
        """Whether a value stands for things that the rows are of, nurses of shifts, and for no vet who is asked for."""
        own = tuple(f"{one}_" for one in asked)
        joined = [place for place, key in self.classes.items() if key.startswith(self._joined_prefixes)]
        joined = [place for place in joined if not self.classes[place].startswith(own)]
        starts = {noun.first for noun in self.tokens.find_all(self.nouns)} if joined else ()
        return any(place.end not in starts for place in joined)

    def _leads(self, place: Range, key: Key) -> bool:
        """Whether the word before a value is that of one end of a way: from its origin, to its destination."""
        before = self.tokens.word_before(place)
        return before in ("from", "to") and any(one.endswith(f" {before}") for one in self.phrases(key.name))

    def _beside(self, place: Range, key: Key) -> Range | None:
        """Where a key is named beside some words."""
        mentions = [one.place for one in self.mentions if one.key == key.name]
        nearest = min(mentions, key=place.near, default=None)
        return nearest if nearest is not None and nearest.near(place) <= NEAR else None

    def take_idle(self, keys: Sequence[str]) -> None:
        """Read what may stand beside a key and asks nothing."""
        # "Which stops" asks for stops, though trains of a line stop.
        nouns = self.tokens.find(self.nouns)
        heads = [one for one in nouns if self.opens(one)]
        for key in keys:
            if key in self.function.exact_keys:
                idle = self.tokens.find(self.words_of(key).also)
                words = [one for one in self.function.exact_keys[key].words.split() if len(one) >= MIN_SAID]
                # "Toys made after 1900", of a `year_made` and a maker.
                is_day = key in self.dated and self.tokens.word(0) != "who"
                others = [one.place for one in self.mentions if one.key != key and not is_day]
                self.tokens.take(*apart_from(idle, heads), *apart_from(self.tokens.find(words), [*nouns, *others]))

    def opens(self, place: Range) -> bool:
        """Whether the words stand where a noun does: which halogens, how many of the halogens."""
        before = (self.tokens.word(index) for index in range(place.first - 1, -1, -1))
        return next((word for word in before if word not in english().before_kinds), "") in english().before_nouns

    def _ends_order(self, place: Range) -> bool:
        """Whether a value stands where the noun of a superlative does: the oldest clock, and no oldest Swiss clock."""
        others = [*self.tokens.find(self.nouns), *(one.place for one in self.mentions if one.place.first == place.end)]
        return self.tokens.word_before(place).endswith("est") and not others

    def _above(self, place: Range, spots: Sequence[Spot]) -> str:
        """The parameter or key that takes a name to whom the rows report; a key's condition is added to `named`.

        Empty where the question does not say so, or not just one takes it.
        """
        verbs = [one for one in self.tokens.find(english().beneath) if one.leads_to(place)]
        spot = next((one for one in spots if self.primary and one.kind in self.primary.entities), None)
        if not verbs or spot is None:
            return ""
        texts = {one.name: text for one in self.function.keys if not one.entity and (text := self._value_of(one, spot))}
        takers = [*self.of_their_like, *texts]
        if len(takers) != 1:
            return ""
        self.tokens.take(*verbs)
        self.named += [compared("eq", key, text) for key, text in texts.items()]
        return takers[0]

    def _take_value(self, place: Range, spots: Sequence[Spot]) -> bool:
        """Read a name as the value of a key that is named beside it: the country whose capital is X."""
        for mention in self.mentions:
            key = self.key_of(mention)
            value = next((text for one in spots if key is not None and (text := self._value_of(key, one))), "")
            if not value or mention.place.near(place) > NEAR or not self.tokens.free(mention.place):
                continue
            self.tokens.take(mention.place)
            self.named.append(compared("eq", mention.key, value))
            return True
        return False

    def _takes_value_before(self, place: Range, spots: Sequence[Spot]) -> bool:
        """Read a name behind a key of texts as its value where rows are asked for: which river flows into the Harn."""
        nouns = [noun for noun in self.tokens.find(self.nouns) if noun.end <= place.first]
        if not any(self.tokens.word_before(noun) in english().before_nouns for noun in nouns):
            return False
        before = [one for one in self.mentions if one.place.leads_to(place)]
        keys = [self.key_of(one) for one in before]
        texts = [key for key in keys if key is not None and not key.entity]
        return any(self._value_of(key, spot) for key in texts for spot in spots) and self._take_value(place, spots)

    def _value_of(self, key: Key, spot: Spot) -> str:
        """A name as a value of the key: of its kind, or as a row has it, rivers flow into seas; else empty."""
        if key.entity or key.kind != "text":
            return spot.text if key.entity == spot.kind else ""
        bare = spot.text[4:] if spot.text[:4].lower() == "the " else spot.text
        stored = (self.values.stored(self.function, key.name, text) for text in dict.fromkeys((spot.text, bare)))
        return next(filter(None, stored), "")

    def bind(self) -> dict[str, list[Name]] | None:
        """The names of the question by the parameters that take them; None where nothing takes one of them."""
        names: dict[str, list[Name]] = {}
        parameters = [one for one in self.function.parameters if one.kind == "entity"]
        if self.function.pair is None and self.primary is not None:
            parameters.sort(key=lambda one: one is not self.primary)
        for place in self.tokens.names():
            spots = self.tokens.spots_at(place)
            if self._takes_value_before(place, spots):
                continue
            if above := self._above(place, spots):
                if above in {one.name for one in parameters}:
                    names.setdefault(above, []).append(spots[0].text)
                continue
            candidates = [one for one in parameters if self.says(one)]
            takers = [(one, spot) for one in candidates for spot in spots if spot.kind in one.entities]
            apposed = [(one, spot) for one, spot in takers if self._apposed(place, spot.kind)]
            free = [(one, spot) for one, spot in apposed or takers if one.name not in names or one is self.primary]
            if free:
                parameter, spot = free[0]
                names.setdefault(parameter.name, []).append(spot.text)
            elif not self._take_value(place, spots):
                return None
        return names

    # Dates

    @cached_property
    def dated(self) -> tuple[str, ...]:
        """Keys of dates and years; a cost per year is none."""
        words = {key: key.words.split() for key in self.function.keys}
        years = {key for key in words if key.kind == "integer" and "year" in words[key] and "per" not in words[key]}
        return tuple(key.name for key in self.function.keys if key.kind == "date" or key in years)

    def dated_key(self, keys: Sequence[str]) -> str:
        """The key that is named, else the first; where "when" asks for one of several, the year is another's."""
        named = next((one for one in self.mentions if one.key in keys and self.tokens.free(one.place)), None)
        if named is None:
            self.assumed = keys[0]
            return keys[0]
        others = [key for key in keys if key != named.key]
        if others and asks_when(self.tokens):
            return others[0]
        self.tokens.take(named.place)
        return named.key

    def is_of_rows(self, date: str) -> bool:
        """Whether a date is that of the rows themselves: `month`, `ordered` of orders, any of numbers; no `hired`."""
        deeds = {form for noun in self.nouns for form in inflections(noun)}
        words = date.split("_")
        return words[-1] in _DATES or words[0] in deeds or self.subject.kind in NUMERIC

    def units(self, key: Key) -> tuple[str, ...]:
        """What is said behind the numbers of a key."""
        percent = ("percent", "per cent", "%") if key.kind == "percent" else ()
        return (*self.words_of(key.name).unit, *((key.unit,) if key.unit else ()), *percent)

    def own_words(self) -> list[Range]:
        """Where the function's own words stand; where none does, the words of the key that names its rows."""
        own = self.tokens.find(self.lexicon.words.function(self.function.name).words)
        return own or self.tokens.find(self.phrases(self.subject.name))

    def head(self) -> Range | None:
        """What the question wants: its first noun or key, of whatever function."""
        return min(self.tokens.find(self.lexicon.every_word), key=lambda one: one.first, default=None)

    def _apposed(self, place: Range, kind: str) -> bool:
        """Whether a noun for the kind stands beside a name: the city of X, X airport."""
        return any(
            one.near(place) <= BESIDE and self._joined(one, place) for one in self.tokens.find(self.lexicon.nouns(kind))
        )

    def _joined(self, noun: Range, name: Range) -> bool:
        return english().before_names.issuperset(self.tokens.between(noun, name))

    def take_apposed(self, names: Collection[str]) -> None:
        """Read nouns that only say what kind of thing a name is."""
        kinds = {kind for one in self.function.parameters if one.name in names for kind in one.entities}
        for kind in kinds:
            nouns = self.tokens.find(self.lexicon.nouns(kind))
            self.tokens.take(*(one for one in nouns if any(self._joined(one, name) for name in self.tokens.names())))

    def _counted_noun(self, name: str) -> tuple[str, ...]:
        """The noun that a key counts, as the only phrase: airports of "number of airports"; else none."""
        key = self.function.exact_keys.get(name)
        if key is None or key.kind != "integer" or not key.words.startswith(COUNTED):
            return ()
        return (key.words.removeprefix(COUNTED),)

    def phrases(self, key: str) -> tuple[str, ...]:
        """All that asks for a key or facet but comparatives and superlatives."""
        return self.lexicon.plain(self.function.name, key)
