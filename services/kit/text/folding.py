"""Spellings of one word as one."""

import unicodedata


def without_accents(text: str) -> str:
    """The text in Unicode's compatibility decomposition (NFKD), without its combining marks; case stays."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
