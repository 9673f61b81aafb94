"""Tables of a page to Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from services.retriever import tables as module
from services.retriever.tables import Table, find_tables, read_grid, split_rows, to_markdown

steady = settings(derandomize=True, deadline=None, max_examples=100)


def tables(html: str, page: str = "") -> tuple[Table, ...]:
    return find_tables(LexborHTMLParser(html), page)[0]


def grid(html: str) -> tuple[list[str], list[list[str]]]:
    node = LexborHTMLParser(html).css_first("table")
    assert node is not None
    header, rows, _ = read_grid(node, module.MAX_CELLS)
    return header, rows


def parse_row(line: str) -> list[str]:
    """The cells of a Markdown row, unescaped."""
    cells = re.findall(r"((?:[^\\|]|\\.)*)\|", line[1:])
    return [re.sub(r"\\(.)", r"\1", cell[1:-1]) for cell in cells]


def parse(markdown: str) -> list[list[str]]:
    header, rule, *rows = markdown.rpartition("\n\n")[2].split("\n")
    assert set(rule) <= set("| -")
    return [parse_row(line) for line in (header, *rows)]


def test_a_plain_table() -> None:
    (table,) = tables(
        "<table><caption>Harbours <b>of</b> Norland</caption><thead><tr><th>Town<th>Berths</thead>"
        "<tr><td>Ask<td>12<tr><td>Bru<td>7</table>",
        "Norland",
    )
    assert (
        table.markdown == "Norland: Harbours of Norland\n\n| Town | Berths |\n| --- | --- |\n| Ask | 12 |\n| Bru | 7 |"
    )
    assert table.markdown[table.head :] == "| Ask | 12 |\n| Bru | 7 |"


@pytest.mark.parametrize(
    ("html", "header", "rows"),
    [
        (
            "<tr><th rowspan=2>Year<th colspan=2>Catch</tr><tr><th>Cod<th>Herring</tr>"
            "<tr><td rowspan=2>1901<td>5<td>6</tr><tr><td colspan=2>none</tr>",
            ["Year", "Catch / Cod", "Catch / Herring"],
            [["1901", "5", "6"], ["1901", "none", "none"]],
        ),
        (
            "<tr><th>a<th>b<th>c</tr><tr><td>1<td>2<td rowspan=2>3</tr><tr><td>4</tr>",
            ["a", "b", "c"],
            [["1", "2", "3"], ["4", "", "3"]],
        ),
        (
            "<tr><th>a<th>b</tr><tbody><tr><td rowspan=0>x<td>1</tr><tr><td>2</tr></tbody>"
            "<tbody><tr><td>y<td>3</tr></tbody>",
            ["a", "b"],
            [["x", "1"], ["x", "2"], ["y", "3"]],
        ),
        ("<tr><th>Built<td>1871</tr><tr><th>Height<td>31 m</tr>", ["", ""], [["Built", "1871"], ["Height", "31 m"]]),
        ("<tr><td>a<td>b<tr><td>1<td>2", ["a", "b"], [["1", "2"]]),
        ("<tr><th>a<th><th>b<tr><td> <td><td>&nbsp;<tr><td>1<td><td>2", ["a", "b"], [["1", "2"]]),
        (
            "<tr><th>No.<th>Player<tr><th colspan=2>Keepers<tr><td>1<td>Ann<tr><th colspan=2>Forwards<tr><td>9<td>Eve",
            ["No.", "Player"],
            [["Keepers"] * 2, ["1", "Ann"], ["Forwards"] * 2, ["9", "Eve"]],
        ),
        (
            "<tr><td></td><th>2020<th>2021<tr><th>Item<td>4<td>5<tr><th>Other<td>6<td>7",
            ["", "2020", "2021"],
            [["Item", "4", "5"], ["Other", "6", "7"]],
        ),
        ("<tr><th>a<th>b<tr><td><h3>H</h3>t<dl><dt>q<dd>w</dl><td>1", ["a", "b"], [["H t q w", "1"]]),
        (
            "<tr><th>year<th>name<tr><td rowspan=80>2020<td>n0" + "".join(f"<tr><td>n{n}" for n in range(1, 80)),
            ["year", "name"],
            [["2020", f"n{n}"] for n in range(80)],
        ),
    ],
    ids=[
        *("spans", "span right of a short row", "span of a row group", "row headers", "no headers"),
        *("empty row, column", "sections", "empty corner", "blocks in a cell", "long span"),
    ],
)
def test_a_grid(html: str, header: list[str], rows: list[list[str]]) -> None:
    assert grid(f"<table>{html}</table>") == (header, rows)


@pytest.mark.parametrize("span", ["1000000000000000000000", "-3", "two", "", "2.5", "²"])
def test_absurd_spans(span: str) -> None:
    header, rows = grid(f"<table><tr><th>a<th>b</tr><tr><td colspan='{span}'>1<td rowspan='{span}'>2</tr></table>")
    assert len(rows) == 1
    assert len(rows[0]) == len(header) <= module.MAX_COLUMNS


def test_cells_are_read_as_shown() -> None:
    (table,) = tables(
        "<table><tr><th>H<sub>2</sub>O<th>a<br>b<tr><td>x | y \\ z<td><p>one</p><p>two</p><script>var no</script>"
        "<button>no</button><span style='display:none'>no</span><sup class='reference'>[1]</sup></table>"
    )
    assert parse(table.markdown) == [["H2O", "a b"], ["x | y \\ z", "one two"]]


@pytest.mark.parametrize(
    "html",
    [
        "<p>none</p>",
        "<table></table>",
        "<table><tr><td>one cell</table>",
        "<table><tr><td>one<td>row</table>",
        "<table><tr><td>one<tr><td>column</table>",
        "<table><tr><td><td><tr><td><td></table>",
        "<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>",
    ],
)
def test_layout_and_empty_tables_are_left_out(html: str) -> None:
    assert tables(html) == ()


def test_a_table_that_holds_one_is_layout_and_the_inner_one_stays() -> None:
    inner = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    (table,) = tables(f"<table><tr><td>menu<td>{inner}<tr><td>x<td>y</table>")
    assert parse(table.markdown) == [["a", "b"], ["1", "2"]]


def test_the_nearest_heading_names_a_table_without_caption() -> None:
    table = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    results = tables(f"<h1>Page</h1><h2>First</h2><p>x{table}<h3>Second</h3>{table}{table}", "Page")
    names = [result.markdown.split("\n")[0] for result in results]
    assert names == ["Page: First", "Page: Second", "Page: Second"]
    assert tables(table)[0].markdown.startswith("| a | b |")


@pytest.mark.parametrize(("max_chars", "rows"), [(200, [16]), (1_600, [100, 32]), (2_500, [100, 100])])
def test_characters_of_all_tables_are_capped_by_rows(
    max_chars: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TABLE_CHARS", max_chars)
    html = "<table><tr><th>a<th>b" + "".join(f"<tr><td>{n}<td>{n}" for n in range(100)) + "</table>"
    results, unread = find_tables(LexborHTMLParser(html * 2))
    assert [len(parse(table.markdown)) - 1 for table in results] == rows
    assert bool(unread) == (sum(rows) < 200)
    assert sum(len(table.markdown) for table in results) <= max_chars


def test_huge_tables_are_cut_by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TABLE_CHARS", 10**9)
    (table,), unread = find_tables(LexborHTMLParser("<table><tr><th>a<th>b" + "<tr><td>1<td>2" * 30_000 + "</table>"))
    assert 2 * len(parse(table.markdown)) <= module.MAX_CELLS
    assert "20,000 cells" in unread


def test_spans_do_not_multiply_text() -> None:
    cell = f"<td rowspan=65534 colspan=1000>{'long ' * 200}"
    results = tables("<table>" + f"<tr>{cell}{cell}" * 500 + "</table>")
    assert sum(len(table.markdown) for table in results) <= module.MAX_TABLE_CHARS


def pieces(table: Table, max_chars: int) -> list[str]:
    return [table.markdown[:head] + table.markdown[start:end] for head, start, end in split_rows(table, max_chars)]


def test_a_split_repeats_the_head_and_keeps_rows_whole() -> None:
    table = to_markdown("Name", ["a", "b"], [[str(n), "x" * 20] for n in range(10)], 10_000)
    assert table is not None
    parts = pieces(table, 120)
    assert len(parts) > 1
    assert all(len(part) <= 120 for part in parts)
    assert all(part.startswith("Name\n\n| a | b |\n| --- | --- |\n") for part in parts)
    assert [row for part in parts for row in parse(part)[1:]] == [[str(n), "x" * 20] for n in range(10)]


def test_a_giant_row_is_cut() -> None:
    table = to_markdown("", ["a", "b"], [["1", "2"], ["y" * 300, "z"], ["3", "4"]], 10_000)
    assert table is not None
    parts = pieces(table, 100)
    assert all(len(part) <= 100 for part in parts)
    assert "".join(part[table.head :] for part in parts).count("y") == 300


cells = st.text(
    st.characters(codec="utf-8", exclude_characters="<&", exclude_categories=["C", "Z"]), min_size=1, max_size=8
)


@steady
@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=2, max_size=8)))
def test_markdown_reads_back(rows: list[list[str]]) -> None:
    html = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    (table,) = tables(f"<table>{html}</table>")
    assert parse(table.markdown) == rows


@steady
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["td", "th"]), st.integers(0, 4), st.integers(0, 4)), max_size=5), max_size=8
    )
)
def test_a_grid_is_rectangular_and_spans_are_filled(rows: list[list[tuple[str, int, int]]]) -> None:
    html = "".join(
        "<tr>"
        + "".join(
            f"<{tag} colspan={across} rowspan={down}>r{y}c{x}</{tag}>" for x, (tag, across, down) in enumerate(row)
        )
        + "</tr>"
        for y, row in enumerate(rows)
    )
    header, body = grid(f"<table>{html}</table>")
    assert all(len(row) == len(header) for row in body)
    assert all(map(any, body))
    for place in {cell for row in body for cell in row if cell and "/" not in cell}:
        y, x = map(int, place.removeprefix("r").split("c"))
        across = max(1, rows[y][x][1])
        assert max(row.count(place) for row in body) >= min(across, len(header)) or header.count(place)


@steady
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=20), st.text("n", max_size=40), st.integers(30, 200))
def test_every_split_covers_all_rows_within_the_limit(rows: list[tuple[str, str]], name: str, limit: int) -> None:
    table = to_markdown(name, ["left", "right"], rows, 10**9)
    assert table is not None
    spans = split_rows(table, limit)
    assert all(head + end - start <= limit for head, start, end in spans)
    assert all(head in (0, table.head) for head, _, _ in spans)
    covered = {position for _, start, end in spans for position in range(start, end)}
    first = table.head if spans[0][0] else 0
    assert all(table.markdown[at] == "\n" for at in set(range(first, len(table.markdown))) - covered)
    for _, parent_start, parent_end in spans:
        for _, start, end in split_rows(table, max(20, limit // 2), parent_start, parent_end):
            assert parent_start <= start < end <= parent_end or start < table.head


def test_columns_that_are_left_out_are_said() -> None:
    row = "".join(f"<td>v{number}" for number in range(70))
    _, unread = find_tables(LexborHTMLParser(f"<table><tr>{row}<tr>{row}</table>"))
    assert unread.startswith("tables cut at")
