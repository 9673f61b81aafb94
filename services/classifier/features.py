"""Cheap lexical features beside the embedding: words that tell of time, comparison, counting and form.

An embedding of a whole question blurs the one word ("latest", "yesterday", "average") that decides its dynamism or
type. Each feature is 0 or 1, so that people can read the classifier's input.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
import yaml
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MAX_CHARS = 2_000
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in yaml.safe_load(files(__package__).joinpath("features.yaml").read_text("utf-8")).items()
}
NAMES = (*_PATTERNS, "short", "long", "no letters")
SHORT, LONG = 5, 16


def lexical(texts: Sequence[str]) -> Floats:
    """The features of each text, shape (texts, len(NAMES)); only a text's first 2,000 characters are read."""
    return np.array([_features(text[:MAX_CHARS].lower().strip()) for text in texts], np.float32).reshape(-1, len(NAMES))


def _features(text: str) -> list[bool]:
    words = len(text.split())
    matches = [pattern.search(text) is not None for pattern in _PATTERNS.values()]
    return [*matches, words <= SHORT, words >= LONG, not any(character.isalpha() for character in text)]
