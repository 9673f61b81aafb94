"""Questions about shares: prices of a day or a window, dividends, sizes and ratios of companies."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from lab.trainer.synthesise import dialects
from lab.trainer.synthesise.names import Company, Names
from lab.trainer.synthesise.record import QuestionType, Record, answered, invalid, unknown
from lab.trainer.synthesise.voice import MONTHS, WEEKDAYS, Style, Voice, dollars, listed, named, show

DOMAIN = "finance"
FIELDS = ("Open", "High", "Low", "Close", "Volume")
PRICE_NOUNS = {
    "Open": (
        "the open[ing|] [|stock |share ]price of {x}[| stock| shares] {d}",
        "{x}'s open[ing|] [|stock |share ]price {d}",
        "the price at which {x} opened {d}",
        "the [stock|share] price of {x} at the open {d}",
    ),
    "Close": (
        "the clos[ing|e] [|stock |share ]price of {x}[| stock] {d}",
        "{x}'s clos[ing|e] [|stock |share ]price {d}",
        "the price of {x} [stock|shares] at [the close|closing time|market close] {d}",
        "the price of {x} [stock |]at the end of [the day|trading] {d}",
        "the last price of {x} {d}",
    ),
    "High": (
        "the [high|highest price|daily high|top price|peak price] of {x}[| stock] {d}",
        "{x}'s [high|highest price|intraday high] {d}",
    ),
    "Low": (
        "the [low|lowest price|daily low|bottom price] of {x}[| stock] {d}",
        "{x}'s [low|lowest price|intraday low] {d}",
    ),
    "Volume": (
        "the [trading |]volume of {x} {d}",
        "{x}'s [trading |share |]volume {d}",
        "the number of {x} shares [traded|that changed hands] {d}",
    ),
}
PRICE_WHOLE = {
    "Open": (
        "what did {x} open at {d}",
        "where did {x} [shares |stock |]start trading {d}",
        "how much was {x} at the open {d}",
        "{d}, what was {x}'s opening price",
    ),
    "Close": (
        "what did {x} close at {d}",
        "where did {x} [shares |stock |]finish {d}",
        "how much was {x} when the market closed {d}",
        "{d}, what was {x}'s closing price",
        "at what price did {x} end {d}",
    ),
    "High": ("how high did {x} [go|get|trade] {d}", "{d}, what was the highest price of {x}"),
    "Low": ("how low did {x} [go|fall|trade] {d}", "{d}, what was the lowest price of {x}"),
    "Volume": (
        "how many shares of {x} were traded {d}",
        "how many {x} shares changed hands {d}",
        "{d}, how much volume did {x} have",
    ),
}
# Of today nothing is final; who asks for the price now is not answered by a bar of the day.
NOW = (
    (
        "the [current |present |live |]price of {x}[| stock| shares] [right now|now|at the moment|at "
        "this moment|as of now]"
    ),
    "{x}'s [current|present|live] [stock |share |market |]price",
    "the [stock |share |]price of {x} today",
    "{x}'s price today",
    "the current [stock|share|market] price of {x}",
)
NOW_WHOLE = (
    "how much is {x} [right now|today|now]",
    "what is {x} trading at [right now|now|today|currently]",
    "what does a share of {x} cost [today|now]",
)
RECENT = (
    "the [latest|most recent|newest] [available |][stock |share |]price of {x}",
    "{x}'s [latest|most recent] [stock|share] price",
    "the last [known|available] [stock |share |]price of {x}",
)


def called(v: Voice, company: Company) -> str:
    """A company in a question."""
    return company.ticker if v.chance(0.6) else company.words


def shown(v: Voice, style: Style, company: Company, asked: str) -> str:
    """A company in a fact: as it was asked for, mostly in capitals, or as the source knows it."""
    if v.chance(0.85):
        return asked.upper() if style.loud or asked == company.ticker else asked
    return f"{company.name} ({company.ticker})"


def _subject(v: Voice, n: Names, style: Style) -> tuple[Company, str, str]:
    company = n.company()
    asked = called(v, company)
    return company, asked, shown(v, style, company, asked)


def _stranger(v: Voice, n: Names, style: Style, company: Company) -> str:
    """Another company, its name like the one that was asked for or not."""
    other = n.company()
    if v.chance(0.4):
        return n.near(company.words).upper() if style.loud else n.near(company.words)
    return shown(v, style, other, called(v, other))


def back(day: date, steps: int = 1) -> date:
    """So many trading days before, holidays left aside."""
    while steps:
        day -= timedelta(days=1)
        steps -= day.weekday() < 5
    return day


def past_day(v: Voice, when: datetime) -> tuple[str, date]:
    """Words for a trading day before the question's, and the day."""
    today = when.date()
    monday = today - timedelta(days=today.weekday())
    weekday = v.between(0, 4)
    before = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    friday = today - timedelta(days=(today.weekday() - 5) % 7 + 1)
    last_week = monday - timedelta(days=7 - weekday)
    first = today.replace(day=1)
    other = back(today, v.between(3, 60))
    name = WEEKDAYS[weekday]
    options: list[tuple[str, date]] = [
        ("on the [last|previous|most recent|prior|latest] trading day", back(today)),
        ("[on the last trading day|the last trading day|on the previous day of trading]", back(today)),
        ("yesterday" if today.weekday() in (1, 2, 3, 4) else "on the last trading day", back(today)),
        (
            "[the day before yesterday|two days ago]" if today.weekday() in (2, 3, 4) else "two trading days ago",
            back(today, 2),
        ),
        (f"[last {name}|on {name}|on the [last|most recent|past|previous] {name}|this past {name}]", before),
        ("[last friday|on friday|at the end of last week|on the most recent friday]", friday),
        (f"[last week on {name}|on {name} of last week|on the {name} of the [past|previous] week]", last_week),
        ("[at the end of last month|on the last [trading |]day of [last|the previous] month]", back(first)),
        (f"on the last [trading |]day of {today.year - 1}", back(date(today.year, 1, 1))),
        (f"on {MONTHS[other.month - 1].lower()} {other.day}, {other.year}", other),
        (f"on {other.isoformat()}", other),
        (f"on {other.month}/{other.day}/{other.year}", other),
    ]
    words, day = v.pick(options)
    return v.say(words), day


