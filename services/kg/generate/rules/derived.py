"""Programs from the catalogue alone: which function and keys explain every word of a question.

A domain whose `words.yaml` has no readings is read so. Each function is tried: its parameters take the names, its keys
the words, and numbers, years and superlatives narrow and sort its rows. A word that nothing explains may ask for
something else, so a function that leaves one is not called; of several that leave none the one that explains more is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.question import Question, quote
from services.kg.generate.rules.readings import Lexicon, bound_of_year, many
from services.kg.generate.rules.scan import Bound, Hit, Scan, bare, bounds, comparatives, fillers, superlatives
from services.kg.generate.rules.values import Values
from services.kg.generate.rules.words import english
from services.kg.generate.spans import Spot
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key

MOST_STATEMENTS = 3
# What a match is worth beside the letters that it explains.
OF_WANTED_KIND = 12
HOME = 6
HOP = -4
_YES_OR_NO = re.compile(r"\A\W*(?:is|are|was|were|do|does|did|has|have|had|can)\b")
_DATED = re.compile(r"\byear\b|\bdate\b|\bwhen\b")
_YEAR = re.compile(r"\b(?:in|during|of|from|since|after|before|until|by|around|year)?\s*(?:1[0-9]|20)\d\d\b")
_WANTED = (
    r"(?:which|what|whose|how many|number of|list|name|all|every|any|the|show|find|are there|most|fewest|of all|"
    r"among|<superlative>)"
)


@dataclass
class _Candidate:
    """One function as a reading of the question."""

    function: Function
    scan: Scan
    arguments: dict[str, list[str]] = field(default_factory=dict)
    sides: list[str] = field(default_factory=list)
    side: str = ""
    conditions: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sort: tuple[str, bool] | None = None
    score: float = 0.0


def derive(lexicon: Lexicon, question: Question, values: Values | None = None) -> list[str]:
    """The statements of the function that explains the question best; none when words are left over.

    Args:
        lexicon: of the domain.
        question: with its names.
        values: distinct values of keys in the store; without it only the file's words narrow by a value.
    """
    best: tuple[float, list[str]] = (0.0, [])
    functions = [one for one in _functions(lexicon.catalogue, lexicon.domain) if not one.hidden]
    for function in functions:
        for spots in _choices(lexicon, question, function):
            attempt = _Attempt(lexicon, question, function, spots, values)
            statements = attempt.statements()
            if statements and attempt.score > best[0]:
                best = (attempt.score, statements)
    return best[1]


def _functions(catalogue: Catalogue, domain: str) -> Sequence[Function]:
    return catalogue.domains[domain].functions if domain in catalogue.domains else ()


def _choices(lexicon: Lexicon, question: Question, function: Function) -> list[tuple[Spot, ...]]:
    """The names of the question, each as one kind that the function can use."""
    usable = _usable(function)
    chosen: list[Spot] = []
    for start, end in sorted({(spot.start, spot.end) for spot in question.spots}):
        same = [spot for spot in question.spots if (spot.start, spot.end) == (start, end)]
        fitting = [spot for spot in same if _apposed(lexicon, question, spot)] or same
        fitting = [spot for spot in fitting if spot.kind in usable]
        if not fitting:
            return []
        chosen.append(fitting[0])
    return [tuple(chosen)]


def _usable(function: Function) -> list[str]:
    kinds = [kind for one in function.parameters for kind in one.entities]
    return kinds + [key.entity for key in function.keys if key.entity]


def _apposed(lexicon: Lexicon, question: Question, spot: Spot) -> bool:
    """Whether a noun for the kind stands beside the name: the city of _, _ airport."""
    nouns = compiled(kind_words(lexicon, spot.kind)).pattern
    around = question.words[max(0, spot.start - 30) : spot.end + 30]
    return re.search(rf"(?:{nouns})(?:\s+of)?(?:\s+the)?\s+_|_+(?:'s)?\s+(?:{nouns})", around) is not None


def kind_words(lexicon: Lexicon, kind: str) -> tuple[str, ...]:
    """Nouns for a kind of names: its own name, and the file's."""
    own = lexicon.words.kinds.get(kind)
    return (kind.replace("_", " "), *(own.words if own else ()))


