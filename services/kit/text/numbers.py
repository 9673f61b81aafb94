"""Numbers: digits with their sign, currency and scale, and numbers in words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from services.kit.text.vocabulary import (
    MULTIPLES,
    NUMERALS,
    ORDINALS,
    SCALES,
    SMALL,
    SUFFIXES,
    SYMBOLS,
    TENS,
    YEAR,
    alternatives,
    blanked,
)

# Longer runs of digits are keys and checksums.
MAX_DIGITS = 30

# With commas between thousands, also as India groups them: 1,00,000.
DIGITS = r"\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]\d{1,2}(?!\w))?|\.\d+"
_CURRENCY = r"(?:us|c|a|hk)?\$|[" + "".join(symbol for symbol in SYMBOLS if "$" not in symbol) + "]"
_SUFFIX = alternatives(SUFFIXES)
# The unambiguous suffixes may stand apart from the digits as well: "3.2 bn".
_APART = alternatives(name for name in SUFFIXES if name in ("mn", "bn", "tn"))
_SCALE_WORD = re.compile(rf"[\s-]?(?:(?P<word>{alternatives(MULTIPLES)})s?|(?P<suffix>{_APART}))\b")
_FIGURE = (
    rf"(?P<sign>[-−+](?=[\d.]|{_CURRENCY}))?(?P<currency>{_CURRENCY})?\s?(?P<sign2>[-−](?=\d))?(?P<digits>{DIGITS})"
    rf"(?:(?P<suffix>{_SUFFIX})(?![\w'])|(?P<th>st|nd|rd|th)\b|"
)
_WORD_PATTERN = alternatives((*SMALL, *TENS, *MULTIPLES))
_SPELLED = re.compile(
    rf"\b(?:(?:half\s+)?a[\s-]+(?={alternatives(MULTIPLES)}))?(?:{_WORD_PATTERN})s?\b"
    rf"(?:[\s-]+(?:and\s+)?(?:a\s+)?(?:{_WORD_PATTERN})s?\b)*"
)
_SPELLED_WORD = re.compile(rf"\b(?P<and>and\s+)?(?:a\s+)?(?P<word>{_WORD_PATTERN})s?\b")
_ORDINAL = re.compile(rf"\b(?:(?P<tens>{alternatives(TENS)})[\s-])?(?P<word>{alternatives(ORDINALS)})\b")
_NUMERAL = re.compile(rf"\b(?:{alternatives(NUMERALS)})\b")
_WHOLE = re.compile(rf"(?P<currency>{_CURRENCY})?\s*(?P<digits>-?(?:{DIGITS}))\s*(?P<behind>%|[a-z]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in digits and its place.

    Args:
        mantissa: the signed value of the digits.
        multiple: the factor of a scale, 1 without one.
        digits: as written, without sign.
        currency: the symbol, empty without one.
        suffix: the scale right behind the digits, which may be a unit as well: `5m`.
        ordinal: whether `th` or the like follows.
    """

    start: int
    end: int
    mantissa: Decimal
    multiple: Decimal
    digits: str
    currency: str = ""
    suffix: str = ""
    ordinal: bool = False

    @property
    def value(self) -> Decimal:
        return self.mantissa * self.multiple


@dataclass(frozen=True, slots=True)
class Spelled:
    """A number in words and its place; `smallest` is its least scale, 100 in "two hundred"."""

    start: int
    end: int
    value: Decimal
    smallest: int
    has_scale: bool

    @property
    def mantissa(self) -> Decimal:
        return self.value

    @property
    def is_year(self) -> bool:
        """Whether it is spelled like a year: "nineteen eighty-four"."""
        return not self.has_scale and re.fullmatch(YEAR, str(self.value)) is not None


@cache
def _figure_pattern(inside_words: bool) -> re.Pattern[str]:
    if inside_words:
        return re.compile(rf"(?<![\d.]){_FIGURE})")
    # Of `1080p` and `3.5x` no part of the digits is a number.
    return re.compile(rf"(?<![\w.]){_FIGURE}(?!\d|\.\d|,\d{{3}}|[a-z]))")