def value_of(v: Voice, field: str) -> float | int:
    if field == "Volume":
        return v.between(3, 900_000) * v.pick((1, 100, 100, 1000))
    return v.price()


def spoken(field: str, value: float) -> str:
    return str(int(value)) if field == "Volume" else dollars(value)


def _support(text: str, value: float) -> tuple[str, ...]:
    """The value as the source writes it: in full, or rounded with marks between its thousands."""
    return next(
        ((said,) for said in (str(value), f"{value:,.0f}", f"{value:,.2f}") if said in text), ("no such value",)
    )


def bar(v: Voice, style: Style, field: str, who: str, day: date, value: float) -> str:
    """The fact about one field on one day."""
    label = field if v.chance(0.75) else field.lower()
    name = named("stock price", style)
    match v.weighted({"call": 6.0, "own": 1.0, "label": 1.0, "prose": 1.0, "table": 0.8}):
        case "call":
            return (
                f"the {label} {name} of {who} {v.pick(('in', 'in', 'in', 'on'))} "
                f"{show(day, style)} is {value}{style.stop}"
            )
        case "own":
            words = {"Open": "opening price", "Close": "closing price", "High": "highest price", "Low": "lowest price"}
            shown_value = f"{value:,.0f}" if field == "Volume" else f"${value:,.2f}"
            return f"The {words.get(field, 'volume')} of {who} on {day.isoformat()} is {shown_value}."
        case "label":
            return f"{who} {show(day, style)} {label}: {value}"
        case "prose":
            return v.say(
                "On {d}, the {f} [price |]of {x} was {y}.", d=show(day, style), f=label.lower(), x=who, y=value
            )
        case _:
            bars = candle(v)
            bars[field] = value
            heads = " | ".join(FIELDS)
            cells = " | ".join(str(bars[f]) for f in FIELDS)
            return f"{who}\n| date | {heads} |\n|---|---|---|---|---|---|\n| {show(day, style)} | {cells} |"


def candle(v: Voice) -> dict[str, float]:
    """Open, high, low, close and volume of a day."""
    one, two = v.price(), 0.0
    two = round(one * v.rng.uniform(0.94, 1.06), 3)
    high = round(max(one, two) * v.rng.uniform(1.0, 1.03), 3)
    low = round(min(one, two) * v.rng.uniform(0.97, 1.0), 3)
    return {"Open": one, "High": high, "Low": low, "Close": two, "Volume": value_of(v, "Volume")}


