"""A report as one HTML file that needs nothing else: style and pictures are inside, light and dark as the reader's."""

import base64
from collections.abc import Iterable, Mapping
from html import escape

from lab.evaluator.report.tables import Table

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --card: #f5f7fa; --ink: #1d2433; --soft: #5b6577; --rule: #dde2ea;
  --accent: #2f5d9b; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161f; --card: #1a202c; --ink: #e4e8f0; --soft: #98a2b5;
  --rule: #2d3546; --accent: #7fb0f0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 0 0 1.5rem; }
.figure { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; padding: .9rem 1rem; }
.figure b { display: block; font-size: 1.65rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.figure span, .note, dt { color: var(--soft); font-size: .87rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: .87rem/1.5 ui-monospace, monospace; background: var(--card); border-radius: .3rem; padding: .1rem .35rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { text-align: right; padding: .38rem .7rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal; }
tbody tr:hover { background: var(--card); }
picture, img { display: block; max-width: 100%; height: auto; margin: 1.4rem 0; border-radius: .4rem; }
.text td { text-align: left; white-space: normal; vertical-align: top; overflow-wrap: anywhere; }
"""


def write(
    title: str,
    facts: Iterable[tuple[str, str]],
    tables: Iterable[Table],
    pictures: Mapping[str, bytes],
    *,
    figures: Iterable[tuple[str, str, str]] = (),
    texts: Iterable[Table] = (),
) -> str:
    """The page.

    Args:
        pictures: file name to PNG; `<name>-dark.png` is shown to readers of dark pages.
        figures: large numbers at the top: name, value, interval.
        texts: tables of running text, at the end.
    """
    cards = "".join(
        f'<div class="figure"><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(interval)}</span></div>'
        for name, value, interval in figures
    )
    about = "".join(
        f"<dt>{escape(name)}</dt><dd>{f'<code>{escape(text)}</code>' if name == 'command' else escape(text)}</dd>"
        for name, text in facts
    )
    drawn = "".join(_picture(name, pictures) for name in pictures if not name.endswith("-dark.png"))
    first, *rest = [_table(table) for table in tables]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><div class="figures">{cards}</div>{first}{drawn}{"".join(rest)}'
        f"{''.join(_table(table, kind='text') for table in texts)}"
        f"<h2>How it was made</h2><dl>{about}</dl></main></body></html>\n"
    )


def _table(table: Table, *, kind: str = "") -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    shown = (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        if table.rows
        else ""
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f"<h2>{escape(table.title)}</h2>{shown}{note}"


def _picture(name: str, pictures: Mapping[str, bytes]) -> str:
    stem = name.removesuffix(".png")
    dark = pictures.get(f"{stem}-dark.png")
    source = f'<source srcset="{_data(dark)}" media="(prefers-color-scheme: dark)">' if dark else ""
    return f'<picture>{source}<img src="{_data(pictures[name])}" alt="{escape(stem)}"></picture>'


def _data(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()
