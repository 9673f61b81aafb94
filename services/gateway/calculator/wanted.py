"""Whether a question may need arithmetic, by its words alone: what costs an LLM call should cost none in vain.

Words that name an operation are enough. "How many" and "how much" alone are not: the answer usually stands somewhere as
it is; they ask for arithmetic beside a comparison, a total or a span of time.
"""

import re

_OPERATION = re.compile(
    r"""\b(?:
      differ(?:ence|ences|ential) | differs? | discrepanc(?:y|ies) | gap\ between | margin\ between
    | averages? | averaged | mean\ (?:of|number|value|annual|price) | median
    | sums? | totals? | altogether | combined | all\ together | adds?\ up | added\ up | makes?\ up | excluding
    | per\ ?cent(?:age)?(?:s|\ points?)? | proportion | fraction | ratios? | share\ of
    | increase[sd]? | decrease[sd]? | decline[sd]? | growth | grow[ns]? | grew | r[io]sen? | f[ae]ll(?:en)?
    | drop(?:ped|s)? | chang(?:e[sd]?|ing) | gain(?:ed|s)? | appreciat(?:e[sd]?|ion) | return\ on
    | twice | thrice | doubled? | tripled? | half\ (?:of|as)
    | (?:two|three|four|five|\d+)?\ ?times\ (?:as|more|larger|bigger|higher|greater)
    | multipl(?:y|ied) | divided? | subtract(?:ed)? | plus | minus | added | net\ of
    | how\ (?:much|many)\ (?:\w+\ ){0,4}?(?:more|less|fewer|longer|shorter|higher|lower|greater|older|younger|taller
        |larger|smaller|bigger|further|earlier|later|faster|apart)
    | how\ (?:much|many)\ times
    | how\ many\ (?:years|months|weeks|days|decades)\ | how\ (?:old|long\ (?:after|before|between|ago))
    | (?:what|at\ what|at\ which|his|her|their)\ age | aged? \ (?:when|at)
    | convert(?:ed)? | equivalent\ (?:in|to) | compound(?:ed)? | annuali[sz]ed | year[- ]over[- ]year | yoy
    | remaining | left\ over | exceed(?:s|ed)?\ .{0,40}\ by
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Two things of which one is more: the comparison itself is arithmetic, on values that may stand in different places.
_COMPARISON = re.compile(
    r"\b(?:more|less|fewer|higher|lower|larger|smaller|bigger|greater|older|younger|longer|shorter|taller|earlier|later"
    r"|cheaper|faster|better)\b.{1,80}\b(?:than|or)\b|\bcompar(?:e|ed|ing|ison)\b"
    r"|\bbetween\b.{1,60}\band\b.{0,60}\b(?:more|less|higher|lower|larger|older|younger|longer|first|earlier|later)\b",
    re.IGNORECASE,
)
# A cause stands in words.
_CAUSE = re.compile(
    r"\b(?:why|reasons?|what\s(?:led|caused|drove)|(?:driven|caused)\sby|(?:due|owing)\sto\swhat)\b", re.IGNORECASE
)
_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b")
_FIGURES = re.compile(r"[0-9][0-9,.]*\s*(?:[-+*/x×÷]|\*\*)\s*[$€£]?[0-9]")


def asks_arithmetic(query: str) -> bool:
    """Whether a question may need more than a look-up."""
    if _CAUSE.search(query):
        return False
    # Its hyphens take nothing away.
    query = _DATE.sub(" ", query)
    return any(pattern.search(query) for pattern in (_OPERATION, _COMPARISON, _FIGURES))
