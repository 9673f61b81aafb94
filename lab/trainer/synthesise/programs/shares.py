"""Programs about shares."""

from datetime import date, datetime, timedelta

from lab.trainer.synthesise import finance
from lab.trainer.synthesise.programs.drawn import Drawn, made, quoted
from lab.trainer.synthesise.voice import MONTHS, WEEKDAYS
from lab.trainer.synthesise.world import Share, World

_COLUMN = {"Open": "open", "High": "high", "Low": "low", "Close": "close", "Volume": "volume"}


def _share(w: World) -> tuple[Share, str]:
    share = w.voice.pick(w.shares)
    company = share.company
    return share, company.ticker if w.voice.chance(0.6) else company.words


def _day_words(w: World, when: datetime) -> tuple[str, str, date]:
    """Words of a question for a trading day, those of its program, and the day itself."""
    v, today = w.voice, when.date()
    friday = today - timedelta(days=(today.weekday() - 5) % 7 + 1)
    weekday = v.between(0, 4)
    name = WEEKDAYS[weekday]
    before = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    some = finance.back(today, v.between(2, 60))
    month = MONTHS[some.month - 1].lower()
    first = today.replace(day=1)
    options = [
        ("[yesterday]", "yesterday", finance.back(today)),
        ("[on |][the |]last trading day", "last trading day", finance.back(today)),
        ("[on |]the previous trading day", "previous trading day", finance.back(today)),
        ("[on |]the most recent trading day", "most recent trading day", finance.back(today)),
        ("the day before yesterday", "day before yesterday", finance.back(today, 2)),
        ("[last friday|on last friday]", "last friday", friday),
        ("[on friday|this past friday]", "friday", friday),
        ("on the most recent friday", "most recent friday", friday),
        (f"[last {name}|on last {name}]", f"last {name}", before),
        (f"on {name}", name, before),
        (f"this past {name}", f"this past {name}", before),
        (f"on the [{name}] of last week", f"last week {name}", before),
        (f"on {month} {some.day}, {some.year}", some.isoformat(), some),
        (f"on {some.day} {month} {some.year}", some.isoformat(), some),
        (f"on {some.isoformat()}", some.isoformat(), some),
        (f"on {some.month}/{some.day}/{some.year}", some.isoformat(), some),
        ("[at the end of last month|on the last day of last month]", "last day of last month", finance.back(first)),
        ("on the last trading day of last month", "last trading day of last month", finance.back(first)),
        (
            f"on the first trading day of {month} {some.year}",
            f"first trading day of {month} {some.year}",
            _first_trading(some.replace(day=1)),
        ),
        (
            f"on the last trading day of {month} {some.year}",
            f"last trading day of {month} {some.year}",
            _month_end(some),
        ),
    ]
    words, program, day = v.pick(options)
    return v.say(words), program, day


def _first_trading(day: date) -> date:
    while day.weekday() >= 5:
        day += timedelta(days=1)
    return day


def _month_end(day: date) -> date:
    following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return finance.back(following)


