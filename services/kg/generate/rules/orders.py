"""What a question orders rows by, and compares names by: superlatives, comparatives and the keys that they speak of."""

from collections.abc import Callable, Iterator
from itertools import product

from services.kg.generate.rules.answers import is_deed
from services.kg.generate.rules.inflection import degrees
from services.kg.generate.rules.interrogatives import DOES, WHETHER, asks_when
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Mention, Range, Superlative, apart
from services.kg.generate.rules.words import english

# Rows that one may ask for: the ten largest.
MOST_ROWS = 100
_POSSESSIVES = ("'s", "’s")
_COUNTED = ("number", "of")


def superlative(roles: Roles) -> Superlative | None:
    """The end of an order that the question asks for; None where it asks for none, or not by what."""
    for place, descending, keys in _extremes(roles):
        rank, rows, count = _rank(roles, place)
        # When something was last down is no question of how long.
        measure = _measure(roles, place, beside=not keys or keys[0] not in roles.dated)
        if measure is None and not keys:
            continue
        roles.tokens.take(place, *([measure.place] if measure else []), *([count] if count else []))
        if measure is None and keys[0] in roles.dated and _asks_for_what(roles):
            # "The latest version to be deployed" asks for no day.
            deeds = (one.place for one in roles.mentions if one.key == keys[0] and is_deed(roles, one))
            roles.tokens.take(*deeds)
        by = roles.tokens.find(english().by)
        roles.tokens.take(*by)
        value = measure is not None and not by and _is_value(roles, place, measure)
        amount = measure is not None and roles.tokens.text_of(place).lower() in english().amounts
        key = measure.key if measure else keys[0]
        return Superlative(key, descending, rank, rows, value=value, amount=amount)
    return None


def _asks_for_what(roles: Roles) -> bool:
    return roles.tokens.word(0) not in ("who", "where", "how") and not asks_when(roles.tokens)


def _is_value(roles: Roles, place: Range, measure: Mention) -> bool:
    """Whether a superlative asks for a value: "what was the highest prize amount" wants the amount, and no prize."""
    before = place.end <= measure.place.first and roles.tokens.word(0) == "what"
    return before and all(place.first < noun.first for noun in roles.tokens.find(roles.nouns))


def _extremes(roles: Roles) -> Iterator[tuple[Range, bool, tuple[str, ...]]]:
    """Superlatives with the keys that they speak of; those of the domain before general ones."""
    words = english()
    ends: list[tuple[bool, tuple[str, ...], tuple[str, ...]]] = []  # descending, keys, phrases
    for more in (True, False):
        adjectives = _adjectives(roles, more, lambda one: (degrees(one)[1], f"{one}most"))
        for adjective, keys in adjectives.items():
            ends.append((more, keys, (adjective if " " in adjective else f"={adjective}",)))
    if roles.dated:
        ends += [(False, roles.dated, words.first), (True, roles.dated, words.last)]
    ends += [(True, (), words.greatest), (False, (), words.least)]
    extremes: dict[Range, tuple[bool, tuple[str, ...]]] = {}
    for descending, keys, phrases in ends:
        for place in roles.tokens.find(phrases):
            extremes.setdefault(place, (descending, keys))
    for place in apart(extremes):
        # The first of "first brewed" is none.
        is_part = any(place != one.place and place.within(one.place) for one in roles.mentions)
        if not is_part and not _is_verb(roles, place):
            descending, keys = extremes[place]
            yield place, descending, _by_deed(roles, place) if keys == roles.dated else keys


def _is_verb(roles: Roles, place: Range) -> bool:
    """Whether "last" is what something does: "how long did it last", "tours that last five nights or more"."""
    if roles.tokens.text_of(place).lower() != "last":
        return False
    does = any(roles.tokens.word(one.end) in DOES for one in roles.tokens.find_all(("how long",)))
    before_noun = any(one.first == place.end for one in roles.tokens.find_all(roles.nouns))
    counted = (one.place for one in roles.tokens.numbers if one.place.first == place.end)
    return (does and not before_noun) or any(map(roles.tokens.is_read, counted))


def _by_deed(roles: Roles, place: Range) -> tuple[str, ...]:
    """The dates of rows, those before others of whose deed "first" or "last" speaks: "when does the last course end".

    "The end date of the first course" is asked for, and the first is the one that starts first.
    """
    deeds = {
        one.key
        for one in roles.mentions
        if one.place.end == place.first
        or (one.place.first >= place.end and not roles.tokens.word_before(one.place).endswith(_POSSESSIVES))
    }
    return tuple(sorted(roles.dated, key=lambda key: key not in deeds))


