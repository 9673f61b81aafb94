"""Quantities in a text: numbers with scales and units, ordinals, dates, times of day, decades; each with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from services.kit.text.dates import dates
from services.kit.text.numbers import Figure, figures, numerals, ordinals, spelled
from services.kit.text.vocabulary import ATTACHED_UNITS, CURRENCIES, SYMBOLS, UNITS, YEAR, alternatives, blanked

# A plain whole number counts as rounded from this many trailing zeros.
ROUND_ZEROS = 3
# Dimensions whose units follow each other in one quantity, `6 feet 2 inches`.
COMPOUND = ("time", "length", "mass")

# Matched right behind a number only: a unit of one or two letters is a word elsewhere.
_UNIT_AFTER = re.compile(rf"\s?(?:%|-?(?:in |of )?(?P<unit>{alternatives(UNITS)})(?![\w']))")
_ATTACHED = re.compile(rf"(?<![\w.])(?P<digits>\d+(?:\.\d+)?)(?P<unit>{alternatives(ATTACHED_UNITS)})(?![\w'])")
_HEIGHT = re.compile(r"(?<![\w.'])(?P<ft>\d)\s?'\s?(?P<inch>1[01]|\d)(?:\s?\"|'')?(?![\w'])")
_FRACTIONS = {"half": Decimal("0.5"), "quarter of": Decimal("0.25"), "three quarters of": Decimal("0.75")}
_PART = re.compile(
    rf"\b(?P<part>{alternatives(_FRACTIONS)})\s+an?\s+(?P<unit>{alternatives(UNITS)})(?![\w'])"
    rf"|\ban?\s+(?P<whole>{alternatives(UNITS)})\s+and\s+a\s+half\b"
)
_CLOCK = re.compile(
    r"(?<![a-su-z\d:_])(?P<h>[01]?\d|2[0-3]):(?P<mi>[0-5]\d)(?::[0-5]\d(?:\.\d+)?)?\s*(?P<ap>[ap]\.?m\b\.?)?z?(?![\w:])"
    r"|(?<![\w.:])(?P<h2>1[0-2]|[1-9])\s?(?P<ap2>[ap]\.?m\b\.?)"
)
_SEASON = re.compile(r"(?<![\d-])(?P<y>(?:1[89]|20)\d{2})\s?[-/]\s?(?P<z>\d{2})(?![\d-])")
_DECADE = re.compile(r"(?<![\w.])(?:(?P<y>(?:1\d|20)\d0)|'?(?P<z>[1-9]0))'?s\b")
_MINUS = re.compile(r"\b(?:minus|negative)\s*$")
_APPROXIMATE = re.compile(r"(?:\babout|\baround|\bapproximately|\broughly|\bnearly|\balmost|\bcirca|\bc\.|~|≈)\s*$")
_BOUND = re.compile(
    r"\b(?P<low>more than|over|at least|above|no fewer than|no less than|greater than)\s*$"
    r"|\b(?P<high>less than|fewer than|under|below|at most|up to|no more than)\s*$"
)
_ASIDE = re.compile(
    r"(?:\(|\bin|\bof|\bsince|\bon|\breleased|\bduring|\bfrom|\bby|\bas of|\bat|\bfor|\bdated)\s*(?:the\s+)?$"
)
# Characters before a number in which its sign, its bound and "about" are looked for.
_BEFORE = 40


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity and its place in the text.

    `kind` is number, ordinal, date, clock or decade. A number has a `value` in units of `factor` times the base of its
    `dimension`, to the precision `step`; a date has `date` (0 for a missing part); a clock has minutes in `value`.
    `soft` marks "one" and spelled ordinals, which prose uses without counting; `aside` those behind a preposition or in
    brackets. `other` is a suffix's meaning as a unit: dimension, factor, and the scale to undo.
    """

    kind: str
    start: int
    end: int
    value: Decimal = Decimal(0)
    step: Decimal = Decimal(1)
    dimension: str = ""
    factor: Decimal = Decimal(1)
    worded_scale: bool = False
    approximate: bool = False
    spelled: bool = False
    soft: bool = False
    aside: bool = False
    bound: str = ""
    date: tuple[int, int, int] = (0, 0, 0)
    short_year: bool = False
    half_day: bool = False
    other: tuple[str, Decimal, Decimal] | None = None

    @property
    def year(self) -> int:
        """The year of a date or of a plain number, else 0."""
        if self.kind == "date":
            return self.date[0]
        whole = self.kind == "number" and not self.dimension and not self.worded_scale and self.step >= 1
        return int(self.value) if whole and not self.spelled and re.fullmatch(YEAR, f"{self.value:f}") else 0


