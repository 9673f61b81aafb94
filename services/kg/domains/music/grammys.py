"""Slugs of Grammy categories, and the count of ceremonies.

Sources count by the year whose music is awarded: the 61st Grammys are of 2018 and were given in February 2019.
"""

import re

FIRST_YEAR = 1958
_BEFORE_FIRST = 1957

# Categories that functions of the language name, whichever way they are written.
_NAMED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("best_new_artist", re.compile(r"new artist")),
    ("best_album", re.compile(r"^(?:best )?(?:grammy )?album(?: of the year)?$")),
    ("best_song", re.compile(r"^(?:best )?(?:grammy )?song(?: of the year)?$")),
    ("best_record", re.compile(r"^(?:best )?(?:grammy )?record(?: of the year)?$")),
)


def edition(year: int) -> int:
    """The number of the ceremony: 61 for 2018."""
    return year - _BEFORE_FIRST


def year_of(edition: int) -> int:
    """The year that a ceremony awards: 2018 for the 61st."""
    return edition + _BEFORE_FIRST


def category_key(category: str) -> str:
    """best_new_artist, best_album, best_song, best_record, or a slug of the category: best_rap_album."""
    name = " ".join(category.casefold().split())
    for slug, pattern in _NAMED:
        if pattern.search(name):
            return slug
    return re.sub(r"[^a-z0-9]+", "_", name.replace("&", "and")).strip("_") or "other"