def _measure(roles: Roles, place: Range, *, beside: bool = True) -> Mention | None:
    """The key by which is ordered: "by area", or `beside` the superlative: "largest population", "earns the most"."""
    numeric = [one for one in roles.mentions if roles.numeric(one) and roles.tokens.free(one.place)]
    for mention, one in product(numeric, roles.tokens.find(english().by)):
        between = Range(one.end, mention.place.first)
        is_count = tuple(roles.tokens.between(one, mention.place)) == _COUNTED
        if one.end > mention.place.end or not (is_count or between.end - between.first <= 1):
            continue
        # The floor area is no floor.
        compound = next((other for other in numeric if other.place.first == mention.place.end), None)
        roles.tokens.take(*([between] if is_count else []), *([mention.place] if compound else []))
        return compound or mention
    if not beside:
        return None
    behind = next((one for one in numeric if place.leads_to(one.place)), None)
    if behind is None:
        # "The highest number of crew members", of what a column calls so.
        counts = [one for one in numeric if one.place.first - place.end == len(_COUNTED)]
        behind = next((one for one in counts if tuple(roles.tokens.between(place, one.place)) == _COUNTED), None)
        if behind is not None:
            roles.tokens.take(Range(place.end, behind.place.first))
    return behind or next((one for one in numeric if one.place.leads_to(place)), None)


def _rank(roles: Roles, place: Range) -> tuple[int, int, Range | None]:
    """First row, number of rows and their place in the question: second largest, three largest, top ten."""
    for figure in roles.tokens.numbers:
        if figure.place.near(place) <= 1 and roles.tokens.free(figure.place) and 0 < figure.value <= MOST_ROWS:
            if figure.ordinal:
                return int(figure.value) - 1, 1, figure.place
            return 0, int(figure.value), figure.place
    # "Which two ships have the highest mast?"
    starts = {noun.first for noun in roles.tokens.find(roles.nouns)}
    counts = (one for one in roles.tokens.numbers if one.place.end in starts and not one.ordinal)
    count = next((one for one in counts if roles.tokens.free(one.place) and 0 < one.value <= MOST_ROWS), None)
    return (0, int(count.value), count.place) if count else (0, 1, None)


def comparative(roles: Roles) -> tuple[str, ...]:
    """Keys by which names are compared; none where no adjective or "more" says so."""
    words = english()
    for more in (True, False):
        for adjective, keys in comparatives(roles, more=more).items():
            if places := roles.tokens.find((adjective,)):
                measure = _measure(roles, places[0])
                roles.tokens.take(places[0], *([measure.place] if measure else []))
                return (measure.key,) if measure else keys
    for place in roles.tokens.find((*words.greater, *words.lesser, *words.greatest, *words.least)):
        if (measure := _measure(roles, place)) is not None:
            roles.tokens.take(place, measure.place)
            return (measure.key,)
    return _sooner(roles)


def _sooner(roles: Roles) -> tuple[str, ...]:
    """The only date that is spoken of, where names are compared by it: "did Ann start before Ben"; else none."""
    keys = {one.key for one in roles.mentions if one.key in roles.dated}
    places = roles.tokens.find(english().sooner)
    if roles.tokens.word(0) in WHETHER:
        ends = [one.end for one in roles.tokens.names()]
        around = roles.tokens.find(("before", "after"))
        places += [one for one in around if min(ends) <= one.first < max(ends)]
    if len(keys) != 1 or not places:
        return ()
    roles.tokens.take(places[0])
    return tuple(keys)


def comparatives(roles: Roles, *, more: bool) -> dict[str, tuple[str, ...]]:
    """Comparatives of a great or a small value, with the keys that they speak of."""
    return _adjectives(roles, more, lambda one: (degrees(one)[0],))


def _adjectives(roles: Roles, more: bool, forms: Callable[[str], tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    adjectives: dict[str, tuple[str, ...]] = {}
    for key in roles.function.keys:
        own = roles.words_of(key.name)
        for adjective in own.more if more else own.less:
            for form in forms(adjective):
                adjectives[form] = (*adjectives.get(form, ()), key.name)
    return adjectives