def price_on_day(v: Voice, n: Names) -> Record:
    style = v.style()
    when = v.moment(weekdays=(0, 1, 2, 2, 3, 4))
    company, asked, who = _subject(v, n, style)
    field = v.weighted({"Close": 4.0, "Open": 3.0, "High": 1.2, "Low": 1.2, "Volume": 1.6})
    words, day = past_day(v, when)
    query = v.typed(v.ask(PRICE_NOUNS[field], PRICE_WHOLE[field], x=asked, d=words))
    value = value_of(v, field)
    kind: QuestionType = v.pick(("simple", "simple_w_condition"))
    case = v.weighted(
        {"right": 7.0, "no record": 0.8, "stranger": 0.7, "other day": 0.5, "none": 0.4, "among": 0.6, "other": 0.4}
    )
    right = bar(v, style, field, who, day, value)
    match case:
        case "right":
            return answered(query, when, DOMAIN, kind, spoken(field, value), (right,), _support(right, value))
        case "among":
            others = [bar(v, style, field, _stranger(v, n, style, company), day, value_of(v, field))]
            others += [bar(v, style, f, who, day, value_of(v, f)) for f in v.some([f for f in FIELDS if f != field], 2)]
            return answered(query, when, DOMAIN, kind, spoken(field, value), dialects.shuffled(v, [right, *others]))
        case "no record":
            found = _no_record(v, style, field, who, day, back(day, v.between(1, 30)), value)
        case "stranger":
            found = bar(v, style, field, _stranger(v, n, style, company), day, value)
        case "other day":
            far = back(day, v.between(40, 250))
            found = f"the {field} {named('stock price', style)} of {who} in {show(far, style)} is {value}{style.stop}"
        case "none":
            found = dialects.nothing(v, style, "stock price", who)
        case _:
            other = v.pick([f for f in FIELDS if (f == "Volume") != (field == "Volume")])
            found = (
                f"the {other} {named('stock price', style)} of {who} in {show(day, style)} is "
                f"{value_of(v, other)}{style.stop}"
            )
    return unknown(query, when, DOMAIN, kind, (found,))


def _no_record(v: Voice, style: Style, field: str, who: str, day: date, other: date, value: float) -> str:
    price = named("stock price", style)
    return v.pick(
        (
            (
                f"No record of {who} {price} for {show(day, style)}, but the {field} {price} "
                f"of {who} in {show(other, style)} is {value}."
            ),
            f"no {price} of {who} on {show(day, style)}; the nearest is {field} {value} on {show(other, style)}",
            f"No record of {who} {price} for {show(day, style)}.",
            f"No {field.lower()} of {who} on {show(day, style)} is known.",
        )
    )


def price_now(v: Voice, n: Names) -> Record:
    """The price of this moment: answered by a quote with its time, not by the bar of a day that is not over."""
    style = v.style()
    when = v.moment(weekdays=(0, 1, 2, 3, 4))
    company, asked, who = _subject(v, n, style)
    recent = v.chance(0.4)
    query = v.typed(v.ask(RECENT if recent else NOW, () if recent else NOW_WHOLE, x=asked))
    value, price = v.price(), named("stock price", style)
    today = when.date()
    if recent or v.chance(0.2):
        clock = f"{today.isoformat()} {v.between(9, 15):02d}:{v.between(30, 59):02d}:00 EST"
        found = v.pick(
            (
                f"The {price} of {who} most recent ({clock}) is {value}.",
                f"most recent {price} of {who} ({clock}): {value}",
                f"The latest price of {who}, at {clock}, is ${value:,.2f}.",
            )
        )
        return answered(query, when, DOMAIN, "simple", dollars(value), (found,))
    found = v.pick(
        (
            bar(v, style, "Close", who, today, value),
            _no_record(v, style, "Close", who, today, back(today), value),
            f"the Close {price} of {who} in {show(today, style)} is {value}{style.stop}",
            bar(v, style, "Close", _stranger(v, n, style, company), today, value),
        )
    )
    return unknown(query, when, DOMAIN, "simple", (found,))


