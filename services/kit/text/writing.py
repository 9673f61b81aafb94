"""Numbers as people write them."""

from decimal import ROUND_HALF_UP, Context, Decimal

# Decimals beyond which a number gets an exponent.
MAX_ROUNDING = 10


def number_text(value: Decimal) -> str:
    """A number for people: two decimals, more where it is small, an exponent only where it is tiny."""
    if not value:
        return "0"
    if value.adjusted() < -MAX_ROUNDING:
        return f"{value:.3e}"
    places = max(2, 3 - value.adjusted())
    text = f"{value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=60)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
