"""Names of entities and their index: the normal form of a name, the tables, and how the index is built.

The index is an inverted one in plain tables, the same in SQLite and PostgreSQL, because a full-text engine orders by
its own score and reads all postings of a common word before it can. Here the postings of a token lie in the order of
`rank`, short and popular names first, so that a `LIMIT` reads the names that cover the token best and nothing else; and
no user's text is ever part of a query language.

    name            one surface of an entity: a title, a ticker, a nickname; several entities may share one
    name_token      the vocabulary of a kind, with the number of entities whose names hold a token
    name_posting    token -> names, in the order of `rank`
    name_variant    hash of a token, or of it without one letter -> token: what a typo is found by, by deletions on both
                    sides (Garbe's symmetric delete, at distance 1)
    name_squash     hash of a name without its spaces -> name, so that "spiderman" finds "Spider-Man"
"""

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    delete,
    func,
    insert,
    select,
)

from services.kg.definition.folder import PACKAGED
from services.kg.store.tables import METADATA
from services.kit.text.folding import UNDECOMPOSED

# SQLite numbers rows by itself in a column of exactly INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")

name_table = Table(
    "name",
    METADATA,
    Column("name_id", _Id, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("entity_id", Text, nullable=False),
    Column("surface", Text, nullable=False),
    Column("norm", Text, nullable=False),
    # Popularity, for ties among homonyms; at least 0, in any unit of its kind.
    Column("weight", Float, nullable=False, default=0.0),
    Index("name_by_norm", "kind", "norm", "weight"),
)

name_token = Table(
    "name_token",
    METADATA,
    Column("token_id", _Id, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    # "" counts the entities of the kind.
    Column("token", Text, nullable=False),
    Column("entities", Integer, nullable=False),
    UniqueConstraint("kind", "token"),
)

name_posting = Table(
    "name_posting",
    METADATA,
    Column("token_id", _Id, primary_key=True, autoincrement=False),
    Column("rank", SmallInteger, primary_key=True, autoincrement=False),
    Column("name_id", _Id, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

name_variant = Table(
    "name_variant",
    METADATA,
    Column("key", _Id, primary_key=True, autoincrement=False),
    Column("token_id", _Id, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

name_squash = Table(
    "name_squash",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("key", _Id, primary_key=True, autoincrement=False),
    Column("name_id", _Id, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

INDEX_TABLES = (name_token, name_posting, name_variant, name_squash)

BATCH_ROWS = 10_000
# Of longer names the rest is not indexed.
MAX_TOKENS = 24
# Shorter tokens have no misspellings: too many of them are one letter apart.
MIN_FUZZY_CHARS = 4
MAX_FUZZY_CHARS = 32
# `rank` is the number of tokens times this plus the popularity, 0 for the most popular.
RANKS = 64

# Accents are the only marks that are dropped: those of Indic scripts and kana are letters.
_ACCENTS = re.compile("[\u0300-\u036f]")
_LETTERS = str.maketrans({**UNDECOMPOSED, "ħ": "h"})
_APOSTROPHES = re.compile("['’‘`´ʻʼ]")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=.*\w)")
_LATE_ARTICLE = re.compile(r",\s*(?:the|an?)\s*$")
# Signs that stand for letters: A$AP, P!nk.
_DOLLAR = re.compile(r"(?<=\w)\$(?=\w)")
_BANG = re.compile(r"(?<=\w)!(?=\w)")
_ACRONYM = re.compile(r"\b[^\W\d_](?:\.[^\W\d_])+\b\.?")
_ASCII_GAPS = re.compile(r"[^a-z0-9]+")
# "madea s" is what is left of "madea's" where somebody replaced the apostrophe.
_LOOSE_S = re.compile(r"(?<=\w\w) s(?= |$)")
_INITIALS = re.compile(r"(?:(?<=^)|(?<= ))[^\W\d_](?: [^\W\d_])+(?= |$)")
_N_BETWEEN = re.compile(r"(?<=\w\w) n (?=\w\w)")

# One spelling for tokens with several.
_SPELLINGS = dict(line.split() for line in PACKAGED.lines("data/spellings.txt"))
# Only beside other words: "Rocky II".
_NUMERALS = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12"}


# Gets the rows done, and rows in all.
_Progress = Callable[[int, int], None]


class Surface(NamedTuple):
    """A name of an entity, with its popularity."""

    entity_id: str
    surface: str
    weight: float = 0.0


def normalise(text: str, *, keep_article: bool = False) -> str:
    """The form that equal names share: lower case, no accents, punctuation or leading article, "&" as "and".

    "Madea's", "madeas" and "madea s" are one, as are "J.R.R. Tolkien" and "J R R Tolkien", "A$AP" and "asap". Letters
    and digits of every script stay; a name of signs only ("+", "!!!") stays as it is.
    """
    folded = text.encode(errors="ignore").decode().casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFKD", folded)
        folded = unicodedata.normalize("NFKC", _ACCENTS.sub("", folded)).casefold().translate(_LETTERS)
    folded = folded.strip()
    # Most names have no signs: patterns cost more than a look for one.
    signs = not (folded.isascii() and folded.replace(" ", "").isalnum())
    plain = _APOSTROPHES.sub("", folded) if signs else folded
    if not keep_article:
        plain = _ARTICLE.sub("", _LATE_ARTICLE.sub("", plain))
    if signs:
        plain = _BANG.sub("i", _DOLLAR.sub("s", plain))
        plain = _ACRONYM.sub(lambda match: match[0].replace(".", "") + " ", plain)
        plain = plain.replace("&", " and ").replace("+", " plus ")
    if plain.isascii():
        plain = _ASCII_GAPS.sub(" ", plain).strip()
    else:
        plain = " ".join("".join(c if _is_letter(c) else " " for c in plain).split())
    plain = _INITIALS.sub(lambda match: match[0].replace(" ", ""), plain)
    plain = _N_BETWEEN.sub(" and ", _LOOSE_S.sub("s", plain))
    if plain and (plain not in ("plus", "and") or any(c.isalnum() for c in folded)):
        return plain
    return " ".join("".join(c for c in folded or text if c.isprintable()).split())


@lru_cache(maxsize=65_536)
def _is_letter(character: str) -> bool:
    """Whether it is a letter, a digit or a mark, in any script."""
    return unicodedata.category(character)[0] in "LNM"


def tokens(norm: str) -> list[str]:
    """Words of a normal form in one spelling each."""
    words = [_SPELLINGS.get(word, word) for word in norm.split()[:MAX_TOKENS]]
    return [_NUMERALS.get(word, word) for word in words] if len(words) > 1 else words


def squashes(norm: str) -> list[str]:
    """A normal form without spaces; the same without "and", which "AT&T" has and "ATT" has not."""
    words = norm.split()
    return list(dict.fromkeys(("".join(word for word in words if word != "and") or norm, "".join(words))))


def variant_keys(kind: str, token: str) -> set[int]:
    """Hashes of a token and of it without each one of its letters; two tokens one edit apart share one."""
    if not MIN_FUZZY_CHARS <= len(token) <= MAX_FUZZY_CHARS or token.isdigit():
        return set()
    variants = {token, *(token[:at] + token[at + 1 :] for at in range(len(token)))}
    return {_hash(kind, variant) for variant in variants}


def squash_key(squashed: str) -> int:
    return _hash("", squashed)


def _hash(kind: str, text: str) -> int:
    """63 bits, which both databases hold; readers compare the texts, as two may have one hash."""
    digest = hashlib.blake2b(f"{kind}\0{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def create_index(connection: Connection) -> None:
    """Create the tables of names and of their index where they are missing."""
    METADATA.create_all(connection, tables=[name_table, *INDEX_TABLES])


def replace_names(connection: Connection, kind: str, surfaces: Iterable[Surface]) -> None:
    """Store the names of a kind in place of those before; `refresh` must follow.

    Of surfaces of one entity with one normal form the heaviest stays.
    """
    connection.execute(delete(name_table).where(name_table.c.kind == kind))
    batch: dict[tuple[str, str], dict[str, Any]] = {}
    fingerprints: set[int] = set()
    for entity_id, surface, weight in surfaces:
        norm = normalise(surface)
        if not norm:
            continue
        row = batch.get((entity_id, norm))
        if row is None:
            # A key of an earlier batch is remembered by its hash: millions of strings would not fit.
            fingerprint = _hash(entity_id, norm)
            if fingerprint in fingerprints:
                continue
            fingerprints.add(fingerprint)
        if row is None or weight > row["weight"]:
            row = {"kind": kind, "entity_id": entity_id, "surface": surface, "norm": norm, "weight": weight}
            batch[entity_id, norm] = row
        if len(batch) >= BATCH_ROWS:
            connection.execute(insert(name_table), list(batch.values()))
            batch.clear()
    if batch:
        connection.execute(insert(name_table), list(batch.values()))


def refresh(
    connection: Connection, kinds: Sequence[str], *, progress: Callable[[str, int, int], None] | None = None
) -> None:
    """Build the index of those kinds anew from the table of names; the caller commits.

    `progress` gets the step ("movie postings"), rows done and rows in all.
    """
    for kind in dict.fromkeys(kinds):
        _clear(connection, kind)
        _build(connection, kind, progress or (lambda *_: None))
    # Without names PostgreSQL would read the tables of others, too.
    own = [f"ANALYZE {table.name}" for table in (name_table, *INDEX_TABLES)]
    for statement in ["ANALYZE"] if connection.dialect.name == "sqlite" else own:
        connection.exec_driver_sql(statement)


def _clear(connection: Connection, kind: str) -> None:
    mine = select(name_token.c.token_id).where(name_token.c.kind == kind)
    for table in (name_posting, name_variant):
        connection.execute(delete(table).where(table.c.token_id.in_(mine)))
    connection.execute(delete(name_squash).where(name_squash.c.kind == kind))
    connection.execute(delete(name_token).where(name_token.c.kind == kind))


def _build(connection: Connection, kind: str, progress: Callable[[str, int, int], None]) -> None:
    total = connection.execute(select(func.count()).where(name_table.c.kind == kind)).scalar_one()
    first = (connection.execute(select(func.max(name_token.c.token_id))).scalar() or 0) + 1
    vocabulary: dict[str, int] = {}
    # Entities per token, and the one counted last: an entity's names lie together, as they were stored.
    counts, last_counted = array("q"), array("q")
    entities, entity = 0, None
    # Parallel columns of the postings: 18 bytes each where a list of tuples would take 100.
    token_ids, lengths, name_ids, weights = array("q"), array("h"), array("q"), array("d")
    squash_keys, squash_ids = array("q"), array("q")
    rows = connection.execute(
        select(name_table.c.name_id, name_table.c.entity_id, name_table.c.norm, name_table.c.weight)
        .where(name_table.c.kind == kind)
        .order_by(name_table.c.name_id)
        .execution_options(yield_per=BATCH_ROWS)
    )
    for done, (name_id, entity_id, norm, weight) in enumerate(rows):
        words = tokens(norm)
        if entity_id != entity:
            entity, entities = entity_id, entities + 1
        for word in set(words):
            token = vocabulary.setdefault(word, len(vocabulary))
            if token == len(counts):
                counts.append(0)
                last_counted.append(0)
            if last_counted[token] != entities:
                last_counted[token] = entities
                counts[token] += 1
            token_ids.append(token)
            lengths.append(len(words))
            name_ids.append(name_id)
            weights.append(weight)
        if " " in norm:
            for squashed in squashes(norm):
                squash_keys.append(squash_key(squashed))
                squash_ids.append(name_id)
        if done % BATCH_ROWS == 0:
            progress(f"{kind} names", done, total)
    connection.execute(insert(name_token), [{"token_id": first, "kind": kind, "token": "", "entities": entities}])
    listed = (
        {"token_id": first + 1 + token, "kind": kind, "token": word, "entities": counts[token]}
        for word, token in vocabulary.items()
    )
    _insert(connection, name_token, listed, len(vocabulary), partial(progress, f"{kind} tokens"))

    postings = np.frombuffer(token_ids, np.int64)
    rank = np.frombuffer(lengths, np.int16).astype(np.int64) * RANKS + _popularity(np.frombuffer(weights, np.float64))
    owners = np.frombuffer(name_ids, np.int64)
    order = np.lexsort((owners, rank, postings))
    ordered = (postings[order] + first + 1, rank[order], owners[order])
    _insert_columns(connection, name_posting, ordered, partial(progress, f"{kind} postings"))

    keys, targets = array("q"), array("q")
    for word, token in vocabulary.items():
        for key in variant_keys(kind, word):
            keys.append(key)
            targets.append(first + 1 + token)
    for table, left, right in ((name_variant, keys, targets), (name_squash, squash_keys, squash_ids)):
        columns = np.frombuffer(left, np.int64), np.frombuffer(right, np.int64)
        order = np.lexsort(columns[::-1])
        constant = {"kind": kind} if table is name_squash else {}
        step = f"{kind} {table.name.removeprefix('name_')}"
        _insert_columns(connection, table, [one[order] for one in columns], partial(progress, step), **constant)


def _popularity(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places of weights among all of their kind in 0..RANKS-1, 0 the heaviest; any unit of weight will do."""
    if not len(weights):
        return np.zeros(0, np.int64)
    edges = np.unique(np.quantile(weights, np.linspace(0, 1, RANKS)))
    return (RANKS - 1 - np.searchsorted(edges[:RANKS], weights, side="left").clip(0, RANKS - 1)).astype(np.int64)


def _insert_columns(
    connection: Connection, table: Table, columns: Sequence[NDArray[np.int64]], progress: _Progress, **constant: str
) -> None:
    names = [column.name for column in table.columns if column.name not in constant]

    def rows() -> Iterator[dict[str, Any]]:
        for start in range(0, len(columns[0]), BATCH_ROWS):
            for values in zip(*(column[start : start + BATCH_ROWS].tolist() for column in columns), strict=True):
                yield constant | dict(zip(names, values, strict=True))

    _insert(connection, table, rows(), len(columns[0]), progress)


def _insert(
    connection: Connection, table: Table, rows: Iterable[dict[str, Any]], total: int, progress: _Progress
) -> None:
    rows, done = iter(rows), 0
    while batch := list(islice(rows, BATCH_ROWS)):
        connection.execute(insert(table), batch)
        done += len(batch)
        progress(done, total)
