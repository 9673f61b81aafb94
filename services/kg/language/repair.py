"""From a language model's text to statements that the grammar can read, with names as they are.

Models forget a quote or a bracket, write apostrophes into single-quoted names, put two statements on a line or `sort`
on the next. Each is mended by one scan over the text; the parser says what stays wrong.
"""

import json
import re
import unicodedata
from collections.abc import Iterable

from services.kg.errors import ParseError

MAX_CHARS = 2_000
MAX_STATEMENTS = 8
# Nested brackets; deeper ones are no program, and each level costs the parser a level of recursion.
MAX_DEPTH = 12

OPENERS = {"(": ")", "[": "]"}
CLOSERS = frozenset(OPENERS.values())
QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'"})
# A statement alone on its line that goes on with the rows of the line before.
CONTINUES = re.compile(r"(?:all\s+)?(?:sort|where|group)\s*\(|\[", re.IGNORECASE)
FENCE = re.compile(r"```[a-z]*|</?s>|<\|[a-z_]{1,20}\|>|<eos>|<pad>", re.IGNORECASE)
LABEL = re.compile(r"^\s*(?:answer|program|output|query|api|calls?)\s*:", re.IGNORECASE | re.MULTILINE)
CLOSES = re.compile(r"\s*(?:$|[,)\]=:;\n])")
ENDS = re.compile(r"\s*(?:\[|$)")
# A projection inside a string: `get_x("y)["z"]` lost the quote behind y.
LOST_QUOTE = re.compile(r"\)\s*\[[\"'](?=\w)")
PROJECTION = re.compile(r"\[[\w\"':-]{0,40}\]")
BEGINS = re.compile(r"\s*(?:(?:all|avg|average|sum)\s+)?get_\w+\s*\(", re.IGNORECASE)
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_SQL_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--.*")
_SQL_JOINING = re.compile(r"\b(?:UNION(?:\s+ALL)?|INTERSECT|EXCEPT)\s*$", re.IGNORECASE)
NOTHING = frozenset({"none", "null", "[]", "no api", "n/a"})


def statements(text: str, functions: Iterable[str] = ()) -> list[str]:
    """The program's statements, each on one line and quoted in JSON's way; those of a program in SQL as they are.

    One of `functions` that lacks its `get_` gets it.

    Raises:
        ParseError: the text is too long, has too many statements or is nested too deeply.
    """
    if len(text) > MAX_CHARS:
        raise ParseError(f"a program may have {MAX_CHARS} characters, this one has {len(text)}")
    mended: list[str] = []
    for part in _selects(text) if is_sql(text) else _split(_clean(text)):
        statement = part.strip(" \t\n,;")
        if not statement:
            continue
        if mended and CONTINUES.match(statement):
            mended[-1] = f"{mended[-1]} {statement}"
        else:
            mended.append(statement)
    if len(mended) > MAX_STATEMENTS:
        raise ParseError(f"a program may have {MAX_STATEMENTS} statements, this one has {len(mended)}")
    return [statement if is_sql(statement) else _named(statement, functions) for statement in mended]


def is_sql(text: str) -> bool:
    """Whether a program or a statement is in SQL."""
    return _SELECT.match(text) is not None


def _selects(text: str) -> Iterable[str]:
    """Statements as somebody lays SQL out: a line begins one where it can be no part of the one before."""
    statement = ""
    for line in filter(str.strip, text.split("\n")):
        begins = is_sql(line) or _starts_statement(line, 0)
        if statement.rstrip().endswith(";") or (begins and not _is_open(statement)):
            yield statement
            statement = ""
        statement += f"{line}\n"
    yield statement


def _is_open(sql: str) -> bool:
    """Whether a SELECT may follow within the statement: behind a bracket, or as a UNION's other side."""
    bare = _SQL_QUOTED.sub("", sql)
    return bare.count("(") > bare.count(")") or _SQL_JOINING.search(bare) is not None


def is_nothing(statement: str) -> bool:
    """Whether the model says that no function fits."""
    return statement.strip(" .").lower() in NOTHING


def _clean(text: str) -> str:
    text = FENCE.sub(" ", unicodedata.normalize("NFC", text)).translate(QUOTES)
    text = "".join(char if char == "\n" or not unicodedata.category(char).startswith("C") else " " for char in text)
    text = LABEL.sub(" ", text)
    return re.sub(r"\[\s*[\"']?len[\"']?\s*\]", '["len"]', text, flags=re.IGNORECASE)


def _split(text: str) -> Iterable[str]:
    """Statements with strings requoted and brackets balanced."""
    out: list[str] = []
    stack: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        if char in "\"'" and _opens(text, index):
            content, index = _string(text, index)
            out.append(json.dumps(content, ensure_ascii=False))
            continue
        if char in OPENERS:
            if len(stack) == MAX_DEPTH:
                raise ParseError(f"brackets are nested more than {MAX_DEPTH} deep")
            stack.append(OPENERS[char])
        elif char in CLOSERS:
            if char not in stack:
                # One bracket for another, `get_x("y"]["z"]`, is its partner where a call must end, else surplus.
                if stack and ENDS.match(text, index + 1):
                    out.append(stack.pop())
                index += 1
                continue
            while stack[-1] != char:
                out.append(stack.pop())
            stack.pop()
        ends = char in "\n;" and (not stack or _starts_statement(text, index + 1))
        if ends or (not stack and _starts_statement(text, index) and "".join(out).rstrip(" ,")[-1:] in ("]", ")")):
            yield "".join(out + stack[::-1])
            out, stack = [], []
            if ends:
                index += 1
                continue
        out.append(" " if char == "\n" else char)
        index += 1
    yield "".join(out + stack[::-1])


def _starts_statement(text: str, index: int) -> bool:
    return BEGINS.match(text, index) is not None


def _opens(text: str, index: int) -> bool:
    """Whether a quote begins a string: an apostrophe stands between letters."""
    return text[index] == '"' or not text[index - 1 : index].isalnum()


def _string(text: str, start: int) -> tuple[str, int]:
    """The content of a string, and the index after it: the first quote where an argument could end closes it.

    A string without such a quote ends with its line, before the brackets there.
    """
    quote = text[start]
    line_end = text.find("\n", start)
    stop = len(text) if line_end < 0 else line_end
    index = start + 1
    while index < stop:
        if text[index] == "\\":
            index += 2
            continue
        if text[index] == quote and CLOSES.match(text, index + 1):
            if lost := LOST_QUOTE.search(text, start + 1, index):
                return _unescaped(text[start + 1 : lost.start()]), lost.start()
            return _unescaped(text[start + 1 : index]), index + 1
        index += 1
    content = _without_tail(text[start + 1 : stop])
    return _unescaped(content), start + 1 + len(content)


def _without_tail(line: str) -> str:
    """A line without the brackets and the projections at its end."""
    while True:
        line = line.rstrip(" ;,)")
        opened = line.rfind("[") if line.endswith("]") else -1
        if opened < 0 or not PROJECTION.fullmatch(line, opened):
            return line.rstrip("]")
        line = line[:opened]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).strip()


def _named(statement: str, functions: Iterable[str]) -> str:
    statement = re.sub(r"\bget_all_(\w+\s*\()", r"ALL get_\1", statement, count=1, flags=re.IGNORECASE)
    start = re.match(r"((?:all|avg|average|sum)\s+)?([A-Za-z_]+)\s*\(", statement, re.IGNORECASE)
    if start and f"get_{start[2].lower()}" in set(functions):
        return statement[: start.start(2)] + "get_" + statement[start.start(2) :]
    return statement
