"""Names in the graph of headers and files."""

import re

from lab.draft.vocabulary import abbreviations, currency
from services.kit.text.folding import UNDECOMPOSED, without_accents
from services.kit.text.vocabulary import SYMBOLS

MAX_NAME = 40
# A header of several words without gaps, and the beginnings of its words: CalloutNo, crewID.
_CAMEL = re.compile(r"(?=.{4})[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*")
_BEGINNING = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAPS = re.compile(r"[^a-z0-9]+")
_CURRENCIES = {sign: SYMBOLS[sign] for sign in "£$€"}
# What a rate is by: `Rate (£/h)`.
_BY = re.compile(rf"([{''.join(_CURRENCIES)}]) ?/ ?(?=[a-z])")
# What a header says of a flag.
_EITHER = re.compile(r"\b(?:y ?/ ?n|yes ?/ ?no)\b\W*$", re.IGNORECASE)
# The ends of a scale: `Taste score (1-10)`.
_SCALE = re.compile(r"\(\s*(?:\d+\s*(?:-|–|to)|/|out of)\s*\d+\s*\)", re.IGNORECASE)
# `cost_usd_month`, `rent_eur_pcm`.
_PERIODS = {"pcm": "month", "pm": "month", "p_m": "month", "pa": "year", "p_a": "year", "pw": "week", "p_w": "week"}
_PERIOD = re.compile(rf"_([a-z]+)_(day|week|month|year|person|{'|'.join(_PERIODS)})$")
# "Cost/yr".
_EVERY = re.compile(r"/ ?(?=(?:day|head|hour|hr|mo|month|night|person|week|wk|year|yr)\b)", re.IGNORECASE)
# "Inspection #", "Order №", "N° client".
_NUMBER_SIGN = re.compile(r"(?<=\w) ?[#№]$|\bn[º°]", re.IGNORECASE)
_DOTTED = re.compile(r"([a-z]+)\.")
_LETTERS = str.maketrans(
    {**UNDECOMPOSED, "²": "2", "³": "3", "%": " percent "} | {sign: f" {word} " for sign, word in _CURRENCIES.items()}
)


def identifier(text: str) -> str:
    """The name in the graph of a header or a file: `area_km2` of `Area (km²)` and `AreaKm2`; empty for signs alone."""
    if _CAMEL.fullmatch(text):
        text = _BEGINNING.sub("_", text)
    plain = ascii_words(text)
    if plain in _CURRENCIES.values() or plain.partition("_per_")[0] in _CURRENCIES.values():
        plain = f"price_{plain}"
    if plain[:1].isdigit():
        plain = f"n{plain}"
    return plain[:MAX_NAME].rstrip("_")


def column_name(header: str) -> str:
    """The name of a column in the graph: `date_of_birth` of `D.O.B.`, `paid` of `Paid (Y/N)`."""
    name = without_abbreviations(_EVERY.sub(" per ", _SCALE.sub("", _EITHER.sub("", header))))
    match = _PERIOD.search(name)
    if match is None or not currency(match[1]):
        return name
    return f"{name[: match.start()]}_{match[1]}_per_{_PERIODS.get(match[2], match[2])}"


def without_abbreviations(text: str) -> str:
    """As `identifier`, with whole words for what headers and files shorten."""
    words = f"_{identifier(text)}_"
    for short, whole in abbreviations(_DOTTED.findall(text.casefold())).items():
        words = words.replace(f"_{short}_", f"_{whole}_")
    return words.strip("_")[:MAX_NAME].rstrip("_")


def abbreviated(header: str) -> str:
    """As `identifier`, with the abbreviations of a header; empty where it has none."""
    plain = _EITHER.sub("", header)
    name = identifier(plain)
    return "" if name == without_abbreviations(plain) else name


def ascii_words(text: str) -> str:
    """The words of a text in ASCII letters and digits, signs of currencies and percent as words, joined by `_`."""
    text = _NUMBER_SIGN.sub(" no ", text)
    letters = _BY.sub(r"\1 per ", text).casefold().translate(_LETTERS)
    return _GAPS.sub("_", without_accents(letters)).strip("_")
