"""Programs of a domain without readings, by its catalogue alone.

Each function reads the question in its own way: its parameters take the names, its keys the words; numbers, values and
superlatives narrow and sort its rows. A reading that leaves a word over has not understood the question and is none.
Where several understand it, the plainest is taken.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from services.kg.generate.rules.interrogatives import asks_when
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.reader import HOP, Reader, Reading
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Tokens
from services.kg.generate.rules.trees import project, query_of
from services.kg.generate.rules.values import Values
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import Function
from services.kg.language.tree import Combine, Query, Reference, render


def general(lexicon: Lexicon, question: Question, values: Values) -> list[str]:
    """The statements of the plainest reading that understands every word; none without one, or of a time half read."""
    if question.is_half_read:
        return []
    functions = lexicon.own.shown
    tokens = Tokens(question, lexicon.fillers)
    readings: list[Reading] = []
    for function in functions:
        readings += Reader(Roles(lexicon, function, tokens.copy(), values)).readings()
    if min((one.cost for one in readings), default=HOP) >= HOP:
        for first, second in product(functions, repeat=2):
            readings += _hops(lexicon, tokens, first, second, values)
    if share := _ratio(lexicon, tokens, functions, values):
        readings.append(Reading((share,), HOP))
    best = min(readings, key=lambda one: one.cost, default=None)
    return [render(one) for one in best.statements] if best is not None else []


def _hops(lexicon: Lexicon, tokens: Tokens, first: Function, second: Function, values: Values) -> Iterator[Reading]:
    """A fact of a fact: the names lead to a key of the first function, whose values the second goes on with."""
    for key in first.keys:
        parameter = next((one for one in second.parameters if key.entity in one.entities), None)
        if parameter is None or not tokens.names():
            continue
        if not Roles(lexicon, second, tokens.copy(), values).says(parameter):
            # The trench of a sample is not what its taker supervises.
            continue
        before = Roles(lexicon, first, tokens.copy(), values)
        names = before.bind()
        if names is None or (before.primary and before.subject == key and before.primary.name in names):
            continue
        own_rows = key.entity == before.subject.entity
        places = before.tokens.find((*lexicon.plain(first.name, key.name), *lexicon.nouns(key.entity)))
        # What the question wants is no step on the way to it, but for "which of the neighbours".
        head = None if own_rows or asks_when(before.tokens) else before.head()
        places = [one for one in places if head is None or not one.overlaps(head)]
        if not places:
            continue
        before.tokens.take(*(places if own_rows else places[:1]))
        before.take_apposed(names)
        statement = query_of(first, names, *project([key.name]))
        after = Roles(lexicon, second, before.tokens, values)
        for reading in Reader(after, bound={parameter.name: [Reference(None, key.name)]}, hop=True).readings():
            if len(reading.statements) == 1:
                yield Reading((statement, *reading.statements), reading.cost + HOP)


def _ratio(lexicon: Lexicon, tokens: Tokens, functions: Sequence[Function], values: Values) -> Query | None:
    """The ratio of one measure of two things of different kinds, of a city to its country; None where not asked."""
    places = tokens.names()
    asking = tokens.find(english().ratio)
    if len(places) != 2 or not asking:
        return None
    sides: list[dict[str, tuple[Query, int]]] = []
    remaining = tokens.copy()
    remaining.take(*asking)
    for place in places:
        side: dict[str, tuple[Query, int]] = {}
        spots = tokens.spots_at(place)
        for order, function in enumerate(functions):
            roles = Roles(lexicon, function, tokens.copy(), values)
            kinds = roles.primary.entities if roles.primary else ()
            spot = next((one for one in spots if one.kind in kinds), None)
            if spot is None or roles.primary is None:
                continue
            for mention in roles.mentions:
                if roles.numeric(mention):
                    call = query_of(function, {roles.primary.name: [spot.text]}, *project([mention.key]))
                    side.setdefault(mention.key, (call, order))
                    remaining.take(mention.place)
        sides.append(side)
    shared = [key for key in sides[0] if key in sides[1]]
    if not shared or remaining.unread():
        return None
    # The part is the thing of the later kind: cities lie in countries.
    parts = sorted((side[shared[0]] for side in sides), key=lambda one: -one[1])
    return Query(Combine("ratio", tuple(call for call, _ in parts)))
