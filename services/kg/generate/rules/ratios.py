"""Shares: the ratio of a measure of two things, one of which is a part of the other."""

from collections.abc import Sequence

from services.kg.generate.rules.calls import call_of
from services.kg.generate.rules.english import english
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Tokens
from services.kg.language.catalogue import Function


def ratio(lexicon: Lexicon, tokens: Tokens, functions: Sequence[Function]) -> str:
    """The ratio of one measure of two things of different kinds, of a city to its country; empty where not asked."""
    places = tokens.names()
    asking = tokens.find(english().ratio)
    if len(places) != 2 or not asking:
        return ""
    sides: list[dict[str, tuple[str, int]]] = []
    remaining = tokens.copy()
    remaining.take(*asking)
    for place in places:
        side: dict[str, tuple[str, int]] = {}
        spots = tokens.spots_at(place)
        for order, function in enumerate(functions):
            roles = Roles(lexicon, function, tokens.copy())
            kinds = roles.primary.entities if roles.primary else ()
            spot = next((one for one in spots if one.kind in kinds), None)
            if spot is None or roles.primary is None:
                continue
            for mention in roles.mentions:
                if roles.numeric(mention):
                    call = call_of(function, {roles.primary.name: [spot.text]}, ())
                    side.setdefault(mention.key, (f'{call}["{mention.key}"]', order))
                    remaining.take(mention.place)
        sides.append(side)
    shared = [key for key in sides[0] if key in sides[1]]
    if not shared or remaining.unread():
        return ""
    # The part is the thing of the later kind: cities lie in countries.
    parts = sorted((side[shared[0]] for side in sides), key=lambda one: -one[1])
    return f"ratio({', '.join(call for call, _ in parts)})"