def find(text: str) -> list[Quantity]:
    """All quantities of a text, by place, without overlap."""
    lower = text.lower()
    quantities: list[Quantity] = []
    for reader in _READERS:
        rest = lower
        for quantity in reader(lower):
            # The years of a season are its name, and count behind a preposition too.
            aside = reader is not _seasons and _ASIDE.search(rest[: quantity.start]) is not None
            quantities.append(replace(quantity, aside=aside))
            rest = blanked(rest, quantity.start, quantity.end)
        lower = rest
    return _compounds(sorted(quantities, key=lambda quantity: quantity.start), text.lower())


def _dates(text: str) -> Iterator[Quantity]:
    for day in dates(text):
        yield Quantity("date", day.start, day.end, date=day.parts, short_year=day.short)


def _clocks(text: str) -> Iterator[Quantity]:
    for match in _CLOCK.finditer(text):
        hour, minute = int(match["h"] or match["h2"]), int(match["mi"] or 0)
        half = (match["ap"] or match["ap2"] or "")[:1]
        if half == "p" and hour < 12:
            hour += 12
        elif half == "a" and hour == 12:
            hour = 0
        value = Decimal(hour * 60 + minute)
        yield Quantity("clock", *match.span(), value, half_day=not half and 1 <= hour <= 12)


def _decades(text: str) -> Iterator[Quantity]:
    for match in _DECADE.finditer(text):
        year = int(match["y"]) if match["y"] else 1900 + int(match["z"])
        yield Quantity("decade", *match.span(), Decimal(year))


def _seasons(text: str) -> Iterator[Quantity]:
    """Two years in a row, `2022-23`, as both."""
    for match in _SEASON.finditer(text):
        year = int(match["y"])
        if (year + 1) % 100 == int(match["z"]):
            yield Quantity("number", match.start(), match.start() + 4, Decimal(year))
            yield Quantity("number", match.end() - 2, match.end(), Decimal(year + 1))


def _heights(text: str) -> Iterator[Quantity]:
    for match in _HEIGHT.finditer(text):
        inches = Decimal(match["ft"]) * 12 + Decimal(match["inch"])
        yield Quantity("number", *match.span(), inches, dimension="length", factor=UNITS["inch"][1])


def _attached(text: str) -> Iterator[Quantity]:
    for match in _ATTACHED.finditer(text):
        dimension, factor = UNITS[match["unit"]]
        value, step = Decimal(match["digits"]), _step(match["digits"])
        yield Quantity("number", *match.span(), value, step, dimension=dimension, factor=factor)


def _parts(text: str) -> Iterator[Quantity]:
    """Half an hour, a quarter of a mile, a year and a half."""
    for match in _PART.finditer(text):
        dimension, factor = UNITS[match["unit"] or match["whole"]]
        value = _FRACTIONS[match["part"]] if match["part"] else Decimal("1.5")
        bound = _bound(text[max(0, match.start() - _BEFORE) : match.start()])
        step = _step(str(value))
        yield Quantity("number", *match.span(), value, step, dimension, factor, spelled=True, bound=bound)


def _figures(text: str) -> Iterator[Quantity]:
    for figure in figures(text):
        if figure.ordinal:
            yield Quantity("ordinal", figure.start, figure.end, abs(figure.value))
        else:
            yield _number(figure, text)


