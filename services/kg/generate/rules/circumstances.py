"""Words of a question that ask nothing: where it is asked, whose things they are, how much of a unit."""

from collections.abc import Sequence

from services.kg.generate.rules.english import english
from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Range

_OURS = frozenset(("we", "i"))
_DONE = frozenset(("did", "have", "had", "has"))
_MAY = frozenset(("can", "could", "may"))
# What we do with all of them is said in a verb and a particle.
_MOST_WORDS = 2


def take_circumstances(roles: Roles, nouns: Sequence[Range], ordered: Sequence[str]) -> None:
    """Read what is left of a question that asks no more: "in the city", "we look after", of rows in an order "grows".

    Args:
        nouns: where the rows are named.
        ordered: the keys that the rows are ordered or compared by.
    """
    tokens = roles.tokens
    tokens.take(*tokens.find(english().aside))
    ends = {noun.end for noun in nouns}
    for run in tokens.unread():
        before = tokens.word_before(run)
        word = tokens.word(run.first)
        ours = before in _OURS and tokens.word(run.first - 2) not in _DONE
        if ours and run.end - run.first <= _MOST_WORDS and not word.endswith("ed"):
            tokens.take(run)
        elif ordered and run.end == run.first + 1 and (before in _MAY or (word.endswith("s") and run.first in ends)):
            # "Which plane flies at the greatest height": whatever it does there.
            tokens.take(run)
