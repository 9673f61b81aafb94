"""Entities by their names: the right one, its homonyms, or a refusal with what was perhaps meant.

A name is looked up in its normal form, then without spaces, then by its words. Candidates by words are scored by how
much of both names is covered, each word by its rarity among names of the kind: "oramed" covers "Oramed Pharmaceuticals"
well, because half of a stock exchange is called Pharmaceuticals, while a tribute band's other word is as rare as the
band's own. Misspelt words count by their edit distance. What stays below a threshold, or has an equal beside it, is
refused: a wrong entity gives a wrong answer with a source, which is worse than none.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from rapidfuzz.distance import OSA
from sqlalchemy import Connection, Engine, Select, bindparam, exists, select

from services.kg.definition.folder import PACKAGED
from services.kg.language.catalogue import Catalogue, NameRules
from services.kg.store.names import (
    MIN_FUZZY_CHARS,
    create_index,
    index_ddl,
    name_posting,
    name_squash,
    name_token,
    name_variant,
    normalise,
    refresh,
    squash_key,
    squashes,
    tokens,
    variant_keys,
)
from services.kg.store.names import name as name_table

__all__ = ["Candidate", "NameIndex", "Resolution", "create_index", "index_ddl", "normalise", "refresh"]

How = Literal["exact", "alias", "tokens", "fuzzy"]
Status = Literal["ok", "ambiguous", "no_entity"]

# The lowest score that is taken for an entity. Of `python -m tests.bench.names --sweep` (half of 11,000 real names, a
# fifth of them held out): 1.0 % of absent names find an entity at 0.72 and 78 % of typos are seen through; 2.2 % and
# 79 % at 0.60, 0.6 % and 76 % at 0.80, where only a third of the names that miss a word are found, for 58 % here.
ACCEPT = 0.72
# By how much the best must lead over another entity.
MARGIN = 0.05
# From here on an entity is worth naming as what may have been meant.
SUGGEST = 0.4
# Scores of what is not spelt alike: without spaces, without what stands in parentheses, other order or spelling.
SQUASHED, WITHOUT_PARENTHESES, SAME_WORDS = 0.97, 0.96, 0.95
# What the most popular candidate gains over one of no popularity.
POPULARITY = 0.06
# Weight of a word that says little ("inc", "fc"), where a rare one has 1.
LIGHT = 0.08
MIN_WEIGHT = 0.1
# The most that a word of a trade ("pharmaceuticals") weighs in a company's name.
TRADE = 0.35
# A number that differs names another thing ("Toy Story 3"), however common it is; so do words such as "warrant".
TELLING = 0.8
# Weight of "of" or "on" in a name of two words, of which it is half: Snap-On is not Snap.
FUNCTION_WORD_OF_TWO = 0.4
# A word of the query that the other name lacks counts more than the reverse: people leave out, they seldom add.
CONTRADICTION = 1.5
# What a typo in a word's first letter costs beyond other typos; names that differ there are mostly two names.
FIRST_LETTER = 0.12

MAX_NAME_CHARS = 300
MAX_CANDIDATES = 10
MAX_HOMONYMS = 3
MAX_CODE_CHARS = 6
# One edit makes another ticker of a short name, so a short company name is not guessed.
MIN_FUZZY_CODE_CHARS = 6
# A name without spaces as long as this may begin with an article: "thegodfather", but not "them" or "thesis".
MIN_CHARS_WITH_ARTICLE = 9
# Bounds of the work for one name: spellings of a word, names of a word, names read for two words together and of those
# kept, and names that are scored.
MAX_SPELLINGS = 4
NAMES_OF_TOKEN = 40
NAMES_READ_FOR_PAIR = 1_000
NAMES_OF_PAIR = 60
MAX_SCORED = 400
MAX_QUERY_TOKENS = 12

_FUNCTION_WORDS = frozenset(
    ("the", "a", "an", "of", "and", "in", "on", "at", "to", "for", "de", "la", "le", "el", "et", "y")
)
# What parentheses say about a name without being part of it: "(2017 film)", "(feat. Jay-Z)". "(remix)" is part of it.
_ABOUT = r"\s*\((?:(?:(?:18|19|20)\d\d|the|american|british|%s)[ ,]*)+\)|\s*\((?:feat|ft|featuring|with)\b[^()]*\)"
_CODE_INSIDE = r"\((?:(?:%s)\s*:\s*)?([a-z][a-z.^-]{2,5})\)"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity by one of its names. `score` is in 0..1 and comparable between names."""

    entity_id: str
    surface: str
    score: float
    weight: float
    how: How
    kind: str


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


