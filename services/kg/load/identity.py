"""Identifiers made of what a source says, so that two sources that say the same meet; see `registry` for who is who."""

import hashlib
import re
from functools import lru_cache

from services.kit.text.folding import UNDECOMPOSED, without_accents

MAX_SLUG = 96
_LETTERS = str.maketrans(UNDECOMPOSED)
_SILENT = str.maketrans("", "", "'’‘`´ʻʼ.")
_AND = re.compile(r"\s*&\s*|\s+\+\s+")
_GAPS = re.compile(r"[\W_]+")


@lru_cache(maxsize=65_536)
def slug(text: str) -> str:
    """Lower case, without accents and punctuation, words joined by hyphens: "Beyoncé & JAY-Z" is "beyonce-and-jay-z".

    Letters of other scripts stay. A name of signs only, as "+", gets a hash.
    """
    plain = without_accents(text.casefold()).translate(_LETTERS)
    plain = _AND.sub(" and ", plain).replace("$", "s").translate(_SILENT)
    words = _GAPS.sub("-", plain).strip("-")
    if not words:
        return f"sign-{_digest(text)}"
    return words if len(words) <= MAX_SLUG else f"{words[:MAX_SLUG]}-{_digest(words)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
