"""Codes of countries and languages in words: `NO` is Norway, `en` English."""

from collections.abc import Mapping
from functools import cache

from babel import Locale

from services.kg.language.catalogue import Key

# MusicBrainz's own codes beside ISO 3166.
OTHER_AREAS = {"XW": "worldwide", "XE": "Europe", "XG": "East Germany", "XC": "Czechoslovakia", "SU": "Soviet Union"}
# TMDB's spelling of Cantonese, which ISO 639-1 lacks.
OTHER_LANGUAGES = {"cn": "Cantonese"}


def spell(key: Key, value: str) -> str:
    """A value with its code in words; any other value as it is."""
    if isinstance(key.spell, Mapping):
        return f"{value} ({key.spell[value]})" if value in key.spell else value
    if key.spell == "country" and len(value) == 2:
        name = OTHER_AREAS.get(value.upper()) or _english().territories.get(value.upper())
        return f"{name} ({value.upper()})" if name else value
    if key.spell == "language" and len(value) in (2, 3):
        name = OTHER_LANGUAGES.get(value.lower()) or _english().languages.get(value.lower())
        return f"{name} ({value.lower()})" if name else value
    return value


@cache
def _english() -> Locale:
    return Locale("en")
