"""Infobox values as plain text: links, templates, references and HTML resolved.

Two forms come: wikitext as Wikipedia has it, and a form whose pipes are gone, `{{birth date 1954 11 23}}`, where the
name of a template is found by a list of known ones. Sources are hostile input: lengths, depths and passes are bounded,
and each pattern reads a text once.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date

MAX_CHARS = 6_000
MAX_KEYS = 150
# Templates are resolved from the innermost out; what is deeper is markup for show.
MAX_PASSES = 12

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^<>]*?/>|<ref\b[^<>]*>.*?(?:</ref\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_BREAK = re.compile(r"<\s*/?\s*(?:br|li|p|div|tr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_FILE_LINK = re.compile(r"\[\[\s*(?:file|image|category)\s*:[^\[\]]*\]\]", re.IGNORECASE)
_LINK = re.compile(r"\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")
_WEB_LINK = re.compile(r"\[(?:https?:)?//[^\s\[\]]+(?:\s+([^\[\]]*))?\]")
_QUOTES = re.compile(r"'{2,}")
_BULLET = re.compile(r"(?:^|\n|;)\s*[*#:;•]+\s*")
_COMMAS = re.compile(r"(?:\s*,){2,}")
_SEMICOLONS = re.compile(r"(?:\s*;)+\s*")
_SPACE = re.compile(r"\s+")
_GAP = re.compile(r"\s{2,}|\n")
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
_NAMED = re.compile(r"\s*([A-Za-z][\w -]{0,30}?)\s*=\s*(.*)", re.DOTALL)
_NAMED_TOKEN = re.compile(r"[A-Za-z_]\w*=\S*")
_WORD_DATE = r"(?:(?:January|February|March|April|May|June|July|August|September|October|November|December)\s+)"
_TRAILING_DATE = re.compile(
    rf"\s+({_WORD_DATE}?(?:\d{{1,2}},?\s+)?\d{{4}}|\d{{1,2}}\s+{_WORD_DATE}\d{{4}}|present)\s*$"
)

Render = Callable[[list[str], dict[str, str]], str]

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def _iso(arguments: list[str]) -> str:
    """Year, month and day as ISO 8601, so that dates of all entities compare; words stay words."""
    numbers: list[int] = []
    for argument in arguments[:3]:
        if argument in _MONTHS:
            numbers.append(_MONTHS.index(argument) + 1)
        elif argument.isdecimal() and len(argument) <= 4:
            numbers.append(int(argument))
        else:
            break
    # A first number that small is a day, or a year that someone cut short.
    while numbers and numbers[0] > 31:
        try:
            date(*([*numbers, 1, 1])[:3])
        except ValueError:
            numbers.pop()
            continue
        return "-".join([f"{numbers[0]:04d}", *(f"{part:02d}" for part in numbers[1:])])
    return " ".join(arguments)


def _date(arguments: list[str], _: dict[str, str]) -> str:
    return _iso(arguments)


def _first(arguments: list[str], _: dict[str, str]) -> str:
    return arguments[0] if arguments else ""


def _last(arguments: list[str], _: dict[str, str]) -> str:
    return arguments[-1] if arguments else ""


def _all(arguments: list[str], _: dict[str, str]) -> str:
    return " ".join(arguments)


def _list(arguments: list[str], _: dict[str, str]) -> str:
    return "; ".join(arguments)


def _nothing(_: list[str], __: dict[str, str]) -> str:
    return ""


def _after_code(arguments: list[str], _: dict[str, str]) -> str:
    return " ".join(arguments[1:]) or "".join(arguments)


def _convert(arguments: list[str], _: dict[str, str]) -> str:
    """A number and its unit, "250 km"; what it would be in other units is left out."""
    kept: list[str] = []
    for argument in arguments:
        kept.append(argument)
        if not _NUMBER.fullmatch(argument) and argument not in {"-", "–", "to", "and", "or", "by", "x", "×", "±"}:
            break
    return " ".join(kept)


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
    how = {"div": "divorced", "divorced": "divorced", "d": "died", "died": "died"}.get(named.get("end", ""), "until")
    span = ", ".join(filter(None, (f"married {begin}" if begin else "", f"{how} {end}" if end else "")))
    return f"{arguments[0]} ({span})" if span else arguments[0]


def _height(arguments: list[str], named: dict[str, str]) -> str:
    units = [f"{named[unit]} {unit}" for unit in ("m", "cm", "ft", "in") if named.get(unit)]
    return " ".join(units) or _convert(arguments, named)


def _circa(arguments: list[str], _: dict[str, str]) -> str:
    return "c. " + " – ".join(arguments) if arguments else "c."


def _money(sign: str) -> Render:
    return lambda arguments, _: sign + " ".join(arguments[:1])


def _exchange(name: str) -> Render:
    return lambda arguments, _: f"{name}: {arguments[0]}" if arguments else name


_TEMPLATES: dict[str, Render] = {}
for _names, _render in (
    ("birth date|birth date and age|bda|dob|birth-date|birth-date and age|birth year and age|birth year|death date"
     "|death date and age|dda|death-date|death-date and age|death year and age|start date|start date and age"
     "|end date|end date and age|film date|release date|launch date|date|dts|opening date|start and end date", _date),
    ("nowrap|nobr|nobold|small|smaller|big|center|left|noitalic|nowraplinks|avoid wrap|sic|not a typo|as written"
     "|ordinal|bold|em|strong|italic correction", _all),
    ("flag|flagcountry|flagu|flaglist|flagdeco|flag country|country|abbr|abbrlink|tooltip|ill|interlanguage link"
     "|url|official url|official website|val|formatnum|nts|number|num|fs player|link|hover title|ship|sclass"
     "|linktext|title|cite|section link|vanchor|visible anchor", _first),
    ("lang|transl|transliteration|zh|script", _after_code),
    ("langr|native name|native phrase", _after_code),
    ("ubl|unbulleted list|ublist|plainlist|plain list|flatlist|flat list|hlist|bulleted list|unbulletedlist|cslist"
     "|comma separated entries|collapsible list|ordered list|startplainlist|endplainlist|flowlist|br list", _list),
    ("convert|cvt|conv|convinfobox", _convert),
    ("coord|coords|coordinates", _coordinates),
    ("marriage|married", _marriage),
    ("height", _height),
    ("circa|c.|ca", _circa),
    ("us$|usd|us dollar", _money("US$")),
    ("gbp|£", _money("£")),
    ("eur|euro|€", _money("€")),
    ("jpy|¥", _money("¥")),
    ("inr|indian rupee|indianrupee", _money("₹")),
    ("nasdaq|nasdaq link", _exchange("Nasdaq")),
    ("nyse|new york stock exchange", _exchange("NYSE")),
    ("nyse american|nyse arca", _exchange("NYSE American")),
    ("lse|london stock exchange", _exchange("LSE")),
    ("tyo|tse|tokyo stock exchange", _exchange("TYO")),
    ("euronext", _exchange("Euronext")),
    ("fwb|fra|frankfurt stock exchange", _exchange("FWB")),
    ("sehk|hkex", _exchange("SEHK")),
    ("krx", _exchange("KRX")),
    ("nse", _exchange("NSE")),
    ("bse", _exchange("BSE")),
    ("six", _exchange("SIX")),
    ("asx", _exchange("ASX")),
    ("tsx", _exchange("TSX")),
    ("otc pink|otcpink|otcqx", _exchange("OTC")),
    ("efn|refn|sfn|sfnp|r|rp|note|ref|reflist|notelist|citation needed|cn|fact|citation|cite web|cite news|cite book"
     "|cite journal|cite press release|better source needed|dead link|webarchive|listen|audio|pronunciation"
     "|ipac-en|ipa|ipa-en|respell|flagicon|flag icon|flagicon image|increase|decrease|steady|profit|loss|gain"
     "|up|down|nochange|age|age in years|clear|anchor|px2|double image|multiple image|css image crop|infobox|embed"
     "|which|when|who|by whom|clarify|update inline|failed verification|see below|wikidata|short description"
     "|self reference|refbegin|refend|photomontage|location map|maplink|infobox mapframe|verify source", _nothing),
    ("snd|spaced ndash|ndash|spnd|en dash|dash", lambda _, __: " – "),
    ("mdash|spaced mdash", lambda _, __: " — "),
    ("nbsp|space|spaces|spc", lambda _, __: " "),
    ("·|•|dot|bullet|middot", lambda _, __: "; "),
    ("as of", lambda arguments, _: f"as of {_iso(arguments)}"),
):  # fmt: skip
    for _name in _names.split("|"):
        _TEMPLATES[_name] = _render

_LONGEST_NAME = max(len(name.split()) for name in _TEMPLATES)
_SHOWY = re.compile(
    r"image.*|img.*|photo.*|picture.*|.*_image\d*|.*_(?:size|width|alt|caption)|caption\d*|alt\d*|logo.*|map.*|.*_map.*"
    r"|pushpin.*|mapframe.*|flag(?:_.*)?|flag_[ps]\d+|signature.*|footnotes?|footnote_.*|embed.*|module\d*|child|nocat.*"
    r"|label_position|bgcolor|colou?r|.*_colou?r|coor_pinpoint|coordinates_(?:type|format|footnotes)|.*_footnotes"
    r"|.*_ref|titlestyle|imagesize|px|box_width|border|relief|template_name|dot_.*|.*_title_link|settlement_type_link"
    r"|seal.*|shield.*|coa.*|blank_emblem.*|nickname_link|mapsize|symbol_.*|cover|show_.*|hide.*|extra_.*|misc"
)


def plain_text(value: str) -> str:
    """One infobox value, or a sentence of an article, without markup. Items of a list are joined by semicolons."""
    text = value[:MAX_CHARS].replace("\x00", "")
    text = _REFERENCE.sub("", _COMMENT.sub("", text))
    text = _BREAK.sub("; ", text)
    text = text.replace("{{!}}", "|").replace("{{=}}", "=")
    for _ in range(MAX_PASSES):
        resolved = _TEMPLATE.sub(_resolve, _links(text))
        if resolved == text:
            break
        text = resolved
    text = _TAG.sub("", text)
    text = _BULLET.sub("; ", text)
    text = _QUOTES.sub("", text).replace("{{", " ").replace("}}", " ").replace("[[", "").replace("]]", "")
    text = html.unescape(text)
    text = _SPACE.sub(" ", text)
    text = _COMMAS.sub(",", text)
    text = _SEMICOLONS.sub("; ", text)
    return re.sub(r"\s+([,;.)])", r"\1", text).replace(",;", ";").replace(",)", ")").strip(" ,;")


def _links(text: str) -> str:
    text = _FILE_LINK.sub("", text)
    text = _LINK.sub(lambda match: match[2] if match[2] else match[1].lstrip(":"), text)
    return _WEB_LINK.sub(lambda match: match[1] or "", text)


def _resolve(match: re.Match[str]) -> str:
    body = match[1].strip()
    if "|" in body:
        name, *rest = body.split("|")
        arguments, named = _arguments(rest)
        render = _TEMPLATES.get(_template_name(name))
        return render(arguments, named) if render else " ".join(arguments)
    return _resolve_without_pipes(body)


def _template_name(text: str) -> str:
    name = " ".join(text.casefold().replace("_", " ").split()).strip(";:")
    return "infobox" if name.startswith("infobox") else name


def _arguments(parts: list[str]) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    named: dict[str, str] = {}
    for part in parts:
        match = _NAMED.fullmatch(part)
        if match and "://" not in part:
            if match[1].isdecimal():
                positional.append(match[2].strip())
            else:
                named[match[1].strip().casefold()] = match[2].strip()
        elif part.strip():
            positional.append(part.strip())
    return positional, named


def _resolve_without_pipes(body: str) -> str:
    words = body.split()
    for count in range(min(_LONGEST_NAME, len(words)), 0, -1):
        name = _template_name(" ".join(words[:count]))
        render = _TEMPLATES.get(name)
        if render is None:
            continue
        rest = body
        for word in words[:count]:
            rest = rest[rest.index(word) + len(word) :]
        tokens = rest.split()
        named = dict(token.split("=", 1) for token in tokens if _NAMED_TOKEN.fullmatch(token))
        tokens = [token for token in tokens if not _NAMED_TOKEN.fullmatch(token)]
        if render is _list:
            return _list([item.strip() for item in _GAP.split(rest.strip()) if item.strip()], {})
        if render is _marriage:
            return _marriage(_married(" ".join(tokens)), named)
        if render in (_first, _after_code) and name not in {"url", "official url", "val", "formatnum", "nts", "number"}:
            return " ".join(tokens[1:] if render is _after_code and len(tokens) > 1 else tokens)
        return render(tokens, named)
    # An unknown template: its name is the first word, and what is left is mostly what a reader would see.
    return " ".join(word for word in words[1:] if not _NAMED_TOKEN.fullmatch(word))


def _married(text: str) -> list[str]:
    dates: list[str] = []
    for _ in range(2):
        match = _TRAILING_DATE.search(text)
        if not match:
            break
        dates.insert(0, match[1])
        text = text[: match.start()]
    return [text, *dates]


def facts(infobox: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Keys and plain values of an infobox, in its order, without what only lays it out (images, maps, colours)."""
    count = 0
    for raw_key, raw_value in infobox.items():
        if count >= MAX_KEYS:
            return
        key = re.sub(r"[^\w]+", "_", str(raw_key).strip().casefold()).strip("_")[:64]
        if not key or not isinstance(raw_value, (str, int, float)) or _SHOWY.fullmatch(key):
            continue
        value = plain_text(str(raw_value))
        if value:
            count += 1
            yield key, value[:2_000]
