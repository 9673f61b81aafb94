"""Texts from outside, made fit for a prompt: questions, pages, facts, and models' replies about them."""

import re

# Titles name a page; a longer one is no title.
MAX_TITLE_CHARS = 200
# Characters that a model sees and a reader does not: zero-width and direction marks, controls of annotations, shorthand
# and music, and Unicode's tag characters, which can hide whole sentences. They could also part the letters of a token
# below.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# A chat template's control tokens would end our message and begin another. ChatML and Llama 3 (also in DeepSeek's
# fullwidth bars), Llama 2 and Mistral, Gemma, the tags of reasoning and of tool calls.
_CONTROL_TOKEN = re.compile(
    r"<[|\uff5c][^|\uff5c<>\n]{0,40}[|\uff5c]>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|<</?SYS>>"
    r"|</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|think|tool_call|tool_response)>",
    re.IGNORECASE,
)
_HALF_TOKEN = re.compile(r"<[|\uff5c]|[|\uff5c]>|</?(?=\w{1,20}>)|\[/?(?=[A-Z_]{4,20}\])", re.IGNORECASE)
# What opens a tag, and what begins its end, or looks so.
OPENS, ENDS = "[<\u2039\u3008\ufe64\uff1c]", "[/\u2044\u2215\uff0f]"
_FENCE = re.compile(rf"{OPENS}(?=\s*+(?:{ENDS}\s*+)?document\b)", re.IGNORECASE)


def visible(text: str) -> str:
    """A text without the characters that a reader does not see."""
    return _INVISIBLE.sub("", text)


def harmless(text: str) -> str:
    """A text without control tokens of chat templates, invisible characters and tags that would close its fence."""
    text = _FENCE.sub("&lt;", _CONTROL_TOKEN.sub(" ", _CONTROL.sub(" ", visible(text))))
    if _CONTROL_TOKEN.search(text):
        # The removed token stood between the halves of another one; nobody writes so by chance.
        text = _FENCE.sub("&lt;", _HALF_TOKEN.sub(" ", _CONTROL_TOKEN.sub(" ", text)))
    return text


def one_line(text: str) -> str:
    """A harmless text as one line: the form of the question that ends a prompt."""
    return " ".join(harmless(text).split())


def fence(text: str, **attributes: str) -> str:
    """A harmless text between tags; the attributes can neither close their quotes nor the tag."""
    named = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<document{named}>\n{harmless(text)}\n</document>"


def _attribute(value: str) -> str:
    line = " ".join(harmless(value).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;").split())
    return line if len(line) <= MAX_TITLE_CHARS else line[:MAX_TITLE_CHARS] + "..."
