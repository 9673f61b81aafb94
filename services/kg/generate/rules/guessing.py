"""Names that the spotter does not see: misspelt ones, parts of longer ones, and those that only look like names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rapidfuzz import fuzz

from services.kg.candidates import Candidate
from services.kg.entities import NameIndex
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.tokens import Range, Tokens
from services.kg.generate.rules.values import Values, exact
from services.kg.generate.rules.words import english
from services.kg.generate.spans import Spot
from services.kg.store.names import normalise
from services.kg.store.names import tokens as name_words

# Looked up in a question, each some milliseconds.
MOST_GUESSES = 6
# Two words above this, in percent, are one that was misspelt; by trial.
SAME_WORD = 85
# A shorter stretch is no name that somebody got nearly right.
MIN_CHARS = 4


def with_guesses(lexicon: Lexicon, question: Question, names: NameIndex, values: Values) -> Question:
    """The question with names for its unread words, and without names inside a value of an `open` key.

    America in South America is no name.
    """
    question = _without_parts(lexicon, question, values)
    kinds = tuple(lexicon.own.kinds)
    tokens = _tokens(lexicon, question, values)
    spots = [*question.spots, *_numbered(lexicon, tokens, names)]
    found: list[Range] = []
    for place, noun_kinds in list(_stretches(lexicon, tokens))[:MOST_GUESSES]:
        if any(map(place.within, found)):
            continue
        text = tokens.text_of(place).strip(" '’\"")
        if not noun_kinds and _is_value(lexicon, text, values):
            spots = [one for one in spots if not tokens.place_of(one.start, one.end).within(place)]
            continue
        # It is written as a name, or the whole question is in small letters.
        named = text[0].isupper() or question.text.islower() or bool(noun_kinds)
        best = resolved(names, text, noun_kinds or kinds, partial=named)
        if best is None or (len(text) < MIN_CHARS and normalise(best.surface) != normalise(text)):
            continue
        found.append(place)
        start = question.text.index(text, tokens.start(place))
        end = start + len(text)
        spots = [one for one in spots if one.end <= start or end <= one.start]
        spots.append(Spot(best.surface, start, end, best.kind, best.weight, place.end - place.first, False))
    return replace(question, spots=tuple(sorted(spots, key=lambda one: one.start)))


def _numbered(lexicon: Lexicon, tokens: Tokens, names: NameIndex) -> Iterator[Spot]:
    """Digits that name what stands before them: order 1005."""
    plain = replace(tokens, read=set())
    for number in plain.numbers:
        text = plain.text_of(number.place)
        for kind in lexicon.own.kinds if text.isdigit() else ():
            before = (noun for noun in plain.find(lexicon.nouns(kind)) if noun.end <= number.place.first)
            noun = max(before, key=lambda one: one.end, default=None)
            if noun is not None and english().numbering.issuperset(plain.between(noun, number.place)):
                best = resolved(names, text, (kind,))
                if best is not None and best.surface == text:
                    # With the sign before it, as in "no. 1005".
                    first = plain.start(Range(noun.end, number.place.end))
                    yield Spot(text, first, plain.start(number.place) + len(text), kind, best.weight, 1, False)


def with_other_kinds(lexicon: Lexicon, question: Question, names: NameIndex) -> Question:
    """The question with each of its names also as what it may be a slip for, of another kind."""
    kinds = lexicon.own.kinds
    spots = list(question.spots)
    for spot in question.spots:
        own = {one.kind for one in question.spots if one.place == spot.place}
        for kind in kinds:
            if kind not in own and (best := resolved(names, spot.text, (kind,))) is not None:
                spots.append(replace(spot, text=best.surface, kind=kind))
    return replace(question, spots=tuple(spots))


def resolved(names: NameIndex, text: str, kinds: Sequence[str], *, partial: bool = False) -> Candidate | None:
    """The entity of one of the kinds that a text names, `partial` also one by a part of its name; None in doubt."""
    if not kinds:
        return None
    resolution = names.resolve(text, kinds)
    if resolution.status == "ok":
        return resolution.candidates[0]
    words = name_words(normalise(text))
    having = [one for one in resolution.candidates if _has_words(one.surface, words)]
    alone = len({one.entity_id for one in having}) == 1
    return having[0] if alone and partial and resolution.candidates[0] == having[0] else None


def _has_words(surface: str, words: Sequence[str]) -> bool:
    """Whether a name has all of the words, spelt alike or nearly so."""
    own = name_words(normalise(surface))
    return all(any(fuzz.ratio(word, other) >= SAME_WORD for other in own) for word in words)


def _is_value(lexicon: Lexicon, text: str, values: Values) -> bool:
    """Whether a text of some row, which is no name, is just this."""
    return any(
        values.stored(function, key.name, text)
        for function in lexicon.own.functions
        for key in function.keys
        if key.kind == "text" and not key.entity and key.name not in function.subject
    )


def _without_parts(lexicon: Lexicon, question: Question, values: Values) -> Question:
    """The question without names inside a value or the words for a key, and without those in small letters.

    The latter stay where the whole question is in small letters or they have a digit (web03); the guesses find again
    those that nothing else explains.
    """
    plain = Tokens(replace(question, spots=()), frozenset())
    phrases = (*_values(lexicon, values), *(words for words, _ in _keyed(lexicon)))
    larger = [place for texts in phrases for place in plain.find(texts)]

    def inside(spot: Spot) -> bool:
        where = plain.place_of(spot.start, spot.end)
        return any(where.within(place) and where != place for place in larger)

    small = question.text.islower()
    spots = [
        spot
        for spot in question.spots
        if (small or not spot.text.islower() or any(map(str.isdigit, spot.text)))
        and not all(word.lower() in lexicon.fillers for word in spot.text.split())
        and not inside(spot)
    ]
    return replace(question, spots=tuple(spots))


def _keyed(lexicon: Lexicon) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Words and adjectives of each key and facet, with what stands beside it and asks nothing."""
    for function in lexicon.own.functions:
        for key in function.projected:
            idle = lexicon.key(function.name, key).also
            yield lexicon.plain(function.name, key), (*lexicon.adjectives(function.name, key), *idle)


