"""Rules for listed companies."""

import re

from services.kg.generate.rules.question import Question, quote

INFO_KEYS = (
    (r"dividend yield|\byields?\b", "dividend_yield"),
    (r"sector", "sector"),
    (r"industry|line of business", "industry"),
    (r"employee|people work|staff|workforce|headcount", "employees"),
    (r"\bceo\b|chief executive|who runs|head of", "ceo"),
    (r"revenue|sales|turnover", "revenue"),
    (r"price.to.book|\bp/?b\b|book value", "price_to_book"),
    (r"\bbeta\b", "beta"),
    (r"profit margin|margin", "profit_margin"),
    (r"52.week high|year high", "fiftytwoweekhigh"),
    (r"52.week low|year low", "fiftytwoweeklow"),
    (r"\bdebt\b", "debt"),
    (r"\bcash\b", "cash"),
    (r"headquarter|based in", "city"),
)
# Several days in one phrase.
_WINDOW = re.compile(r"week|month|quarter|year|q[1-4]|^\d{4}$|^\d{4}-\d\d$|\d+ days|few days")
_NOT_ONE_DAY = re.compile(r"^(?:first|last|final|second|third|1st) (?:full )?(?:trading|day|business|market)|day of")


# Indices, sectors and what no price says.
_NO_COMPANY = (
    r"dow jones|s&p|\bindex\b|\bindices\b|russell \d|nasdaq (?:composite|100)|exchanges\b|venture|"
    r"crypto|\betfs\b|ipos\b"
)
_PRICE = (
    r"pric|\bopen|clos|volume|trade[sd]?\b|trading|worth|quote|shares?\b|stock\b(?! split| exchange)|cost|high|low\b|"
    r"lowest|gain|rise|fell|fall|up\b|down\b"
)


def statements(question: Question) -> list[str]:
    """The statements for a question, none when no rule fits."""
    names = question.sides("company")
    if question.says(_NO_COMPANY) or (not names and question.says(r"\bsectors?\b")):
        return []
    if not names:
        guessed = question.guess()
        names = [guessed] if guessed else []
    if len(names) > 1 and not question.compares and not question.says(r"\b(?:which|compare|both|difference)\b"):
        names = names[:1]
    return [one for name in names[:3] for one in _of(question, name)]


def _of(question: Question, name: str) -> list[str]:
    company = quote(name)
    if question.says(
        r"market cap|capitali[sz]ation|market (?:value|worth)|total (?:value|worth|market)|worth on the|"
        r"valued|outstanding shares"
    ):
        return [f"get_stock_market_cap({company})"]
    if question.says(r"\bp/?\s?e\b|p/e|price.to.earnings|price.earnings|multiple of its earnings"):
        return [f"get_stock_pe_ratio({company})"]
    if question.says(
        r"\beps\b|earnings? (?:per|to|for each|on every|on each)|earnings to its shares|profit (?:does|"
        r"per)|each share of|ratio of .* earnings"
    ):
        return [f"get_stock_eps({company})"]
    if question.says(r"dividend yield|dividend .*yield"):
        return [f'get_stock_info({company})["dividend_yield"]']
    if question.says(r"dividend|\bpay(?:out|outs|s)?\b|distribut"):
        return [_dividend(question, company)]
    for pattern, key in INFO_KEYS:
        if question.says(pattern) and not question.says(r"price of|open price|clos(?:ing|ed)"):
            return [f'get_stock_info({company})["{key}"]']
    return [_price(question, company)] if question.says(_PRICE) else []


def _dividend(question: Question, company: str) -> str:
    time = question.time
    period = (
        f', "{time}"' if time and not re.fullmatch(r"(?:last|latest|recent|most recent) (?:day|time)", time) else ""
    )
    call = f"get_stock_dividend({company}{period})"
    if question.says(r"how many|how often|how frequently|number of|times|more often"):
        return f"LEN {call}"
    if question.says(r"total|sum|altogether|in all|combined"):
        return f'SUM {call}["value"]'
    shown = "value" if question.says(r"how much|amount|value of|size of|worth") else "date"
    if (
        question.says(r"\bfirst\b|start|begin|began|initial|earliest|debut|since when")
        and "quarter" not in time
        and "qtr" not in time
    ):
        return f'get_stock_dividend({company}) sort(None, date)["{shown}"][:1]'
    if period and (_WINDOW.search(time) or not question.says(r"last|latest|most recent")):
        return f'{call}["{shown}"]'
    if question.says(r"last|latest|most recent|recent|when"):
        return f'get_stock_dividend({company}) sort(None, -date)["{shown}"][:1]'
    return call


def _price(question: Question, company: str) -> str:
    time, key = question.time, _bar(question)
    window = bool(_WINDOW.search(time)) and not _NOT_ONE_DAY.search(time) and not re.search(r"day (?:of|from|in)", time)
    if question.says(
        r"(?:which|what|the) days?\b|on what days?|how many (?:days|times)|number of days"
    ) and question.says(
        r"clos\w* (?:higher|lower|up|down)|open\w* (?:higher|lower)|higher clos|lower clos|"
        r"reach(?:ed)? a (?:higher|lower)|up\b|down\b|gain"
    ):
        sign = "lt" if question.says(r"lower|down|fell|loss") else "gt"
        pair = "open, previous_close" if question.says(r"open\w* (?:higher|lower)") else "close, open"
        rows = f'get_stock_price({company}, "{time or "this week"}") where({sign}({pair}))'
        return f"LEN {rows}" if question.says(r"how many|number of") else f'ALL {rows}["date"]'
    if window:
        call = f'get_stock_price({company}, "{time}")["{key}"]'
        if key == "volume":
            return ("AVG " if question.says(r"average|mean") else "SUM ") + call
        if question.says(r"average|mean"):
            return f"AVG {call}"
        if key == "high":
            return f"MAX {call}"
        if key == "low":
            return f"MIN {call}"
        return call
    if not time or (time in ("recent day", "latest day") and key == "close"):
        time = "latest" if question.asks_for_now or key == "close" else "last trading day"
    if time == "today" and key == "close":
        time = "latest"
    return f'get_stock_price({company}, "{time}")["{key}"]'


def _bar(question: Question) -> str:
    if question.says(
        r"volume|shares (?:were )?(?:traded|exchanged|changed)|number of shares|traded (?:more|most|"
        r"less)|trading activity|frequently|shares .*changed hands"
    ):
        return "volume"
    if question.says(r"highest|maximum|\bmax\b|\bhigh\b|peak|top price"):
        return "high"
    if question.says(r"\blowest\b|minimum|\bmin\b|\blow\b|bottom"):
        return "low"
    if question.says(r"\bopen"):
        return "open"
    return "close"
