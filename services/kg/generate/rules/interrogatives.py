"""What a question's first word wants: a date by "when", people by "who", and no bare date by "how old"."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from services.kg.generate.rules.english import english
from services.kg.generate.rules.inflection import degrees, irregular
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.tokens import Mention, Range
from services.kg.language.catalogue import NUMERIC

if TYPE_CHECKING:
    from services.kg.generate.rules.roles import Roles

# The word in the names of times of a day: departure time.
_TIME = "time"
# Keys of a date that do not say what happened then.
_PLAIN = ("year", "date", "day")
# Keys that only places have.
_PLACES = frozenset(("altitude", "elevation", "latitude", "town", "city", "village", "country", "address", "street"))
# What kinds of people are called, whatever else they are.
_PERSON = "person"


def asked_for(roles: "Roles", shown: list[Mention], *, named: bool) -> list[Mention]:
    """The keys that may answer such a question; where none of them may, the reading is in doubt.

    Args:
        named: whether the question names a row.
    """
    keys = [one.key for one in shown]
    if not keys or any(key in roles.function.facets for key in keys):
        return shown
    first = "when" if asks_when(roles) else _first(roles)
    dated = [key for key in keys if key in roles.dated]
    timed = first == "when" or (first == "what" and roles.tokens.count > 1 and roles.tokens.word(1) == _TIME)
    if timed and not dated:
        hours = (key for key in (*keys, *_like(roles, shown[0])) if _is_of_day(roles, key))
        if hour := next(hours, ""):
            return [replace(shown[0], key=hour)]
    if first == "when" and not dated:
        # "When was it composed" of what has a composer and a `year_composed`; else the row's only date.
        plain = list(roles.dated) if len(roles.dated) == 1 and roles.dated[0] in _PLAIN else []
        return _instead(roles, shown, [key for key in _like(roles, shown[0]) if key in roles.dated] or plain)
    figures = all(not one.counted and (one.key in dated or roles.numeric(one)) for one in shown)
    things = _PERSON not in roles.lexicon.rows(roles.function)
    if figures and ((first in ("who", "where") and named) or (first == "who" and things)):
        # "Who opened it" is not answered by the day, and "where was she born" by her birthplace.
        texts = {one.name for one in roles.function.keys if one.kind == "text"}
        return _instead(roles, shown, [key for key in _like(roles, shown[0]) if key in texts])
    if first == "how" and roles.tokens.count > 1:
        bare = [key for key in dated if roles.function.exact_keys[key].spell != "age"]
        roles.tokens.doubt |= bool(bare) and _is_adjective_of(roles, roles.tokens.word(1), bare)
    elif first == "what":
        # "What was it painted in" asks for no painter.
        roles.tokens.doubt |= any(_does(roles, one) for one in shown)
    return shown


def _is_of_day(roles: "Roles", key: str) -> bool:
    """Whether a key is of times of a day, which are texts: 08:15."""
    own = roles.function.exact_keys.get(key)
    return own is not None and own.kind == "text" and _TIME in own.words.split()


def without_company(roles: "Roles", mentions: list[Mention]) -> list[Mention]:
    """The keys without what only goes with one that is asked for: "which agency launched it", beside a launch date."""
    if len(mentions) < 2:
        return mentions
    head, *others = mentions
    two = len(others) == 1 and others[0].key != head.key
    if two and _first(roles) == "how" and _may_mean(roles, head, others[0].key):
        # "How long does it take to cook", of what has a time to prepare as well.
        roles.take(head.place)
        return others
    if head.place.first == 0 or roles.tokens.word(head.place.first - 1) not in ("which", "what"):
        return mentions
    idle = roles.tokens.find(roles.lexicon.key(roles.function.name, head.key).also)
    texts = {one.name for one in roles.function.keys if one.kind == "text"}
    beside = [
        one
        for one in others
        if any(one.place.within(place) for place in idle)
        or (head.key in texts and one.key in roles.dated and is_done(roles, one))
    ]
    roles.take(*(one.place for one in beside))
    return [one for one in mentions if one not in beside]


def is_done(roles: "Roles", mention: Mention) -> bool:
    """Whether a date is mentioned by what was done then."""
    said = roles.tokens.said(mention.place).lower()
    return said.endswith("ed") or bool(irregular(said))


def of_link(roles: "Roles", names: Collection[str]) -> list[Mention]:
    """The only number of a row that links two things, where "how much" asks for it: of the cod in the soup."""
    pair, tokens = roles.function.pair, roles.tokens
    if pair is None or not set(pair) <= set(names) or not asks_how_much(roles):
        return []
    keys = [one.name for one in roles.function.keys if one.kind in NUMERIC]
    asked = Range(0, 2)
    return [Mention(asked, keys[0])] if len(keys) == 1 and tokens.free(asked) else []


def reported(roles: "Roles", names: Collection[str]) -> list[Mention]:
    """Who stands above the one that is named, where rows have one such key: "who does Ann report to"."""
    primary = roles.primary
    if not asks_who(roles) or primary is None or set(names) != {primary.name}:
        return []
    keys = [one for one in roles.of_their_like if one in roles.function.exact_keys]
    ends = max((one.end for one in roles.tokens.names()), default=0)
    behind = [one for one in roles.tokens.find(english().beneath) if one.first >= ends]
    if len(keys) != 1 or not behind:
        return []
    roles.take(behind[0])
    return [Mention(behind[0], keys[0])]


def _first(roles: "Roles") -> str:
    """The question's first word; empty where it has none."""
    return roles.tokens.word(0) if roles.tokens.count else ""