# What is known of a company: name in sources -> nouns and whole questions; how large; how it is said.
METRICS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "stock market cap": (
        (
            "the [total |current |]market cap[italization|italisation|] of {x}",
            "{x}'s [current |total |]market cap[italization|]",
            "the market [value|worth] of {x}[| as of now| today| right now]",
            "the total market value of {x}",
        ),
        (
            "how much is {x} worth [on the market|in total]",
            "how big is {x} by market cap",
            "what is {x}'s market capitalization [now|today|at the moment]",
        ),
    ),
    "stock pe ratio": (
        (
            "the [current |latest |][p/e|pe|price-to-earnings|price to earnings] ratio [of|for] {x}",
            "{x}'s [current |latest |][p/e|pe|price-to-earnings] ratio[| now]",
        ),
        ("what multiple of its earnings does {x} trade at", "how many times its earnings does {x} cost"),
    ),
    "stock eps": (
        ("the [current |][eps|earnings per share] of {x}", "{x}'s [current |latest |][eps|earnings per share]"),
        (
            "how much [does {x} earn|profit does {x} make] [per|for each] share",
            "how much money does a share of {x} earn",
        ),
    ),
}
# What no call of this kind returns.
FOREIGN = (
    "the debt[-to-equity|] ratio of {x}",
    "{x}'s [net |operating |]profit margin",
    "the dividend yield of {x}",
    "{x}'s revenue in [the last quarter|the last fiscal year|2022|2023]",
    "the number of employees at {x}",
    "the [ceo|chief executive|founder|cfo] of {x}",
    "the price-to-book ratio of {x}",
    "{x}'s free cash flow",
    "the largest [shareholder|owner] of {x}",
    "the number of shares outstanding of {x}",
    "the 52-week [high|low] of {x}",
    "the date of {x}'s [ipo|next earnings call|latest earnings report]",
    "{x}'s return on equity",
    "the credit rating of {x}",
    "the beta of {x}",
    "the [headquarters|head office] of {x}",
    "the expense ratio of {x}",
    "the ticker of {x}'s parent company",
)
FOREIGN_WHOLE = (
    "when did {x} go public",
    "who [founded|runs|audits] {x}",
    "how many people work [for|at] {x}",
    "how much debt does {x} have",
    "how much has {x} gained since [january|last year|2020]",
    "how many shares [did insiders|did the company] buy back at {x}",
    "which company did {x} [acquire|buy] last year",
    "what [sector|industry] is {x} in",
    "when will {x} report its earnings",
    "did {x} [beat|miss] earnings estimates last quarter",
    "how much does {x} spend on research",
    "when was {x}'s last stock split",
    "what company in the {x} [index|fund] [has the highest dividend|performed best|is the largest]",
    "which etf holds the most shares of {x}",
    "how many companies in {x} are worth more than [10|50|100] billion",
)


def _size(v: Voice, metric: str) -> float:
    match metric:
        case "stock market cap":
            return round(10 ** v.rng.uniform(6, 12.3), v.pick((0, 1, 2, 3)))
        case "stock pe ratio":
            return round(v.rng.uniform(1, 90) * v.pick((1, 1, 1, 1, -1)), 3)
        case _:
            return round(v.rng.uniform(0.05, 25) * v.pick((1, 1, 1, -1)), 2)


def _say_size(metric: str, value: float) -> str:
    if metric == "stock market cap":
        return f"${value:,.2f}"
    return f"{round(value, 2):g}" if metric == "stock pe ratio" else f"{value:g}"


def _shown_size(v: Voice, metric: str, value: float) -> str:
    if metric == "stock market cap" and v.chance(0.15):
        return f"${value:,.0f}"
    return str(value)


