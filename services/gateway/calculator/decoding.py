"""Lines `label = expression` as a language model may write them, and the reader of its reply.

The grammar (EBNF as xgrammar and llguidance read it) admits the canonical form that `tree.render` prints, in bounded
lengths, so that a constrained model cannot lose itself in a number or a list. It has no equality, which a model uses to
write down a result of its own. It is the same for every question, so that the server compiles it once. The reply is
parsed strictly all the same: a server may ignore the constraint.
"""

import re

from services.gateway.calculator.errors import ExpressionError
from services.gateway.calculator.parse import parse
from services.gateway.calculator.tree import Expression

MAX_LINES = 5
MAX_LABEL = 80
NOTHING = "none"

GRAMMAR = rf"""
root ::= "{NOTHING}" | line ("\n" line){{0,{MAX_LINES - 1}}}
line ::= label " = " (comparison | sum)
label ::= word (" " word){{0,7}}
word ::= [a-zA-Z0-9]{{1,16}}
comparison ::= sum (" < " | " > ") sum
sum ::= product ((" + " | " - ") product){{0,15}}
product ::= signed ((" * " | " / ") signed){{0,5}}
signed ::= "-"? power
power ::= atom (" ** " exponent)?
exponent ::= count | "(1 / " count ")"
count ::= [1-9] [0-9]?
atom ::= number | "(" sum ")" | call
call ::= ("sum" | "mean" | "median" | "min" | "max") "(" sum (", " sum){{1,11}} ")" | "abs(" sum ")" | "round(" sum ", " [0-4] ")" | "pct_change(" sum ", " sum ")" | ("days_between" | "years_between") "(" day ", " day ")"
number ::= "$"? digits (" thousand" | " million" | " billion" | " trillion")? | digits "%"
digits ::= ([0-9]{{1,3}} ("," [0-9] [0-9] [0-9]){{1,4}} | [0-9]{{1,12}}) ("." [0-9]{{1,6}})?
day ::= "\"" [12] [0-9] [0-9] [0-9] "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) "\""
""".strip()  # noqa: E501 - a rule is a line

_EQUALS = re.compile(r"(?<![<>!=])={1,2}(?!=)")


def read(reply: str) -> tuple[list[tuple[str, Expression]], list[str]]:
    """The expressions of a reply with the model's labels, and the faults of its other lines.

    A reply that was cut at its limit loses its last line when that does not parse.
    """
    proposals: list[tuple[str, Expression]] = []
    faults: list[str] = []
    text = reply.strip()
    if text.lower().rstrip(".") == NOTHING:
        return [], []
    for line in text.splitlines()[:MAX_LINES]:
        # Behind a second sign stands a result of the model's own: it is not read.
        label, *rest = (part.strip() for part in _EQUALS.split(line))
        if not 0 < len(label) <= MAX_LABEL or not 1 <= len(rest) <= 2:
            faults.append("a line without label = expression")
            continue
        try:
            proposals.append((" ".join(label.split()), parse(rest[0])))
        except ExpressionError as error:
            faults.append(str(error))
    return proposals, faults
