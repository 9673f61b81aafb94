"""A report as Markdown, with its pictures beside it."""

import re
from collections.abc import Iterable, Sequence

from lab.evaluator.report.tables import Table


def write(
    title: str, facts: Iterable[tuple[str, str]], tables: Iterable[Table], pictures: Sequence[str], *, extra: str = ""
) -> str:
    """The document; `pictures` are file names, of which the dark ones are left out."""
    lines = [f"# {escape(title)}", ""]
    lines += [f"- **{name}**: {code(text) if name == 'command' else escape(text)}" for name, text in facts]
    lines.append("")
    light = [name for name in pictures if not name.endswith("-dark.png")]
    for index, table in enumerate(tables):
        lines += [f"## {escape(table.title)}", ""]
        lines += _table(table)
        if index == 0:
            lines += [line for name in light for line in (f"![{name.removesuffix('.png')}]({name})", "")]
    return "\n".join([*lines, extra]).rstrip() + "\n"


def _table(table: Table) -> list[str]:
    if not table.rows:
        return [f"{escape(table.note) or 'Nothing.'}", ""]
    align = ["---", *("---:" for _ in table.head[1:])]
    rows = [table.head, align, *table.rows]
    lines = ["| " + " | ".join(cell if row is align else escape(cell) for cell in row) + " |" for row in rows]
    return [*lines, "", *([escape(table.note), ""] if table.note else [])]


def escape(text: str) -> str:
    """The text with the marks of Markdown escaped."""
    return re.sub(r"([\\`*<>|]|\](?=[(\[:]))", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text as inline code, fenced by more backticks than it holds."""
    text = " ".join(text.split())
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    return f"{fence}{text}{fence}" if "`" not in text else f"{fence} {text} {fence}"
