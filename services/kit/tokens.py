"""How many tokens a text has, by an estimate: for times, and for limits where a server has no tokenizer."""

import string
from bisect import bisect_right

# Less than English text has, so that an estimate errs towards a shorter prompt. Where figures and signs prevail, each
# of them is a token, and words have more.
CHARS_PER_TOKEN = 3.0
CHARS_PER_WORD_TOKEN = 4.0
_FIGURES_AND_SIGNS = (string.digits + string.punctuation + "\n").encode()
# Tokens of a character of other scripts, by the first code point from which they hold: letters with marks; Greek,
# Cyrillic, Hebrew, Arabic; Indic scripts and signs; Chinese, Japanese; rare ones; Korean; pictures.
_SCRIPTS = {0x80: 1.0, 0x370: 0.6, 0x800: 2.0, 0x3000: 1.2, 0xA000: 2.0, 0xAC00: 1.2, 0xD7B0: 2.0, 0x10000: 3.0}
_FIRST, _TOKENS = list(_SCRIPTS), list(_SCRIPTS.values())


def estimate_tokens(text: str) -> int:
    """An upper estimate of a text's tokens."""
    ascii_text = text.encode("ascii", "ignore")
    letters = len(ascii_text.translate(None, _FIGURES_AND_SIGNS))
    foreign = sum(_TOKENS[bisect_right(_FIRST, ord(char)) - 1] for char in text if not char.isascii())
    dense = len(ascii_text) - letters + foreign
    return int(max(len(text) / CHARS_PER_TOKEN, letters / CHARS_PER_WORD_TOKEN + dense)) + 1


def head_by_estimate(text: str, max_tokens: int) -> str:
    """The longest start of a text that is estimated at `max_tokens` tokens; empty where that is none."""
    text = text[: max(0, int(max_tokens * CHARS_PER_TOKEN))]
    lengths = range(1, len(text) + 1)
    return text[: bisect_right(lengths, max_tokens, key=lambda length: estimate_tokens(text[:length]))]
