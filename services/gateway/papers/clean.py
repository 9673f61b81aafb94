"""Texts as encoders want them: without tags, addresses and runs of blanks (Onewo, the paper's data cleaning).

Every pattern takes time in proportion to the text: the characters between two marks exclude the first mark, so no start
is tried twice over the same characters.
"""

import html
import re

from proto.base import MAX_QUERY_CHARS

_HIDDEN = re.compile(r"<(script|style)\b[^<>]*>[^<]*</\1\s*>", re.IGNORECASE)
# Within a word or a formula, which a blank would part.
_INLINE = re.compile(r"</?(?:a|b|code|em|i|span|strong|sub|sup|u)(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]*>")
_ADDRESS = re.compile(r"""(?:\b(?:https?|ftp)://|\bwww\.)[^\s<>()\[\]{}"']+""", re.IGNORECASE)


def clean(text: str) -> str:
    """One line without tags, entities, addresses and blanks at its ends."""
    # Entities after tags, so that an escaped tag does not become one.
    bare = html.unescape(_TAG.sub(" ", _INLINE.sub("", _HIDDEN.sub(" ", text))))
    return " ".join(_ADDRESS.sub(" ", bare).split())


def question(query: str, body: str = "") -> str:
    """The question and its text, which may be HTML, below it (Onewo), cut at what a query may have.

    A question that cleaning leaves nothing of stays as it is.
    """
    lines = [clean(query) or " ".join(query.split()), clean(body)]
    return cut("\n".join(line for line in lines if line), MAX_QUERY_CHARS)


def cut(text: str, most: int) -> str:
    """The first `most` characters at most, ending with a whole word where there is one."""
    if len(text) <= most:
        return text
    space = max(text.rfind(" ", 0, most + 1), text.rfind("\n", 0, most + 1))
    return text[:space].rstrip() if space > 0 else text[:most]