def figures(text: str, *, inside_words: bool = False) -> Iterator[Figure]:
    """The numbers in digits of a text in lower case; `inside_words` also those of `q3` and `3kg`."""
    for match in _figure_pattern(inside_words).finditer(text):
        digits = match["digits"]
        if len(digits) > MAX_DIGITS:
            continue
        negative = any(match[sign] in ("-", "−") for sign in ("sign", "sign2"))
        multiple, end = Decimal(1), match.end()
        if match["suffix"]:
            multiple = Decimal(10) ** SUFFIXES[match["suffix"]]
        while not match["th"] and (scale := _SCALE_WORD.match(text, end)):
            multiple *= MULTIPLES[scale["word"]] if scale["word"] else 10 ** SUFFIXES[scale["suffix"]]
            end = scale.end()
        mantissa = decimal_of(digits)
        yield Figure(
            match.start(),
            end,
            -mantissa if negative else mantissa,
            multiple,
            digits,
            match["currency"] or "",
            match["suffix"] or "",
            bool(match["th"]),
        )


def numbers(text: str, *, inside_words: bool = False) -> list[Figure | Spelled]:
    """The numbers of a text in lower case, those in digits first; `inside_words` as for `figures`."""
    in_digits = list(figures(text, inside_words=inside_words))
    for figure in in_digits:
        text = blanked(text, figure.start, figure.end)
    return [*in_digits, *spelled(text)]


def decimal_of(digits: str) -> Decimal:
    """The value of a match of `DIGITS`."""
    return Decimal(digits.replace(",", ""))


def number_of(text: str) -> tuple[Decimal, str] | None:
    """The value of a text that is one number, `$5 million` or `12 %`, and the word or sign behind it.

    A scale multiplies the value; another word is returned. None where the text is something else.
    """
    match = _WHOLE.fullmatch(text.strip())
    if match is None or len(match["digits"]) > MAX_DIGITS:
        return None
    value, behind = decimal_of(match["digits"].lower()), (match["behind"] or "").lower()
    power = SUFFIXES.get(behind) or SCALES.get(behind) or SCALES.get(behind.removesuffix("s"))
    return (value.scaleb(power), "") if power else (value, behind)


def ordinals(text: str) -> Iterator[tuple[int, int, int]]:
    """Place, end and rank of each ordinal in words, "twenty-first", of a text in lower case."""
    for match in _ORDINAL.finditer(text):
        rank = ORDINALS[match["word"]]
        if not match["tens"]:
            yield match.start(), match.end(), rank
        elif rank < 10:
            yield match.start(), match.end(), TENS[match["tens"]] + rank


def numerals(text: str) -> Iterator[tuple[int, int, int]]:
    """Place, end and value of each Roman numeral of two letters or more, of a text in lower case."""
    for match in _NUMERAL.finditer(text):
        yield match.start(), match.end(), NUMERALS[match[0]]


def spelled(text: str) -> Iterator[Spelled]:
    """The numbers in words of a text in lower case; words that do not join to one number make several."""
    for match in _SPELLED.finditer(text):
        groups: list[Spelled] = []
        for word in _SPELLED_WORD.finditer(match[0]):
            name = word["word"]
            start, end = match.start() + word.start("word"), match.start() + word.end()
            joined = _joined(groups[-1], name, by_and=bool(word["and"])) if groups else None
            if joined:
                value, smallest, scaled = joined
                groups[-1] = Spelled(groups[-1].start, end, Decimal(value), smallest, scaled)
            elif name in MULTIPLES:
                groups.append(Spelled(start, end, Decimal(MULTIPLES[name]), MULTIPLES[name], True))
            else:
                number = SMALL.get(name, TENS.get(name, 0))
                groups.append(Spelled(start, end, Decimal(number), 10 if name in TENS else 1, False))
        half = match[0].startswith("half")
        for group in groups:
            amount = group.value / 2 if half and group.has_scale else group.value
            yield Spelled(group.start, group.end, amount, group.smallest, group.has_scale)


def _joined(group: Spelled, word: str, *, by_and: bool) -> tuple[int, int, bool] | None:
    """The group and a further word as (value, smallest scale, has a scale); None where the word begins a new number."""
    value, smallest, scaled = int(group.value), group.smallest, group.has_scale
    if word in MULTIPLES:
        if by_and:
            return None
        scale = MULTIPLES[word]
        if scale > 100 and value >= scale:
            # "one million two hundred thousand": the scale belongs to the part after the larger scale.
            high = value // (scale * 1_000) * (scale * 1_000)
            low = value - high
            return (high + low * scale, scale, True) if 0 < low < scale else None
        low = value % 1_000 if scale == 100 and value > 1_000 else value
        return value - low + low * scale, scale, True
    if by_and and not scaled:
        return None
    number = SMALL.get(word, TENS.get(word, 0))
    unit = 10 if word in TENS else 1
    if 0 < number < smallest:
        return value + number, unit, scaled
    # "nineteen eighty" is a year.
    if not scaled and 10 <= value <= 20 and number >= 10:
        return value * 100 + number, unit, False
    return None
