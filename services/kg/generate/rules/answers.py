"""Keys that may answer a question's first word: a date for "when", people for "who", and no bare date for "how old"."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from services.kg.generate.rules.inflection import degrees, irregular
from services.kg.generate.rules.interrogatives import WHETHER, asks_when
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.roles import Roles, subject_of
from services.kg.generate.rules.tokens import Mention, Range
from services.kg.generate.rules.words import english
from services.kg.language.catalogue import NUMERIC

# The word in the names of times of a day: departure time.
_TIME = "time"
# Keys of a date that do not say what happened then.
_PLAIN = ("year", "date", "day")
# Keys that only places have.
_PLACES = frozenset(("altitude", "elevation", "latitude", "town", "city", "village", "country", "address", "street"))
# Keys of places that answer no "who".
_SITES = _PLACES | {"county", "district", "location", "region", "state"}
# What kinds of people are called, whatever else they are.
_PERSON = "person"


def for_question_word(roles: Roles, targets: list[Mention], *, named: bool) -> list[Mention]:
    """The keys that may answer the question's first word; where none of them may, the reading is in doubt."""
    keys = [one.key for one in targets]
    if not keys or any(key in roles.function.facets for key in keys):
        return targets
    first = "when" if asks_when(roles.tokens) else roles.tokens.word(0)
    dates = [key for key in keys if key in roles.dated]
    timed = first == "when" or (first == "what" and roles.tokens.word(1) == _TIME)
    if timed and not dates:
        # Times of a day are texts: 08:15.
        texts = (key for key in (*keys, *_like(roles, targets[0])) if key in _texts(roles))
        if hour := next((key for key in texts if _TIME in roles.function.exact_keys[key].words.split()), ""):
            return [replace(targets[0], key=hour)]
    if first == "when" and not dates:
        # "When was it composed" of what has a composer and a `year_composed`; else the row's only date.
        only = list(roles.dated) if len(roles.dated) == 1 and roles.dated[0] in _PLAIN else []
        return _instead(roles, targets, [key for key in _like(roles, targets[0]) if key in roles.dated] or only)
    figures = all(not one.counted and (one.key in dates or roles.numeric(one)) for one in targets)
    if figures and ((first in ("who", "where") and named) or (first == "who" and not _of_people(roles))):
        # "Who opened it" is not answered by the day, and "where was she born" by her birthplace.
        return _instead(roles, targets, [key for key in _like(roles, targets[0]) if key in _texts(roles)])
    if roles.tokens.begins("how", "much") and dates == keys and not roles.tokens.word(2).endswith("er"):
        # "How much has she paid" is not answered by the day, `paid_on`.
        figures_like = [key for key in _like(roles, targets[0]) if roles.function.exact_keys[key].kind in NUMERIC]
        return _instead(roles, targets, figures_like)
    if first == "who" and any(key.rpartition("_")[2] in _SITES for key in keys):
        # "Who lives there" wants no address.
        roles.tokens.doubt = True
    if first == "how" and roles.tokens.word(1) in WHETHER:
        # "How does she pay" wants no sum.
        roles.tokens.doubt |= figures
    if first == "how":
        bare = (roles.words_of(key) for key in dates if roles.function.exact_keys[key].spell != "age")
        adjectives = (one for own in bare for one in (*own.more, *own.less))
        roles.tokens.doubt |= any(roles.tokens.word(1) in (one, *degrees(one)) for one in adjectives)
    elif first == "what":
        # "What was it painted in" asks for no painter.
        roles.tokens.doubt |= any(_does(roles, one) for one in targets)
    return targets


def _texts(roles: Roles) -> set[str]:
    return {one.name for one in roles.function.keys if one.kind == "text"}


def _of_people(roles: Roles) -> bool:
    return _PERSON in roles.lexicon.rows(roles.function)


def without_company(roles: Roles, mentions: list[Mention]) -> list[Mention]:
    """The mentions without those that only say more of another: "which agency launched it", beside a launch date."""
    if len(mentions) < 2:
        return mentions
    head, *others = mentions
    two = len(others) == 1 and others[0].key != head.key
    if two and roles.tokens.word(0) == "how" and _may_mean(roles, head, others[0].key):
        # "How long does it take to cook", of what has a time to prepare as well.
        roles.tokens.take(head.place)
        return others
    if roles.tokens.word_before(head.place) not in ("which", "what") and not roles.tokens.begins("how"):
        return mentions
    idle = roles.tokens.find(roles.words_of(head.key).also)
    described = head.key in _texts(roles)
    beside = [
        one
        for one in others
        if any(map(one.place.within, idle)) or (described and one.key in roles.dated and is_deed(roles, one))
    ]
    roles.tokens.take(*(one.place for one in beside))
    return [one for one in mentions if one not in beside]


def is_deed(roles: Roles, mention: Mention) -> bool:
    """Whether a date is mentioned by what was done then."""
    word = roles.tokens.text_of(mention.place).lower()
    return word.endswith("ed") or bool(irregular(word))