def metric_of_company(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    company, asked, who = _subject(v, n, style)
    metric = v.weighted({"stock market cap": 2.0, "stock pe ratio": 2.0, "stock eps": 1.0})
    value = _size(v, metric)
    right = dialects.state(v, style, metric, who, value)
    case = v.weighted({"right": 5.0, "foreign": 2.4, "other": 0.6, "stranger": 0.7, "none": 0.7, "among": 0.8})
    if case == "foreign":
        query = v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=asked))
        return unknown(query, when, DOMAIN, "simple", (right,))
    query = v.typed(v.ask(*METRICS[metric], x=asked))
    match case:
        case "right":
            return answered(query, when, DOMAIN, "simple", _say_size(metric, value), (right,), _support(right, value))
        case "among":
            others = [dialects.state(v, style, m, who, _size(v, m)) for m in METRICS if m != metric]
            others.append(dialects.state(v, style, metric, _stranger(v, n, style, company), _size(v, metric)))
            found = dialects.shuffled(v, [right, *v.some(others, v.between(1, 3))])
            return answered(query, when, DOMAIN, "simple", _say_size(metric, value), found)
        case "other":
            other = v.pick([m for m in METRICS if m != metric])
            shown_fact = dialects.state(v, style, other, who, _size(v, other))
        case "stranger":
            shown_fact = dialects.state(v, style, metric, _stranger(v, n, style, company), value)
        case _:
            shown_fact = dialects.nothing(v, style, metric, who)
    return unknown(query, when, DOMAIN, "simple", (shown_fact,))


COMPARE = (
    "which [company|stock|one] [has|had] [the |a |][{more}] {what}[| now], {a} or {b}",
    "which [has|had] [a |the |][{more}] {what}: {a} or {b}",
    "between {a} and {b}, which [company|one] [has|had] the [{more}] {what}",
    "{a} or {b}, which has the [{more}] {what}",
    "who has the [{more}] {what}, {a} or {b}",
    "of {a} and {b}, which one has the [{more}] {what}",
    "is it {a} or {b} that has the [{more}] {what}",
)
WHAT = {
    "stock market cap": (
        "[market cap|market capitalization|market value]",
        "bigger|higher|larger|greater",
        "smaller|lower",
    ),
    "stock pe ratio": ("[p/e ratio|pe ratio|price-to-earnings ratio]", "higher|larger|greater|bigger", "lower|smaller"),
    "stock eps": ("[eps|earnings per share]", "higher|larger|better|greater", "lower|smaller"),
    "Close": ("clos[ing|e] [stock |]price {d}", "higher|larger|greater", "lower|smaller|cheaper"),
    "Open": ("open[ing|] [stock |]price {d}", "higher|larger|greater", "lower|smaller"),
    "Volume": ("[trading |]volume {d}", "higher|larger|greater|bigger", "lower|smaller"),
}
_UNCOMPARED = (
    "debt-to-equity ratio",
    "profit margin",
    "dividend yield",
    "number of employees",
    "revenue",
    "return on equity",
    "growth rate",
    "cash flow",
    "number of stores",
    "credit rating",
    "dividend",
    "r&d budget",
)


def compare(v: Voice, n: Names) -> Record:
    style = v.style()
    when = v.moment(weekdays=(1, 2, 3, 4))
    what = v.weighted(
        {"stock market cap": 3.0, "stock pe ratio": 1.5, "stock eps": 0.6, "Close": 1.2, "Open": 0.5, "Volume": 1.2}
    )
    one, two = n.company(), n.company()
    tickers = v.chance(0.65)
    asked = (one.ticker, two.ticker) if tickers else (one.words, two.words)
    if asked[0].lower() == asked[1].lower():
        return compare(v, n)
    words, day = past_day(v, when)
    template, more, less = WHAT[what]
    high = v.chance(0.75)
    template = template.replace("{d}", words)

    def fact(company: Company, name: str, value: float) -> str:
        who = shown(v, style, company, name)
        return bar(v, style, what, who, day, value) if what in FIELDS else dialects.state(v, style, what, who, value)

    sizes = [value_of(v, what) if what in FIELDS else _size(v, what) for _ in range(2)]
    case = v.weighted({"right": 6.0, "foreign": 2.0, "missing": 1.0, "truth": 1.2})
    said = v.pick(_UNCOMPARED) if case == "foreign" else template
    slots = {"a": asked[0], "b": asked[1], "what": v.say(said)}
    if case == "truth":
        query = v.say(
            "[is|was] {a}'s {what} [{more}] than [{b}'s|that of {b}]".replace("{more}", more if high else less), **slots
        )
    else:
        query = v.say(v.pick(COMPARE).replace("{more}", more if high else less), **slots)
    query = v.typed(query)
    pair = [fact(one, asked[0], sizes[0]), fact(two, asked[1], sizes[1])]
    if sizes[0] == sizes[1] or case == "foreign":
        return unknown(query, when, DOMAIN, "comparison", tuple(pair))
    if case == "missing":
        at = v.between(0, 1)
        who = shown(v, style, (one, two)[at], asked[at])
        pair[at] = dialects.nothing(v, style, what if what not in FIELDS else "stock price", who)
        return unknown(query, when, DOMAIN, "comparison", tuple(pair[:1] if v.chance(0.1) and at == 1 else pair))
    first = (sizes[0] > sizes[1]) == high
    if case == "truth":
        return answered(query, when, DOMAIN, "comparison", "yes" if first else "no", tuple(pair))
    answer = asked[0] if first else asked[1]
    return answered(query, when, DOMAIN, "comparison", answer.lower(), dialects.shuffled(v, pair))