def _number(figure: Figure, text: str) -> Quantity:
    before = text[max(0, figure.start - _BEFORE) : figure.start]
    approximate = _APPROXIMATE.search(before) is not None
    dimension, factor, end = SYMBOLS.get(figure.currency, ""), Decimal(1), figure.end
    other = None
    if figure.suffix in UNITS and not dimension:
        other = (*UNITS[figure.suffix], figure.multiple)
    behind, behind_factor, behind_end = _unit(text, end)
    if not dimension:
        dimension, factor, end = behind, behind_factor, behind_end
    elif behind in CURRENCIES:
        end = behind_end
    return Quantity(
        "number",
        figure.start,
        end,
        -figure.value if _MINUS.search(before) else figure.value,
        _step(figure.digits) * figure.multiple,
        dimension,
        factor,
        worded_scale=figure.multiple != 1 or approximate,
        approximate=approximate,
        bound=_bound(before),
        other=other,
    )


def _ordinals(text: str) -> Iterator[Quantity]:
    for start, end, rank in ordinals(text):
        yield Quantity("ordinal", start, end, Decimal(rank), spelled=True, soft=True)


def _spelled(text: str) -> Iterator[Quantity]:
    for number in spelled(text):
        dimension, factor, end = _unit(text, number.end)
        yield Quantity(
            "number",
            number.start,
            end,
            number.value,
            Decimal(number.smallest) if number.has_scale else Decimal(1),
            dimension,
            factor,
            worded_scale=number.has_scale and number.value >= 1_000,
            spelled=not number.is_year,
            soft=number.value == 1 and not dimension,
            bound=_bound(text[max(0, number.start - _BEFORE) : number.start]),
        )


def _numerals(text: str) -> Iterator[Quantity]:
    for start, end, value in numerals(text):
        yield Quantity("number", start, end, Decimal(value))


# In the order of reading: each reader sees the text without what the readers before it took.
_READERS = (
    _dates, _clocks, _decades, _seasons, _heights, _attached, _parts, _figures, _ordinals, _spelled, _numerals,
)  # fmt: skip


def _unit(text: str, end: int) -> tuple[str, Decimal, int]:
    """Dimension, factor and end of the unit that stands behind a number; no dimension where none does."""
    match = _UNIT_AFTER.match(text, end)
    return (*UNITS[match["unit"] or "percent"], match.end()) if match else ("", Decimal(1), end)


def _step(digits: str) -> Decimal:
    """The unit of the last digit; of a number with many trailing zeros, that of its last digit before them."""
    whole, point, decimals = digits.replace(",", "").partition(".")
    if point:
        return Decimal(1).scaleb(-len(decimals.partition("e")[0]))
    zeros = len(whole) - len(whole.rstrip("0"))
    return Decimal(10**zeros) if zeros >= ROUND_ZEROS and zeros < len(whole) else Decimal(1)


def _bound(before: str) -> str:
    match = _BOUND.search(before)
    return (match.lastgroup or "") if match else ""


def _compounds(quantities: list[Quantity], text: str) -> list[Quantity]:
    """The quantities, those of one dimension in falling units joined: `1 hour 30 minutes`, `6 feet 2 inches`.

    Midnight behind a date belongs to it, as in a time stamp.
    """
    merged: list[Quantity] = []
    for quantity in quantities:
        last = merged[-1] if merged else None
        between = text[last.end : quantity.start] if last else ""
        if last and last.kind == "date" and quantity.kind == "clock" and not quantity.value and between in (" ", "t"):
            merged[-1] = replace(last, end=quantity.end)
            continue
        if last and last.factor == UNITS["foot"][1] and quantity.kind == "number" and not quantity.dimension:
            quantity = replace(quantity, dimension="length", factor=UNITS["inch"][1]) if between == " " else quantity
        if (
            last
            and last.kind == quantity.kind == "number"
            and last.dimension == quantity.dimension
            and quantity.dimension in COMPOUND
            and last.factor > quantity.factor
            and re.fullmatch(r"[\s,]*(?:and\s+)?", between)
        ):
            ratio = last.factor / quantity.factor
            value = last.value * ratio + quantity.value
            merged[-1] = replace(last, value=value, step=quantity.step, factor=quantity.factor, end=quantity.end)
        else:
            merged.append(quantity)
    return merged
