"""Rules for the encyclopedia: an entity, and the key that the question's words are nearest to."""

import re

from services.kg.generate.rules.question import Question, quote

KEYS = (
    (r"founder|founded by|who (?:founded|started|created|established)", "founder"),
    (r"owners?\b|owns?\b|owned", "owner"),
    (r"\bdie(?:d|s)?\b|death|untimely end|pass(?:ed)? away", "death_date"),
    (r"where .*born|birth ?place", "birth_place"),
    (r"born|birth ?da", "birth_date"),
    (r"married|spouse|wife|husband", "spouse"),
    (r"elevation|altitude|how high", "elevation"),
    (r"area codes?", "area_code"),
    (r"populat|how many people|inhabitants", "population"),
    (r"capital", "capital"),
    (r"currency|money", "currency"),
    (r"driving side|drive|side of the road", "drives_on"),
    (r"time ?zone", "timezone"),
    (r"minaret", "minaret_quantity"),
    (r"floors?\b|stor(?:ey|ies)\b", "floor_count"),
    (r"observat", "observatory"),
    (r"architect|buil(?:t|d)", "architect"),
    (r"publisher|published", "publisher"),
    (r"develop", "developer"),
    (r"designer|designed|invent", "designer"),
    (r"licen[cs]e", "license"),
    (r"watt|power|energy output", "power"),
    (r"frequency", "frequency"),
    (r"members", "membership"),
    (r"bright|magnitude", "appmag_v"),
    (r"symbol of the constellation|symboli", "symbolism"),
    (r"ticker|stock (?:market|symbol)|traded as", "traded_as"),
    (r"sister", "sister_newspapers"),
    (r"operator|operates|operated", "operator"),
    (r"private or public|public or private|type of", "type"),
    (
        r"histor|older|oldest|established|when was .*(?:founded|started|established|opened)|"
        r"year .*(?:started|founded|established)|first appear",
        "established",
    ),
    (r"releas|came out|come out", "released"),
    (r"open(?:ed)?\b", "opening_date"),
    (r"students|enrol", "students"),
    (r"where .*(?:from|developed|origin)|origin|come from|countr", "country"),
    (r"president|prime minister|incumbent|leader|emperor|king|queen", "leader"),
    (r"degree|study|studied|alma mater|ph\.?d", "alma_mater"),
    (r"party", "party"),
)
# "the ticker symbol of the company that owns x", "the elevation of the capital of x": the inner key comes first.
_CHAINS = (
    (r"(?:of|by) the (?:company|firm|corporation|organi[sz]ation) (?:that|which|who) owns|owner of", "owner"),
    (r"capital (?:city )?of", "capital"),
    (r"(?:lead )?(?:designer|inventor|creator) of", "designer"),
    (r"publisher of", "publisher"),
    (r"(?:developer|maker) of", "developer"),
    (r"parent(?: company)? of", "parent"),
)


# Words that a guessed name begins with when the question asks for a fact of a fact of it.
_INNER = re.compile(
    r"^.*\b(?:capital|designer|inventor|creator|owner|publisher|developer|parent|emperor|"
    r"president) (?:city )?of (?:the )?",
    re.IGNORECASE,
)


def statements(question: Question) -> list[str]:
    """The statements for a question, none when no rule fits."""
    names = question.sides("open")
    if not names:
        guessed = question.guess()
        names = [_INNER.sub("", guessed)] if guessed else []
    if len(names) > 1 and not question.compares:
        names = [max(names, key=len)]
    keys = [key for pattern, key in KEYS if question.says(pattern)]
    for pattern, inner in _CHAINS:
        outer = [key for key in keys if key != inner]
        if (
            outer
            and names
            and re.search(rf"(?:{pattern})\W+(?:the )?{re.escape(names[0].lower())}", question.text.lower())
        ):
            return [f'get_open({quote(names[0])})["{inner}"]', f'get_open(*["{inner}"])["{outer[0]}"]']
    shown = f'["{keys[0]}"]' if keys else ""
    return [f"get_open({quote(re.sub(r'^the ', '', name))}){shown}" for name in names[:3]]
