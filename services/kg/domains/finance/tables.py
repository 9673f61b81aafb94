"""Tables of the finance domain: companies, prices and dividends. Dates are New York's."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Table, Text

from services.kg.store.base import METADATA

company = Table(
    "company",
    METADATA,
    # Upper case.
    Column("ticker", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("currency", Text),
)

# marketCap, forwardEps, trailingEps, forwardPE, trailingPE, dividendYield, sector, fullTimeEmployees ...: the keys of
# the company snapshots that the CRAG mock API serves, spelt as there.
company_fact = Table(
    "company_fact",
    METADATA,
    Column("ticker", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text),
    # The value where it is a number.
    Column("number", Float),
)

price_daily = Table(
    "price_daily",
    METADATA,
    Column("ticker", Text, primary_key=True),
    Column("date", Text, primary_key=True),
    Column("open", Float),
    Column("high", Float),
    Column("low", Float),
    Column("close", Float),
    Column("volume", BigInteger),
    # The day was not over when the source was taken.
    Column("is_partial", Boolean, nullable=False, default=False),
)

price_minute = Table(
    "price_minute",
    METADATA,
    Column("ticker", Text, primary_key=True),
    # "2024-02-28T10:49:00", New York's wall clock.
    Column("at", Text, primary_key=True),
    Column("open", Float),
    Column("high", Float),
    Column("low", Float),
    Column("close", Float),
    Column("volume", BigInteger),
)

dividend = Table(
    "dividend",
    METADATA,
    Column("ticker", Text, primary_key=True),
    # The ex-dividend date.
    Column("date", Text, primary_key=True),
    # A share, in the company's currency.
    Column("value", Float, nullable=False),
)
