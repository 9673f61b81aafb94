"""What goes with a question and asks nothing: where it is asked, whose things they are, how much of a unit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from services.kg.generate.rules.english import english
from services.kg.generate.rules.tokens import Range

if TYPE_CHECKING:
    from services.kg.generate.rules.roles import Roles

_OURS = frozenset(("we", "i"))
_DONE = frozenset(("did", "have", "had", "has"))
_MAY = frozenset(("can", "could", "may"))
# What we do with all of them is said in a verb and a particle.
_MOST_WORDS = 2


def take_circumstances(roles: "Roles", nouns: Sequence[Range], ordered: Sequence[str]) -> None:
    """Read what is left of a question that asks no more: "in the city", "we look after", of rows in an order "grows".

    Args:
        nouns: where the rows are named.
        ordered: the keys that the rows are ordered or compared by.
    """
    tokens = roles.tokens
    roles.take(*tokens.find(english().aside))
    ends = {noun.end for noun in nouns}
    for run in tokens.unread():
        before = tokens.word(run.first - 1) if run.first else ""
        word = tokens.word(run.first)
        ours = before in _OURS and not (run.first > 1 and tokens.word(run.first - 2) in _DONE)
        if ours and run.end - run.first <= _MOST_WORDS and not word.endswith("ed"):
            roles.take(run)
        elif ordered and run.end == run.first + 1 and (before in _MAY or (word.endswith("s") and run.first in ends)):
            # "Which plane flies at the greatest height": whatever it does there.
            roles.take(run)