class _Attempt:
    """One function tried on one question."""

    def __init__(
        self, lexicon: Lexicon, question: Question, function: Function, spots: Sequence[Spot], values: Values | None
    ) -> None:
        self.lexicon, self.question, self.function = lexicon, question, function
        self.spots, self.values = spots, values
        self.score = 0.0
        self.scan = Scan(question.words)
        self.arguments: dict[str, list[str]] = {}
        self.conditions: list[str] = []
        self.asked: list[str] = []
        self.sort: tuple[str, bool] | None = None
        self.wanted = ""

    @property
    def subject(self) -> Key | None:
        """The key that names a row."""
        return next((key for name in self.function.subject for key in self.function.keys if key.name == name), None)

    def statements(self) -> list[str]:
        if not self._place_names():
            return []
        self._narrow_by_values()
        self._wanted_kind()
        counted = bool(self.scan.take(self._general(english().count)))
        mean = bool(self.scan.take(english().average))
        total = not mean and bool(self.scan.take(english().total))
        limits = bounds(self.scan)
        # Counting words may be a key's own: how many people live there.
        whole = Scan(self.question.words)
        self._match_keys(whole if counted else self.scan, counted=counted)
        if not self._narrow_by_bounds(limits) or not self._narrow_by_years() or not self._superlative():
            return []
        self.scan.take(english().together)
        if not self._complete():
            return []
        return self._write(counted=counted, mean=mean, total=total)

    # Names

    def _place_names(self) -> bool:
        """Give each name to a parameter or a condition; False where one has no place."""
        free = [one for one in self.function.parameters if one.kind == "entity"]
        if any(one.required and one.kind != "entity" for one in self.function.parameters):
            return False
        seen: dict[str, str] = {}
        for spot in self.spots:
            parameter = next(
                (one for one in free if spot.kind in one.entities and one.name not in self.arguments), None
            )
            same = next((one for one in free if seen.get(one.name) == spot.kind), None)
            if same is not None and (self._beside(spot) or parameter is None):
                self.arguments[same.name].append(spot.text)
                continue
            if parameter is not None:
                self.arguments[parameter.name] = [spot.text]
                seen[parameter.name] = spot.kind
                continue
            key = next((one for one in self.function.keys if one.entity == spot.kind), None)
            if key is None:
                return False
            self.conditions.append(f"eq({key.name}, {quote(spot.text)})")
            self.score += 1
        subject = self.subject
        first = free[0] if free else None
        if (
            first is not None
            and first.name in self.arguments
            and subject is not None
            and subject.entity in first.entities
        ):
            self.score += HOME
        return True

    def _beside(self, spot: Spot) -> bool:
        """Whether a name is compared or joined with the one before."""
        ends = sorted({(one.start, one.end) for one in self.spots})
        for (_, end), (start, _) in pairwise(ends):
            if start == spot.start:
                between = self.question.text[end:start].lower()
                return re.search(r"\bor\b|\band\b|\bvs\b|\bversus\b|\bthan\b|,|\bcompared\b", between) is not None
        return False

    def _wanted_kind(self) -> None:
        """The kind of things that the question wants, where a noun says it: which cities, how many airports."""
        kinds = dict.fromkeys(key.entity for key in self.function.keys if key.entity)
        text = self.question.words
        for kind in kinds:
            nouns = compiled(kind_words(self.lexicon, kind)).pattern
            asking = _WANTED.replace("<superlative>", r"\w+est")
            leading = re.search(rf"\b{asking}\b(?:\s+[\w'-]+){{0,3}}?\s+(?:{nouns})(?!\s+(?:of\s+)?_)", text)
            plural = re.search(rf"\A\W*(?:{nouns})\b", text)
            if (leading or plural) and not self._between_names(kind):
                key = self.subject
                if key is not None and key.entity == kind:
                    self.wanted = key.name
                    self.score += OF_WANTED_KIND
                elif not self.wanted:
                    other = next((one.name for one in self.function.keys if one.entity == kind), "")
                    self.wanted = other
                return

    def _between_names(self, kind: str) -> bool:
        """Whether the noun only says what a name is."""
        return any(spot.kind == kind and _apposed(self.lexicon, self.question, spot) for spot in self.spots)

    # Conditions

    def _narrow_by_values(self) -> None:
        for key in self.function.keys:
            own = self.lexicon.key(self.function.name, key.name)
            for value, phrases in own.values.items():
                if self.scan.take(phrases):
                    self._equal(key, value)
                    break
            else:
                if own.open or (self._open(key) and not own.words):
                    self._narrow_by_store(key)

    def _open(self, key: Key) -> bool:
        return key.kind == "text" and not key.entity and key.name not in self.function.subject

    def _narrow_by_store(self, key: Key) -> None:
        for value in self.values.of(self.function, key.name) if self.values is not None else ():
            pattern = re.compile(rf"(?<!\w){re.escape(value.lower())}(?:s|es|n)?(?!\w)")
            if len(value) > 2 and self.scan.take_pattern(pattern):
                self._equal(key, value)
                return

    def _equal(self, key: Key, value: str) -> None:
        condition = f"eq({key.name}, {quote(value)})"
        if condition not in self.conditions:
            self.conditions.append(condition)
        self.score += len(value)

    def _narrow_by_bounds(self, limits: Iterable[Bound]) -> bool:
        """Conditions of numbers; False where a number is of no key."""
        for bound in limits:
            key = self._bounded(bound)
            if key is None:
                return False
            values = ", ".join(bound.numbers)
            self.conditions.append(f"{bound.operator}({key.name}, {values})")
            self.score += len(bound.hit.text)
            self._unask(key.name)
        return self._exact_numbers()

    def _bounded(self, bound: Bound) -> Key | None:
        numeric = [key for key in self.function.keys if key.kind in NUMERIC and key.kind != "flag"]
        behind = self.scan.text[bound.hit.end : bound.hit.end + 25]
        for key in numeric:
            own = self.lexicon.key(self.function.name, key.name)
            units = (*own.unit, *((key.unit,) if key.unit else ()))
            if units and re.match(rf"\s*(?:{_any(units)})(?!\w)", behind):
                match = re.match(rf"\s*(?:{_any(units)})(?!\w)", behind)
                assert match is not None  # noqa: S101 - matched above
                self.scan.blank(Hit(bound.hit.end, bound.hit.end + match.end(), match[0]))
                return key
            if bound.comparative and bound.comparative in {*comparatives(own.more), *comparatives(own.less)} | {
                word.removeprefix("=") for word in (*comparatives(own.more), *comparatives(own.less))
            }:
                return key
        named = [(abs(hit.start - bound.hit.start), key) for key in numeric for hit in self._places(key.name)]
        if named:
            return min(named, key=lambda pair: pair[0])[1]
        return numeric[0] if len(numeric) == 1 else None

    def _exact_numbers(self) -> bool:
        """A number beside a key is the key's value: atomic number 26; any other must be explained."""
        for match in re.finditer(r"(?<![\w.-])\d[\d,.]*(?![\w-])", self.scan.text):
            if _YEAR.fullmatch(match[0].strip()) or many(self.question) is not None:
                continue
            near = [(abs(hit.start - match.start()), name) for name in list(self.asked) for hit in self._places(name)]
            near = [(distance, name) for distance, name in near if distance < 30]
            key = next((one for one in self.function.keys if near and one.name == min(near)[1]), None)
            if key is None or key.kind not in NUMERIC:
                return False
            self.conditions.append(f"eq({key.name}, {match[0].rstrip('.,').replace(',', '')})")
            self.scan.blank(Hit(match.start(), match.end(), match[0]))
            self._unask(key.name)
        return True

    def _narrow_by_years(self) -> bool:
        """Years narrow the one key that is of time, or that the question's words are of."""
        years = sorted({int(match[-4:]) for match in _YEAR.findall(self.scan.text)})
        if not years:
            return True
        dated = [key for key in self.function.keys if _of_time(key)]
        named = [key for key in dated if self._places(key.name)]
        key = (named or dated or [None])[0]
        if key is None:
            return False
        ends = [quote(str(year)) if key.kind == "date" else str(year) for year in years]
        if len(years) > 1:
            self.conditions += [f"ge({key.name}, {ends[0]})", f"le({key.name}, {ends[-1]})"]
        else:
            self.conditions.append(f"{bound_of_year(self.question)}({key.name}, {ends[0]})")
        self.scan.take_pattern(_YEAR, all_of_them=True)
        self.scan.take((*english().after, *english().before, *english().between), all_of_them=True)
        self._unask(key.name)
        self.score += 4
        return True

    # Keys

    def _match_keys(self, scan: Scan, *, counted: bool) -> None:
        """The keys that words ask for, longest words first; what explains them is blanked."""
        found: list[tuple[int, str, Hit]] = []
        for name in (*(key.name for key in self.function.keys), *self.function.facets):
            phrases = self._phrases(name)
            unless = self.lexicon.key(self.function.name, name).unless
            if self.question.says(unless) or not self._type_fits(name, counted=counted):
                continue
            for phrase in phrases:
                for match in compiled((phrase,)).finditer(scan.text):
                    if match[0].strip(" _"):
                        found.append((match.end() - match.start(), name, Hit(match.start(), match.end(), match[0])))
        taken: list[tuple[str, Hit]] = []
        for length, name, hit in sorted(found, key=lambda one: -one[0]):
            if any(hit.start < other.end and other.start < hit.end for _, other in taken):
                continue
            taken.append((name, hit))
            self.scan.blank(hit)
            if name == self.wanted or self._is_noun_of(name):
                continue
            self.score += length
        for name, _ in sorted(taken, key=lambda one: one[1].start):
            if name not in self.asked:
                self.asked.append(name)
        self.taken = taken

    def _is_noun_of(self, name: str) -> bool:
        """Whether a key is only the noun for the names that the question says."""
        key = next((one for one in self.function.keys if one.name == name), None)
        return key is not None and key is self.subject

    def _phrases(self, name: str) -> tuple[str, ...]:
        own = self.lexicon.key(self.function.name, name)
        phrases = self.lexicon.phrases(self.function.name, name)
        compared = (*comparatives(own.more), *comparatives(own.less))
        counts = [phrase.removeprefix("number of ").removeprefix("how many ") for phrase in phrases]
        amounts = [
            f"(most|fewest|more|fewer|least) {noun}"
            for phrase, noun in zip(phrases, counts, strict=True)
            if noun != phrase
        ]
        return tuple(dict.fromkeys((*phrases, *compared, *amounts)))

    def _type_fits(self, name: str, *, counted: bool) -> bool:
        """Whether a key's values can answer such a question: not a date of "who", not a text of "how tall"."""
        key = next((one for one in self.function.keys if one.name == name), None)
        if key is None:
            return True
        words = self.question.words
        if re.match(r"\W*(?:who|whom|whose)\b", words):
            return key.kind == "text"
        if re.match(r"\W*when\b", words):
            return _of_time(key)
        return not (counted and key.kind == "text" and key is not self.subject)

    def _places(self, name: str) -> list[Hit]:
        return [hit for other, hit in self.taken if other == name]

    def _unask(self, name: str) -> None:
        self.asked = [one for one in self.asked if one != name]

    def _superlative(self) -> bool:
        """Sort by the key that is greatest or least; False where it is of none."""
        for key in self.function.keys:
            if key.kind not in NUMERIC and key.kind != "date":
                continue
            own = self.lexicon.key(self.function.name, key.name)
            for words, descending in ((own.more, True), (own.less, False)):
                if words and self.scan.take(superlatives(words)):
                    named = self._named_measure() or key
                    self.sort = (named.name, descending)
                    self.score += len(words[0])
                    self._unask(named.name)
                    return True
        for phrases, descending in ((english().greatest, True), (english().least, False)):
            if self._mentions(phrases) and (key := self._named_measure()) is not None:
                self.scan.take(phrases)
                self.sort = (key.name, descending)
                self._unask(key.name)
                return True
        for phrases, descending in ((english().last, True), (english().first, False)):
            dated = next((key for key in self.function.keys if _of_time(key)), None)
            if dated is not None and self._mentions(phrases):
                self.scan.take(phrases)
                self.sort = (dated.name, descending)
                self._unask(dated.name)
                return True
        return True

    def _mentions(self, phrases: tuple[str, ...]) -> bool:
        return self.question.says(phrases)

    def _named_measure(self) -> Key | None:
        """The number or date that the question names."""
        return next(
            (
                key
                for name in self.asked
                for key in self.function.keys
                if key.name == name and (key.kind in NUMERIC or _of_time(key))
            ),
            None,
        )

    # Whether all is explained, and the program

    def _general(self, phrases: tuple[str, ...]) -> tuple[str, ...]:
        return phrases

    def _complete(self) -> bool:
        """Whether no word is left, or only what may be a name that is misspelt."""
        known = fillers((*self.lexicon.words.fillers, *self._nouns()))
        left = self.scan.left(known)
        if not left:
            return True
        if self.spots or self.conditions or self.sort is not None:
            return False
        first = next((one for one in self.function.parameters if one.kind == "entity"), None)
        start, end = left[0].start, left[-1].end
        between = [bare(word) for word in self.question.words[start:end].split()]
        if first is None or len(between) - len(left) > 2 or not self.asked:
            return False
        self.arguments[first.name] = [self.question.text[start:end].strip(" ,.?!;:\"'")]
        self.score -= len(left)
        return self.score > 0 or bool(self.asked)

    def _nouns(self) -> Iterable[str]:
        for kind in _usable(self.function):
            yield from kind_words(self.lexicon, kind)

    def _write(self, *, counted: bool, mean: bool, total: bool) -> list[str]:
        asked = [name for name in self.asked if name != self.wanted]
        facets = [name for name in asked if name in self.function.facets]
        sides = next((names for names in self.arguments.values() if len(names) > 1), None)
        if sides is not None:
            return self._for_each(asked, facets, counted=counted)
        call = self._call({name: names[0] for name, names in self.arguments.items()})
        subject = self.subject.name if self.subject is not None else ""
        numeric = [name for name in asked if self._numeric(name)]
        if mean or total:
            return [f'{"AVG" if mean else "SUM"} {call}["{numeric[0]}"]'] if numeric else []
        if self.sort is not None:
            key, descending = self.sort
            shown = list(dict.fromkeys((*([self.wanted or subject] if self.wanted or subject else []), *asked, key)))
            return [
                f"{call} sort(None, {'-' if descending else ''}{key}){_project(shown)}[:{many(self.question) or 1}]"
            ]
        if counted and not numeric:
            if facets:
                return [f'LEN {call}["{facets[0]}"]'] if self.arguments else []
            return [f"LEN {call}"] if self.conditions or self.arguments or self.wanted else []
        if facets:
            return [f'ALL {call}["{facets[0]}"]'] if self.arguments else []
        listing = bool(self.conditions) or self._lists()
        if self.wanted and listing and not _YES_OR_NO.match(self.question.words):
            return [f"ALL {call}{_project([self.wanted, *asked])}"]
        if asked and self.arguments:
            return [f"{call}{_project(asked)}"]
        if asked and self.conditions:
            return [f"ALL {call}{_project(list(dict.fromkeys((subject, *asked))))}"]
        if self.wanted and self.arguments:
            return [f'{call}["{self.wanted}"]']
        if not self.arguments:
            return []
        linked = self.function.pair is not None and len(self.arguments) > 1
        return [call] if linked or self.question.says(english().whole) else []

    def _lists(self) -> bool:
        """Whether the call is of several rows: none of its names is the row's own."""
        subject = self.subject
        own = [
            one
            for one in self.function.parameters
            if subject is not None and subject.entity in one.entities and one.name in self.arguments
        ]
        return bool(self.arguments) and not own

    def _for_each(self, asked: Sequence[str], facets: Sequence[str], *, counted: bool) -> list[str]:
        name, sides = next((name, names) for name, names in self.arguments.items() if len(names) > 1)
        measure = [one for one in asked if self._numeric(one) or self._dated(one)] or list(asked)
        if self.sort is not None:
            measure = [self.sort[0]]
        written = []
        for side in sides[:MOST_STATEMENTS]:
            others = {other: names[0] for other, names in self.arguments.items() if other != name}
            call = self._call({**others, name: side})
            if counted and (facets or not measure):
                written.append(f'LEN {call}["{facets[0]}"]' if facets else f"LEN {call}")
            elif measure:
                written.append(f"{call}{_project(measure[:2])}")
        return written

    def _call(self, names: dict[str, str]) -> str:
        arguments = [quote(names[one.name]) if one.name in names else "None" for one in self.function.parameters]
        while arguments and arguments[-1] == "None":
            arguments.pop()
        where = f" where({', '.join(self.conditions)})" if self.conditions else ""
        return f"{self.function.name}({', '.join(arguments)}){where}"

    def _numeric(self, name: str) -> bool:
        return any(key.name == name and key.kind in NUMERIC for key in self.function.keys)

    def _dated(self, name: str) -> bool:
        return any(key.name == name and key.kind == "date" for key in self.function.keys)


def _of_time(key: Key) -> bool:
    return key.kind == "date" or (
        key.kind == "integer" and _DATED.search(f"{key.name} {key.words}".replace("_", " ")) is not None
    )


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word.lower()) + "s?" for word in sorted(words, key=len, reverse=True))


def _project(keys: Sequence[str]) -> str:
    return f"[{', '.join(quote(key) for key in keys if key)}]" if any(keys) else ""
