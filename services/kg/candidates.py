"""Names that share words with a name, spelt alike or nearly so, scored by the share of both names that is covered.

Each word counts by its rarity among names of the kind: "oramed" covers "Oramed Pharmaceuticals" well, because half of a
stock exchange is called Pharmaceuticals, while a tribute band's other word is as rare as the band's own. Misspelt words
count by their edit distance.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

from rapidfuzz.distance import OSA
from sqlalchemy import Connection, Select, bindparam, exists, select

from services.kg.language.catalogue import NameRules
from services.kg.store.names import (
    MIN_FUZZY_CHARS,
    name_posting,
    name_table,
    name_token,
    name_variant,
    tokens,
    variant_keys,
)

How = Literal["exact", "alias", "tokens", "fuzzy"]

# The score of names with the same words in another order or spelling.
SAME_WORDS = 0.95
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
# One edit makes another ticker of a short name, so a short company name is not guessed.
MIN_FUZZY_CODE_CHARS = 6
# Bounds of the work for one name: spellings of a word, names of a word, names read for two words together and those of
# them that have both, and names that are scored.
MAX_SPELLINGS = 4
NAMES_OF_TOKEN = 40
NAMES_READ_FOR_PAIR = 1_000
NAMES_OF_PAIR = 60
MAX_SCORED = 400
MAX_QUERY_TOKENS = 12

FUNCTION_WORDS = frozenset(
    ("the", "a", "an", "of", "and", "in", "on", "at", "to", "for", "de", "la", "le", "el", "et", "y")
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity by one of its names. `score` is in 0..1 and comparable between names."""

    entity_id: str
    surface: str
    score: float
    weight: float
    how: How
    kind: str


class Row(NamedTuple):
    """A name in the index."""

    kind: str
    entity_id: str
    surface: str
    norm: str
    weight: float

    def candidate(self, score: float, how: How) -> Candidate:
        return Candidate(self.entity_id, self.surface, score, self.weight, how, self.kind)


class Spelling(NamedTuple):
    """A token of the vocabulary that a word of the query may mean."""

    token_id: int
    entities: int


ROW = (name_table.c.kind, name_table.c.entity_id, name_table.c.surface, name_table.c.norm, name_table.c.weight)
_TOKENS = select(name_token.c.token, name_token.c.token_id, name_token.c.entities).where(
    name_token.c.kind == bindparam("kind"), name_token.c.token.in_(bindparam("words", expanding=True))
)
_VARIANTS = (
    select(name_token.c.token, name_token.c.token_id, name_token.c.entities)
    .join(name_variant, name_variant.c.token_id == name_token.c.token_id)
    .where(name_token.c.kind == bindparam("kind"), name_variant.c.key.in_(bindparam("keys", expanding=True)))
    .distinct()
)
_postings = (
    select(name_posting.c.name_id, name_posting.c.rank)
    .where(name_posting.c.token_id == bindparam("token_id"))
    .order_by(name_posting.c.rank, name_posting.c.name_id)
)
_OF_TOKEN = _postings.limit(NAMES_OF_TOKEN)
_first_names = _postings.limit(NAMES_READ_FOR_PAIR).subquery()
_other_postings = name_posting.alias()
_OF_PAIR = (
    select(_first_names.c.name_id)
    .where(
        exists().where(
            _other_postings.c.token_id.in_(bindparam("others", expanding=True)),
            _other_postings.c.rank == _first_names.c.rank,
            _other_postings.c.name_id == _first_names.c.name_id,
        )
    )
    .limit(NAMES_OF_PAIR)
)
_NAMES = select(*ROW).where(name_table.c.name_id.in_(bindparam("name_ids", expanding=True)))


def rows_of(connection: Connection, statement: Select[Any], **parameters: Any) -> list[Row]:
    return [Row(*row) for row in connection.execute(statement, parameters)]


def search(connection: Connection, norm: str, kind: str, rules: NameRules, doubtful: float) -> list[Candidate]:
    """Entities whose names share words with this one, scored; codes that need not be meant by at most `doubtful`."""
    words = list(dict.fromkeys(tokens(norm)))[:MAX_QUERY_TOKENS]
    vocabulary, total = _vocabulary(connection, kind, words)
    if not total:
        return []
    groups = _groups(connection, kind, words, vocabulary)
    name_ids = _gather(connection, groups)
    if not name_ids:
        return []
    rows = rows_of(connection, _NAMES, name_ids=name_ids)
    names = {row: tokens(row.norm) for row in rows}
    others = {token for row_tokens in names.values() for token in row_tokens} - vocabulary.keys()
    counts = {token: spelling.entities for token, spelling in vocabulary.items()}
    counts |= {token: spelling.entities for token, spelling in _vocabulary(connection, kind, sorted(others))[0].items()}
    weights = _Weights(rules, counts, total)
    query = tokens(norm)
    beside_code = sum(token not in rules.beside_codes for token in query) == 1
    may_guess = not rules.codes or len(norm) >= MIN_FUZZY_CODE_CHARS
    candidates = []
    for row, row_tokens in names.items():
        is_code = rules.codes and row.surface.casefold() == row.entity_id.casefold()
        score, how = _score(query, row_tokens, weights, vocabulary.keys())
        # One edit away from a ticker is another ticker, and "ICU Medical" need not be ICU.
        other_code = is_code and not (beside_code and set(row_tokens) <= set(query))
        if other_code or (how == "fuzzy" and not may_guess):
            score = min(score, doubtful)
        candidates.append(row.candidate(score, how))
    return candidates


