"""Lengths at which texts are cut, and texts that were cut anywhere, up to an end of their own."""

import re

# What ends a sentence without a space behind it.
FULL_STOPS = "。！？"
# Thai, Lao, Burmese, Khmer, kana, Chinese: a character there is a word or begins the next one. Classes of regular
# expressions, of letters and of signs too.
UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = f"{UNSPACED_LETTERS}\u3001-\u303f\u30fb\uff01\uff0c\uff1b\uff1f"
HANGUL = "\uac00-\ud7af"
# Of the 256 that small encoders read, the others are a title's.
_WINDOW_TOKENS = 225
# Tokens of a character by a vocabulary of English: of a word's letters four make one, others stand alone, and a
# syllable of Korean is taken apart.
_ASCII_TOKENS, _OTHER_TOKENS, _HANGUL_TOKENS = 0.25, 0.9, 2.2
_HANGUL = re.compile(f"[{HANGUL}]+")
_WHOLE_WORDS = re.compile(rf".*(?:\s|[{UNSPACED}](?<![〇零一二三四五六七八九十百千万萬億亿]))", re.DOTALL)


def whole_words(text: str) -> str:
    """The start of a text up to its last word's beginning, since half a word or number is another one.

    Scripts that write no spaces between words end where they are cut, but within no number. Empty for one word.
    """
    match = _WHOLE_WORDS.match(text)
    return match[0].rstrip() if match else ""


def window_chars(text: str, most: int) -> int:
    """Characters of such a text that an encoder of English reads whole, by an estimate; `most` of a Latin script."""
    hangul = sum(map(len, _HANGUL.findall(text)))
    ascii_chars = len(text.encode("ascii", "ignore"))
    others = len(text) - ascii_chars - hangul
    tokens = _ASCII_TOKENS * ascii_chars + _OTHER_TOKENS * others + _HANGUL_TOKENS * hangul
    return min(most, int(_WINDOW_TOKENS * len(text) / tokens)) if tokens else most