def _like(roles: "Roles", mention: Mention) -> list[str]:
    """Other keys that the same word may mean."""
    said = roles.tokens.said(mention.place).lower()
    keys = (one.name for one in roles.function.keys if one.name != mention.key)
    return [key for key in keys if said in key.split("_") or _may_mean(roles, mention, key)]


def _may_mean(roles: "Roles", mention: Mention, key: str) -> bool:
    """Whether the words of a mention may ask for another key."""
    return compiled(roles.phrases(key)).fullmatch(roles.tokens.said(mention.place).lower()) is not None


def _instead(roles: "Roles", shown: list[Mention], keys: Sequence[str]) -> list[Mention]:
    """The only one of these keys in place of the first that was mentioned; else the reading is in doubt."""
    if len(keys) == 1:
        return [replace(shown[0], key=keys[0])]
    roles.tokens.doubt = True
    return shown


def values_may_answer(roles: "Roles") -> bool:
    """Whether a value that the question says may be its answer: "is radon a noble gas", and not "who closed it"."""
    return _first(roles) not in ("who", "when", "where", "whose", "how")


def asks_when(roles: "Roles") -> bool:
    """Whether the question wants a date."""
    return _first(roles) == "when" or bool(roles.tokens.all_of(english().dates))


def asks_who(roles: "Roles") -> bool:
    """Whether the question wants people."""
    return _first(roles) == "who"


def asks_whether(roles: "Roles") -> bool:
    """Whether the question wants yes or no."""
    return _first(roles) in ("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can")


def asks_how_much(roles: "Roles") -> bool:
    """Whether the question wants an amount."""
    return _first(roles) == "how" and roles.tokens.count > 1 and roles.tokens.word(1) == "much"


def sums(roles: "Roles") -> list[str]:
    """Keys of sums of money."""
    return [one.name for one in roles.function.keys if one.kind == "money" or re.fullmatch("[A-Z]{3}", one.unit)]


def means_date(roles: "Roles", place: Range) -> bool:
    """Whether a word is the name of a date that is asked for: "when was it closed", beside a status `closed`."""
    return asks_when(roles) and any(one.key in roles.dated and place.overlaps(one.place) for one in roles.mentions)


def who(roles: "Roles") -> Range | None:
    """The word "who" where it stands for the rows' noun: rows that are people, and the only kind of the domain's."""
    if not asks_who(roles):
        return None
    people = [one for one in roles.lexicon.own.shown if _PERSON in roles.lexicon.rows(one)]
    kind = roles.subject.entity
    named = [one for one in people if one.exact_keys[one.subject[0]].entity == kind]
    return Range(0, 1) if people == [roles.function] or (kind and named == people) else None


def where(roles: "Roles") -> Range | None:
    """The word "where" in place of the rows' noun, where it asks for places and names none."""
    keys = {word for one in roles.function.keys for word in one.name.split("_")}
    placed = _first(roles) == "where" and not roles.tokens.names() and not keys.isdisjoint(_PLACES)
    return Range(0, 1) if placed and _PERSON not in roles.lexicon.rows(roles.function) else None


def by_deed(roles: "Roles", shown: Sequence[Mention]) -> bool:
    """Whether people are asked for by what they did: "who stayed at the Alpenhof", of rows that have no name."""
    return bool(shown) and asks_who(roles) and all(_does(roles, one) for one in shown)


def by_whom(roles: "Roles", nouns: Sequence[Range]) -> bool:
    """Whether people are asked for of whom the rows know nothing.

    So it is with a deed whose doer is no key, "who inspected it", of inspections, and with rows that only numbers tell.
    """
    deeds = [one for one in nouns if roles.tokens.said(one).lower().endswith("ed")]
    people = _PERSON in roles.lexicon.rows(roles.function)
    return asks_who(roles) and not people and (bool(deeds) or not roles.named_rows or roles.coded_rows)


def doer(roles: "Roles", bound: Collection[str]) -> str:
    """The key of people that "who" asks for where no word names one: "who won Westfall", of results with a winner.

    Args:
        bound: keys whose names the question says.
    """
    if not asks_who(roles):
        return ""
    keys = [one for one in roles.function.keys if one.entity and one.name not in bound and one != roles.subject]
    people = [one.name for one in keys if _PERSON in roles.lexicon.nouns(one.entity)]
    return people[0] if len(people) == 1 else ""


def _does(roles: "Roles", mention: Mention) -> bool:
    """Whether a key of people is mentioned by a verb."""
    key = roles.function.exact_keys.get(mention.key)
    nouns = roles.lexicon.nouns(key.entity) if key is not None and key.entity else ()
    said = roles.tokens.said(mention.place).lower()
    return _PERSON in nouns and not any(one in said for one in (mention.key.replace("_", " "), *nouns))


def _is_adjective_of(roles: "Roles", word: str, keys: Sequence[str]) -> bool:
    spoken = [roles.lexicon.key(roles.function.name, key) for key in keys]
    return any(word in (one, *degrees(one)) for own in spoken for one in (*own.more, *own.less))
