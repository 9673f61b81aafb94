"""The names of a listed security. Python, because a name is cut at words of the share class and at legal endings."""

import re

from services.kg.store.names import normalise

_SECURITY = re.compile(
    r"\b(?:class [a-z]\b|series [a-z]\b|new common|common (?:stock|shares?|units?)|ordinary shares?|"
    r"american deposit[ao]ry|deposit[ao]ry (?:shares?|receipts?)|capital stock|"
    r"(?:subordinate |limited |non-?)?voting (?:common )?shares?|shares? of beneficial|common\b|registered shares?|"
    r"new york registry|preferred\b|preference\b|warrants?\b|units?\b|rights?\b|"
    r"(?:senior |subordinated |junior )*notes?\b|debentures?\b|\d+(?:\.\d+)?%|perpetual\b|cumulative\b|"
    r"redeemable\b|limited partner|adss?\b|adrs?\b)",
    re.IGNORECASE,
)
_DERIVED = re.compile(
    r"\b(?:preferred|preference|warrants?|(?<!common )units?|rights?|notes?|debentures?)\b|%", re.IGNORECASE
)
_LEGAL = re.compile(
    r"[\s,]+(?:inc(?:orporated)?|corp(?:oration)?|co(?:mpany)?|ltd|limited|plc|p\.l\.c|llc|l\.l\.c|lp|l\.p|llp|sa|s\.a|"
    r"nv|n\.v|ag|se|s\.e|asa|ab|a/s|spa|s\.p\.a|bv|b\.v|kgaa|oyj|holdings?|group|(?:\(?the\)?)|\([a-z]{2}\))\.?$",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"[\s,]+(?:holdings?|group)\.?$", re.IGNORECASE)
# Weights of a company's surfaces: its stock comes before its warrants.
SHARE, OTHER_CLASS, SHORTER, DERIVED = 1.0, 0.9, 0.8, 0.2


def company_names(full: str, ticker: str) -> list[tuple[str, float]]:
    """Surfaces of a listed security with their relative weights, 0..1.

    Those of a share are its full name, the company's name without the share class, the same without "Inc." and the like
    and without "Group" or "Holdings", and the ticker. Those of a warrant, a unit or a note name what it is, since the
    company's name alone means its stock.
    """
    full = " ".join(full.split())
    cut = next((match.start() for match in _SECURITY.finditer(full) if match.start()), len(full))
    company = full[:cut].rstrip(" ,-–").removesuffix(" (The)")
    security = full[cut:]
    if word := _DERIVED.search(security):
        kind = word[0].capitalize() if word[0] != "%" else "Notes"
        surfaces = [(full, DERIVED), (f"{_strip(company, _LEGAL)} {kind}", DERIVED), (ticker, DERIVED)]
    else:
        second = re.search(r"class ([b-z])\b", security, re.IGNORECASE)
        share = OTHER_CLASS if second else SHARE
        without_group = _LOOSE.sub("", company) if _LOOSE.search(company) else ""
        short = _strip(company, _LEGAL, keep=_LOOSE)
        surfaces = [
            (full, share),
            (company, share),
            (short, share),
            (ticker, share),
            (_strip(without_group or short, _LEGAL), share * SHORTER),
        ]
    best: dict[str, tuple[str, float]] = {}
    for surface, weight in surfaces:
        key = normalise(surface)
        if key and (key not in best or surface == ticker):
            best[key] = (surface, max(weight, best.get(key, ("", 0.0))[1]))
    return list(best.values())


def _strip(company: str, ending: re.Pattern[str], keep: re.Pattern[str] | None = None) -> str:
    """A company's name without such endings, up to one to keep."""
    while True:
        match = ending.search(company)
        if not match or not match.start() or (keep and keep.search(company)):
            return company
        company = company[: match.start()]