def price_on_day(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    when = w.moment()
    if when.weekday() >= 5:
        return None
    field_name = v.weighted({"Close": 4.0, "Open": 3.0, "High": 1.0, "Low": 1.0, "Volume": 1.6})
    words, program, day = _day_words(w, when)
    if day not in share.bars or day >= when.date():
        return None
    query = v.ask(finance.PRICE_NOUNS[field_name], finance.PRICE_WHOLE[field_name], x=asked, d=words)
    column = _COLUMN[field_name]
    return made(
        w,
        query,
        f'get_stock_price({quoted(asked)}, "{program}")["{column}"]',
        (share.bars[day][column],),
        "simple_w_condition",
        when,
    )


def price_today(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    query = v.ask(
        finance.PRICE_NOUNS["Open"], ("what did {x} open at {d}", "where did {x} [start|open] {d}"), x=asked, d="today"
    )
    when = w.moment()
    if when.date() not in share.bars:
        return None
    return made(
        w,
        query,
        f'get_stock_price({quoted(asked)}, "today")["open"]',
        (share.bars[when.date()]["open"],),
        "simple",
        when,
    )


def price_now(w: World) -> Drawn | None:
    v = w.voice
    share = v.pick(w.shares[: len(w.quotes)])
    asked = share.company.ticker if v.chance(0.6) else share.company.words
    query = v.ask(finance.NOW if v.chance(0.6) else finance.RECENT, finance.NOW_WHOLE, x=asked)
    return made(
        w,
        query,
        f'get_stock_price({quoted(asked)}, "latest")["close"]',
        (w.quotes[share.company.ticker],),
        "simple",
        w.now(),
    )


_METRIC = {
    "stock market cap": ("get_stock_market_cap", "marketCap"),
    "stock pe ratio": ("get_stock_pe_ratio", "forwardPE"),
    "stock eps": ("get_stock_eps", "forwardEps"),
}


def metric(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    name = v.pick(list(_METRIC))
    function, key = _METRIC[name]
    return made(w, v.ask(*finance.METRICS[name], x=asked), f"{function}({quoted(asked)})", (share.facts[key],))


_INFO: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("sector", "sector", ("the sector of {x}",), ("[what|which] sector is {x} in", "which sector does {x} belong to")),
    ("industry", "industry", ("the industry of {x}",), ("what industry is {x} in", "what line of business is {x} in")),
    (
        "employees",
        "fullTimeEmployees",
        ("the number of [employees|staff] of {x}",),
        ("how many [people|employees] [work for|does] {x}[| have]", "how many people does {x} employ"),
    ),
    (
        "revenue",
        "totalRevenue",
        ("the [annual |yearly |total |]revenue of {x}", "{x}'s [annual |]revenue"),
        ("how much does {x} sell a year", "how much revenue does {x} [have|make]"),
    ),
    (
        "dividend_yield",
        "dividendYield",
        ("the dividend yield of {x}", "{x}'s dividend yield"),
        ("how much does {x} yield in dividends",),
    ),
    ("beta", "beta", ("the beta of {x}", "{x}'s beta"), ("how volatile is {x}, what is its beta",)),
    ("profit_margin", "profitMargins", ("the profit margin of {x}", "{x}'s [net |]profit margin"), ()),
    (
        "price_to_book",
        "priceToBook",
        ("the [price-to-book|p/b|price to book] ratio of {x}", "{x}'s [p/b|price-to-book] ratio"),
        (),
    ),
    (
        "headquarters",
        "city",
        ("the headquarters of {x}", "the city {x} is based in"),
        ("where is {x} [based|headquartered]",),
    ),
    ("fiftytwoweekhigh", "fiftyTwoWeekHigh", ("the 52[-| ]week high of {x}", "{x}'s 52 week high"), ()),
    ("fiftytwoweeklow", "fiftyTwoWeekLow", ("the 52[-| ]week low of {x}", "{x}'s 52 week low"), ()),
    (
        "debt",
        "totalDebt",
        ("the [total |]debt of {x}", "{x}'s total debt"),
        ("how much debt does {x} have", "how much does {x} owe"),
    ),
    ("cash", "totalCash", ("the cash of {x}",), ("how much cash does {x} [have|hold]",)),
    (
        "ceo",
        "companyOfficers",
        ("the [ceo|chief executive] of {x}", "{x}'s ceo"),
        ("who is the ceo of {x}", "who [runs|leads] {x}"),
    ),
    ("target_price", "targetMeanPrice", ("the target price of {x}", "analysts' [price target|target] for {x}"), ()),
)


def info(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    key, fact, nouns, whole = v.pick(_INFO)
    return made(w, v.ask(nouns, whole, x=asked), f'get_stock_info({quoted(asked)})["{key}"]', (share.facts[fact],))


def compare_shares(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(w.shares, 2)
    when = w.moment()
    if when.weekday() >= 5:
        return None
    tickers = v.chance(0.65)
    a, b = ((s.company.ticker if tickers else s.company.words) for s in (one, two))
    name = v.weighted(
        {
            "stock market cap": 3.0,
            "stock pe ratio": 1.5,
            "stock eps": 0.6,
            "Close": 1.5,
            "Open": 0.7,
            "Volume": 1.2,
            "info": 1.0,
        }
    )
    words, program, day = _day_words(w, when)
    if name in _METRIC:
        function, fact = _METRIC[name]
        calls, gold = [f"{function}({quoted(x)})" for x in (a, b)], (one.facts[fact], two.facts[fact])
        template, more, less = finance.WHAT[name]
    elif name == "info":
        key, fact, said = v.pick(
            (
                ("dividend_yield", "dividendYield", "dividend yield"),
                ("revenue", "totalRevenue", "[annual |]revenue"),
                ("employees", "fullTimeEmployees", "number of employees"),
                ("profit_margin", "profitMargins", "profit margin"),
                ("debt", "totalDebt", "debt"),
                ("beta", "beta", "beta"),
            )
        )
        calls, gold = [f'get_stock_info({quoted(x)})["{key}"]' for x in (a, b)], (one.facts[fact], two.facts[fact])
        template, more, less = said, "higher|larger|greater", "lower|smaller"
    else:
        if day not in one.bars or day >= when.date():
            return None
        column = _COLUMN[name]
        calls, gold = (
            [f'get_stock_price({quoted(x)}, "{program}")["{column}"]' for x in (a, b)],
            (one.bars[day][column], two.bars[day][column]),
        )
        template, more, less = finance.WHAT[name]
    query = v.say(
        v.pick(finance.COMPARE).replace("{more}", more if v.chance(0.75) else less),
        a=a,
        b=b,
        what=v.say(template.replace("{d}", words)),
    )
    return made(w, query, "\n".join(calls), gold, "comparison", when)


def _span(w: World, when: datetime) -> tuple[str, str, date, date] | None:
    """Words for some days, those of the program, the first and the last of them."""
    v, today = w.voice, when.date()
    sunday = today - timedelta(days=(today.weekday() + 1) % 7)
    first = today.replace(day=1)
    previous = (first - timedelta(days=1)).replace(day=1)
    month = MONTHS[previous.month - 1].lower()
    quarter = (previous.month - 1) // 3
    start = date(previous.year, quarter * 3 + 1, 1)
    end = (start + timedelta(days=95)).replace(day=1) - timedelta(days=1)
    options: list[tuple[str, str, date, date]] = [
        ("[this week|in this week|over this week]", "this week", sunday, today - timedelta(days=1)),
        ("[last week|in the last week]", "last week", sunday - timedelta(days=7), sunday - timedelta(days=1)),
        (
            "[in the previous week|the previous week]",
            "previous week",
            sunday - timedelta(days=7),
            sunday - timedelta(days=1),
        ),
        ("[last month|in the last month]", "last month", previous, first - timedelta(days=1)),
        ("[in |over |during |]the [previous] month", "previous month", previous, first - timedelta(days=1)),
        ("[in |over |during |]the past month", "past month", previous, first - timedelta(days=1)),
        (
            f"[in|during] the first week of {month} {previous.year}",
            f"first week of {month} {previous.year}",
            previous,
            previous + timedelta(days=6),
        ),
        (f"[in|during] {month} {previous.year}", f"{month} {previous.year}", previous, first - timedelta(days=1)),
        (
            f"[in|during] q{quarter + 1} {start.year}",
            f"q{quarter + 1} {start.year}",
            start,
            min(end, today - timedelta(days=1)),
        ),
    ]
    if today.weekday() in (0, 6):
        options = options[1:]
    words, program, a, b = v.pick(options)
    return v.say(words), program, a, b


_AGGREGATES = (
    (
        "AVG",
        ("the average [daily |]{f} of {x} {d}", "{x}'s average [daily |]{f} {d}", "the mean [daily |]{f} of {x} {d}"),
        ("{d}, what was the average [daily |]{f} of {x}",),
    ),
    (
        "MAX",
        ("the [highest|top|maximum|peak] {f} of {x} {d}", "{x}'s [highest|maximum] {f} {d}", "the max {f} of {x} {d}"),
        ("what was the [most|highest] {x} [reached|got to] in {f} {d}",),
    ),
    (
        "MIN",
        ("the [lowest|minimum|bottom] {f} of {x} {d}", "{x}'s [lowest|minimum] {f} {d}", "the min {f} of {x} {d}"),
        ("what was the lowest {f} of {x} {d}",),
    ),
    (
        "SUM",
        (
            "the total [trading |]volume of {x} {d}",
            "{x}'s [overall|total] volume {d}",
            "the sum of the volume of {x} {d}",
        ),
        ("how many {x} shares were traded in total {d}", "how much volume did {x} have altogether {d}"),
    ),
)


def window(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    when = w.moment()
    if when.weekday() >= 5 or (span := _span(w, when)) is None:
        return None
    words, program, first, last = span
    bars = [bar for day, bar in share.bars.items() if first <= day <= last]
    if not bars or first < min(share.bars):
        return None
    how, nouns, whole = v.pick(_AGGREGATES)
    said, column = v.pick(
        (("closing price", "close"), ("opening price", "open"), ("high", "high"), ("low", "low"), ("close", "close"))
    )
    if how == "SUM":
        column = "volume"
    elif how in ("MAX", "MIN") and v.chance(0.6):
        said, column = v.pick(("stock price", "price", "share price")), "high" if how == "MAX" else "low"
    values = [bar[column] for bar in bars]
    gold = {"AVG": sum(values) / len(values), "MAX": max(values), "MIN": min(values), "SUM": sum(values)}[how]
    query = v.ask(nouns, whole, x=asked, d=words, f=said)
    return made(
        w, query, f'{how} get_stock_price({quoted(asked)}, "{program}")["{column}"]', (gold,), "aggregation", when
    )


def days_up(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    when = w.moment()
    if when.weekday() >= 5 or (span := _span(w, when)) is None:
        return None
    words, program, first, last = span
    up = v.chance(0.5)
    days = [
        day
        for day, bar in share.bars.items()
        if first <= day <= last and (bar["close"] > bar["open"] if up else bar["close"] < bar["open"])
    ]
    if not days or first < min(share.bars) or len(days) > 9:
        return None
    way, sign = ("[higher|up]", "gt") if up else ("[lower|down]", "lt")
    call = f'get_stock_price({quoted(asked)}, "{program}") where({sign}(close, open))'
    if v.chance(0.4):
        query = v.ask(
            (),
            (
                f"how many days did {{x}} [close|finish] {way} {{d}}",
                f"how often did {{x}} [close|end] {way} {{d}}",
                f"{{d}}, on how many days did {{x}} close {way}",
            ),
            x=asked,
            d=words,
        )
        return made(w, query, f"LEN {call}", (len(days),), "aggregation", when)
    query = v.ask(
        (f"the [days|dates] {{d}} [on which|when] {{x}} closed {way}",),
        (
            f"which days did {{x}} [close|finish] {way} {{d}}",
            f"on which [days|dates] did {{x}}[| stock] [close|end] {way} {{d}}",
            f"{{d}}, when did {{x}} close {way}",
        ),
        x=asked,
        d=words,
    )
    return made(w, query, f'ALL {call}["date"]', tuple(day.isoformat() for day in days), "set", when)


def volumes(w: World) -> Drawn | None:
    v = w.voice
    one, two = v.some(w.shares, 2)
    when = w.moment()
    if when.weekday() >= 5 or (span := _span(w, when)) is None:
        return None
    words, program, first, last = span
    if first < min(one.bars):
        return None
    totals = tuple(sum(bar["volume"] for day, bar in s.bars.items() if first <= day <= last) for s in (one, two))
    a, b = one.company.ticker, two.company.ticker
    most = v.chance(0.6)
    way = "[most|highest|largest]" if most else "[least|lowest|smallest]"
    query = v.say(
        v.pick(
            (
                f"which [stock|company|etf] had the {way} [trading |]volume {{d}}, {{a}} or {{b}}",
                f"which [was|got] traded {'more' if most else 'less'} {{d}}, {{a}} or {{b}}",
                f"between {{a}} and {{b}}, which [company's |]stock had the {way} trading activity {{d}}",
                f"{{a}} or {{b}}, which had the {way} [number of shares traded|volume] {{d}}",
            )
        ),
        a=a,
        b=b,
        d=words,
    )
    return made(
        w,
        query,
        "\n".join(f'SUM get_stock_price({quoted(x)}, "{program}")["volume"]' for x in (a, b)),
        totals,
        "comparison",
        when,
    )


def dividends(w: World) -> Drawn | None:
    v = w.voice
    share, asked = _share(w)
    if not share.dividends:
        return None
    call = f"get_stock_dividend({quoted(asked)}"
    first, last = share.dividends[0], share.dividends[-1]
    year = v.pick(share.dividends)[0].year
    of_year = [amount for day, amount in share.dividends if day.year == year]
    quarter = v.pick(share.dividends)[0]
    q = (quarter.month - 1) // 3 + 1
    in_quarter = [
        day.isoformat() for day, _ in share.dividends if day.year == quarter.year and (day.month - 1) // 3 + 1 == q
    ]
    match v.weighted(
        {"last": 3.0, "first": 2.0, "amount": 1.0, "count": 1.0, "sum": 0.8, "quarter": 1.5, "all": 0.6, "max": 0.4}
    ):
        case "last":
            return made(
                w,
                v.ask(finance.LAST, finance.LAST_WHOLE, x=asked),
                f'{call}) sort(None, -date)["date"][:1]',
                (last[0].isoformat(),),
            )
        case "first":
            return made(
                w,
                v.ask(finance.FIRST, finance.FIRST_WHOLE, x=asked),
                f'{call}) sort(None, date)["date"][:1]',
                (first[0].isoformat(),),
            )
        case "amount":
            return made(
                w,
                v.ask(finance.AMOUNT, finance.AMOUNT_WHOLE, x=asked),
                f'{call}) sort(None, -date)["value"][:1]',
                (last[1],),
            )
        case "count":
            query = v.ask(
                (),
                (
                    "how many dividends did {x} pay in {y}",
                    "how many times did {x} pay [a dividend|dividends] in {y}",
                    "how often did {x} distribute dividends in {y}",
                ),
                x=asked,
                y=year,
            )
            return made(w, query, f'LEN {call}, "{year}")', (len(of_year),), "aggregation")
        case "sum":
            query = v.ask(
                ("the total dividends of {x} in {y}", "the sum of {x}'s dividends in {y}"),
                (
                    "how much did {x} pay per share in {y} in [all|total]",
                    "how much in dividends did a share of {x} get in {y}",
                ),
                x=asked,
                y=year,
            )
            return made(w, query, f'SUM {call}, "{year}")["value"]', (sum(of_year),), "aggregation")
        case "quarter":
            said = v.pick(
                (
                    f"in q{q} {quarter.year}",
                    f"in the {('first', 'second', 'third', 'fourth')[q - 1]} quarter of {quarter.year}",
                    f"in the {('1st', '2nd', '3rd', '4th')[q - 1]} qtr of {quarter.year}",
                )
            )
            query = v.ask(
                ("the ex-dividend date of {x} {d}", "the date of {x}'s dividend {d}"),
                ("when did {x} pay [a dividend|dividends] {d}", "on what day did {x} distribute dividends {d}"),
                x=asked,
                d=said,
            )
            return made(w, query, f'{call}, "q{q} {quarter.year}")["date"]', tuple(in_quarter), "simple_w_condition")
        case "max":
            return made(
                w,
                v.ask(
                    ("the [biggest|largest|highest] dividend of {x}", "the [biggest|largest] dividend {x} ever paid"),
                    x=asked,
                ),
                f'MAX {call})["value"]',
                (max(a for _, a in share.dividends),),
                "post-processing",
            )
        case _:
            return made(
                w,
                v.ask(
                    (),
                    (
                        "how many dividends has {x} paid[| so far]",
                        "how many times has {x} paid dividends",
                        "does {x} pay dividends",
                    ),
                    x=asked,
                ),
                f"LEN {call})",
                (len(share.dividends),),
                "aggregation",
            )


PATTERNS = (
    (8.0, price_on_day),
    (0.8, price_today),
    (2.2, price_now),
    (4.0, metric),
    (2.2, info),
    (3.4, compare_shares),
    (2.6, window),
    (1.6, days_up),
    (0.9, volumes),
    (3.0, dividends),
)
