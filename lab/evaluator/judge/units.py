"""Units of measurement: a dimension, and a factor to that dimension's base. Currencies do not convert."""

import re
from decimal import Decimal

_TABLE = """
percent     1               percent|per cent|pct|percentage points|percentage point
usd         1               us dollars|us dollar|usa dollars|usa dollar|dollars|dollar|usd|bucks
usd         0.01            cents|cent
eur         1               euros|euro|eur
gbp         1               british pounds|pounds sterling|gbp
jpy         1               yen|jpy
inr         1               rupees|rupee|inr
cny         1               yuan|rmb|cny|renminbi
pound       1               pounds|pound
length      1               metres|metre|meters|meter|m
length      1000            kilometres|kilometre|kilometers|kilometer|kms|km
length      0.01            centimetres|centimetre|centimeters|centimeter|cm
length      0.001           millimetres|millimetre|millimeters|millimeter|mm
length      1609.344        miles|mile|mi
length      0.9144          yards|yard|yd
length      0.3048          feet|foot|ft
length      0.0254          inches|inch
mass        1               kilograms|kilogram|kilos|kilo|kgs|kg
mass        0.001           grams|gram|g
mass        0.000001        milligrams|milligram|mg
mass        1000            metric tons|metric ton|tonnes|tonne
mass        907.18474       tons|ton
mass        0.45359237      lbs|lb
mass        0.028349523125  ounces|ounce|oz
time        1               seconds|second|secs|sec
time        60              minutes|minute|mins|min
time        3600            hours|hour|hrs|hr|h
time        86400           days|day
time        604800          weeks|week
time        2629800         months|month
time        31557600        years old|year old|years|year|yrs|yr
area        1               square kilometres|square kilometers|sq km|km2
area        2.589988110336  square miles|square mile|sq miles|sq mi
area        0.0040468564224 acres|acre
area        0.01            hectares|hectare|ha
area        0.000001        square metres|square meters|m2
area        0.00000009290304 square feet|sq ft
volume      1               litres|litre|liters|liter
volume      0.001           millilitres|milliliters|ml
volume      3.785411784     gallons|gallon
speed       1.609344        miles per hour|mph
speed       1               kilometres per hour|kilometers per hour|km/h|kmh|kph
celsius     1               degrees celsius|°c|celsius
fahrenheit  1               degrees fahrenheit|°f|fahrenheit
data        0.001           megabytes|megabyte|mb
data        1               gigabytes|gigabyte|gb
data        1000            terabytes|terabyte|tb
"""

UNITS: dict[str, tuple[str, Decimal]] = {
    name: (dimension, Decimal(factor))
    for dimension, factor, names in (line.split(maxsplit=2) for line in _TABLE.strip().splitlines())
    for name in names.split("|")
}
SYMBOLS = {
    "$": "usd",
    "us$": "usd",
    "c$": "cad",
    "a$": "aud",
    "hk$": "hkd",
    "€": "eur",
    "£": "gbp",
    "¥": "jpy",
    "₹": "inr",
}
CURRENCIES = frozenset(SYMBOLS.values()) | {"cny"}

# A unit of one or two letters is one only beside a number, which is where this is looked for.
UNIT_AFTER = re.compile(
    r"\s?(?:%|-?(?:in |of )?(?P<unit>" + "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True)) + r")(?![\w']))"
)
