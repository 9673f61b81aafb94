"""Words of general English by what they ask for."""

from collections.abc import Mapping
from functools import cache

from services.kg.definition.folder import PACKAGED, Part
from services.kg.generate.rules.words import Phrases


class English(Part):
    """Words of general English by what they ask for; see `english.yaml`."""

    count: Phrases
    average: Phrases
    total: Phrases
    first: Phrases
    last: Phrases
    together: Phrases
    several: Phrases
    every: Phrases
    greatest: Phrases
    least: Phrases
    greater: Phrases
    lesser: Phrases
    difference: Phrases
    ratio: Phrases
    after: Phrases
    since: Phrases
    before: Phrases
    until: Phrases
    between: Phrases
    over: Phrases
    under: Phrases
    whole: Phrases
    doing: Phrases
    beneath: Phrases
    dates: Phrases
    aside: Phrases
    synonyms: Mapping[str, Phrases]
    opposites: Mapping[str, Phrases]
    fillers: str

    @property
    def time_operators(self) -> tuple[tuple[str, Phrases], ...]:
        """Operators of the language, with what says so before a time."""
        return ("gt", self.after), ("lt", self.before), ("ge", self.since), ("le", self.until)


@cache
def english() -> English:
    return PACKAGED.model("generate/rules/english.yaml", English)[0]