def _values(lexicon: Lexicon, values: Values) -> Iterator[tuple[str, ...]]:
    for function in lexicon.own.functions:
        for key in function.keys:
            own = lexicon.key(function.name, key.name)
            yield from own.values.values()
            if own.open:
                yield tuple(one for text in values.of(function, key.name) for one in exact(text))


def _tokens(lexicon: Lexicon, question: Question, values: Values) -> Tokens:
    """The question's words, read where a key, a noun, a value, a number or general English explains them."""
    words = english()
    tokens = Tokens(question, lexicon.fillers)
    general: Iterable[Sequence[str]] = (
        *(words.count, words.every, words.greatest, words.least, words.greater, words.lesser, words.over, words.under),
        *(words.difference, words.ratio, words.together, words.whole),
    )
    keyed = ((*phrases, *adjectives) for phrases, adjectives in _keyed(lexicon))
    for phrases in (*keyed, lexicon.every_noun, *general, *_values(lexicon, values)):
        tokens.take(*tokens.find(phrases))
    # Keys of dates have some of these words: the since of `client_since` in "since the start of 2020".
    times = (*words.after, *words.since, *words.before, *words.until, *words.or_later, *words.or_earlier)
    tokens.take(*tokens.find_all(times))
    tokens.take(*(number.place for number in tokens.numbers))
    # March is no slip for Marc in "on 21 March".
    tokens.take(*tokens.times())
    return tokens


def _as_written(tokens: Tokens, place: Range) -> Range:
    """Words with those in capitals around them, over one small word: Isle of Vora, where Vora is a value besides."""

    def is_capital(index: int) -> bool:
        return 0 <= index < tokens.count and tokens.text_of(Range(index, index + 1))[:1].isupper()

    def moved(index: int, step: int) -> int:
        if is_capital(index + step):
            return index + step
        return index + 2 * step if tokens.word(index + step).islower() and is_capital(index + 2 * step) else index

    if not is_capital(place.first) or not is_capital(place.end - 1):
        return place
    first, last = place.first, place.end - 1
    while (before := moved(first, -1)) != first and before > 0:
        first = before
    while (behind := moved(last, 1)) != last:
        last = behind
    return Range(first, last + 1)


def _stretches(lexicon: Lexicon, tokens: Tokens) -> Iterator[tuple[Range, tuple[str, ...]]]:
    """Words to look up, with the kinds that a noun beside them says; longer ones first."""
    places = {kind: tokens.find_all(lexicon.nouns(kind)) for kind in lexicon.own.kinds}
    names = tokens.names()
    for run in tokens.unread():
        joined = [one for one in names if one.end == run.first or one.first == run.end]
        whole = Range(min([run.first, *(one.first for one in joined)]), max([run.end, *(one.end for one in joined)]))
        beside = tuple(kind for kind, own in places.items() if any(one.first == whole.end for one in own))
        written = _as_written(tokens, whole)
        for place in dict.fromkeys((written, whole, run)):
            yield place, beside if place.end == whole.end or place == run else ()
    for name in names:
        # "Denver airport" need not be a name of the airport's own.
        own = {one.kind for one in tokens.spots_at(name)}
        for kind, nouns in places.items():
            noun = next((one for one in nouns if one.first == name.end), None)
            if noun is not None and kind not in own:
                yield Range(name.first, noun.end), (kind,)
