"""Programs by rules: names are looked up, words of the question choose functions, keys and windows.

So did WeKnow-RAG, APEX and the official baseline of the challenge; no language model is needed, and a question costs
milliseconds. It is what remains when the generator is down. What people say is data, `words.yaml` in a domain's folder;
a domain without one is read by the words of its catalogue.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.kg.entities import NameIndex
from services.kg.generate.base import Written, as_data
from services.kg.generate.rules.general import general
from services.kg.generate.rules.guessing import with_guesses, with_other_kinds
from services.kg.generate.rules.lexicon import Lexicon, lexicons
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.readings import read
from services.kg.generate.rules.values import Values
from services.kg.generate.rules.words import Words
from services.kg.generate.spans import Spot, Spotter
from services.kg.language.catalogue import Catalogue
from services.kit.budget import Budget
from services.kit.text.times import Calendar

_HYPHEN = re.compile(r"\b([^\W\d_]{2,})-([^\W\d_]{2,})\b")


@dataclass(frozen=True, slots=True)
class RuleWriter:
    """Writes programs without a model."""

    catalogue: Catalogue  # what may be called
    spotter: Spotter  # finds the names
    values: Values  # knows the values of keys in the store, which are words of questions too
    names: NameIndex  # finds names that are misspelt or said in part, in a domain that is read by its catalogue

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`; rules write the same whatever the feedback."""
        program = await asyncio.to_thread(self.program, query, query_time, domain)
        return Written(program, "rules")

    def program(self, query: str, query_time: datetime, domain: str) -> str:
        """As `write`, blocking."""
        lexicon = lexicons(self.catalogue)[domain]
        text = _without_hyphens(as_data(query), lexicon)
        spots = self.spotter.spot(text, domain)
        calendar = self.catalogue.domains[domain].calendar
        question = understand(text, calendar, query_time, spots, lexicon.words)
        if question.says(lexicon.words.unknown):
            return "none"
        statements = read(lexicon, question)
        if not statements and not lexicon.words.guided:
            question = with_guesses(lexicon, question, self.names, self.values)
            statements = general(lexicon, question, self.values)
            if not statements:
                widened = with_other_kinds(lexicon, question, self.names)
                statements = general(lexicon, widened, self.values) if widened.spots != question.spots else []
        return "\n".join(dict.fromkeys(statements)) or "none"


def _without_hyphens(text: str, lexicon: Lexicon) -> str:
    """The question with call-outs where the domain's words say callouts."""

    def joined(match: re.Match[str]) -> str:
        word = match[1] + match[2]
        return word if word.lower() in lexicon.vocabulary else match[0]

    return _HYPHEN.sub(joined, text) if not lexicon.words.guided else text


def understand(text: str, calendar: Calendar, query_time: datetime, spots: Sequence[Spot], words: Words) -> Question:
    """The question with its names, a name of several kinds as the kind that the words speak of."""
    question = Question(text, calendar, query_time, tuple(spots), words.editions)
    deciding = [kind for kind, own in words.kinds.items() if own.named]
    if not deciding:
        return question
    chosen: list[Spot] = []
    for spot in spots:
        kinds = [other.kind for other in spots if other.place == spot.place]
        named = [kind for kind in deciding if kind in kinds and question.says(words.kinds[kind].named)]
        named = [kind for kind in named if not question.says(words.kinds[kind].unless)]
        usual = [kind for kind in words.kinds if kind in kinds and kind not in deciding]
        if len(kinds) == 1 or spot.kind in (named or usual or kinds)[:1]:
            chosen.append(spot)
    return replace(question, spots=tuple(chosen))
