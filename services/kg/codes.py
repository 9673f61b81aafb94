"""Codes of countries and languages in words: `NO` is Norway, `en` English."""

from functools import cache

from babel import Locale

COUNTRY_KEYS = frozenset({"birth_place", "country", "release_country"})
LANGUAGE_KEYS = frozenset({"original_language"})
# MusicBrainz's own beside ISO 3166.
OTHER_AREAS = {"XW": "worldwide", "XE": "Europe", "XG": "East Germany", "XC": "Czechoslovakia", "SU": "Soviet Union"}
# TMDB's spelling of Cantonese, which ISO 639-1 lacks.
OTHER_LANGUAGES = {"cn": "Cantonese"}
RESULT_KEYS = frozenset({"result"})
RESULTS = {"W": "won", "D": "drawn", "L": "lost"}


def spell(key: str, value: str) -> str:
    """A value with its code in words behind it; any other value as it is.

    Args:
        key: the column it comes from.
        value: perhaps a code.
    """
    if key in COUNTRY_KEYS and len(value) == 2:
        name = OTHER_AREAS.get(value.upper()) or _english().territories.get(value.upper())
        return f"{name} ({value.upper()})" if name else value
    if key in RESULT_KEYS and value in RESULTS:
        return f"{value} ({RESULTS[value]})"
    if key in LANGUAGE_KEYS and len(value) in (2, 3):
        name = OTHER_LANGUAGES.get(value.lower()) or _english().languages.get(value.lower())
        return f"{name} ({value.lower()})" if name else value
    return value


@cache
def _english() -> Locale:
    return Locale("en")
