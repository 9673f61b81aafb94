"""The trading days that a time means: holidays, today's unfinished bar, and a snapshot that ends before the question.

Python, because the market's hours and the days with prices decide which day is meant.
"""

from datetime import date, datetime, time, timedelta

from sqlalchemy import ColumnElement, func, select

from services.kg.scope import Scope
from services.kit.text.times import Window

MARKET_OPENS = time(9, 30)
MARKET_CLOSES = time(16, 0)
# After a longer gap than that of any holiday the data ends before the question.
LONGEST_CLOSURE = timedelta(days=5)


def trading_day(scope: Scope) -> None:
    """Narrow prices to the trading days that the time means, and note which those are."""
    window = scope.windows.get("time")
    newest = "get_stock_latest" in (scope.function.name, scope.instead_of)
    now = window.now if window is not None else scope.now
    tickers = scope.entities.get("name", ())
    if newest or (window is not None and window.kind == "latest"):
        of_tickers = scope.tables["price_daily"].c.ticker.in_(tickers)
        if not newest and _asks_for_todays_open(scope, now) and _has_bar(scope, of_tickers, now.date()):
            # Nobody asks for the open of a minute.
            scope.narrow(scope.columns["date"] == now.date().isoformat())
        else:
            _latest(scope, window)
        return
    columns = scope.columns
    if window is None:
        scope.narrow(columns["date"] < now.date().isoformat())
        return
    if window.granularity in ("day", "instant") and window.kind == "window" and window.start is not None:
        _day(scope, window, tickers)
        return
    # The day of the question has no close yet, and its bar is partial.
    end = min(window.end or now.date(), now.date())
    if window.start is not None:
        scope.narrow(columns["date"] >= window.start.isoformat())
    scope.narrow(columns["date"] < end.isoformat())
    scope.narrow(~columns["_is_partial"])
    if window.kind in ("first", "last"):
        scope.only(columns["date"], last=window.kind == "last")
    _note_if_stale(scope, tickers, end - timedelta(days=1), now)


def _latest(scope: Scope, window: Window | None) -> None:
    now = window.now if window is not None else scope.now
    tickers = scope.entities.get("name", ())
    stamp = now.replace(tzinfo=None).isoformat(timespec="seconds")
    price_minute = scope.tables["price_minute"]
    newest = scope.scalar(
        select(func.max(price_minute.c.at)).where(price_minute.c.ticker.in_(tickers), price_minute.c.at <= stamp)
    )
    if newest is not None and str(newest)[:10] == stamp[:10]:
        if scope.function.name == "get_stock_latest" or scope.instead_of:
            scope.narrow(scope.columns["date"] == newest)
        else:
            scope.replace("get_stock_latest")
        return
    if scope.function.name == "get_stock_latest":
        scope.replace("get_stock_price")
        return
    if now.time() < MARKET_OPENS:
        scope.findings.notes.append(f"the market had not opened on {now.date()}, so this is the last close before")
    else:
        scope.findings.notes.append(f"no price of {now.date()} is known, so this is the last close before")
    scope.narrow(scope.columns["date"] < now.date().isoformat())
    scope.narrow(~scope.columns["_is_partial"])
    scope.only(scope.columns["date"], last=True)
    _note_if_stale(scope, tickers, now.date(), now)


def _asks_for_todays_open(scope: Scope, now: datetime) -> bool:
    """Whether the open of a day that has begun is all that is asked for: of a running day nothing else is final."""
    return scope.projected == {"open"} and now.time() >= MARKET_OPENS


def _has_bar(scope: Scope, bars: ColumnElement[bool], day: date) -> bool:
    """Whether one of some daily bars is of a day."""
    price_daily = scope.tables["price_daily"]
    return (
        scope.scalar(select(price_daily.c.date).where(bars, price_daily.c.date == day.isoformat()).limit(1)) is not None
    )


def _day(scope: Scope, window: Window, tickers: tuple[str, ...]) -> None:
    day = window.start
    assert day is not None  # noqa: S101 - checked by the caller
    now = window.now
    columns = scope.columns
    if day == now.date() and now.time() < MARKET_CLOSES and not _asks_for_todays_open(scope, now):
        _latest(scope, window)
        return
    price_daily = scope.tables["price_daily"]
    has_row: ColumnElement[bool] = price_daily.c.ticker.in_(tickers)
    if day != now.date():
        # The last bar of a snapshot may be partial.
        has_row &= ~price_daily.c.is_partial
    if _has_bar(scope, has_row, day):
        scope.narrow(columns["date"] == day.isoformat())
        return
    after = select(func.min(price_daily.c.date)).where(
        has_row, price_daily.c.date > day.isoformat(), price_daily.c.date < now.date().isoformat()
    )
    before = select(func.max(price_daily.c.date)).where(has_row, price_daily.c.date < day.isoformat())
    nearest = (scope.scalar(after) if window.snap == "next" else None) or scope.scalar(before)
    scope.narrow(columns["date"] == (nearest or day.isoformat()))
    if nearest is None:
        return
    scope.findings.notes.append(f"there was no trading on {day}; the nearest trading day is {nearest}")
    if abs(date.fromisoformat(str(nearest)) - day) > LONGEST_CLOSURE:
        scope.findings.status = "stale"


def _note_if_stale(scope: Scope, tickers: tuple[str, ...], day: date, now: datetime) -> None:
    """Note where the prices end, if a recent day is meant that they do not reach."""
    price_daily = scope.tables["price_daily"]
    last = scope.scalar(select(func.max(price_daily.c.date)).where(price_daily.c.ticker.in_(tickers)))
    recent = day >= now.date() - timedelta(days=7)
    if last is not None and recent and day - date.fromisoformat(str(last)) > LONGEST_CLOSURE:
        scope.findings.status = "stale"
        scope.findings.notes.append(f"the prices known end on {last}")