def _window(v: Voice, when: datetime) -> tuple[str, date, date]:
    today = when.date()
    monday = today - timedelta(days=today.weekday())
    first = today.replace(day=1)
    previous = (first - timedelta(days=1)).replace(day=1)
    options = [
        ("[this|in this|over this] week", monday, today),
        (
            "[last week|over the last week|in the previous week|during the past week]",
            monday - timedelta(days=7),
            monday - timedelta(days=3),
        ),
        ("[last month|in the previous month|over the past month]", previous, first - timedelta(days=1)),
        ("[this month|so far this month]", first, today),
        (f"in the first week of {MONTHS[first.month - 1].lower()}", first, first + timedelta(days=6)),
        (f"in q{(previous.month - 1) // 3 + 1} {previous.year}", previous, previous + timedelta(days=80)),
    ]
    words, start, end = v.pick(options)
    return v.say(words), start, end


def _days(start: date, end: date, most: int) -> list[date]:
    days = [start + timedelta(days=i) for i in range((end - start).days + 1)]
    return [day for day in days if day.weekday() < 5][:most] or [start]


def window(v: Voice, n: Names) -> Record:
    """The average, the highest, the lowest of some days; days that closed higher or lower."""
    style = v.style()
    when = v.moment(weekdays=(2, 3, 4))
    company, asked, who = _subject(v, n, style)
    words, start, end = _window(v, when)
    price = named("stock price", style)
    days = _days(start, end, v.between(2, 12))
    span = f"{show(start, style)} and {show(end, style)}"
    case = v.weighted({"average": 2.0, "extreme": 2.0, "days": 2.0, "empty": 0.8, "foreign": 0.5, "stranger": 0.5})
    if case == "days":
        return _up_or_down(v, style, when, asked, who, words, days)
    field = v.pick(("High", "Low", "Close", "Open"))
    base = v.price() + 0.5
    values = {show(day, style): round(base * v.rng.uniform(0.93, 1.07), v.pick((2, 3))) for day in days}
    if case == "extreme":
        field = v.pick(("High", "Low"))
        how = "high" if field == "High" else "low"
        nouns = (
            f"the {how}est [stock |share |]price of {{x}} {{d}}",
            f"{{x}}'s {'max' if how == 'high' else 'min'}imum [stock |]price {{d}}",
            f"the [weekly |]{how} of {{x}} {{d}}",
            f"the {'top' if how == 'high' else 'lowest point'} of {{x}}'s stock price {{d}}",
        )
        query = v.typed(v.ask(nouns, (f"how {how} did {{x}} [go|trade|get] {{d}}",), x=asked, d=words))
        best = (max if field == "High" else min)(values.items(), key=lambda item: item[1])
        found = v.pick(
            (
                (
                    f"the {field} {price} sorted by {field} of {who} over {span} (date: "
                    f"amount): {{'{best[0]}': {best[1]}}}."
                ),
                f"{field} of {who} between {span}: {values}; the {how}est is {best[1]} on {best[0]}",
                f"The {how}est price of {who} ({span}) is ${best[1]:,.2f}, of {best[0]}.",
            )
        )
        return answered(query, when, DOMAIN, "aggregation", dollars(best[1]), (found,))
    name = {
        "High": "[high|maximum price|peak]",
        "Low": "[low|minimum price]",
        "Close": "closing price",
        "Open": "opening price",
    }[field]
    means = (
        f"the average [daily |]{name} of {{x}} {{d}}",
        f"{{x}}'s average [daily |]{name} {{d}}",
        f"the mean {name} of {{x}} {{d}}",
    )
    query = v.typed(v.ask(means, (f"{{d}}, what was the average [daily |]{name} of {{x}}",), x=asked, d=words))
    mean = sum(values.values()) / len(values)
    if case == "empty":
        found = v.pick(
            (
                f"the {field} {price} of {who} over {span}: {{}}",
                f"No record of {who} {price} in {span}.",
                "[]",
            )
        )
        return unknown(query, when, DOMAIN, "aggregation", (found,))
    if case == "foreign":
        found = f"the {field} {price} of {who}, day by day between {span}: {values}"
        query = v.typed(
            v.ask(
                (
                    "the percentage of {x} held by institutions {d}",
                    "the best day to buy {x} {d}",
                    "{x}'s rank in its sector {d}",
                ),
                ("why did {x} fall {d}", "which analyst rated {x} {d}", "did {x} do better than the market {d}"),
                x=asked,
                d=words,
            )
        )
        return unknown(query, when, DOMAIN, "aggregation", (found,))
    if case == "stranger":
        who = _stranger(v, n, style, company)
    found = v.pick(
        (
            f"the {field} {price} of {who} over {span} (date: amount): {values}; average {price} {mean}.",
            f"{field} of {who}, {span}: {values}. average: {round(mean, 3)}",
            (
                f"The average {field.lower()} price of {who} ({span}) is ${mean:,.2f}, from "
                f"{len(values)} values: {values}."
            ),
        )
    )
    if case == "stranger":
        return unknown(query, when, DOMAIN, "aggregation", (found,))
    return answered(query, when, DOMAIN, "aggregation", dollars(mean), (found,))


