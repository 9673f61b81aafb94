"""Quantities in a text: numbers with scales and units, dates, times of day; and when two of them agree.

Exact decimal arithmetic throughout. Two numbers agree when they are equal, or when one is the other rounded to the
places that it was written with and enough of it is left (`Quantity.agrees`). "Right to within some percent" does not
exist.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from lab.evaluator.judge.units import CURRENCIES, SYMBOLS, UNIT_AFTER, UNITS

# A rounded number keeps this many significant digits, or stays this near when its scale is a word ("10 million").
SIGNIFICANT = 3
NEAR = Decimal("0.005")
# Two roundings and a conversion between units.
NEAR_CONVERTED = Decimal("0.01")
# Smaller whole numbers are counts, years and places: never rounded.
ROUNDABLE_FROM = 10_000
# A plain whole number counts as rounded from this many trailing zeros.
ROUND_ZEROS = 3
YEARS = range(1000, 2200)
MAX_DIGITS = 30

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: index for index, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTHS |= {name[:3]: index for name, index in _MONTHS.items()} | {"sept": 9}
_MONTH = r"(?P<mon>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<d>0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?P<y>1\d{3}|20\d{2}|21\d{2})"
_WEEKDAY = r"(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"

_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\d-]){_YEAR}[-/.](?P<m>0?[1-9]|1[0-2])[-/.]{_DAY}(?!\d)",
        r"(?<![\d/.-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?![\d/])",
        rf"{_WEEKDAY}\b{_MONTH}\s+(?:the\s+)?{_DAY}(?:st|nd|rd|th)?(?![\d.]*\d)(?:\s*,?\s*{_YEAR}\b)?",
        rf"{_WEEKDAY}(?<![\w.,$]){_DAY}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR}\b)?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
    )
)
_CLOCK = re.compile(
    r"(?<![a-su-z\d:_])(?P<h>[01]?\d|2[0-3]):(?P<mi>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.\d+)?)?\s*(?P<ap>[ap]\.?m\b\.?)?z?(?![\w:])"
    r"|(?<![\w.:])(?P<h2>1[0-2]|[1-9])\s?(?P<ap2>[ap]\.?m\b\.?)"
)
_SEASON = re.compile(r"(?<![\d-])(?P<y>(?:1[89]|20)\d{2})\s?[-/]\s?(?P<z>\d{2})(?![\d-])")
_DECADE = re.compile(r"(?<![\w.])(?:(?P<y>(?:1\d|20)\d0)|'?(?P<z>[1-9]0))'?s\b")
_HEIGHT = re.compile(r"(?<![\w.'])(?P<ft>\d)\s?'\s?(?P<inch>1[01]|\d)(?:\s?\"|'')?(?![\w'])")

_SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_NUMERALS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi xxii xxiii xxiv xxv"

_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())}
_TENS = dict(zip(_TEN_WORDS.split(), range(20, 100, 10), strict=True))
_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9,
    "trillion": 10**12, "dozen": 12,
}  # fmt: skip
_SUFFIXES = {
    "k": 10**3, "m": 10**6, "mn": 10**6, "mm": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12,
}  # fmt: skip
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS.split(), 1)}
_ORDINALS |= {"thirtieth": 30, "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "hundredth": 100}
# A single letter is an initial as often as a number.
_ROMAN = {numeral: value for value, numeral in enumerate(_NUMERALS.split(), 1) if len(numeral) > 1}

_WORDS = "|".join([*_SMALL, *_TENS, *_SCALES])
_SPELLED = re.compile(
    rf"\b(?:(?:half\s+)?a[\s-]+(?={'|'.join(_SCALES)}))?(?:{_WORDS})s?\b(?:[\s-]+(?:and\s+)?(?:a\s+)?(?:{_WORDS})s?\b)*"
)
_ORDINAL_WORD = re.compile(rf"\b(?:(?P<tens>{'|'.join(_TENS)})[\s-])?(?P<word>{'|'.join(_ORDINALS)})\b")
_ROMAN_WORD = re.compile(rf"\b(?P<roman>{'|'.join(sorted(_ROMAN, key=len, reverse=True))})\b")
_DIGITS = re.compile(
    r"(?<![\w.])(?P<sign>[-+](?=[$€£¥₹\d.]))?(?P<currency>(?:us|c|a|hk)?\$|[€£¥₹])?\s?(?P<sign2>-(?=\d))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:(?P<suffix>k|mn|mm|m|bn|b|tn|t)(?![\w'])|(?P<th>st|nd|rd|th)\b|(?![a-z]))"
)
_DIGITS_UNIT = re.compile(
    r"(?<![\w.])(?P<digits>\d+(?:\.\d+)?)(?P<unit>km/h|kmh|kph|mph|km|kg|cm|lbs|lb|ft|mi|oz|g|h|min|gb|tb|mb)(?![\w'])"
)
_SCALE_AFTER = re.compile(r"[\s-]?(?P<scale>" + "|".join(_SCALES) + r")s?\b")
_MINUS = re.compile(r"\b(?:minus|negative)\s*$")
_APPROXIMATE = re.compile(r"(?:\babout|\baround|\bapproximately|\broughly|\bnearly|\balmost|\bcirca|\bc\.|~|≈)\s*$")
_BOUND = re.compile(
    r"\b(?P<low>more than|over|at least|above|no fewer than|no less than|greater than)\s*$"
    r"|\b(?P<high>less than|fewer than|under|below|at most|up to|no more than)\s*$"
)
_ASIDE = re.compile(
    r"(?:\(|\bin|\bof|\bsince|\bon|\breleased|\bduring|\bfrom|\bby|\bas of|\bat|\bfor|\bdated)\s*(?:the\s+)?$"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity and its place in the cleaned text.

    `kind` is number, ordinal, date, clock or decade. A number has a `value` in units of `factor` times the base of its
    `dimension`, written to `step`; a date has `date` (0 where a part is not said); a clock has minutes in `value`.
    `soft` is "one" or a spelled ordinal, which prose uses without counting. `aside` stands behind a preposition or in
    brackets. `other` is what a suffix means besides a scale: dimension, factor, and the scale to take back.
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

    def agrees(self, other: "Quantity", *, percent_asked: bool = False) -> bool:
        """Whether two quantities say the same, up to rounding."""
        if "date" in (self.kind, other.kind):
            return _dates_agree(self, other)
        if "clock" in (self.kind, other.kind):
            return self.kind == other.kind and _clocks_agree(self, other)
        if "decade" in (self.kind, other.kind):
            return self.kind == other.kind and self.value == other.value
        return any(
            _numbers_agree(mine, theirs, percent_asked) for mine in self._readings() for theirs in other._readings()
        )

    def _readings(self) -> list["Quantity"]:
        """Itself, and what else it may mean: `5m` is five million or five metres."""
        if self.other is None:
            return [self]
        dimension, factor, scale = self.other
        return [
            self,
            replace(
                self,
                value=self.value / scale,
                step=self.step / scale,
                dimension=dimension,
                factor=factor,
                worded_scale=False,
                other=None,
            ),
        ]

    @property
    def year(self) -> int:
        """The year that it is or lies in, 0 when none."""
        if self.kind == "date":
            return self.date[0]
        whole = self.kind == "number" and not self.dimension and not self.worded_scale and self.step >= 1
        return int(self.value) if whole and self.value in YEARS and not self.spelled else 0


def _numbers_agree(one: Quantity, two: Quantity, percent_asked: bool) -> bool:
    if (one.value < 0) != (two.value < 0) and one.value != two.value:
        return False
    if one.dimension == two.dimension or not one.dimension or not two.dimension:
        if "percent" in (one.dimension, two.dimension) and one.dimension != two.dimension and not percent_asked:
            return False
        if one.factor != two.factor and one.dimension == two.dimension:
            return _converted_agree(one, two)
        return _same_unit_agree(one, two)
    return False


def _same_unit_agree(one: Quantity, two: Quantity) -> bool:
    if one.value == two.value:
        return True
    if one.year and two.year:
        return False
    coarse, fine = (one, two) if one.step >= two.step else (two, one)
    if coarse.step == fine.step or abs(coarse.value - fine.value) > coarse.step / 2:
        return False
    whole = coarse.step >= 1 and not coarse.worded_scale
    if fine.value == fine.value.to_integral_value() and abs(fine.value) < ROUNDABLE_FROM and not coarse.worded_scale:
        return False
    if whole and (coarse is one or fine.step >= 1):
        # `one` is the gold answer's: without a word like "million" or "about" a whole number is meant exactly.
        return False
    if not coarse.value or not fine.value:
        return False
    if coarse.value.adjusted() - coarse.step.adjusted() + 1 >= SIGNIFICANT:
        return True
    if coarse is one and not coarse.approximate:
        return False
    rounded = coarse.worded_scale or coarse.step >= 10**ROUND_ZEROS
    return rounded and abs(coarse.value - fine.value) <= NEAR * abs(fine.value)


def _converted_agree(one: Quantity, two: Quantity) -> bool:
    first, second = one.value * one.factor, two.value * two.factor
    if first == second:
        return True
    slack = (one.step * one.factor + two.step * two.factor) / 2
    return abs(first - second) <= min(slack, NEAR_CONVERTED * max(abs(first), abs(second)))


def _dates_agree(gold: Quantity, said: Quantity) -> bool:
    """Whether all that the gold date says is said; what is said beyond it may be anything."""
    if said.kind != "date":
        return False
    if gold.kind != "date":
        return bool(gold.year) and gold.year == said.date[0]
    for index, (mine, theirs) in enumerate(zip(gold.date, said.date, strict=True)):
        if not mine or mine == theirs:
            continue
        two_digits = (gold.short_year or said.short_year) and {mine // 100, theirs // 100} <= {19, 20}
        if index or not theirs or not two_digits or mine % 100 != theirs % 100:
            return False
    return True


def _clocks_agree(one: Quantity, two: Quantity) -> bool:
    if one.value == two.value:
        return True
    return (one.half_day or two.half_day) and one.value % 720 == two.value % 720


def find(text: str) -> list[Quantity]:
    """All quantities of a cleaned text, by place."""
    lower = text.lower()
    found: list[Quantity] = []

    def take(quantity: Quantity | None) -> None:
        nonlocal lower
        if quantity is None:
            return
        before = lower[: quantity.start]
        found.append(replace(quantity, aside=quantity.aside or _ASIDE.search(before) is not None))
        lower = before + " " * (quantity.end - quantity.start) + lower[quantity.end :]

    for pattern in _DATES:
        for match in pattern.finditer(lower):
            take(_date(match, lower))
    for match in _CLOCK.finditer(lower):
        take(_clock(match))
    for match in _DECADE.finditer(lower):
        year = int(match["y"]) if match["y"] else 1900 + int(match["z"])
        take(Quantity("decade", *match.span(), Decimal(year)))
    for match in _SEASON.finditer(lower):
        for quantity in _season(match):
            found.append(quantity)
        if _season(match):
            lower = lower[: match.start()] + " " * len(match[0]) + lower[match.end() :]
    for match in _HEIGHT.finditer(lower):
        inches = Decimal(match["ft"]) * 12 + Decimal(match["inch"])
        take(Quantity("number", *match.span(), inches, dimension="length", factor=UNITS["inch"][1]))
    for match in _DIGITS_UNIT.finditer(lower):
        dimension, factor = UNITS[match["unit"]]
        value = Decimal(match["digits"])
        take(Quantity("number", *match.span(), value, _step(match["digits"]), dimension=dimension, factor=factor))
    for match in _DIGITS.finditer(lower):
        take(_number(match, lower))
    for match in _ORDINAL_WORD.finditer(lower):
        place = _TENS.get(match["tens"] or "", 0) + _ORDINALS[match["word"]]
        if match["tens"] and _ORDINALS[match["word"]] > 9:
            continue
        take(Quantity("ordinal", *match.span(), Decimal(place), spelled=True, soft=True))
    for match in _SPELLED.finditer(lower):
        for quantity in _spelled(match, lower):
            take(quantity)
    for match in _ROMAN_WORD.finditer(lower):
        take(Quantity("number", *match.span(), Decimal(_ROMAN[match["roman"]])))
    return _compounds(sorted(found, key=lambda quantity: quantity.start), text.lower())


def _date(match: re.Match[str], text: str) -> Quantity | None:
    parts = match.groupdict()
    year = int(parts["y"]) if parts.get("y") else 0
    short_year = bool(parts.get("y")) and len(parts["y"]) == 2
    if parts.get("a"):
        # CRAG's answers are American: month first, unless that cannot be.
        month, day = int(parts["a"]), int(parts["b"])
        if month > 12:
            month, day = day, month
    else:
        month = int(parts["m"]) if parts.get("m") else _MONTHS[parts["mon"]]
        day = int(parts["d"]) if parts.get("d") else 0
    if short_year:
        year += 2000 if year <= 30 else 1900
    if not 1 <= month <= 12 or day > 31 or (parts.get("a") and not day):
        return None
    if parts.get("mon") == "may" and not year and re.match(r"\s*[a-z]", text[match.end() :]):
        # The verb.
        return None
    return Quantity("date", *match.span(), date=(year, month, day), short_year=short_year)


def _clock(match: re.Match[str]) -> Quantity:
    hour, minute = int(match["h"] or match["h2"]), int(match["mi"] or 0)
    half = (match["ap"] or match["ap2"] or "")[:1]
    if half == "p" and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    return Quantity("clock", *match.span(), Decimal(hour * 60 + minute), half_day=not half and 1 <= hour <= 12)


def _season(match: re.Match[str]) -> list[Quantity]:
    year, short = int(match["y"]), int(match["z"])
    if (year + 1) % 100 != short:
        return []
    start, end = match.span()
    return [
        Quantity("number", start, start + 4, Decimal(year)),
        Quantity("number", end - 2, end, Decimal(year + 1)),
    ]


def _step(digits: str) -> Decimal:
    """The unit of the last place that was written; of a number with many trailing zeros, of its last digit."""
    _, point, decimals = digits.partition(".")
    if point:
        return Decimal(1).scaleb(-len(decimals))
    whole = digits.replace(",", "")
    zeros = len(whole) - len(whole.rstrip("0"))
    return Decimal(10**zeros) if zeros >= ROUND_ZEROS and zeros < len(whole) else Decimal(1)


def _number(match: re.Match[str], text: str) -> Quantity | None:
    digits = match["digits"]
    if len(digits) > MAX_DIGITS:
        return None
    value, step = Decimal(digits.replace(",", "")), _step(digits)
    before, end = text[: match.start()], match.end()
    sign = -1 if "-" in (match["sign"], match["sign2"]) or _MINUS.search(before) else 1
    dimension = SYMBOLS.get(match["currency"] or "", "")
    factor, scaled, other = Decimal(1), False, None
    approximate = _APPROXIMATE.search(before) is not None
    if match["th"]:
        return Quantity("ordinal", match.start(), end, value)
    if suffix := match["suffix"]:
        scale = Decimal(_SUFFIXES[suffix])
        value, step, scaled = value * scale, step * scale, True
        if suffix in UNITS and not dimension:
            other = (*UNITS[suffix], scale)
    value, step, scaled, end = _scaled(value, step, scaled, text, end)
    if not dimension and (unit := UNIT_AFTER.match(text, end)):
        dimension, factor = UNITS[unit["unit"]] if unit["unit"] else UNITS["percent"]
        end = unit.end()
    elif dimension and (unit := UNIT_AFTER.match(text, end)) and unit["unit"]:
        spoken = UNITS[unit["unit"]][0]
        end = unit.end() if spoken in CURRENCIES else end
    return Quantity(
        "number",
        match.start(),
        end,
        sign * value,
        step,
        dimension,
        factor,
        worded_scale=scaled or approximate,
        approximate=approximate,
        bound=_bound(before),
        other=other,
    )


def _scaled(value: Decimal, step: Decimal, scaled: bool, text: str, end: int) -> tuple[Decimal, Decimal, bool, int]:
    while match := _SCALE_AFTER.match(text, end):
        scale = _SCALES[match["scale"]]
        value, step, scaled, end = value * scale, step * scale, True, match.end()
    return value, step, scaled, end


def _bound(before: str) -> str:
    match = _BOUND.search(before)
    return (match.lastgroup or "") if match else ""


def _spelled(match: re.Match[str], text: str) -> list[Quantity]:
    """Numbers in words; words that do not make one number make several."""
    half = match[0].startswith("half")
    groups: list[tuple[int, int, int, int, bool]] = []  # value, smallest scale, start, end, has scale
    for word in re.finditer(rf"\b(?P<and>and\s+)?(?:a\s+)?(?P<word>{_WORDS})s?\b", match[0]):
        name = word["word"]
        start, end = match.start() + word.start("word"), match.start() + word.end()
        joined = _join(groups[-1], name, joined_by_and=bool(word["and"])) if groups else None
        if joined:
            value, smallest, scaled = joined
            groups[-1] = (value, smallest, groups[-1][2], end, scaled)
        elif name in _SCALES:
            groups.append((_SCALES[name], _SCALES[name], start, end, True))
        else:
            number = _SMALL.get(name, _TENS.get(name, 0))
            groups.append((number, 10 if name in _TENS else 1, start, end, False))
    quantities = []
    for value, smallest, start, end, scaled in groups:
        dimension, factor = "", Decimal(1)
        if unit := UNIT_AFTER.match(text, end):
            dimension, factor = UNITS[unit["unit"]] if unit["unit"] else UNITS["percent"]
            end = unit.end()
        amount = Decimal(value) / 2 if half and scaled else Decimal(value)
        quantities.append(
            Quantity(
                "number",
                start,
                end,
                amount,
                Decimal(smallest) if scaled else Decimal(1),
                dimension,
                factor,
                worded_scale=scaled and value >= 1_000,
                spelled=not _looks_like_year(value, match[0]),
                soft=value == 1 and not dimension,
                bound=_bound(text[:start]),
            )
        )
    return quantities


def _looks_like_year(value: int, words: str) -> bool:
    return value in YEARS and "hundred" not in words and "thousand" not in words


def _join(group: tuple[int, int, int, int, bool], word: str, *, joined_by_and: bool) -> tuple[int, int, bool] | None:
    """The number that a further word makes of one begun, as (value, smallest scale, has a scale); None when none."""
    value, smallest, _, _, scaled = group
    if word in _SCALES:
        if joined_by_and:
            return None
        scale = _SCALES[word]
        if scale > 100 and value >= scale:
            # "one million two hundred thousand": the scale belongs to what came after the larger one.
            high = value // (scale * 1_000) * (scale * 1_000)
            low = value - high
            return (high + low * scale, scale, True) if 0 < low < scale else None
        low = value % 1_000 if scale == 100 and value > 1_000 else value
        return value - low + low * scale, scale, True
    if joined_by_and and not scaled:
        return None
    number = _SMALL.get(word, _TENS.get(word, 0))
    unit = 10 if word in _TENS else 1
    if not scaled and smallest == 10 and unit == 1 and 0 < number < 10 and value < 100:
        return value + number, 1, False
    if not scaled and 10 <= value <= 20 and number >= 10:
        return value * 100 + number, unit, False
    if not scaled and value > 1_000 and smallest == 10 and number < 10:
        return value + number, 1, False
    if scaled and number < smallest and number:
        return value + number, unit, True
    if scaled and smallest == 10 and 0 < number < 10:
        return value + number, 1, True
    return None


def _compounds(found: list[Quantity], text: str) -> list[Quantity]:
    """Quantities of one dimension in falling units are one: `1 hour 30 minutes`, `6 feet 2 inches`, `5 foot 9`.

    Midnight behind a date is how a date is written as a time stamp.
    """
    merged: list[Quantity] = []
    for quantity in found:
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
            and quantity.dimension in ("time", "length", "mass")
            and last.factor > quantity.factor
            and re.fullmatch(r"[\s,]*(?:and\s+)?", between)
        ):
            ratio = last.factor / quantity.factor
            merged[-1] = replace(
                last,
                value=last.value * ratio + quantity.value,
                step=quantity.step,
                factor=quantity.factor,
                end=quantity.end,
            )
        else:
            merged.append(quantity)
    return merged
