"""Facts of companies that a mapping cannot describe: numbers in texts, moments in seconds, officers."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import exists, update

from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph, Row
from services.kg.load.transforms import TRANSFORMS as COMMON
from services.kg.load.transforms import Transform
from services.kg.load.values import needed, text

_TICKER = re.compile(r"[A-Z0-9][A-Z0-9.^/=_-]{0,11}")
# Moments that Yahoo counts in seconds since 1970, and their ISO dates beside them.
_EPOCHS = frozenset(
    {
        "exDividendDate", "lastDividendDate", "lastFiscalYearEnd", "nextFiscalYearEnd", "mostRecentQuarter",
        "lastSplitDate", "dateShortInterest", "sharesShortPreviousMonthDate", "firstTradeDateEpochUtc",
        "governanceEpochDate", "compensationAsOfEpochDate",
    }
)  # fmt: skip
_CHIEF = re.compile(r"\bCEO\b|chief executive", re.IGNORECASE)
MAX_FACT = 2_000


def _ticker(value: object) -> str:
    ticker = needed({"": value}, "").upper()
    if not _TICKER.fullmatch(ticker):
        raise BadRow("", f"{ticker[:20]!r} is no ticker")
    return ticker


def _facts(value: object) -> list[Row]:
    """Facts as texts, and as numbers if they are; without nulls and infinities, which are divisions by zero."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise BadRow("", "is no JSON object")
    facts = ((str(key)[:64], _fact(one)) for key, one in value.items())
    return [
        {"key": key, "value": fact, "number": COMMON["perhaps_number"](fact)} for key, fact in facts if fact is not None
    ]


def _fact(value: object) -> str | None:
    plain = text(COMMON["plain"](value), limit=MAX_FACT)
    return None if plain is None or plain.casefold().lstrip("+-") in {"infinity", "inf"} else plain


def _snapshot(value: object) -> list[Row]:
    """Facts of a snapshot of some 125, with the chief executive and the first trading day as facts of their own."""
    if not isinstance(value, Mapping):
        return _facts(value)
    facts: dict[str, Any] = {}
    for key, one in value.items():
        if key == "companyOfficers" and isinstance(one, list):
            facts |= _officers(one)
        elif not isinstance(one, (dict, list)):
            facts[str(key)] = COMMON["epoch"](one) if key in _EPOCHS else one
    facts["ipoDate"] = COMMON["epoch"](value.get("firstTradeDateEpochUtc")) or facts.get("ipoDate")
    return _facts(facts)


def _officers(officers: list[Any]) -> Row:
    named = [one for one in officers if isinstance(one, Mapping) and text(one.get("name"))]
    listed = "; ".join(f"{one['name']} ({one.get('title') or 'officer'})" for one in named)
    chief = next((one["name"] for one in named if _CHIEF.search(str(one.get("title", "")))), None)
    return {"companyOfficers": listed, "chiefExecutive": chief}


def after(graph: Graph, moment: str | None) -> None:
    """Mark the prices of the last day as partial, if the source ends within that day."""
    if moment is None or "T" not in moment:
        return
    daily = graph.tables["price_daily"]
    later = daily.alias()
    last = ~exists().where(later.c.ticker == daily.c.ticker, later.c.date > daily.c.date)
    graph.connection.execute(update(daily).where(daily.c.date == moment[:10], last).values(is_partial=True))


TRANSFORMS: dict[str, Transform] = {"ticker": _ticker, "fact": _fact, "facts": _facts, "snapshot": _snapshot}
