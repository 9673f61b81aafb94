"""Entities by their names: the right one, its homonyms, or a refusal with the nearest.

A name is looked up in its normal form, then without spaces, then by its words (`candidates.py`). A match below the
threshold, or with an equal beside it, is refused: a wrong entity gives a wrong answer with a source, worse than none.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, Engine, Select, bindparam, select

from services.kg.candidates import FUNCTION_WORDS, ROW, Candidate, How, Row, rows_of, search
from services.kg.definition.folder import PACKAGED
from services.kg.language.catalogue import Catalogue, NameRules
from services.kg.store.names import name_squash, name_table, normalise, squash_key, squashes, tokens

Status = Literal["ok", "ambiguous", "no_entity"]

# The lowest score of an entity. Of a sweep over real names (half of 11,000 real names, a
# fifth of them held out): 1.0 % of absent names find an entity at 0.72 and 78 % of typos are seen through; 2.2 % and
# 79 % at 0.60, 0.6 % and 76 % at 0.80, where only a third of the names that miss a word are found, for 58 % here.
ACCEPT = 0.72
# By how much the best must lead over another entity.
MARGIN = 0.05
# From here on an entity is suggested.
SUGGEST = 0.4
# Scores of names that are the same but for spaces, or for a part in parentheses.
SQUASHED, WITHOUT_PARENTHESES = 0.97, 0.96
# What the most popular candidate gains over one of no popularity.
POPULARITY = 0.06

MAX_NAME_CHARS = 300
MAX_CANDIDATES = 10
MAX_HOMONYMS = 3
MAX_CODE_CHARS = 6
# A name without spaces as long as this may begin with an article: "thegodfather", but not "them" or "thesis".
MIN_CHARS_WITH_ARTICLE = 9

# Names of no entity of any kind, without spaces.
_NAMELESS = frozenset(squashes(normalise(line))[0] for line in PACKAGED.lines("data/generic_names.txt"))
# Parentheses about a name that are no part of it: "(2017 film)", "(feat. Jay-Z)"; "(remix)" is part of it.
_ABOUT = r"\s*\((?:(?:(?:18|19|20)\d\d|the|american|british|%s)[ ,]*)+\)|\s*\((?:feat|ft|featuring|with)\b[^()]*\)"
_CODE_INSIDE = r"\((?:(?:%s)\s*:\s*)?([a-z][a-z.^-]{2,5})\)"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The entities of a name; `candidates` are the nearest whatever the status, best first."""

    status: Status
    candidates: tuple[Candidate, ...] = ()

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities that share the best name, at most three by popularity; none unless the status is `ok`."""
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
    """Finds entities by name, in any thread, as its only state is the engine.

    Raises SQLAlchemy's errors where the database fails or is interrupted.
    """

    def __init__(self, engine: Engine, catalogue: Catalogue) -> None:
        self.engine = engine
        self._rules = {name: kind.rules for name, kind in catalogue.kinds.items()}
        about = _ABOUT % _any(one.about_words for one in self._rules.values())
        code = _CODE_INSIDE % _any(one.code_marks for one in self._rules.values())
        self._about, self._code_inside = re.compile(about, re.IGNORECASE), re.compile(code, re.IGNORECASE)

    def resolve(self, name: str, kinds: Sequence[str]) -> Resolution:
        """The entity of one of those kinds that the name means, or a refusal; at most 10 candidates.

        No part of the name is read as a query.
        """
        norm = normalise(name) if len(name) <= MAX_NAME_CHARS else ""
        rules = {kind: self._rules.get(kind, _NO_RULES) for kind in kinds}
        if not norm or not rules:
            return Resolution("no_entity")
        with self.engine.connect() as connection:
            if exact := self._exact(connection, name, norm, rules):
                named = [one for one in exact if not _is_generic(norm, rules[one.kind], even_exact=True)]
                return Resolution("ok" if named else "no_entity", tuple((named or exact)[:MAX_CANDIDATES]))
            searched = {kind: own for kind, own in rules.items() if not _is_generic(norm, own)}
            near = [c for kind, own in searched.items() for c in search(connection, norm, kind, own, ACCEPT - MARGIN)]
        return _decide(norm, _ordered(near))

    def _exact(self, connection: Connection, name: str, norm: str, rules: Mapping[str, NameRules]) -> list[Candidate]:
        """Entities of exactly this name: as it stands, else without its spaces, else without its parentheses."""

        def of_form(form: str, kinds: Iterable[str] = rules) -> list[Row]:
            return [row for kind in kinds for row in rows_of(connection, _EXACT, kind=kind, norm=form)]

        # "a ha" may be A-ha, whose normal form keeps what looks like an article.
        for form in dict.fromkeys((norm, normalise(name, keep_article=True))):
            if names := of_form(form):
                return _codes_first(name, norm, _candidates(names, 1.0, "exact"), rules)
        forms = squashes(norm)
        if norm.startswith("the") and len(forms[-1]) >= MIN_CHARS_WITH_ARTICLE:
            forms.append(forms[-1].removeprefix("the"))
        for form in forms:
            names = [row for kind in rules for row in rows_of(connection, _SQUASHED, kind=kind, key=squash_key(form))]
            names = [row for row in names if form in squashes(row.norm)]
            names += of_form(form) if form != norm else []
            if names:
                return _codes_first(name, norm, _candidates(names, SQUASHED, "alias"), rules)
        coded = [kind for kind, own in rules.items() if own.codes]
        code = self._code_inside.search(name) if coded else None
        plain = normalise(self._about.sub("", name))
        for form, kinds in ((plain, rules), (normalise(code[1]) if code else "", coded)):
            if form and form != norm and (names := of_form(form, kinds)):
                return _candidates(names, WITHOUT_PARENTHESES, "alias")
        return []


_NO_RULES = NameRules()


def _any(words: Iterable[Iterable[str]]) -> str:
    """A pattern of any of the words; without words one that matches nothing."""
    return "|".join(sorted({re.escape(word) for some in words for word in some})) or r"(?!)"


def _candidates(rows: Iterable[Row], score: float, how: How) -> list[Candidate]:
    return _ordered(row.candidate(score, how) for row in rows)


def _ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each entity once, by its best name; equal scores by popularity."""
    ordered = sorted(candidates, key=lambda c: (-c.score, -c.weight, c.surface, c.entity_id))
    best: dict[tuple[str, str], Candidate] = {}
    for candidate in ordered:
        best.setdefault((candidate.kind, candidate.entity_id), candidate)
    return list(best.values())


