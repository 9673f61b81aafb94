"""Texts that were cut anywhere, up to an end of their own."""

import re

# What ends a sentence without a space behind it.
FULL_STOPS = "。！？"
# Thai to Khmer, kana, Chinese: a character there is a word or begins the next one. A class of regular expressions.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3001-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff01\uff0c\uff1b\uff1f\U00020000-\U0003ffff"
)
_WHOLE_WORDS = re.compile(rf".*(?:\s|[{UNSPACED}](?<![〇零一二三四五六七八九十百千万萬億亿]))", re.DOTALL)


def whole_words(text: str) -> str:
    """The start of a text up to its last word's beginning, since half a word or number is another one.

    Scripts that write no spaces between words end where they are cut, but within no number. Empty for one word.
    """
    match = _WHOLE_WORDS.match(text)
    return match[0].rstrip() if match else ""