def deeds_of_named(roles: Roles) -> list[Range]:
    """Deeds with those who do them: "services run by Identity" asks for no runner."""
    starts = {one.first for one in roles.tokens.names()}
    deeds = (one.place for one in roles.mentions if roles.tokens.word(one.place.end) == "by")
    return [one for one in deeds if one.end + 1 in starts]


def amount_of_link(roles: Roles, names: Collection[str]) -> list[Mention]:
    """The only number of a row that links two things, where "how much" asks for it: of the cod in the soup."""
    pair, tokens = roles.function.pair, roles.tokens
    if pair is None or not set(pair) <= set(names) or not tokens.begins("how", "much"):
        return []
    keys = [one.name for one in roles.function.keys if one.kind in NUMERIC]
    how_much = Range(0, 2)
    return [Mention(how_much, keys[0])] if len(keys) == 1 and tokens.free(how_much) else []


def superior_key(roles: Roles, names: Collection[str]) -> list[Mention]:
    """The only key of who stands above the one that is named, where that is asked: "who does Ann report to"."""
    primary = roles.primary
    if not roles.tokens.begins("who") or primary is None or set(names) != {primary.name}:
        return []
    keys = [one for one in roles.of_their_like if one in roles.function.exact_keys]
    ends = max((one.end for one in roles.tokens.names()), default=0)
    verbs = [one for one in roles.tokens.find(english().beneath) if one.first >= ends]
    if len(keys) != 1 or not verbs:
        return []
    roles.tokens.take(verbs[0])
    return [Mention(verbs[0], keys[0])]


def _like(roles: Roles, mention: Mention) -> list[str]:
    """Other keys that the same word may mean."""
    words = roles.tokens.text_of(mention.place).lower()
    keys = (one.name for one in roles.function.keys if one.name != mention.key)
    return [key for key in keys if words in key.split("_") or _may_mean(roles, mention, key)]


def _may_mean(roles: Roles, mention: Mention, key: str) -> bool:
    """Whether the words of a mention may ask for another key."""
    return compiled(roles.phrases(key)).fullmatch(roles.tokens.text_of(mention.place).lower()) is not None


def _instead(roles: Roles, targets: list[Mention], keys: Sequence[str]) -> list[Mention]:
    """The only one of these keys in place of the first that was mentioned; else the reading is in doubt."""
    if len(keys) == 1:
        return [replace(targets[0], key=keys[0])]
    roles.tokens.doubt = True
    return targets


def pronoun(roles: Roles, alone: bool) -> Range | None:
    """The word "who" or "where" that stands for the rows' noun; None where none does.

    `alone`: whether no other rows have what these are ordered by.
    """
    if alone and roles.tokens.begins("who") and _of_people(roles):
        return Range(0, 1)
    keys = {word for one in roles.function.keys for word in one.name.split("_")}
    of_places = roles.tokens.word(0) == "where" and not roles.tokens.names() and not keys.isdisjoint(_PLACES)
    return person_pronoun(roles) or (Range(0, 1) if of_places and not _of_people(roles) else None)


def person_pronoun(roles: Roles) -> Range | None:
    """The word "who" where it stands for the rows' noun: rows that are people, and the only kind of the domain's."""
    if not roles.tokens.begins("who"):
        return None
    people = [one for one in roles.lexicon.own.shown if _PERSON in roles.lexicon.rows(one)]
    kind = roles.subject.entity
    alike = all(subject_of(one).entity == kind for one in people)
    return Range(0, 1) if people == [roles.function] or (kind and alike) else None


def asks_for_doer(roles: Roles, targets: Sequence[Mention]) -> bool:
    """Whether people are asked for by what they did: "who stayed at the Alpenhof", of rows that have no name."""
    return bool(targets) and roles.tokens.begins("who") and all(_does(roles, one) for one in targets)


def asks_for_strangers(roles: Roles, nouns: Sequence[Range]) -> bool:
    """Whether people are asked for of whom the rows know nothing.

    So it is with a deed whose doer is no key, "who inspected it", of inspections, and with rows that only numbers tell.
    """
    deeds = [one for one in nouns if roles.tokens.text_of(one).lower().endswith("ed")]
    if not roles.tokens.begins("who") or _of_people(roles):
        return False
    return bool(deeds) or roles.nameless


def doer_key(roles: Roles, bound: Collection[str]) -> str:
    """The key of people that "who" asks for where no word names one: "who won Westfall", of results with a winner."""
    if not roles.tokens.begins("who"):
        return ""
    keys = [one for one in roles.function.keys if one.entity and one.name not in bound and one != roles.subject]
    people = [one.name for one in keys if _PERSON in roles.lexicon.nouns(one.entity)]
    return people[0] if len(people) == 1 else ""


def _does(roles: Roles, mention: Mention) -> bool:
    """Whether a key of people is mentioned by a verb."""
    key = roles.key_of(mention)
    nouns = roles.lexicon.nouns(key.entity) if key is not None and key.entity else ()
    words = roles.tokens.text_of(mention.place).lower()
    return _PERSON in nouns and not any(one in words for one in (mention.key.replace("_", " "), *nouns))
