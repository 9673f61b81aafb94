"""What a question wants of the values of many rows: their total, their average, the one that most of them have."""

from collections.abc import Sequence

from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.sums import adds_up
from services.kg.generate.rules.tokens import Mention, Range
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC
from services.kg.language.tree import Aggregate, Condition, Group, Slice, Step

_FOR_EACH = ("per", "each", "every", "(by|in|for|at|of) each")


def total(roles: Roles, targets: Sequence[Mention]) -> Aggregate | None:
    """The sum or the average where the question says so of one number."""
    if len({one.key for one in targets}) != 1 or not roles.numeric(targets[0]):
        return None
    aggregates: Sequence[tuple[Aggregate, Sequence[str]]] = (("sum", english().total), ("avg", english().average))
    for aggregate, phrases in aggregates:
        if places := roles.tokens.find(phrases):
            roles.tokens.take(*places)
            return aggregate
    return None


def averaged(roles: Roles) -> list[Mention]:
    """The only number of rows that the question averages: the average rating, of ratings that are stars."""
    ends = {one.end for one in roles.tokens.find(english().average)}
    if not ends or any(roles.numeric(one) for one in roles.mentions):
        return []
    nouns = [noun for noun in roles.tokens.find(roles.nouns) if noun.first in ends]
    others = (*roles.dated, roles.subject.name)
    keys = [one.name for one in roles.function.keys if one.kind in NUMERIC and one.name not in others]
    return [Mention(nouns[0], keys[0])] if nouns and len(keys) == 1 else []


def is_tally(roles: Roles, targets: Sequence[Mention], thresholds: Sequence[Condition]) -> bool:
    """Whether "how many" or "how much" asks for what several rows have together: the votes of 2018."""
    key = roles.key_of(targets[0]) if len(targets) == 1 else None
    if key is None or (key.kind != "integer" and not key.unit):
        return False
    # How much a thing costs is no total of what it was sold for.
    return key.kind != "money" and adds_up(roles, key.name, thresholds)


def grouped(roles: Roles, targets: Sequence[Mention], nouns: Sequence[Range]) -> tuple[Step, ...]:
    """The steps to the value that most rows have, "which state has the most orders", or to all of them, "per state"."""
    if len({one.key for one in targets}) != 1:
        return ()
    key = roles.key_of(targets[0])
    if key is None or key.kind != "text":
        return ()
    each = [one for one in roles.tokens.find_all(_FOR_EACH) if one.end == targets[0].place.first]
    if each and nouns and roles.tokens.find_all(english().count):
        return (Group((key.name,)),)
    starts = {noun.first for noun in nouns}
    behind = (one for one in roles.tokens.find(("most",)) if targets[-1].place.end <= one.first)
    most = [one for one in behind if one.end in starts] + roles.tokens.find(("most (common|frequent)",))
    if not most:
        return ()
    roles.tokens.take(most[0])
    return Group((key.name,)), Slice(0, 1)