def _vocabulary(connection: Connection, kind: str, words: Sequence[str]) -> tuple[dict[str, Spelling], int]:
    """The words that the vocabulary has, and the number of entities of the kind."""
    rows = connection.execute(_TOKENS, {"kind": kind, "words": ["", *words]})
    vocabulary = {token: Spelling(token_id, entities) for token, token_id, entities in rows}
    total = vocabulary.pop("", None)
    return vocabulary, total.entities if total else 0


def _groups(
    connection: Connection, kind: str, words: Sequence[str], vocabulary: Mapping[str, Spelling]
) -> list[list[Spelling]]:
    """For each word the tokens that it may be, itself and its nearest spellings; the rarest word first."""
    keys = {key for word in words for key in variant_keys(kind, word)}
    rows = connection.execute(_VARIANTS, {"kind": kind, "keys": sorted(keys)}).all() if keys else []
    near = {token: Spelling(token_id, entities) for token, token_id, entities in rows}
    groups = []
    for word in words:
        allowed = _allowed_edits(word)
        others = sorted((OSA.distance(word, token), -near[token].entities, token) for token in near if token != word)
        group = [vocabulary[word]] if word in vocabulary else []
        group += [near[token] for edits, _, token in others if edits <= allowed][:MAX_SPELLINGS]
        if group:
            groups.append(group)
    return sorted(groups, key=lambda group: sum(spelling.entities for spelling in group))


def _gather(connection: Connection, groups: Sequence[Sequence[Spelling]]) -> list[int]:
    """Names worth scoring, at most MAX_SCORED: those with two of the rarest words first, then those with one."""
    name_ids: dict[int, None] = {}
    for left, right in combinations(groups[:3], 2):
        others = [spelling.token_id for spelling in right]
        for spelling in left:
            rows = connection.execute(_OF_PAIR, {"token_id": spelling.token_id, "others": others})
            name_ids.update(dict.fromkeys(rows.scalars()))
    for group in groups[:3]:
        for spelling in group:
            rows = connection.execute(_OF_TOKEN, {"token_id": spelling.token_id})
            name_ids.update(dict.fromkeys(rows.scalars()))
    return list(name_ids)[:MAX_SCORED]


def _allowed_edits(word: str) -> int:
    """The edits by which two spellings of one word may differ: digits none, long words two."""
    if len(word) < MIN_FUZZY_CHARS or word.isdigit():
        return 0
    return 1 if len(word) < 8 else 2


@dataclass(frozen=True, slots=True)
class _Weights:
    """The weight of each word, 0..1: the logarithm of its rarity among names of the kind."""

    rules: NameRules
    counts: Mapping[str, int]
    total: int

    def of(self, token: str, words: int) -> float:
        """The weight of a token in a name of so many words."""
        if token in FUNCTION_WORDS or token in self.rules.light_words:
            return FUNCTION_WORD_OF_TWO if words <= 2 and token in FUNCTION_WORDS else LIGHT
        rarity = math.log1p(self.total / self.counts.get(token, 1)) / math.log1p(self.total)
        if token.isdigit() or token in self.rules.telling_words:
            return max(TELLING, min(1.0, rarity))
        return max(MIN_WEIGHT, min(TRADE if token in self.rules.trade_words else 1.0, rarity))


def _score(
    query: Sequence[str], name: Sequence[str], weights: _Weights, vocabulary: Collection[str]
) -> tuple[float, How]:
    """Share of the words of both names, by weight, that they have in common, 0..1.

    A misspelt word counts for its similarity, at the weight of the right spelling. Words of the `vocabulary`
    are not misspelt.
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
        similarity, best = max(((_similarity(token, other, vocabulary), other) for other in right), default=(0.0, ""))
        if similarity:
            left.remove(token)
            right.remove(best)
            common += similarity * weights.of(best, shortest)
            total += weights.of(best, shortest)
            fuzzy = True
    # One word may be written as two: "spider man homecoming".
    similarity = _similarity("".join(left), "".join(right), ()) if left and right else 0.0
    missing = sum(weights.of(token, shortest) for token in right)
    total += missing
    if similarity:
        common += similarity * missing
        fuzzy = True
    else:
        total += CONTRADICTION * sum(weights.of(token, shortest) for token in left)
    return min(SAME_WORDS, common / total) if total else 0.0, "fuzzy" if fuzzy else "tokens"


def _similarity(word: str, other: str, vocabulary: Collection[str]) -> float:
    """1 less the share of letters that differ; 0 when they are too many for a typo."""
    if word == other:
        return 1.0
    if word in vocabulary and f"{word}s" != other and f"{other}s" != word:
        return 0.0
    allowed = min(_allowed_edits(word), _allowed_edits(other))
    if not allowed or abs(len(word) - len(other)) > allowed:
        return 0.0
    edits = OSA.distance(word, other, score_cutoff=allowed)
    if edits > allowed:
        return 0.0
    swapped = word[:2] == other[1::-1]
    return 1.0 - edits / max(len(word), len(other)) - (FIRST_LETTER if word[0] != other[0] and not swapped else 0.0)
