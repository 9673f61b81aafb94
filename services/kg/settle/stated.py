"""What one statement says, where rules have read every word of the question: a value, or those of its rows."""

import re
from collections.abc import Mapping, Sequence

from services.kg.generate.rules.lexicon import Lexicon
from services.kg.language.catalogue import Key
from services.kg.outcome import Outcome
from services.kg.settle.facts import is_harmless
from services.kg.settle.rules import MAX_LIST
from services.kg.settle.wording import AUXILIARY, NEGATED
from services.kg.verbalize import key_of, value_text

# The group of the most rows, in a program.
_LARGEST = re.compile(r"\bgroup\(\w+\)\[:1\]$")
# Rows of the statement before, by one of their keys, in a program.
_GOING_ON = re.compile(r'\*\["(\w+)"\]')

_WHETHER = re.compile(rf"(?:{AUXILIARY.pattern}|(?:can|could|may|must|should|will)\b)")
# What asks for more than one day.
_SEVERAL = re.compile(r"\b(?:dates|days|all|each|every|list)\b")


def affirmed(query: str, outcomes: Sequence[Outcome]) -> str | None:
    """Yes or no, where that is all that a SELECT tells of one row and the question asks for it: is Ann a driver?"""
    if len(outcomes) != 1 or outcomes[0].notes or len(outcomes[0].rows) != 1 or outcomes[0].total != 1:
        return None
    (outcome,) = outcomes
    flags = [one for one in outcome.shown if key_of(outcome, one).kind == "flag"]
    value = outcome.rows[0].get(flags[0]) if len(flags) == len(outcome.shown) == 1 else None
    return str(value) if value is not None and _WHETHER.match(query) else None


def stated(query: str, outcomes: Sequence[Outcome], lexicons: Mapping[str, Lexicon]) -> str | None:
    """The answer that a statement of rules is; None where it shows several keys, or says no yes or no that is asked.

    It may go on from another one: the lead of the team that owns it. Rules that read a domain by its catalogue leave no
    word of the question over, so that what they look up is what it asks. Those of bundled domains, which have readings,
    look up more than that.
    """
    *others, outcome = outcomes
    function, keys = outcome.function, _GOING_ON.findall(outcome.source)
    if len(others) > 1 or (others and not keys):
        return None
    # Whose rows it goes on from is noted.
    earlier = tuple(f"{key}: " for key in keys)
    if not all(is_harmless(note) or note.startswith(earlier) for note in outcome.notes):
        return None
    if function is None or lexicons[function.domain].words.guided:
        return None
    whether = AUXILIARY.match(query) is not None
    if outcome.value is not None:
        counted = outcome.aggregate == "len"
        key = Key("", "integer") if counted or not outcome.shown else key_of(outcome, outcome.shown[-1])
        return None if whether or key.kind == "date" else value_text(key, outcome.value)
    # "Which host had the most incidents": the group, and not how many it has.
    shown = outcome.shown[:1] if _LARGEST.search(outcome.source) else outcome.shown
    if len(shown) != 1 or not 1 <= outcome.total <= MAX_LIST or len(outcome.rows) != outcome.total:
        return None
    key = key_of(outcome, shown[0])
    values = [row.get(key.name) for row in outcome.rows]
    if None in values or (whether and (key.kind != "flag" or len(values) > 1 or NEGATED.search(query))):
        return None
    if key.kind == "date" and (query.startswith("how old") or (len(values) > 1 and not _SEVERAL.search(query))):
        # An age is no day, and which of several days is asked for nobody knows: "what day do we deliver to it".
        return None
    named = {entity.surface for one in outcomes for entity in one.entities}
    if named.issuperset(map(str, values)):
        # "Which jobs is Ann leading" does not ask who leads Ann's jobs.
        return None
    texts = list(dict.fromkeys(str(one) if key.kind == "date" else value_text(key, one) for one in values))
    return ("; " if any("," in one for one in texts) and len(texts) > 1 else ", ").join(texts) or None
