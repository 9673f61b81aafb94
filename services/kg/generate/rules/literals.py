"""Values that a question says without being words of questions: whatever texts a row has."""

import re
from collections.abc import Sequence

from services.kg.generate.rules.english import english
from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import NEAR, Mention, Range
from services.kg.generate.rules.values import PART, condition
from services.kg.generate.spans import POSSESSIVE

_MARK = re.compile(r"[^\W_]{1,2}[+\-#*]+|[^\W\d_]")
# Words of a mark behind its key: a letter or digit with a sign.
MOST_BESIDE = 3


# A key, and the condition that a row has this value there.
Literal = tuple[str, str]


def marks(roles: Roles, shown: list[Mention]) -> list[Literal]:
    """Signs and letters behind a key, which its rows have: blood group A+, grade a. Their mentions ask for nothing."""
    tokens, found = roles.tokens, []
    for spoken in tuple(shown):
        # Of "blood group A+" and "grade a" general English explains each sign.
        ends = range(min(tokens.count, spoken.place.end + MOST_BESIDE), spoken.place.end, -1)
        behind = (Range(spoken.place.end, end) for end in ends)
        short = (one for one in behind if tokens.free(one) and _MARK.fullmatch(tokens.said(one)))
        free = (one for one in short if _stored(roles, spoken.key, tokens.said(one)))
        if (value := next(free, None)) is not None:
            found.append((spoken.key, tokens.said(value)))
            shown.remove(spoken)
            tokens.take(value)
    return [_literal(roles, key, text) for key, text in found]


def literals(roles: Roles, shown: list[Mention]) -> list[Literal]:
    """Unread words that a row has under a key of texts, as marks: domain .is."""
    tokens, found = roles.tokens, []
    for run in tokens.unread(joined=True):
        text = POSSESSIVE.sub("", tokens.said(run))
        key, mention = _kept_under(roles, run, text, shown)
        if not key and not any(_stored(roles, one, text) for one in _texts(roles)):
            # Which workers are farriers: a row says farrier.
            text = singular(text)
            key, mention = _kept_under(roles, run, text, shown)
        if not key:
            # Which studios are Canadian: a row says Canada.
            meant = [one for one, said in english().synonyms.items() if text.lower() in said]
            found_there = ((one, _kept_under(roles, run, one, shown)) for one in meant)
            text, (key, mention) = next((one for one in found_there if one[1][0]), (text, ("", None)))
        if not key:
            continue
        found.append((key, text))
        if mention is not None:
            shown.remove(mention)
        tokens.take(run)
        roles.take_idle([key])
    return [_literal(roles, key, text) for key, text in found]


def _literal(roles: Roles, key: str, text: str) -> Literal:
    return key, condition(roles.function.key(key), next(iter(_parts(roles, key, text)), text))


def _kept_under(roles: Roles, run: Range, text: str, shown: Sequence[Mention]) -> tuple[str, Mention | None]:
    """The key under which a row has a text, and where the question mentions it beside these words, if it does."""
    beside = [one for one in shown if one.place.near(run) <= NEAR and _stored(roles, one.key, text)]
    if mention := min(beside, key=lambda one: one.place.near(run), default=None):
        return mention.key, mention
    alone = (one for one in _texts(roles) if (stored := _stored(roles, one, text)) and _may_be(roles, text, stored))
    return next(alone, ""), None


def _texts(roles: Roles) -> list[str]:
    keys = (one for one in roles.function.keys if one != roles.subject)
    return [one.name for one in keys if one.kind == "text" and not one.entity]


def _stored(roles: Roles, key: str, text: str) -> str:
    """The text as a row has it under a key; empty where none does."""
    values = roles.values
    if values is None or key not in _texts(roles):
        return ""
    return values.stored(roles.function, key, text) or next(iter(_parts(roles, key, text)), "").removeprefix(PART)


def _parts(roles: Roles, key: str, text: str) -> list[str]:
    """The text as one of several values of a row."""
    known = roles.values.of(roles.function, key) if roles.values is not None else ()
    return [one for one in known if one.lower() == f"{PART}{text}".lower()]


def _may_be(roles: Roles, text: str, stored: str) -> bool:
    """Whether a word may be a value whose key is not named: one in small letters is no code, as LIE is."""
    return not text.islower() or roles.tokens.question.text.islower() or not stored.isupper()
