"""Spellings of one word as one."""

import unicodedata

# Letters that Unicode does not decompose, in ASCII.
UNDECOMPOSED = {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ı": "i"}


def without_accents(text: str) -> str:
    """The text in Unicode's compatibility decomposition (NFKD), without its combining marks; case stays."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
