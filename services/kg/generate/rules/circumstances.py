"""What is said beside a question and asks no more, once all else of it has been read."""

from collections.abc import Sequence

from services.kg.generate.rules.roles import Roles
from services.kg.generate.rules.tokens import Range
from services.kg.generate.rules.words import english

# What we do with all of them is said in a verb and a particle.
_MOST_WORDS = 2


def take_circumstances(roles: Roles, nouns: Sequence[Range], ordered: Sequence[str]) -> None:
    """Read what is left of a question that asks no more: "in the city", "we look after"; of rows in order "grows"."""
    tokens = roles.tokens
    tokens.take(*tokens.find(english().aside))
    asked = next((one for one in roles.mentions if one.place.first == 1), None)
    if asked and tokens.word(0) in ("which", "what") and tokens.word(asked.place.end) in ("do", "does", "is", "are"):
        tokens.take(*tokens.find(english().light))
    ends = {noun.end for noun in nouns}
    for run in tokens.unread():
        before = tokens.word_before(run)
        word = tokens.word(run.first)
        ours = before in english().we and tokens.word(run.first - 2) not in english().did
        if ours and run.end - run.first <= _MOST_WORDS and not word.endswith("ed"):
            tokens.take(run)
            continue
        is_idle = before in english().may or (word.endswith("s") and run.first in ends)
        if ordered and run.end == run.first + 1 and is_idle:
            # "Which plane flies at the greatest height": whatever it does there.
            tokens.take(run)
