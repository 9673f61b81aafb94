"""Values that a question says without being words of questions: whatever texts a row has."""

import re
from collections.abc import Sequence

from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import NEAR, Mention, Range
from services.kg.generate.rules.values import PART, condition
from services.kg.generate.rules.words import english
from services.kg.generate.spans import POSSESSIVE
from services.kg.language.tree import Condition

_MARK = re.compile(r"[^\W_]{1,2}[+\-#*]+|[^\W\d_]")
# Words of a mark behind its key: a letter or digit with a sign.
MOST_BESIDE = 3
# A key, and the condition that a row has this value there.
Literal = tuple[str, Condition]


def marks_of(roles: Roles, targets: list[Mention]) -> list[Literal]:
    """Signs and letters behind a key, which its rows have: blood group A+, grade a. Such keys leave the targets."""
    tokens, marks = roles.tokens, []
    for target in tuple(targets):
        # Of "blood group A+" and "grade a" general English explains each sign.
        ends = range(min(tokens.count, target.place.end + MOST_BESIDE), target.place.end, -1)
        behind = (Range(target.place.end, end) for end in ends)
        short = (one for one in behind if tokens.free(one) and _MARK.fullmatch(tokens.text_of(one)))
        mark = next((one for one in short if _stored(roles, target.key, tokens.text_of(one))), None)
        if mark is not None:
            marks.append(_literal(roles, target.key, tokens.text_of(mark)))
            targets.remove(target)
            tokens.take(mark)
    return marks


def literals_of(roles: Roles, targets: list[Mention]) -> list[Literal]:
    """Unread words that a row has under a key of texts: domain .is. Keys named beside them leave the targets."""
    tokens, literals = roles.tokens, []
    for run in tokens.unread(joined=True):
        text = POSSESSIVE.sub("", tokens.text_of(run))
        key, mention = _key_of(roles, run, text, targets)
        if not key and not any(_stored(roles, one, text) for one in _texts(roles)):
            # Which workers are farriers: a row says farrier.
            text = singular(text)
            key, mention = _key_of(roles, run, text, targets)
        if not key:
            # Which studios are Canadian: a row says Canada.
            nouns = (noun for noun, adjectives in english().synonyms.items() if text.lower() in adjectives)
            matches = ((noun, _key_of(roles, run, noun, targets)) for noun in nouns)
            text, (key, mention) = next((one for one in matches if one[1][0]), (text, ("", None)))
        if not key:
            continue
        literals.append(_literal(roles, key, text))
        if mention is not None:
            targets.remove(mention)
        tokens.take(run)
        roles.take_idle([key])
    return literals


def _literal(roles: Roles, key: str, text: str) -> Literal:
    """The condition that a row has a text, perhaps as one of several, under a key."""
    return key, condition(roles.function.key(key), next(iter(_parts(roles, key, text)), text))


def _key_of(roles: Roles, run: Range, text: str, targets: Sequence[Mention]) -> tuple[str, Mention | None]:
    """The key under which a row has a text, and its mention beside these words; an empty key where no row has it."""
    beside = [one for one in targets if one.place.near(run) <= NEAR and _stored(roles, one.key, text)]
    if mention := min(beside, key=lambda one: one.place.near(run), default=None):
        return mention.key, mention
    keys = (one for one in _texts(roles) if (stored := _stored(roles, one, text)) and _may_be(roles, text, stored))
    return next(keys, ""), None


def _texts(roles: Roles) -> list[str]:
    """Keys of texts that are no names."""
    keys = (one for one in roles.function.keys if one != roles.subject)
    return [one.name for one in keys if one.kind == "text" and not one.entity]


def _stored(roles: Roles, key: str, text: str) -> str:
    """The text as a row has it under a key; empty where none does."""
    if key not in _texts(roles):
        return ""
    return roles.values.stored(roles.function, key, text) or next(iter(_parts(roles, key, text)), "").removeprefix(PART)


def _parts(roles: Roles, key: str, text: str) -> list[str]:
    """The text as one of several values of a row."""
    return [one for one in roles.values.of(roles.function, key) if one.lower() == f"{PART}{text}".lower()]


def _may_be(roles: Roles, text: str, stored: str) -> bool:
    """Whether a word may be a value whose key is not named: one in small letters is no code, as LIE is."""
    return not text.islower() or roles.tokens.question.text.islower() or not stored.isupper()