def _codes_first(name: str, norm: str, candidates: list[Candidate], rules: Mapping[str, NameRules]) -> list[Candidate]:
    """Put the entity of that very code alone before those of the name, unless the name is a word of English."""
    text = name.strip().lstrip("$").casefold()
    if len(text) > MAX_CODE_CHARS:
        return candidates
    first = [c for c in candidates if rules[c.kind].codes and c.entity_id.casefold() == text]
    others = [c for c in candidates if c not in first]
    if not first or not others:
        return candidates
    common = rules[first[0].kind].common_words
    if norm in common and any(c.surface.casefold() != c.entity_id.casefold() for c in others):
        first, others = others, first
    return [*first, *(replace(c, score=first[0].score - MARGIN, how="alias") for c in others)]


def _decide(norm: str, candidates: Sequence[Candidate]) -> Resolution:
    words = set(tokens(norm))
    contain = {candidate for candidate in candidates if words <= set(tokens(normalise(candidate.surface)))}
    candidates = [candidate for candidate in candidates if candidate.score >= SUGGEST or candidate in contain]
    if not candidates:
        return Resolution("no_entity")
    near = [candidate for candidate in candidates if candidate.score >= candidates[0].score - POPULARITY]
    most = math.log1p(max(candidate.weight for candidate in near))
    lift = {candidate: POPULARITY * math.log1p(candidate.weight) / most if most else 0.0 for candidate in near}
    best, *others = *sorted(near, key=lambda one: -one.score - lift[one]), *candidates[len(near) :]
    second = next((candidate for candidate in others if not _one_name(candidate, best)), None)
    margin = best.score + lift[best] - (second.score + lift.get(second, 0.0) if second else 0.0)
    if best.score >= ACCEPT:
        status: Status = "ok" if margin >= MARGIN else "ambiguous"
    else:
        # A part of several names ("lord of the rings") could be any of them.
        status = "ambiguous" if len(contain) > 1 else "no_entity"
    return Resolution(status, (best, *others)[:MAX_CANDIDATES])


def _is_generic(norm: str, rules: NameRules, *, even_exact: bool = False) -> bool:
    """Whether the name is of a kind of thing, an index or a commodity, with or without words such as "company"."""
    light = FUNCTION_WORDS | rules.light_words if rules.light_words else frozenset()
    heavy = [word for word in norm.split() if word not in light]
    forms = {squashes(norm)[0], *squashes(" ".join(heavy))} - {""}
    if even_exact:
        return bool(forms & rules.never)
    return not heavy or bool(forms & (rules.generic | _NAMELESS))