def _up_or_down(
    v: Voice, style: Style, when: datetime, asked: str, who: str, words: str, days: Sequence[date]
) -> Record:
    up = v.chance(0.5)
    chosen = sorted(v.some(days, v.between(0, min(7, len(days)))))
    shown_days = [show(day, style) for day in chosen]
    details = {show(day, style): candle(v) for day in chosen} if v.chance(0.5) else {}
    how = "Close price > Open price" if up else "Open price > Close price"
    found = v.pick(
        (
            f"{who} on {shown_days}: {how}",
            f"{who}: days with {how}: {shown_days}",
            f"days when {who} closed {'higher' if up else 'lower'} than it opened: {listed(shown_days)}",
        )
    )
    if details:
        found += f" Prices: {details}"
    way = "[higher|up]" if up else "[lower|down]"
    count = v.chance(0.35)
    if count:
        query = v.ask(
            (),
            (
                f"how many days did {{x}} close {way} {{d}}",
                f"on how many days {{d}} did {{x}} [finish|end|close] {way}",
            ),
            x=asked,
            d=words,
        )
    else:
        query = v.ask(
            (
                f"the [days|dates] {{d}} [on which|when] {{x}}[| stock] closed {way}",
                f"the dates when {{x}}'s [stock |]price [closed|ended] {way} {{d}}",
            ),
            (f"which days {{d}} did {{x}} [close|finish] {way}", f"on which [days|dates] did {{x}} close {way} {{d}}"),
            x=asked,
            d=words,
        )
    query = v.typed(query)
    if not chosen:
        if count and v.chance(0.5):
            return answered(query, when, DOMAIN, "aggregation", "0", (found,))
        return unknown(query, when, DOMAIN, "set", (found,))
    if count:
        return answered(query, when, DOMAIN, "aggregation", str(len(chosen)), (found,))
    return answered(query, when, DOMAIN, "set", listed([day.isoformat() for day in chosen]), (found,))


