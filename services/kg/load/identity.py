"""Identifiers that two sources make alike from what they say, so that they meet; see `Graph` for who is who."""

import hashlib
import re
import unicodedata

MAX_SLUG = 96
# Letters that Unicode does not decompose.
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ı": "i"})
_SILENT = str.maketrans("", "", "'’‘`´ʻʼ.")
_AND = re.compile(r"\s*&\s*|\s+\+\s+")
_GAPS = re.compile(r"[\W_]+")


def slug(text: str) -> str:
    """Lower case, without accents and punctuation, words joined by hyphens: "Beyoncé & JAY-Z" is "beyonce-and-jay-z".

    Letters of other scripts stay. A name of signs only, as "+", gets a hash.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    plain = _AND.sub(" and ", plain.translate(_LETTERS)).replace("$", "s").translate(_SILENT)
    words = _GAPS.sub("-", plain).strip("-")
    if not words:
        return f"sign-{_digest(text)}"
    return words if len(words) <= MAX_SLUG else f"{words[:MAX_SLUG]}-{_digest(words)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def movie_id(title: str, release_date: str | None) -> str:
    """Films of one title and different dates stay apart."""
    return f"{slug(title)}-{release_date}" if release_date else slug(title)


def work_id(title: str, artist: str | None) -> str:
    """A work is its artist's; without one, the title speaks."""
    return f"{slug(artist)}/{slug(title)}" if artist else slug(title)


def oscar_id(ceremony: int, category_key: str, film: str | None, nominee: str | None) -> str:
    """One nomination: two sources that report it write one row."""
    return f"{ceremony}/{category_key}/{slug(film or '')}/{slug(nominee or '')}"


def grammy_id(year: int, category_key: str, nominee: str) -> str:
    return f"{year}/{category_key}/{slug(nominee)}"


# One franchise under two spellings; the sources use both, by season.
_TEAM_ALIASES = {"los-angeles-clippers": "la-clippers"}


def team_id(sport: str, name: str) -> str:
    """`sport` is soccer or nba."""
    key = slug(name)
    return f"{sport}-{_TEAM_ALIASES.get(key, key)}"
