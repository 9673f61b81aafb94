"""HTML to text, for all extractors alike."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.retriever import extract as module
from services.retriever.extract import EXTRACTORS, ExtractionError, extract

steady = settings(derandomize=True, deadline=None, max_examples=40)
each_extractor = pytest.mark.parametrize("extractor", EXTRACTORS)

SENTENCE = "The lighthouse at Cape Farrow was lit for the first time in 1871 by its keeper, Anna Brandt. "
ARTICLE = f"""<!DOCTYPE html>
<html lang="en-GB"><head><title> Cape&nbsp;Farrow
 Lighthouse </title><style>p {{ color: red }}</style><script>var secret = "SCRIPTED";</script></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/news">News</a></li></ul></nav>
<main><article><h1>Cape Farrow Lighthouse</h1>
<p>{SENTENCE * 4}</p>
<p>Second paragraph: {SENTENCE * 4} It saw 10<sup>11</sup> stars at <time>7 pm</time>.</p>
<script type="application/json">{{"SCRIPTED": 1}}</script>
<noscript>SCRIPTED off</noscript>
</article>
<section class="comments"><p>REMARK of a reader who has never been there, though he says that he has been.</p></section>
</main><footer>FOOTED by the harbour board</footer></body></html>"""


@each_extractor
def test_an_article(extractor: str) -> None:
    page = extract(ARTICLE, extractor)
    assert "lit for the first time in 1871" in page.text
    assert "It saw 10^11 stars at 7 pm" in page.text
    assert "SCRIPTED" not in page.text
    assert "color" not in page.text
    assert (page.title, page.language) == ("Cape Farrow Lighthouse", "en")


def test_resiliparse_keeps_paragraphs_and_drops_boilerplate() -> None:
    text = extract(ARTICLE).text
    paragraphs = text.split("\n\n")
    assert any(paragraph.startswith("The lighthouse") for paragraph in paragraphs)
    assert any(paragraph.startswith("Second paragraph") for paragraph in paragraphs)
    for boilerplate in ("Home", "REMARK", "FOOTED"):
        assert boilerplate not in text


def test_resiliparse_falls_back_to_all_text_when_the_main_text_is_short() -> None:
    short = "<body><nav>Opening hours: 9 to 17</nav><main><p>Welcome.</p></main></body>"
    assert "Opening hours: 9 to 17" in extract(short).text
    listing = "".join(f"<li><a href='/{n}'>Harbour number {n}</a></li>" for n in range(2_000))
    page = f"<body><main><p>{SENTENCE * 7}</p></main><nav><ul>{listing}</ul></nav></body>"
    assert len(SENTENCE * 7) > module.MIN_MAIN_CHARS
    assert "Harbour number 1999" in extract(page).text


def test_beautifulsoup_takes_all_visible_text_in_one_paragraph_also_where_trafilatura_finds_none() -> None:
    assert extract("<nav>One</nav><p>two<p>three", "beautifulsoup").text == "One two three"
    assert extract("<body><p></p><b>Only this</b></body>", "trafilatura").text == "Only this"


@each_extractor
def test_text_without_markup_is_taken_as_it_is(extractor: str) -> None:
    page = extract("First line: 1 < 2 &amp; 3 > 2.\n\n\nSecond\tline.\x00", extractor, name="notes.txt")
    assert page.text == "First line: 1 < 2 & 3 > 2.\n\nSecond line."
    assert page.title == "notes.txt"


@each_extractor
@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n ",
        "<script>let a = '<p>SCRIPTED</p>'</script>",
        "<script>SCRIPTED",
        "<style>SCRIPTED</style><script src='x'></script>",
        "<!-- SCRIPTED -->",
        "<html></html>",
        "<frameset><frame src='x'></frameset>",
    ],
)
def test_pages_that_show_nothing_are_empty(extractor: str, html: str) -> None:
    assert extract(html, extractor).text == ""


@each_extractor
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 25_000 + "kept" + "</div>" * 25_000,
        "<ul><li>kept" * 5_000,
        "<div><span><ul><li><table><tr><td>kept" * 2_000,
        "<blockquote><p><b><i>kept" * 5_000,
        "".join(f"<font size={n}>" for n in range(500)) + "<p>kept" * 4_000,
        "<div " + " ".join(f"a{n}" for n in range(50_000)) + ">kept</div>",
        "<p>kept" + "<" * 250_000,
        "<p>kept" + "&" * 250_000,
        "<p>kept<!--" + "-" * 250_000,
        "<p>kept" + "<script>" * 25_000,
        "<aside class=pi-background><figure><time>kept" * 10_000,
        "<p>kept" + "港\n \n" * 100_000,
        "kept<math>" + "<mfrac><msup>" * 20_000,
        "<p style='color:red'>kept</p>" * 4_000 + "hidden",
    ],
    ids=[
        *("div", "list", "mix", "formatting", "font", "attributes", "angles", "entities", "comment", "script"),
        *("figures", "wrapped", "formulas", "styles"),
    ],
)
def test_pathological_pages_are_read_in_time(extractor: str, html: str) -> None:
    start = time.process_time()
    assert "kept" in extract(html, extractor).text
    # An eighth of a second at most; were it the square of the length it would be a quarter of a minute.
    assert time.process_time() - start < 5


@pytest.mark.parametrize("page", [f"<p>{'word ' * 100}</p><p>END</p>", "plain " * 50 + "END"])
def test_the_end_beyond_the_cap_is_left_out(page: str) -> None:
    assert "END" in extract(page).text
    assert "END" not in extract(page, max_chars=200).text


def test_what_opens_on_a_click_is_apart_from_its_summary() -> None:
    page = "<details><summary>What does it cost?</summary>It costs 40 euros.</details>"
    assert "cost?It" not in extract(page).text


def test_a_name_goes_before_the_documents_title() -> None:
    assert extract(ARTICLE, name=" Given\nname ").title == "Given name"
    assert extract("<body><svg><title>icon</title></svg>x</body>").title == ""


@pytest.mark.parametrize(
    ("declared", "language"),
    [("pt_BR", "pt"), ("DE", "de"), ("", ""), ("x-klingon-very", ""), ("e1", ""), ("日本", "")],
)
def test_language(declared: str, language: str) -> None:
    assert extract(f"<html lang='{declared}'><p>x</p></html>").language == language


def test_a_failing_extractor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> str:
        raise RecursionError

    monkeypatch.setitem(EXTRACTORS, "failing", fail)
    with pytest.raises(ExtractionError, match="failing gave up: RecursionError"):
        extract("<p>x", "failing")


junk = st.text(max_size=30)
tags = st.sampled_from(
    "div p b a ul li table tr td th caption h1 br span form select option svg math title template pre nav main".split()  # noqa: SIM905
)
fragments = st.one_of(
    junk,
    tags.map(lambda tag: f"<{tag}>"),
    tags.map(lambda tag: f"</{tag}>"),
    st.builds(lambda tag, value: f"<{tag} class=\"{value}\" rowspan='{value}'>", tags, junk),
    st.sampled_from(
        ["<!--", "-->", "<![CDATA[", "]]>", "&", "&#0;", "&lt;", "<", ">", '"', "\x00", "\ud800", "<?xml "]
    ),
)
soup = st.lists(fragments, max_size=30).map("".join)


@each_extractor
@steady
@given(html=st.one_of(st.text(), soup))
@example(html="<")
@example(html="<table><caption>")
@example(html="<p>caf\xc3\xa9 \ufffd\ufffd bytes</p>")
@example(html="<p>lone \ud800 and pair \ud83d\ude00</p>")
@example(html="<p>nul\x00 and \x1b[31m controls \x85</p>")
@example(
    html="<?xml version='1.0' encoding='utf-16'?><html xmlns='http://www.w3.org/1999/xhtml'><p>declared</p></html>"
)
@example(html="<meta charset='utf-16'><p>declared wrongly</p>")
@example(html="\ufeff<p>marked</p>")
@example(html="<p>&#0; &#xD800; &#x110000; &bogus; &amp</p>")
@example(html="<p>http://example.org/only</p>")
@example(html='<a<b<c><d \'"><p>x</p ="')
def test_nothing_raises_and_text_is_clean(extractor: str, html: str) -> None:
    page = extract(html, extractor)
    for text in (page.text, page.title, *(table.markdown for table in page.tables)):
        assert not any(character in text for character in "\x00\x1b\x85\ufeff")
        text.encode()
    assert page.text == page.text.strip("\n")


@each_extractor
@steady
@given(
    words=st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=1, max_size=40),
    where=st.integers(0, 40),
    tag=st.sampled_from(["script", "style", "SCRIPT", "noscript", "template"]),
)
def test_script_text_never_shows(extractor: str, words: list[str], where: int, tag: str) -> None:
    blocks = [f"<p>{word}</p>" for word in words]
    blocks.insert(where, f"<{tag}>XSECRETX('{words[0]}')</{tag}>")
    text = extract(f"<html><body>{''.join(blocks)}</body></html>", extractor).text
    assert "XSECRETX" not in text
    assert set(text.split()) == set(words)


LONG = "A long paragraph about the club and its rules for members. " * 12


def test_lists_of_prose_near_the_body_are_content_and_lists_of_links_are_not() -> None:
    links = "<ul><li><a href='/'>Home and garden</a></li></ul>"
    prose = "<ul><li>The yearly fee is 40 euros.</li><li>See <a href='/x'>the rules</a> for children.</li></ul>"
    text = extract(f"<html><body>{links}<article><p>{LONG}</p>{prose}<p>{LONG}</p></article></body></html>").text
    assert "The yearly fee is 40 euros." in text
    assert "garden" not in text


@pytest.mark.parametrize("extractor", ["resiliparse", "resiliparse-all"])
def test_what_is_hidden_is_not_read(extractor: str) -> None:
    html = "<p>Price: <span style='color: red; display : none'>90</span>40 euros.</p><div hidden>Sold out.</div>"
    assert extract(f"<html><body>{html}</body></html>", extractor).text == "Price: 40 euros."


FACTS = (
    "<p>It opens on <TIME datetime='2024-05-03' title='a <time>'>Friday at 7 pm</TIME>.</p>"
    "<figure class=code><pre>lamp = 1</pre><figcaption>The lamp in 1864</figcaption></figure>"
    "<figure><table><tr><th>Lamp<th>Watts<tr><td>Pier<td>250</table></figure>"
    "<aside class='portable-infobox pi-background'><h3>Built by</h3><div>Marta<figure>Portrait</figure></div></aside>"
    "<aside class=note>See also our shop.</aside>"
)


@pytest.mark.parametrize("extractor", ["resiliparse", "resiliparse-all"])
def test_times_figures_and_infoboxes_are_content(extractor: str) -> None:
    article = f"<article><p>{LONG}</p>{FACTS}<p>{LONG}</p></article>"
    page = extract(f"<title>The <time> element</title><body><main>{article}</main></body>", extractor)
    for fact in (
        "It opens on Friday at 7 pm.",
        "lamp = 1",
        "The lamp in 1864",
        "Pier",
        "Built by",
        "Marta",
        "Portrait",
    ):
        assert fact in page.text
    assert ("shop" in page.text) == (extractor == "resiliparse-all")
    assert "| Pier | 250 |" in page.tables[0].markdown
    assert page.title == "The <time> element"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>There are 10<sup>11</sup> stars</p>", "There are 10^11 stars"),
        ("<p>2<sup>-3</sup> of it</p>", "2^-3 of it"),
        ("<p>10<sup>9</sup>/l</p>", "10^9/l"),
        ("<p>5<sup>1</sup>/<sub>2</sub> cups</p>", "5 1/2 cups"),
        ("<p>About <math><msup><mn>10</mn><mn>6</mn></msup></math> cups</p>", "About 10^6 cups"),
        ("<p>Of <math><msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup></math></p>", "Of a1^2"),
        ("<p><math><mn>1</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math> cups</p>", "1 1/2 cups"),
        # A line break within a script without spaces is no space.
        ("<p>灯塔由玛尔塔在维尔港的北 \r\n  岸设计</p>", "灯塔由玛尔塔在维尔港的北岸设计"),
        ("<p>灯塔\nVell\n港</p>", "灯塔 Vell 港"),
        ("<pre>灯塔\n维尔</pre>", "灯塔\n维尔"),
    ],
)
def test_text_reads_as_it_is_shown(html: str, text: str) -> None:
    assert extract(f"<html><body>{html}</body></html>").text == text


def test_elements_that_close_themselves_in_xhtml_swallow_nothing() -> None:
    html = '<?xml version="1.0"?><html><head><title/><script src="a.js" /></head><body><p>It burned.</p></body></html>'
    assert extract(html).text == "It burned."


def test_a_short_article_in_a_script_without_spaces_is_main_content() -> None:
    article = "灯塔由玛尔塔在维尔港的北岸设计并建造。" * 10
    assert len(article) < module.MIN_MAIN_CHARS
    html = f"<html><body><nav>首页新闻</nav><main><article><p>{article}</p></article></main></body></html>"
    assert extract(html).text == article
