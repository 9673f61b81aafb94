"""Companies, prices and dividends as the CRAG mock API and its files hold them."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.kg.domains.finance.tables import company, company_fact, dividend, price_daily, price_minute
from services.kg.load.errors import BadRow
from services.kg.load.graph import Graph
from services.kg.load.values import day, moment, number, text, whole
from services.kg.store.tables import stated_total

# Moments that Yahoo counts in seconds since 1970, and their ISO dates beside them.
_EPOCHS = frozenset(
    {
        "exDividendDate", "lastDividendDate", "lastFiscalYearEnd", "nextFiscalYearEnd", "mostRecentQuarter",
        "lastSplitDate", "dateShortInterest", "sharesShortPreviousMonthDate", "firstTradeDateEpochUtc",
        "governanceEpochDate", "compensationAsOfEpochDate",
    }
)  # fmt: skip
MAX_FACT = 2_000
_CHIEF = re.compile(r"\bCEO\b|chief executive", re.IGNORECASE)


def put_company(graph: Graph, ticker: str, name: str) -> None:
    """A company under its full name as listed."""
    graph.put(company, ticker=ticker, name=name)
    graph.know_company(ticker, name)


def put_fact(graph: Graph, ticker: str, key: str, value: object, *, weak: bool = False) -> None:
    """One fact of a company, as text and as a number where it is one; nothing for null and for infinities."""
    if isinstance(value, (dict, list, bool)):
        value = json.dumps(value, ensure_ascii=False)
    plain = text(value, limit=MAX_FACT)
    if plain is None or plain.casefold().lstrip("+-") in {"infinity", "inf"}:
        return
    try:
        as_number = number(value)
    except BadRow:
        as_number = None
    graph.put(company_fact, weak=weak, ticker=ticker, key=key[:64], value=plain, number=as_number)


def put_prices(graph: Graph, ticker: str, stated: Mapping[str, Any] | None) -> str | None:
    """A year of days: {"2024-02-28 00:00:00 EST": {"Open": ..}}. The last day, which may not have been over."""
    last: str | None = None
    for at, bar in (stated or {}).items():
        date = day(at)
        if date is None or not isinstance(bar, Mapping):
            raise BadRow("date", "is no day with its prices")
        graph.put(price_daily, ticker=ticker, date=date, **_bar(bar))
        last = max(date, last or "")
    graph.seen("finance", last)
    return last


def put_minutes(graph: Graph, ticker: str, stated: Mapping[str, Any] | None) -> None:
    """Five days of minutes; New York's wall clock."""
    for at, bar in (stated or {}).items():
        if not isinstance(bar, Mapping):
            raise BadRow("at", "is no minute with its prices")
        graph.put(price_minute, ticker=ticker, at=moment(at), **_bar(bar))
        graph.seen("finance", moment(at))


def _bar(bar: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): number(bar.get(key), key) for key in ("Open", "High", "Low", "Close")} | {
        "volume": whole(bar.get("Volume"), "Volume")
    }


def put_dividends(graph: Graph, ticker: str, stated: Mapping[str, Any] | None) -> None:
    """All dividends ever, by ex-date; that there are none is told by a total of 0."""
    for at, value in (stated or {}).items():
        date, amount = day(at), number(value)
        if date is None or amount is None:
            raise BadRow("date" if date is None else "value", "is missing")
        graph.put(dividend, ticker=ticker, date=date, value=amount)
    if not stated:
        graph.put(stated_total, relation="finance.dividends", entity_id=ticker, total=0)


def put_info(graph: Graph, ticker: str, stated: Mapping[str, Any] | None) -> None:
    """A snapshot of some 125 facts; the chief executive and the first trading day are drawn out of it."""
    if not stated:
        return
    name = text(stated.get("longName")) or text(stated.get("shortName"))
    graph.put(company, weak=True, ticker=ticker, name=name or ticker, currency=text(stated.get("currency")))
    for key, value in stated.items():
        if key in _EPOCHS:
            value = _date_of(value)
        if key == "companyOfficers" and isinstance(value, list):
            _put_officers(graph, ticker, value)
        elif not isinstance(value, (dict, list)):
            put_fact(graph, ticker, str(key), value)
    first = _date_of(stated.get("firstTradeDateEpochUtc"))
    if first:
        put_fact(graph, ticker, "ipoDate", first)


def _put_officers(graph: Graph, ticker: str, officers: list[Any]) -> None:
    named = [one for one in officers if isinstance(one, Mapping) and text(one.get("name"))]
    listed = "; ".join(f"{one['name']} ({one.get('title') or 'officer'})" for one in named)
    put_fact(graph, ticker, "companyOfficers", listed)
    chief = next((one for one in named if _CHIEF.search(str(one.get("title", "")))), None)
    if chief:
        put_fact(graph, ticker, "chiefExecutive", chief["name"])


def _date_of(seconds: object) -> str | None:
    try:
        stated = number(seconds)
        return datetime.fromtimestamp(stated, UTC).date().isoformat() if stated is not None else None
    except (BadRow, OverflowError, OSError, ValueError):
        return None
