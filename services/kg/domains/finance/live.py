"""The calls of the CRAG mock API for a program about companies; the results of some lead to others."""

import itertools
import re
from typing import Any

from services.kg.domains.finance.company_names import company_names
from services.kg.live.fill import Live, record, texts
from services.kg.load.values import text
from services.kg.store.names import Surface
from services.kit.concurrency import all_of

_TICKER = re.compile(r"[A-Za-z]{1,5}(?:[.^-][A-Za-z]{1,3})?")
# Calls that only some functions need.
_CALLS = {
    "get_price_history": ("get_stock_price", "get_stock_latest"),
    "get_detailed_price_history": ("get_stock_price", "get_stock_latest"),
    "get_pe_ratio": ("get_stock_pe_ratio",),
    "get_eps": ("get_stock_eps",),
    "get_dividends_history": ("get_stock_dividend", "get_stock_info"),
}


async def fetch(live: Live) -> None:
    """Companies by name or ticker, each with what the functions need."""
    tickers = await all_of(_tickers(live, name) for name in live.names("company"))
    await all_of(_company(live, ticker) for ticker in dict.fromkeys(itertools.chain.from_iterable(tickers)))


async def _tickers(live: Live, name: str) -> list[str]:
    """Tickers of a name: the name itself if a company has it, and those of companies that the name means."""
    guess = name.upper() if _TICKER.fullmatch(name) else None
    names, info = await all_of([live.call("finance/get_company_name", query=name), _info(live, guess)])
    tickers = [guess] if guess and isinstance(info, dict) and info else []
    surfaces = [Surface(full, surface, weight) for full in texts(names) for surface, weight in company_names(full, "")]
    chosen = await live.choose("company", name, surfaces)
    symbols = await all_of(live.fetch("finance/get_ticker_by_name", query=full) for full in chosen)
    return tickers + [str(symbol) for symbol in symbols if text(symbol)]


async def _info(live: Live, ticker: str | None) -> Any:
    return await live.fetch("finance/get_info", query=ticker) if ticker else None


async def _company(live: Live, ticker: str) -> None:
    names = ["get_info", "get_market_capitalization"]
    names += [name for name, functions in _CALLS.items() if live.uses(*functions)]
    results = await all_of(live.call(f"finance/{name}", query=ticker) for name in names)
    failed = set(live.report.failed)
    await live.put(
        [
            record(f"finance/{name}", result, query=ticker)
            for name, result in zip(names, results, strict=True)
            # Without dividends the result is null, as it is after a failure.
            if result is not None or (name == "get_dividends_history" and f"finance/{name}" not in failed)
        ]
    )
