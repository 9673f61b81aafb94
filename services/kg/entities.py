"""Entities by their names: the right one, its homonyms, or a refusal with what was perhaps meant.

A name is looked up in its normal form, then without spaces, then by its words (`candidates.py`). What stays below a
threshold, or has an equal beside it, is refused: a wrong entity gives a wrong answer with a source, worse than none.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, Engine, Select, bindparam, select

from services.kg.candidates import FUNCTION_WORDS, ROW, Candidate, How, Row, rows_of, search
from services.kg.definition.folder import PACKAGED
from services.kg.language.catalogue import Catalogue, NameRules
from services.kg.store.names import name as name_table
from services.kg.store.names import name_squash, normalise, squash_key, squashes, tokens

Status = Literal["ok", "ambiguous", "no_entity"]

# The lowest score that is taken for an entity. Of a sweep over real names (half of 11,000 real names, a
# fifth of them held out): 1.0 % of absent names find an entity at 0.72 and 78 % of typos are seen through; 2.2 % and
# 79 % at 0.60, 0.6 % and 76 % at 0.80, where only a third of the names that miss a word are found, for 58 % here.
ACCEPT = 0.72
# By how much the best must lead over another entity.
MARGIN = 0.05
# From here on an entity is worth naming as what may have been meant.
SUGGEST = 0.4
# Scores of what is not spelt alike: without spaces, without what stands in parentheses.
SQUASHED, WITHOUT_PARENTHESES = 0.97, 0.96
# What the most popular candidate gains over one of no popularity.
POPULARITY = 0.06

MAX_NAME_CHARS = 300
MAX_CANDIDATES = 10
MAX_HOMONYMS = 3
MAX_CODE_CHARS = 6
# A name without spaces as long as this may begin with an article: "thegodfather", but not "them" or "thesis".
MIN_CHARS_WITH_ARTICLE = 9

# What parentheses say about a name without being part of it: "(2017 film)", "(feat. Jay-Z)". "(remix)" is part of it.
_ABOUT = r"\s*\((?:(?:(?:18|19|20)\d\d|the|american|british|%s)[ ,]*)+\)|\s*\((?:feat|ft|featuring|with)\b[^()]*\)"
_CODE_INSIDE = r"\((?:(?:%s)\s*:\s*)?([a-z][a-z.^-]{2,5})\)"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a name; `candidates` are the nearest entities whatever the status, best first.

    `margin` is the lead of the best over the next entity; entities of one name are one.
    """

    status: Status
    name: str
    candidates: tuple[Candidate, ...]
    margin: float

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities that share the best name, at most three by popularity; none unless `ok`."""
        if self.status != "ok":
            return ()
        best = self.candidates[0]
        shared = [c.entity_id for c in self.candidates if c.score == best.score and _one_name(c, best)]
        return tuple(dict.fromkeys(shared))[:MAX_HOMONYMS]


def _one_name(left: Candidate, right: Candidate) -> bool:
    return squashes(normalise(left.surface))[0] == squashes(normalise(right.surface))[0]


def _by_weight(statement: Select[Any]) -> Select[Any]:
    return statement.order_by(name_table.c.weight.desc()).limit(MAX_CANDIDATES * 2)


_EXACT = _by_weight(select(*ROW).where(name_table.c.kind == bindparam("kind"), name_table.c.norm == bindparam("norm")))
_SQUASHED = _by_weight(
    select(*ROW)
    .join(name_squash, name_squash.c.name_id == name_table.c.name_id)
    .where(name_squash.c.kind == bindparam("kind"), name_squash.c.key == bindparam("key"))
)


class NameIndex:
    """Finds entities by name. It keeps no state beside the engine, so any thread may ask.

    Errors of the database, an interruption among them, come out as SQLAlchemy's.
    """

    def __init__(self, engine: Engine, catalogue: Catalogue) -> None:
        self.engine = engine
        self._particular = _particular(catalogue)

    def resolve(self, name: str, kinds: Sequence[str]) -> Resolution:
        """The entity of one of those kinds that the name means, or a refusal.

        Nothing in the name is read as a query; at most 10 candidates are given.
        """
        norm = normalise(name) if len(name) <= MAX_NAME_CHARS else ""
        kinds = tuple(dict.fromkeys(kinds))
        if not norm or not kinds:
            return Resolution("no_entity", name, (), 0.0)
        of = self._particular.of
        with self.engine.connect() as connection:
            found = _exact(connection, name, norm, kinds, self._particular)
            if found:
                named = [one for one in found if not _is_generic(norm, of(one.kind), even_exact=True)]
                status: Status = "ok" if named else "no_entity"
                found = named or found
                second = next((one.score for one in found if one.score < found[0].score), 0.0)
                return Resolution(status, name, tuple(found[:MAX_CANDIDATES]), 1.0 - second)
            searched = [kind for kind in kinds if not _is_generic(norm, of(kind))]
            found = [one for kind in searched for one in search(connection, norm, kind, of(kind), ACCEPT - MARGIN)]
        return _decide(name, norm, _ordered(found))


class _Particular:
    """The rules of each kind, and the patterns that are made of those of all."""

    def __init__(self, rules: Mapping[str, NameRules]) -> None:
        self._rules = rules
        self.coded = frozenset(kind for kind, one in rules.items() if one.codes)
        self.about = re.compile(_ABOUT % _any(one.about_words for one in rules.values()), re.IGNORECASE)
        self.code_inside = re.compile(_CODE_INSIDE % _any(one.code_marks for one in rules.values()), re.IGNORECASE)

    def of(self, kind: str) -> NameRules:
        return self._rules.get(kind, _NOTHING)


_NOTHING = NameRules()


@lru_cache(maxsize=16)
def _particular(catalogue: Catalogue) -> _Particular:
    return _Particular({name: kind.rules for name, kind in catalogue.kinds.items()})


def _any(words: Iterable[Iterable[str]]) -> str:
    """A pattern of any of the words; of none it is one that is found nowhere."""
    return "|".join(sorted({re.escape(word) for some in words for word in some})) or r"(?!)"


def _exact(
    connection: Connection, name: str, norm: str, kinds: Sequence[str], particular: _Particular
) -> list[Candidate]:
    """Entities of exactly this name: as it stands, else without its spaces, else without its parentheses."""
    # "a ha" may be A-ha, whose normal form keeps what looks like an article.
    for form in dict.fromkeys((norm, normalise(name, keep_article=True))):
        rows = [row for kind in kinds for row in rows_of(connection, _EXACT, kind=kind, norm=form)]
        if rows:
            return _codes_first(name, norm, _candidates(rows, 1.0, "exact"), particular)
    forms = squashes(norm)
    if norm.startswith("the") and len(forms[-1]) >= MIN_CHARS_WITH_ARTICLE:
        forms.append(forms[-1].removeprefix("the"))
    for form in forms:
        rows = [row for kind in kinds for row in rows_of(connection, _SQUASHED, kind=kind, key=squash_key(form))]
        rows = [row for row in rows if form in squashes(row.norm)]
        if form != norm:
            rows += [row for kind in kinds for row in rows_of(connection, _EXACT, kind=kind, norm=form)]
        if rows:
            return _codes_first(name, norm, _candidates(rows, SQUASHED, "alias"), particular)
    coded = [kind for kind in kinds if kind in particular.coded]
    inside = particular.code_inside.search(name) if coded else None
    for form, wanted in (
        (normalise(particular.about.sub("", name)), kinds),
        (normalise(inside[1]) if inside else "", coded),
    ):
        if form and form != norm:
            rows = [row for kind in wanted for row in rows_of(connection, _EXACT, kind=kind, norm=form)]
            if rows:
                return _candidates(rows, WITHOUT_PARENTHESES, "alias")
    return []


def _candidates(rows: Iterable[Row], score: float, how: How) -> list[Candidate]:
    return _ordered(Candidate(row.entity_id, row.surface, score, row.weight, how, row.kind) for row in rows)


def _ordered(found: Iterable[Candidate]) -> list[Candidate]:
    """Each entity once, by its best name; equal scores by popularity."""
    ordered = sorted(found, key=lambda c: (-c.score, -c.weight, c.surface, c.entity_id))
    best: dict[tuple[str, str], Candidate] = {}
    for candidate in ordered:
        best.setdefault((candidate.kind, candidate.entity_id), candidate)
    return list(best.values())


def _codes_first(name: str, norm: str, found: list[Candidate], particular: _Particular) -> list[Candidate]:
    """Put the entity of that very code alone before those of the name, unless the name is a word of English."""
    text = name.strip().lstrip("$").casefold()
    if len(text) > MAX_CODE_CHARS:
        return found
    coded = [c for c in found if c.kind in particular.coded and c.entity_id.casefold() == text]
    others = [c for c in found if c not in coded]
    if not coded or not others:
        return found
    common = particular.of(coded[0].kind).common_words
    if norm in common and any(c.surface.casefold() != c.entity_id.casefold() for c in others):
        coded, others = others, coded
    behind = coded[0].score - MARGIN
    return [*coded, *(Candidate(c.entity_id, c.surface, behind, c.weight, "alias", c.kind) for c in others)]


def _decide(name: str, norm: str, found: Sequence[Candidate]) -> Resolution:
    words = set(tokens(norm))
    contain = {candidate for candidate in found if words <= set(tokens(normalise(candidate.surface)))}
    found = [candidate for candidate in found if candidate.score >= SUGGEST or candidate in contain]
    if not found:
        return Resolution("no_entity", name, (), 0.0)
    near = [candidate for candidate in found if candidate.score >= found[0].score - POPULARITY]
    most = math.log1p(max(candidate.weight for candidate in near))
    lift = {candidate: POPULARITY * math.log1p(candidate.weight) / most if most else 0.0 for candidate in near}
    found = [*sorted(near, key=lambda candidate: -candidate.score - lift[candidate]), *found[len(near) :]]
    best = found[0]
    second = next((candidate for candidate in found[1:] if not _one_name(candidate, best)), None)
    margin = best.score + lift[best] - (second.score + lift.get(second, 0.0) if second else 0.0)
    if best.score >= ACCEPT:
        status: Status = "ok" if margin >= MARGIN else "ambiguous"
    else:
        # What several names contain ("lord of the rings") is not unknown, but could be any of them.
        status = "ambiguous" if len(contain) > 1 else "no_entity"
    return Resolution(status, name, tuple(found[:MAX_CANDIDATES]), max(0.0, margin))


def _is_generic(norm: str, rules: NameRules, *, even_exact: bool = False) -> bool:
    """Whether it names a kind of thing, an index or a commodity, with or without words such as "company"."""
    light = FUNCTION_WORDS | rules.light_words if rules.light_words else frozenset()
    heavy = [word for word in norm.split() if word not in light]
    forms = {squashes(norm)[0], *squashes(" ".join(heavy))} - {""}
    if even_exact:
        return bool(forms & rules.never)
    return not heavy or bool(forms & (rules.generic | _nameless()))


@cache
def _nameless() -> frozenset[str]:
    """What no entity of any kind is called, without spaces."""
    return frozenset(squashes(normalise(line))[0] for line in PACKAGED.lines("data/generic_names.txt"))