FIRST = (
    "the [date of the |]first [dividend|dividend payment|dividend payout] [date |]of {x}",
    "the date {x} first paid a dividend",
)
FIRST_WHOLE = (
    "when did {x} [start paying|first pay|begin to pay] [a |][dividend|dividends]",
    "on what date did {x} pay its first dividend",
    "when was {x}'s [first|earliest] dividend",
)
LAST = ("the [date of the |][last|latest|most recent] dividend of {x}", "the most recent date {x} paid a dividend")
LAST_WHOLE = (
    "when did {x} last pay [a dividend|dividends]",
    "when was {x}'s [last|latest|most recent] dividend[| payment| payout]",
    "on what date did {x} most recently [pay|distribute] dividends",
)
_COUNT_WHOLE = (
    "how many times [did|has] {x} [pay|paid] [a dividend|dividends][| in {y}]",
    "how many dividends did {x} pay[| in {y}]",
)
AMOUNT = (
    "the amount of {x}'s [last|latest|most recent] dividend",
    "{x}'s [last|latest|most recent] dividend per share",
)
AMOUNT_WHOLE = (
    "how much was the [last|latest|most recent] dividend of {x}",
    "how much did {x} pay per share in its last dividend",
)
_FALSE = (
    (
        "[what was|what's] the {f} of {x} on the day [it|the company] [last paid|last "
        "distributed|most recently paid] [dividends|a dividend]"
    ),
    "[what was|tell me] {x}'s {f} on the [day|date] of its [last|latest|most recent] dividend",
    "how much did {x} raise its dividend by the last time it paid one",
)


def dividends(v: Voice, n: Names) -> Record:
    style, when = v.style(), v.moment()
    _, asked, who = _subject(v, n, style)
    name = named("stock dividend", style)
    today = when.date()
    count = v.weighted({1: 1.0, 3: 1.5, 5: 2.0, 9: 2.0, 14: 1.5, 24: 1.0, 45: 0.6})
    last = back(today, v.between(2, 60))
    days = [last - timedelta(days=91 * i + v.between(-4, 4)) for i in range(count)][::-1]
    amount = round(v.rng.uniform(0.01, 1.6), 3)
    paid = [(show(day, style), round(amount * (1 + 0.02 * i), 3)) for i, day in enumerate(days)]
    found = v.pick(
        (
            f"{who}, {name}, paid {count} times, the oldest first",
            f"{name} of {who}, {count} entries",
            f"Dividends of {who} ({count})",
        )
    )
    found += dialects.rows(v, ("date", "amount"), paid)
    none = v.pick(
        (
            f"{name} of {who}: none on file.",
            f"{name} of {who}, 0 entries",
            f"{who} has paid no dividends.",
            f"Number of dividends of {who}: 0.",
            f"{who}, {name}: the list is empty",
        )
    )
    case = v.weighted(
        {"first": 2.0, "last": 2.5, "count": 0.8, "amount": 1.0, "foreign": 1.2, "empty": 1.2, "false": 2.0}
    )
    match case:
        case "first":
            query = v.typed(v.ask(FIRST, FIRST_WHOLE, x=asked))
            return answered(query, when, DOMAIN, "simple", days[0].isoformat(), (found,), (paid[0][0],))
        case "last":
            query = v.typed(v.ask(LAST, LAST_WHOLE, x=asked))
            return answered(query, when, DOMAIN, "simple", days[-1].isoformat(), (found,), (paid[-1][0],))
        case "count":
            query = v.typed(
                v.ask(
                    (),
                    (
                        "how many times has {x} paid [a dividend|dividends]",
                        "how many dividends has {x} paid",
                        "how often has {x} [paid|distributed] dividends",
                    ),
                    x=asked,
                )
            )
            return answered(query, when, DOMAIN, "aggregation", str(count), (found,), (str(count),))
        case "amount":
            query = v.typed(v.ask(AMOUNT, AMOUNT_WHOLE, x=asked))
            return answered(query, when, DOMAIN, "simple", f"${paid[-1][1]:g}", (found,), (str(paid[-1][1]),))
        case "foreign":
            query = v.typed(v.ask(FOREIGN, FOREIGN_WHOLE, x=asked))
            return unknown(query, when, DOMAIN, "simple", (found if v.chance(0.7) else none,))
        case "empty":
            query = v.typed(v.ask((*LAST, *AMOUNT), (*LAST_WHOLE, *FIRST_WHOLE), x=asked))
            return unknown(query, when, DOMAIN, "simple", (none,))
        case _:
            query = v.typed(
                v.say(
                    v.pick(_FALSE),
                    x=asked,
                    f=v.pick(("closing price", "opening price", "trading volume", "high", "stock price")),
                )
            )
            return invalid(query, when, DOMAIN, (none,))


PATTERNS = (
    (9.0, price_on_day),
    (2.6, price_now),
    (6.5, metric_of_company),
    (6.0, compare),
    (3.5, window),
    (3.6, dividends),
)
