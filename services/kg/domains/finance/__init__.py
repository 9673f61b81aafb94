"""Listed companies: prices, dividends and the facts of their snapshots. Money is in the company's currency."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, func, select

from services.kg.domains.finance.prices import trading_day
from services.kg.domains.finance.tables import company, company_fact, dividend, price_daily, price_minute
from services.kg.language.catalogue import Domain, Facet, Function, Key, Parameter
from services.kg.outcome import Outcome

COMPANY = Parameter("name", column="_ticker", entities=("company",), required=True)
SUBJECT = (company.c.ticker.label("_ticker"), company.c.ticker, company.c.name.label("company"))
SUBJECT_KEYS = (
    Key("company", aliases=("name", "company_name"), entity="company", id_column="_ticker"),
    Key("ticker", aliases=("symbol", "stock")),
)
# The bar before this one, whatever days the market was closed.
BEFORE = price_daily.alias("before")
PREVIOUS_CLOSE = (
    select(BEFORE.c.close)
    .where(BEFORE.c.ticker == price_daily.c.ticker, BEFORE.c.date < price_daily.c.date)
    .order_by(BEFORE.c.date.desc())
    .limit(1)
    .scalar_subquery()
)
BAR_KEYS = (
    Key("open", "money", ("opening", "open_price", "opening_price"), label="opening price"),
    Key("high", "money", ("highest", "daily_high"), label="high"),
    Key("low", "money", ("lowest", "daily_low"), label="low"),
    Key("close", "money", ("price", "closing", "close_price", "closing_price", "last"), label="closing price"),
    Key("volume", "integer", ("trading_volume", "shares", "shares_traded"), label="trading volume", unit="shares"),
)

PRICES = Function(
    "get_stock_price",
    "finance",
    "open, high, low, close, volume on a day, or between two days; for now: latest",
    (COMPANY, Parameter("time", "time", "date"), Parameter("until", "time", "date")),
    select(
        *SUBJECT,
        price_daily.c.date,
        price_daily.c.open,
        price_daily.c.high,
        price_daily.c.low,
        price_daily.c.close,
        price_daily.c.volume,
        (price_daily.c.close - price_daily.c.open).label("change"),
        PREVIOUS_CLOSE.label("previous_close"),
        price_daily.c.is_partial.label("_is_partial"),
    ).select_from(price_daily.join(company, company.c.ticker == price_daily.c.ticker)),
    (
        Key("date", "date", ("time", "day", "days", "when")),
        *BAR_KEYS,
        Key("change", "money", ("gain", "rise"), label="change from open to close"),
        Key("previous_close", "money", ("prev_close", "yesterday_close"), label="close of the trading day before"),
        *SUBJECT_KEYS,
    ),
    subject=("company", "ticker", "date"),
    default=("open", "high", "low", "close", "volume"),
    order=("date",),
    span=("time", "until"),
    refine=trading_day,
)
LATEST = Function(
    "get_stock_latest",
    "finance",
    "the newest price before the question was asked",
    (COMPANY, Parameter("time", "time", "at")),
    select(
        *SUBJECT,
        price_minute.c.at.label("date"),
        price_minute.c.at,
        price_minute.c.open,
        price_minute.c.high,
        price_minute.c.low,
        price_minute.c.close,
        price_minute.c.volume,
    ).select_from(price_minute.join(company, company.c.ticker == price_minute.c.ticker)),
    (Key("date", "date", ("time", "at", "when"), label="time"), *BAR_KEYS, *SUBJECT_KEYS),
    subject=("company", "ticker", "date"),
    default=("close",),
    order=("-date",),
    limit=1,
    refine=trading_day,
    hidden=True,
)
DIVIDENDS = Function(
    "get_stock_dividend",
    "finance",
    "dividends by ex-dividend date, all or between two days",
    (COMPANY, Parameter("time", "time", "date"), Parameter("until", "time", "date")),
    select(*SUBJECT, dividend.c.date, dividend.c.value).select_from(
        dividend.join(company, company.c.ticker == dividend.c.ticker)
    ),
    (
        Key("date", "date", ("ex_dividend_date", "ex_date", "time", "day", "when"), label="ex-dividend date"),
        Key("value", "money", ("amount", "dividend", "payment"), label="dividend a share"),
        *SUBJECT_KEYS,
    ),
    subject=("company", "ticker", "date"),
    default=("date", "value"),
    order=("-date",),
    totals={"name": "finance.dividends"},
    event="date",
    span=("time", "until"),
    aliases=("get_stock_dividends", "get_dividend"),
)


def _single(name: str, key: str, label: str, summary: str, *, money: bool, aliases: tuple[str, ...] = ()) -> Function:
    """A function for one fact of the snapshot."""
    view: Select[Any] = (
        select(*SUBJECT, company_fact.c.number.label("value"))
        .select_from(company_fact.join(company, company.c.ticker == company_fact.c.ticker))
        .where(company_fact.c.key == key, company_fact.c.number.is_not(None))
    )
    value = Key("value", "money" if money else "number", (label.replace(" ", "_"), spelled(name)), label=label)
    return Function(
        name,
        "finance",
        summary,
        (COMPANY,),
        view,
        (value, *SUBJECT_KEYS),
        subject=("company", "ticker"),
        default=("value",),
        aliases=aliases,
    )


def spelled(name: str) -> str:
    return name.removeprefix("get_stock_")


CAP = _single(
    "get_stock_market_cap",
    "marketCap",
    "market capitalization",
    "market capitalization, a company's total value",
    money=True,
    aliases=("get_stock_market_capitalization", "get_market_cap"),
)
PE = _single(
    "get_stock_pe_ratio",
    "forwardPE",
    "price-to-earnings ratio",
    "price-to-earnings ratio",
    money=False,
    aliases=("get_pe_ratio", "get_stock_pe"),
)
EPS = _single(
    "get_stock_eps",
    "forwardEps",
    "earnings per share",
    "earnings, or profit, per share",
    money=True,
    aliases=("get_eps",),
)
INFO = Function(
    "get_stock_info",
    "finance",
    "any other fact of a company: sector, industry, employees, revenue, dividend yield, beta, margins ...",
    (COMPANY,),
    select(
        *SUBJECT,
        company_fact.c.key,
        func.coalesce(company_fact.c.value, func.cast(company_fact.c.number, company_fact.c.value.type)).label("value"),
        company_fact.c.number,
    ).select_from(company_fact.join(company, company.c.ticker == company_fact.c.ticker)),
    (Key("key"), Key("value"), Key("number", "number"), *SUBJECT_KEYS),
    subject=("company", "ticker", "key", "number"),
    default=("key", "value"),
    order=("key",),
    dynamic=True,
    spellings={
        "employees": "fullTimeEmployees",
        "yield": "dividendYield",
        "revenue": "totalRevenue",
        "sales": "totalRevenue",
        "market_cap": "marketCap",
        "market_capitalization": "marketCap",
        "pe": "forwardPE",
        "pe_ratio": "forwardPE",
        "eps": "forwardEps",
        "price_to_book_ratio": "priceToBook",
        "pb": "priceToBook",
        "p_b": "priceToBook",
        "debt": "totalDebt",
        "cash": "totalCash",
        "margin": "profitMargins",
        "profit_margin": "profitMargins",
        "52_week_high": "fiftyTwoWeekHigh",
        "52_week_low": "fiftyTwoWeekLow",
        "ceo": "companyOfficers",
        "officers": "companyOfficers",
        "headquarters": "city",
        "dividend": "dividendRate",
        "target_price": "targetMeanPrice",
        "recommendation": "recommendationKey",
        "ex_dividend_date": "exDividendDate",
        "shares": "sharesOutstanding",
        "description": "longBusinessSummary",
    },
    facets={"dividends": Facet("get_stock_dividend")},
    aliases=("get_company_info", "get_company"),
)


def describe(function: str, row: Mapping[str, Any]) -> str:
    """A row's subject in words."""
    name = str(row["company"])
    if row["ticker"] and str(row["ticker"]).lower() != name.lower():
        name = f"{name} ({row['ticker']})"
    if function == "get_stock_latest":
        day, _, clock = str(row["date"]).partition("T")
        return f"{name} on {day} at {clock[:5]} New York time"
    if function in ("get_stock_price", "get_stock_dividend") and row.get("date"):
        return f"{name} on {row['date']}"
    return name


def lead(outcome: Outcome) -> str:
    """What a statement's rows are in words."""
    companies = [f"{row['company']} ({row['ticker']})" for row in outcome.rows if row.get("company")]
    names = " and ".join(dict.fromkeys(companies or [entity.surface for entity in outcome.entities]))
    match outcome.function.name if outcome.function else "":
        case "get_stock_dividend":
            return f"dividends of {names}"
        case "get_stock_price" | "get_stock_latest":
            return f"prices of {names} by trading day"
        case "get_stock_info":
            return f"facts of {names}"
        case name:
            return f"{spelled(name).replace('_', ' ')} of {names}"


DOMAIN = Domain(
    "finance",
    "listed companies: stock prices, market cap, P/E, EPS, dividends, company facts",
    (PRICES, LATEST, CAP, PE, EPS, DIVIDENDS, INFO),
    describe,
    lead,
)