@dataclass(frozen=True, slots=True)
class _Row:
    kind: str
    entity_id: str
    surface: str
    norm: str
    weight: float


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A token of the vocabulary that a word of the query may mean."""

    token_id: int
    entities: int


_ROW = (name_table.c.kind, name_table.c.entity_id, name_table.c.surface, name_table.c.norm, name_table.c.weight)


def _by_weight(statement: Select[Any]) -> Select[Any]:
    return statement.order_by(name_table.c.weight.desc()).limit(MAX_CANDIDATES * 2)


_EXACT = _by_weight(select(*_ROW).where(name_table.c.kind == bindparam("kind"), name_table.c.norm == bindparam("norm")))
_SQUASHED = _by_weight(
    select(*_ROW)
    .join(name_squash, name_squash.c.name_id == name_table.c.name_id)
    .where(name_squash.c.kind == bindparam("kind"), name_squash.c.key == bindparam("key"))
)
_TOKENS = select(name_token.c.token, name_token.c.token_id, name_token.c.entities).where(
    name_token.c.kind == bindparam("kind"), name_token.c.token.in_(bindparam("words", expanding=True))
)
_VARIANTS = (
    select(name_token.c.token, name_token.c.token_id, name_token.c.entities)
    .join(name_variant, name_variant.c.token_id == name_token.c.token_id)
    .where(name_token.c.kind == bindparam("kind"), name_variant.c.key.in_(bindparam("keys", expanding=True)))
    .distinct()
)
_OF_TOKEN = (
    select(name_posting.c.name_id)
    .where(name_posting.c.token_id == bindparam("token_id"))
    .order_by(name_posting.c.rank, name_posting.c.name_id)
    .limit(NAMES_OF_TOKEN)
)
_read = (
    select(name_posting.c.rank, name_posting.c.name_id)
    .where(name_posting.c.token_id == bindparam("token_id"))
    .order_by(name_posting.c.rank, name_posting.c.name_id)
    .limit(NAMES_READ_FOR_PAIR)
    .subquery()
)
_other = name_posting.alias()
_OF_PAIR = (
    select(_read.c.name_id)
    .where(
        exists().where(
            _other.c.token_id.in_(bindparam("others", expanding=True)),
            _other.c.rank == _read.c.rank,
            _other.c.name_id == _read.c.name_id,
        )
    )
    .limit(NAMES_OF_PAIR)
)
_NAMES = select(*_ROW).where(name_table.c.name_id.in_(bindparam("name_ids", expanding=True)))


class NameIndex:
    """Finds entities by name. It keeps no state beside the engine, so any thread may ask.

    Errors of the database, an interruption among them, come out as SQLAlchemy's.
    """

    def __init__(self, engine: Engine, catalogue: Catalogue) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._particular = _Particular({name: kind.rules for name, kind in catalogue.kinds.items()})

    @property
    def engine(self) -> Engine:
        """Of the store that the names are in."""
        return self._engine

    @property
    def catalogue(self) -> Catalogue:
        return self._catalogue

    def resolve(self, name: str, kinds: Sequence[str], *, limit: int = MAX_CANDIDATES) -> Resolution:
        """The entity of one of those kinds that the name means, or a refusal.

        Nothing in the name is read as a query; at most 10 candidates are given.
        """
        limit = max(1, min(limit, MAX_CANDIDATES))
        norm = normalise(name) if len(name) <= MAX_NAME_CHARS else ""
        kinds = tuple(dict.fromkeys(kinds))
        if not norm or not kinds:
            return Resolution("no_entity", name, (), 0.0)
        with self._engine.connect() as connection:
            found = _exact(connection, name, norm, kinds, self._particular)
            if found:
                named = [one for one in found if not _is_generic(norm, self._particular.of(one.kind), even_exact=True)]
                status: Status = "ok" if named else "no_entity"
                return Resolution(status, name, tuple((named or found)[:limit]), 1.0 - _next_score(named or found))
            searched = [kind for kind in kinds if not _is_generic(norm, self._particular.of(kind))]
            found = [one for kind in searched for one in _search(connection, norm, kind, self._particular.of(kind))]
        return _decide(name, norm, _ordered(found), limit)


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


def _any(words: Iterable[Iterable[str]]) -> str:
    """A pattern of any of the words; of none it is one that is found nowhere."""
    return "|".join(sorted({re.escape(word) for some in words for word in some})) or r"(?!)"


def _next_score(found: Sequence[Candidate]) -> float:
    return next((candidate.score for candidate in found if candidate.score < found[0].score), 0.0)


def _exact(
    connection: Connection, name: str, norm: str, kinds: Sequence[str], particular: _Particular
) -> list[Candidate]:
    """Entities of exactly this name: as it stands, else without its spaces, else without its parentheses."""
    # "a ha" may be A-ha, whose normal form keeps what looks like an article.
    for form in dict.fromkeys((norm, normalise(name, keep_article=True))):
        rows = [row for kind in kinds for row in _rows(connection, _EXACT, kind=kind, norm=form)]
        if rows:
            return _codes_first(name, norm, _candidates(rows, 1.0, "exact"), particular)
    forms = squashes(norm)
    if norm.startswith("the") and len(forms[-1]) >= MIN_CHARS_WITH_ARTICLE:
        forms.append(forms[-1].removeprefix("the"))
    for form in forms:
        rows = [row for kind in kinds for row in _rows(connection, _SQUASHED, kind=kind, key=squash_key(form))]
        rows = [row for row in rows if form in squashes(row.norm)]
        if form != norm:
            rows += [row for kind in kinds for row in _rows(connection, _EXACT, kind=kind, norm=form)]
        if rows:
            return _codes_first(name, norm, _candidates(rows, SQUASHED, "alias"), particular)
    coded = [kind for kind in kinds if kind in particular.coded]
    inside = particular.code_inside.search(name) if coded else None
    for form, wanted in (
        (normalise(particular.about.sub("", name)), kinds),
        (normalise(inside[1]) if inside else "", coded),
    ):
        if form and form != norm:
            rows = [row for kind in wanted for row in _rows(connection, _EXACT, kind=kind, norm=form)]
            if rows:
                return _candidates(rows, WITHOUT_PARENTHESES, "alias")
    return []


def _rows(connection: Connection, statement: Select[Any], **parameters: Any) -> list[_Row]:
    return [_Row(*row) for row in connection.execute(statement, parameters)]


def _candidates(rows: Iterable[_Row], score: float, how: How) -> list[Candidate]:
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


def _decide(name: str, norm: str, found: Sequence[Candidate], limit: int) -> Resolution:
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
    return Resolution(status, name, tuple(found[:limit]), max(0.0, margin))


def _search(connection: Connection, norm: str, kind: str, rules: NameRules) -> list[Candidate]:
    """Entities whose names share words with this one, spelt alike or nearly so, scored."""
    words = list(dict.fromkeys(tokens(norm)))[:MAX_QUERY_TOKENS]
    known, total = _vocabulary(connection, kind, words)
    if not total:
        return []
    groups = _groups(connection, kind, words, known)
    name_ids = _gather(connection, groups)
    if not name_ids:
        return []
    rows = _rows(connection, _NAMES, name_ids=name_ids)
    names = {row: tokens(row.norm) for row in rows}
    others = {token for row_tokens in names.values() for token in row_tokens} - known.keys()
    counts = {token: spelling.entities for token, spelling in known.items()}
    counts |= {token: spelling.entities for token, spelling in _vocabulary(connection, kind, sorted(others))[0].items()}
    weights = _Weights(rules, counts, total)
    query = tokens(norm)
    beside_code = sum(token not in rules.beside_codes for token in query) == 1
    guess = not rules.codes or len(norm) >= MIN_FUZZY_CODE_CHARS
    found = []
    for row, row_tokens in names.items():
        if rules.codes and row.surface.casefold() == row.entity_id.casefold():
            # One edit away from a ticker is another ticker, and "ICU Medical" need not be ICU.
            allowed = beside_code and set(row_tokens) <= set(query)
        else:
            allowed = True
        score, how = _score(query, row_tokens, weights, known.keys())
        if not allowed or (how == "fuzzy" and not guess):
            score = min(score, ACCEPT - MARGIN)
        found.append(Candidate(row.entity_id, row.surface, score, row.weight, how, row.kind))
    return found


def _vocabulary(connection: Connection, kind: str, words: Sequence[str]) -> tuple[dict[str, _Spelling], int]:
    """Those words that are in the vocabulary, and the number of names of the kind."""
    rows = connection.execute(_TOKENS, {"kind": kind, "words": ["", *words]})
    known = {token: _Spelling(token_id, entities) for token, token_id, entities in rows}
    total = known.pop("", None)
    return known, total.entities if total else 0


def _groups(
    connection: Connection, kind: str, words: Sequence[str], known: Mapping[str, _Spelling]
) -> list[list[_Spelling]]:
    """For each word the tokens that it may be: itself and its nearest spellings. Rarest word first."""
    keys = {key for word in words for key in variant_keys(kind, word)}
    rows = connection.execute(_VARIANTS, {"kind": kind, "keys": sorted(keys)}).all() if keys else []
    near = [(token, _Spelling(token_id, entities)) for token, token_id, entities in rows]
    groups = []
    for word in words:
        allowed = _allowed_edits(word)
        spellings = sorted(
            ((OSA.distance(word, token), -spelling.entities, token) for token, spelling in near if token != word)
        )
        by_token = dict(near)
        group = [known[word]] if word in known else []
        group += [by_token[token] for edits, _, token in spellings if edits <= allowed][:MAX_SPELLINGS]
        if group:
            groups.append(group)
    return sorted(groups, key=lambda group: sum(spelling.entities for spelling in group))


def _gather(connection: Connection, groups: Sequence[Sequence[_Spelling]]) -> list[int]:
    """Names worth scoring, at most MAX_SCORED: those with the two rarest words first, then with one of them."""
    found: dict[int, None] = {}
    for left, right in ((0, 1), (0, 2), (1, 2)):
        if right >= len(groups):
            continue
        others = [spelling.token_id for spelling in groups[right]]
        for spelling in groups[left]:
            rows = connection.execute(_OF_PAIR, {"token_id": spelling.token_id, "others": others})
            found.update(dict.fromkeys(rows.scalars()))
    for group in groups[:3]:
        for spelling in group:
            rows = connection.execute(_OF_TOKEN, {"token_id": spelling.token_id})
            found.update(dict.fromkeys(rows.scalars()))
    return list(found)[:MAX_SCORED]


def _allowed_edits(word: str) -> int:
    """How many edits apart two words may be and still be one: digits none, long words two."""
    if len(word) < MIN_FUZZY_CHARS or word.isdigit():
        return 0
    return 1 if len(word) < 8 else 2


class _Weights:
    """How much each word tells, 0..1: the logarithm of its rarity among names of the kind."""

    def __init__(self, rules: NameRules, counts: Mapping[str, int], total: int) -> None:
        self._light = _FUNCTION_WORDS | rules.light_words
        self._trade = rules.trade_words
        self._telling = rules.telling_words
        self._counts = counts
        self._total = total

    def of(self, token: str, words: int) -> float:
        """The weight of a token in a name of so many words."""
        if token in self._light:
            return FUNCTION_WORD_OF_TWO if words <= 2 and token in _FUNCTION_WORDS else LIGHT
        rarity = math.log1p(self._total / self._counts.get(token, 1)) / math.log1p(self._total)
        if token.isdigit() or token in self._telling:
            return max(TELLING, min(1.0, rarity))
        return max(MIN_WEIGHT, min(TRADE if token in self._trade else 1.0, rarity))


def _score(
    query: Sequence[str], name: Sequence[str], weights: _Weights, known: Collection[str] = ()
) -> tuple[float, How]:
    """Share of the words of both names, by weight, that they have in common, 0..1.

    A misspelt word counts for its similarity, at the weight that the right spelling has. Words that are `known` are not
    misspelt.
    """
    shortest = min(len(query), len(name))
    left, right = list(query), list(name)
    common = 0.0
    for token in query:
        if token in right:
            right.remove(token)
            left.remove(token)
            common += weights.of(token, shortest)
    if not left and not right:
        return SAME_WORDS, "tokens"
    total, fuzzy = common, False
    for token in list(left):
        similarity, best = max(((_similarity(token, other, known), other) for other in right), default=(0.0, ""))
        if similarity:
            left.remove(token)
            right.remove(best)
            common += similarity * weights.of(best, shortest)
            total += weights.of(best, shortest)
            fuzzy = True
    # What is written in one word and in two: "spider man homecoming".
    similarity = _similarity("".join(left), "".join(right), ()) if left and right else 0.0
    missing = sum(weights.of(token, shortest) for token in right)
    total += missing
    if similarity:
        common += similarity * missing
        fuzzy = True
    else:
        total += CONTRADICTION * sum(weights.of(token, shortest) for token in left)
    return min(SAME_WORDS, common / total) if total else 0.0, "fuzzy" if fuzzy else "tokens"


def _similarity(word: str, other: str, known: Collection[str]) -> float:
    """One less the share of letters that differ; 0 when they are too many for a typo."""
    if word == other:
        return 1.0
    if word in known and f"{word}s" != other and f"{other}s" != word:
        return 0.0
    allowed = min(_allowed_edits(word), _allowed_edits(other))
    if not allowed or abs(len(word) - len(other)) > allowed:
        return 0.0
    edits = OSA.distance(word, other, score_cutoff=allowed)
    if edits > allowed:
        return 0.0
    swapped = word[:2] == other[1::-1]
    return 1.0 - edits / max(len(word), len(other)) - (FIRST_LETTER if word[0] != other[0] and not swapped else 0.0)


def _is_generic(norm: str, rules: NameRules, *, even_exact: bool = False) -> bool:
    """Whether it names a kind of thing, an index or a commodity, with or without words such as "company"."""
    light = _FUNCTION_WORDS | rules.light_words if rules.light_words else frozenset()
    heavy = [word for word in norm.split() if word not in light]
    forms = {squashes(norm)[0], *squashes(" ".join(heavy))} - {""}
    if even_exact:
        return bool(forms & rules.never)
    return not heavy or bool(forms & (rules.generic | _nameless()))


@cache
def _nameless() -> frozenset[str]:
    """What no entity of any kind is called, without spaces."""
    return frozenset(squashes(normalise(line))[0] for line in PACKAGED.lines("data/generic_names.txt"))
