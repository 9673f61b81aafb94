"""Plain text of infobox values: links, templates, references and HTML resolved.

Values are wikitext as Wikipedia has it, or without pipes, `{{birth date 1954 11 23}}`. mwparserfromhell reads the
markup; `wikitext.yaml` says what is kept of a template. Sources are hostile: lengths are bounded, and a value with more
markup than any infobox has is not parsed.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, cast

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, ExternalLink, Node, Tag, Template, Wikilink
from mwparserfromhell.wikicode import Wikicode

from services.kg.definition.folder import PACKAGED
from services.kit.text.dates import iso_date
from services.kit.text.vocabulary import MONTH_NAMES

MAX_CHARS = 6_000
MAX_KEYS = 150
# The parser takes time with the square of what stays open.
MAX_OPENED = 400
# Templates within templates, from the innermost out.
MAX_PASSES = 12

_OPENED = re.compile(r"\{\{|\[\[|<(?=\w)")
# Left by the parser: templates with a line break in the name, as without pipes; what is never closed; lone tags.
_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_STRAY = re.compile(r"<!--.*|<ref\b[^<>]*>.*|</?[a-zA-Z][^<>]*>", re.DOTALL | re.IGNORECASE)
_QUOTES = re.compile(r"'{2,}")
_BULLET = re.compile(r"(?:^|\n|;)[\s*#:;•]*[*#:;•]\s*")
_COMMAS = re.compile(r"(?:\s*,){2,}")
_SEMICOLONS = re.compile(r"(?:\s*;)+\s*")
_GAP = re.compile(r"\s{2,}|\n")
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
_KEY = re.compile(r"[A-Za-z][\w -]{0,30}")
_NAMED_TOKEN = re.compile(r"[A-Za-z_]\w*=\S*")
_MONTH = rf"(?:(?:{'|'.join(MONTH_NAMES)})\s+)"
_TRAILING_DATE = re.compile(
    rf"\s+({_MONTH}?(?:\d{{1,2}},?\s+)?\d{{4}}|\d{{1,2}}\s+{_MONTH}\d{{4}}|present)\s*$", re.IGNORECASE
)
_HIDDEN_LINK = re.compile(r"\s*(?:file|image|category)\s*:", re.IGNORECASE)
_BREAKS = frozenset(("br", "li", "p", "div", "tr"))
_BETWEEN_NUMBERS = frozenset(("-", "–", "to", "and", "or", "by", "x", "×", "±"))
_ENDINGS = {"div": "divorced", "divorced": "divorced", "d": "died", "died": "died"}

Render = Callable[[list[str], dict[str, str]], str]


def _first(arguments: list[str], _: dict[str, str]) -> str:
    return arguments[0] if arguments else ""


def _convert(arguments: list[str], _: dict[str, str]) -> str:
    end = next(
        (at for at, text in enumerate(arguments) if not _NUMBER.fullmatch(text) and text not in _BETWEEN_NUMBERS),
        len(arguments),
    )
    return " ".join(arguments[: end + 1])


def _coordinates(arguments: list[str], _: dict[str, str]) -> str:
    parts: list[str] = []
    signs = iter("°′″")
    for argument in arguments[:8]:
        if argument in {"N", "S", "E", "W"}:
            parts.append(argument + " ")
            signs = iter("°′″")
        elif _NUMBER.fullmatch(argument):
            parts.append(argument + next(signs, " "))
        else:
            break
    return "".join(parts).strip()


def _marriage(arguments: list[str], named: dict[str, str]) -> str:
    if not arguments:
        return ""
    begin, end = ([*arguments[1:3], "", ""])[:2]
    how = _ENDINGS.get(named.get("end", ""), "until")
    span = ", ".join(filter(None, (f"married {begin}" if begin else "", f"{how} {end}" if end else "")))
    return f"{arguments[0]} ({span})" if span else arguments[0]


def _height(arguments: list[str], named: dict[str, str]) -> str:
    units = [f"{named[unit]} {unit}" for unit in ("m", "cm", "ft", "in") if named.get(unit)]
    return " ".join(units) or _convert(arguments, named)


def _date(arguments: list[str], _: dict[str, str]) -> str:
    return iso_date(arguments[:3]) or " ".join(arguments)


_RENDERS: Mapping[str, Render] = {
    "date": _date,
    "all": lambda arguments, _: " ".join(arguments),
    "first": _first,
    "first_word": _first,
    "after_code": lambda arguments, _: " ".join(arguments[1:]) or "".join(arguments),
    "list": lambda arguments, _: "; ".join(arguments),
    "convert": _convert,
    "coordinates": _coordinates,
    "marriage": _marriage,
    "height": _height,
    "circa": lambda arguments, _: "c. " + " – ".join(arguments) if arguments else "c.",
    "as_of": lambda arguments, _: f"as of {_date(arguments, _)}",
    "nothing": lambda arguments, _: "",
}


@cache
def _data() -> Mapping[str, Any]:
    return cast(Mapping[str, Any], PACKAGED.content("domains/open/wikitext.yaml").data)


@cache
def _templates() -> Mapping[str, tuple[str, Render]]:
    """Name of a template -> its kind and what renders it."""
    data = _data()
    templates = {name: (kind, render) for kind, render in _RENDERS.items() for name in data[kind]}
    for sign, names in data["signs"].items():
        templates |= {name: ("sign", lambda _, __, sign=sign: sign) for name in names}
    for prefix, names in data["prefixes"].items():
        templates |= {
            name: ("prefix", lambda arguments, _, prefix=prefix: prefix + "".join(arguments[:1])) for name in names
        }
    return templates


def plain_text(value: str) -> str:
    """One infobox value, or a sentence of an article, without markup. Items of a list are joined by semicolons."""
    text = value[:MAX_CHARS].replace("\x00", "").replace("{{!}}", "|").replace("{{=}}", "=")
    if len(_OPENED.findall(text)) > MAX_OPENED:
        text = _OPENED.sub(" ", text)
    text = _plain(mwparserfromhell.parse(text, skip_style_tags=True))
    for _ in range(MAX_PASSES):
        text, count = _TEMPLATE.subn(lambda match: _without_pipes(match[1].replace("|", "  ").strip()), text)
        if not count:
            break
    text = _QUOTES.sub("", _BULLET.sub("; ", _STRAY.sub("", text)))
    for mark in ("{{", "}}", "[[", "]]"):
        text = text.replace(mark, " ")
    text = " ".join(html.unescape(text).split())
    text = _SEMICOLONS.sub("; ", _COMMAS.sub(",", text))
    return re.sub(r"\s+([,;.)])", r"\1", text).replace(",;", ";").replace(",)", ")").strip(" ,;")


@cache
def _layout() -> re.Pattern[str]:
    """Keys of an infobox that are layout."""
    return re.compile("|".join(_data()["layout"].split()))


@cache
def _longest() -> int:
    """The number of words of the longest name of a template."""
    return max(len(name.split()) for name in _templates())


def facts(infobox: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Keys and plain values of an infobox, in its order, without layout (images, maps, colours)."""
    count = 0
    for raw_key, raw_value in infobox.items():
        if count >= MAX_KEYS:
            return
        key = re.sub(r"[^\w]+", "_", str(raw_key).strip().casefold()).strip("_")[:64]
        if not key or not isinstance(raw_value, (str, int, float)) or _layout().fullmatch(key):
            continue
        value = plain_text(str(raw_value))
        if value:
            count += 1
            yield key, value[:2_000]


