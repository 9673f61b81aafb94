"""BM25 over the passages of one request.

Only the query's terms are counted, because an index of all terms, which bm25s builds, serves one query here and costs
ten times as much. Of English, tokens, stop words and stems are bm25s's own, so scores are in proportion to its.
"""

import math
import re
import sys
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray

from services.kit.text.cutting import HANGUL, UNSPACED_LETTERS

# bm25s's index would use them where they are installed; its tokens, all that is used here, do not: 10 MB less. A module
# of None cannot be imported.
_unused: dict[str, Any] = {name: None for name in ("jax", "numba", "scipy") if name not in sys.modules}
sys.modules |= _unused
try:
    import bm25s
finally:
    for _name in _unused:
        del sys.modules[_name]

Stems = tuple[str, ...]

# Robertson's k1 and b, as in Lucene and bm25s.
K1 = 1.5
B = 0.75

# Most English pages: only quotation marks, dashes and spaces beyond ASCII, which are part of no word.
_PLAIN = re.compile("[\x00-\x7f\xa0\u2010-\u2027]*")
# Combining marks of Indic and other scripts, which are part of a word; `\w` has none of them.
_MARKS = "".join(map(chr, (code for code in range(0x900, 0xFE00) if unicodedata.category(chr(code)) in ("Mn", "Mc"))))
_TOKEN = rf"\w[\w{_MARKS}]+"
# Marks that many leave out: accents, points of Hebrew, vowels of Arabic; joiners and selectors of a glyph.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# Decomposed, they would grow into the word or number beside them.
_APART = re.compile("[¼-¾⅐-⅞℠™]")
# Korean has spaces, and its words end in particles.
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}{HANGUL}]+")
_LETTER = re.compile(rf"\w[{_MARKS}]*")

_stemmer = Stemmer.Stemmer("english")


def stems(texts: Sequence[str]) -> list[Stems]:
    """Stemmed words of each text without English stop words; pairs of letters where a script has no spaces."""
    if not texts:
        return []
    tokens = bm25s.tokenize(
        [_folded(text) for text in texts],
        token_pattern=_TOKEN,
        stopwords="en",
        stemmer=_stemmer,
        return_ids=False,
        show_progress=False,
        lower=True,
    )
    return [tuple(document) for document in tokens]


def _folded(text: str) -> str:
    """A text in which spellings of one word are the same: with and without accents, decomposed, in wide letters."""
    if text.isascii() or _PLAIN.fullmatch(text):
        return text
    decomposed = unicodedata.normalize("NFKD", _APART.sub(" ", text))
    return _UNSPACED.sub(_pairs, unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)))


def _pairs(run: re.Match[str]) -> str:
    letters = _LETTER.findall(run[0])
    return f" {' '.join(map(''.join, pairwise(letters)))} "


def bm25(query: Stems, documents: Sequence[Stems]) -> NDArray[np.float32]:
    """Score of each document as a share of what any document could score, 0..1, shape (documents,).

    BM25 itself (Lucene's variant) has no scale: it grows with the number and rarity of the query's terms. The sum of
    their inverse document frequencies bounds it, and divided by that it can be added to a cosine.
    """
    scores = np.zeros(len(documents), np.float32)
    if not documents:
        return scores
    lengths = np.fromiter((len(document) for document in documents), np.float32, len(documents))
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    bound = 0.0
    # Sorted, because the order of a set differs between processes and with it the last digit of a sum.
    for term in sorted(set(query)):
        counts = np.fromiter((document.count(term) for document in documents), np.float32, len(documents))
        frequency = int(np.count_nonzero(counts))
        idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        bound += idf
        scores += idf * counts / (counts + norm)
    return scores / bound if bound else scores
