"""Words of general English by what they ask for."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

from services.kg.definition.folder import Part
from services.kg.generate.rules.words import Phrases


class English(Part):
    """Words of general English by what they ask for; see `english.yaml`."""

    count: Phrases
    average: Phrases
    total: Phrases
    first: Phrases
    last: Phrases
    now: Phrases
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
    before: Phrases
    between: Phrases
    over: Phrases
    under: Phrases
    whole: Phrases
    fillers: str
    scales: Mapping[str, int]
    numbers: Mapping[str, int]


@cache
def english() -> English:
    text = (files("services.kg.generate.rules") / "english.yaml").read_text("utf-8")
    return English.model_validate(yaml.safe_load(text))