def _plain(code: Wikicode | None) -> str:
    return "".join(map(_node, code.nodes)) if code is not None else ""


def _node(node: Node) -> str:
    match node:
        case Comment():
            return ""
        case Template():
            return _template(node)
        case Wikilink():
            if _HIDDEN_LINK.match(str(node.title)):
                return ""
            return _plain(node.text) or _plain(node.title).lstrip(":")
        case ExternalLink():
            return _plain(node.title) if node.brackets else str(node)
        case Tag() if not node.wiki_markup:
            name = str(node.tag).strip().lower()
            if name == "ref":
                return ""
            between = "; " if name in _BREAKS else ""
            return between + _plain(node.contents) + between
        case Argument():
            return ""
    return str(node)


def _template(node: Template) -> str:
    text = _plain(node.name)
    if not node.params:
        return _without_pipes(text.strip())
    arguments: list[str] = []
    named: dict[str, str] = {}
    for parameter in node.params:
        key, value = str(parameter.name).strip(), _plain(parameter.value).strip()
        if not parameter.showkey or key.isdecimal():
            arguments += [value] if value else []
        elif _KEY.fullmatch(key):
            named[key.casefold()] = value
        else:
            # A sign of equality in a text or an address.
            arguments.append(f"{key}={value}")
    _, render = _templates().get(_name(text), ("", None))
    return render(arguments, named) if render else " ".join(arguments)


def _name(text: str) -> str:
    name = " ".join(text.casefold().replace("_", " ").split()).strip(";:")
    return "infobox" if name.startswith("infobox") else name


def _without_pipes(body: str) -> str:
    words = body.split()
    templates = _templates()
    for count in range(min(_longest(), len(words)), 0, -1):
        kind, render = templates.get(_name(" ".join(words[:count])), ("", None))
        if render is None:
            continue
        tokens = [token for token in words[count:] if not _NAMED_TOKEN.fullmatch(token)]
        named = dict(token.split("=", 1) for token in words[count:] if _NAMED_TOKEN.fullmatch(token))
        match kind:
            case "list":
                rest = body.split(maxsplit=count)[count:]
                return render([item.strip() for item in _GAP.split("".join(rest)) if item.strip()], {})
            case "marriage":
                return render(_married(" ".join(tokens)), named)
            case "first":
                return " ".join(tokens)
        return render(tokens, named)
    # Of an unknown template the first word is its name, and most of the others are its text.
    return " ".join(word for word in words[1:] if not _NAMED_TOKEN.fullmatch(word))


def _married(text: str) -> list[str]:
    dates: list[str] = []
    while len(dates) < 2 and (match := _TRAILING_DATE.search(text)):
        dates.insert(0, match[1])
        text = text[: match.start()]
    return [text, *dates]
