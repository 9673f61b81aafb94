"""Normalised text for the judge `rules`: one alphabet, words with their places, negations, segments."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from services.kit.text.folding import without_accents
from services.kit.text.vocabulary import blanked

WORDS: Mapping[str, Any] = yaml.safe_load(files(__package__).joinpath("words.yaml").read_text(encoding="utf-8"))
_QUOTES = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "′": "'", "″": '"', "“": '"', "”": '"', "„": '"'})
_DASHES = re.compile(r"[\u2010-\u2015\u2212]")
_DOTTED = re.compile(r"\b(?:[A-Za-z]\.){2,}(?:[A-Za-z]\b)?")
_MARKUP = re.compile(r"\*\*|__(?=\w)|(?<=\w)__|^#+\s|\[\d{1,2}\]", re.MULTILINE)
# C++, C# and the rating AA- are no C and AA.
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*(?:[+#]+(?![^\W_])|(?<=\b[ABCO])-(?![\w-])|(?<=\b[A-D][A-D])-(?![\w-]))?")
# 10², 1½ and 1 200 000 as they are meant, before compatibility makes 102 and 11/2 of them.
_POWERS = re.compile(r"(?<=\d)[⁻⁺]?[²³¹⁰⁴-⁹]+")
_FRACTION = re.compile(r"(\d{1,6})([¼-¾⅐-⅞])")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:[\u00a0\u202f\u2009]\d{3})+|(?: \d{3}){2,})(?!\d)")
_DOUBLE = re.compile(r"([a-z])\1+")

# One name for what has several; only names that nothing else bears.
_ALIASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(?i)\b(?:the\s+)?united states(?: of america)?\b|\bUSA?\b|(?i:\busa\b)|(?i:\bthe us\b)", "usa"),
        (r"(?i)\b(?:the\s+)?united kingdom\b|\bgreat britain\b|\buk\b", "uk"),
        (r"(?i)\b(?:the\s+)?united arab emirates\b|\buae\b", "uae"),
        (r"(?i)\bnyc\b", "new york city"),
        (r"(?i)\bworld war (?:ii|2|two)\b|\bsecond world war\b|\bww(?:ii|2)\b", "wwtwo"),
        (r"(?i)\bworld war (?:i|1|one)\b|\bfirst world war\b|\bww(?:i|1)\b", "wwone"),
        (r"(?i)\bst\.(?=\s+[a-z])", "saint"),
        (r"(?i)\bmt\.(?=\s+[a-z])|\bmt(?=\s+[a-z])", "mount"),
        (r"\s*&\s*", " and "),
    )
)
STOP_WORDS = frozenset(WORDS["stop_words"].split())
# What a name may come without.
NAME_AFFIXES = frozenset(WORDS["name_affixes"].split())

_NEGATORS = re.compile(
    r"\b(?:not|never|neither|nor|no|none|nobody|nothing|without|cannot|false|incorrect|wrong|untrue|except|"
    r"(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should)n'?t)\b"
)
# A contrast that denies something else than the answer: "X, not Y".
_CONTRAST = re.compile(
    r"[,;(\-]\s*(?:and\s+|but\s+)?not\s+[^,;.)]*|\b(?:rather than|instead of|as opposed to)\s+[^,;.)]*"
)
_BESIDE = re.compile(r"\b(?:than|compared (?:to|with)|in contrast to|unlike|as opposed to)\b[^,;.]*")
_BREAKS = re.compile(r"[,;\n|•]|\s/\s|\b(?:and|or|as well as|along with|plus)\b")


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its key for comparing, its place, and whether it was written with a capital."""

    key: str
    start: int
    end: int
    capital: bool

    @property
    def content(self) -> bool:
        """Whether it is no stop word."""
        return self.key not in _STOP_KEYS


def clean(text: str) -> str:
    """One line without accents, typographic variants, markup; case is kept. Lower-casing it keeps every place."""
    text = _POWERS.sub(lambda match: f"^{match[0]}", text)
    text = _FRACTION.sub(lambda match: f"{int(match[1]) + unicodedata.numeric(match[2]):g}", text)
    text = _SPACED.sub(lambda match: re.sub(r"\s", "", match[0]), text)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).replace("ß", "ss")
    text = _without_latin_accents(_DASHES.sub("-", text))
    text = text.replace("ı", "i").replace("ł", "l").replace("Ł", "L").replace("ø", "o").replace("Ø", "O")
    text = text.replace("æ", "ae").replace("Æ", "Ae").replace("œ", "oe").replace("đ", "d").replace("\u2044", "/")
    text = _DOTTED.sub(lambda match: match[0].replace(".", ""), _MARKUP.sub("", text))
    for pattern, name in _ALIASES:
        text = pattern.sub(name, text)
    return " ".join(text.split())


def _without_latin_accents(text: str) -> str:
    """The text without the marks of Latin letters; those of other alphabets make other letters: и and й."""
    if text.isascii():
        return text
    pairs = ((char, without_accents(char)) for char in text)
    return "".join(bare if bare.isascii() and bare else char for char, bare in pairs)


def key_of(word: str) -> str:
    """The form in which words are compared: lower case, no possessive, no plural, no doubled letters."""
    word = word.lower().removesuffix("'s").replace("'", "")
    word = WORDS["same_word"].get(word, word)
    if word.isascii() and word.isalpha():
        if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
        word = _DOUBLE.sub(r"\1", word) if len(word) > 3 else word
    return word


_STOP_KEYS = frozenset(key_of(word) for word in STOP_WORDS) | STOP_WORDS


def words_of(text: str) -> list[Word]:
    """The words of a cleaned text; initials that stand together are one word."""
    words: list[Word] = []
    for match in _WORD.finditer(text):
        raw = match[0]
        word = Word(key_of(raw), match.start(), match.end(), raw[:1].isupper())
        last = words[-1] if words else None
        if _initial(raw) and last and _initial_word(text, last) and word.start - last.end <= 2:
            words[-1] = Word(last.key + word.key, last.start, word.end, capital=True)
        else:
            words.append(word)
    return words


def _initial(raw: str) -> bool:
    return len(raw) == 1 and raw.isalpha() and raw.isupper()


def _initial_word(text: str, word: Word) -> bool:
    raw = text[word.start : word.end].replace(".", "").replace(" ", "")
    return len(raw) <= 3 and raw.isalpha() and raw.isupper() and text[word.end : word.end + 1] in (".", " ")


def negations(text: str) -> list[tuple[int, int]]:
    """Places of negating words that bear on the answer: contrasts ("X, not Y") are left out."""
    lower = _CONTRAST.sub(lambda match: " " * len(match[0]), text.lower())
    return [match.span() for match in _NEGATORS.finditer(lower)]


def without_contrasts(text: str) -> str:
    """The text with the parts blanked that name what the answer is not, or is compared with."""
    lower = text.lower()
    for pattern in (_CONTRAST, _BESIDE):
        for match in pattern.finditer(lower):
            text = blanked(text, *match.span())
    return text


def segments(text: str) -> list[tuple[int, int]]:
    """Places of the parts between commas and conjunctions."""
    spans: list[tuple[int, int]] = []
    begin = 0
    for match in _BREAKS.finditer(text.lower()):
        # A comma within a number breaks nothing.
        if match[0] == "," and re.match(r"\d,\d{3}\b", text[max(0, match.start() - 1) : match.end() + 4]):
            continue
        spans.append((begin, match.start()))
        begin = match.end()
    spans.append((begin, len(text)))
    return [(start, end) for start, end in spans if text[start:end].strip(" .!?()\"'")]
