"""Cheap lexical features beside the embedding: words that tell of time, comparison, counting and form.

An embedding of a whole question blurs the one word ("latest", "yesterday", "average") that decides its dynamism or
type. Each feature is 0 or 1, so that people can read the classifier's input.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MAX_CHARS = 2_000
_WORDS: Mapping[str, str] = {
    # When the answer holds.
    "now": r"\b(now|right now|currently|at the moment|at present|as of now|live)\b",
    "current": r"\b(current|present|these days|still|reigning|incumbent)\b",
    "today": r"\b(today|today's|tonight|this (morning|afternoon|evening)|so far today)\b",
    "yesterday": r"\b(yesterday|yesterday's|last night)\b",
    "this period": r"\bthis (week|month|year|season|quarter|weekend|summer|fall|winter|spring)('s)?\b",
    "last period": r"\b(last|past|previous) (week|month|quarter|season|weekend|year|few|\w+day|\w+ days)\b",
    "trading day": r"\b(trading|market) (day|session)\b|\b(mon|tues?|wed(nes)?|thu(rs)?|fri)(day)?\b",
    "latest": r"\b(latest|newest|most recent(ly)?|recent(ly)?|last)\b",
    "next": r"\b(next|upcoming|coming|scheduled|will)\b",
    "until": r"\b(until|left|since|so far|yet|ago|as of)\b",
    "year": r"\b(1[5-9]|20)\d\d\b",
    "recent year": r"\b202\d\b",
    "date": r"\b\d{4}-\d{2}(-\d{2})?\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b",
    "month": r"\b(january|february|march|april|june|july|august|september|october|november|december)\b",
    "decade": r"\b\d{2,4}s\b",
    "quarter": r"\bq[1-4]\b|\b(first|second|third|fourth|1st|2nd|3rd|4th) (quarter|qtr)\b",
    "first": r"\b(first|original(ly)?|debut|earliest|founded|invented)\b",
    "ordinal": r"\b(second|third|fourth|fifth|sixth|seventh|2nd|3rd|[4-9]th)\b",
    "past tense": r"\b(was|were|did|had)\b",
    "present tense": r"\b(is|are|does|do|has|have|'s)\b|\b(what|who|where|when|how)'s\b",
    # What is asked for.
    "how many": r"\bhow (many|often)\b|\bnumber of\b",
    "how much": r"\bhow much\b",
    "how long": r"\bhow (old|long|far|tall|fast|big)\b",
    "total": r"\b(total|in all|combined|altogether|sum|overall)\b",
    "average": r"\b(average|mean|on average)\b",
    "why": r"\b(why|how come|how did)\b",
    "when": r"\b(when|what year|which year|what date|which date|date)\b",
    "who": r"\bwho('s|se)?\b",
    "where": r"\bwhere\b",
    "yes or no": r"^(is|are|was|were|did|does|do|has|have|can|will)\b",
    "list": r"\b(list|name (all|the|\w+)|top|examples?)\b|\bwhat are\b|\bwho (are|were)\b",
    "some number": r"\b(two|three|four|five|six|ten|[2-9]|10)\b",
    "plural": r"\b(which|what) \w+s\b",
    "comparison": r"\b(or|than|versus|vs\.?|between)\b",
    "comparative": r"\b(more|fewer|less|better|higher|lower|larger|bigger|older|younger|earlier|longer|\w+ier)\b",
    "superlative": r"\b(most|best|least|worst|highest|lowest|largest|biggest|oldest|youngest|longest|tallest)\b",
    "condition": r"\b(during|between|before|after|by|under|over|while)\b",
    "hypothetical": r"\b(if|would|could|suppose)\b",
    "money": r"[$€£]\s?\d|\b(dollars?|percent)\b|%",
    "premise": r"^(since|after|given|now that|because|following|as)\b",
    "of the": r"\bof the\b.*\b(of|that|who|which|with)\b",
    "relative": r"\b(that|who|which|where) (is|was|has|won|owns?|makes?|sang|played|wrote|directed|made|plays?|had)\b",
    "possessive": r"\w's \w+|s' \w+",
    "quoted": r"[\"“”].+[\"“”]",
}
NAMES = (*_WORDS, "short", "long", "no letters")
_PATTERNS = tuple(re.compile(pattern) for pattern in _WORDS.values())
SHORT, LONG = 5, 16


def lexical(texts: Sequence[str]) -> Floats:
    """The features of each text, shape (texts, len(NAMES)); only a text's first 2,000 characters are read."""
    return np.array([_features(text[:MAX_CHARS].lower().strip()) for text in texts], np.float32).reshape(-1, len(NAMES))


def _features(text: str) -> list[bool]:
    words = len(text.split())
    matches = [pattern.search(text) is not None for pattern in _PATTERNS]
    return [*matches, words <= SHORT, words >= LONG, not any(character.isalpha() for character in text)]
