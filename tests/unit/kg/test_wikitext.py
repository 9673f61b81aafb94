"""Markup of infobox values is resolved, with pipes and without, and hostile markup costs no time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kg.domains.open.wikitext import MAX_CHARS, facts, plain_text


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("[[Oahu]]", "Oahu"), ("[[Honolulu County, Hawaii|Honolulu]]", "Honolulu"),
        ("[https://example.org a page]", "a page"), ("[[File:Flag of X.svg|thumb]] Rome", "Rome"),
        ("{{Flag|France}}", "France"), ("{{flagicon|FRA}} Paris", "Paris"), ("{{nowrap|a b}}", "a b"),
        ("1889<ref name=a>See [[B]].</ref>", "1889"), ('75<ref name="x" /> floors', "75 floors"),
        ("A<br/>B<BR>C", "A; B; C"), ("{{convert|4205|m|ft|abbr=on}}", "4205 m"),
        ("{{convert|5|to|10|km|mi}}", "5 to 10 km"), ("{{birth date and age|1963|2|17|df=y}}", "1963-02-17"),
        ("{{birth date and age df=yes 1963 2 17}}", "1963-02-17"),
        ("{{death date and age|1967|5|15|1882|7|22}}", "1967-05-15"), ("{{start date|1971|12}}", "1971-12"),
        ("{{start date and age 1971 12}}", "1971-12"), ("{{start date|1982|September|15}}", "1982-09-15"),
        ("{{ubl|[[A]]|B|{{small|C}}}}", "A; B; C"), ("{{hlist   Actor   Singer}}", "Actor; Singer"),
        ("* one\n* [[two|2]]", "one; 2"),
        ("{{marriage|Ann Bee|1924|1930|end=div}}", "Ann Bee (married 1924, divorced 1930)"),
        ("{{marriage Ann Bee 1924 1930 end=div}}", "Ann Bee (married 1924, divorced 1930)"),
        ("{{NASDAQ|GOOGL}}", "Nasdaq: GOOGL"), ("{{NYSE|GCI}}", "NYSE: GCI"),
        ("{{US$|1.5 billion}} (2020)", "US$1.5 billion (2020)"),
        ("{{coord|38|14|23|N|121|30|06|W|type:x}}", "38°14′23″N 121°30′06″W"),
        ("''[[Nighthawks (Hopper)|Nighthawks]]''", "Nighthawks"), ("London,, England,", "London, England"),
        ("Tom &amp; Ann", "Tom & Ann"), ("a<!-- never ends", "a"),
        ("{{Post-nominals country=GBR OBE size=100}}", "OBE"), ("{{unheard of|x|y}}", "x y"),
        ("no markup at all", "no markup at all"), ("", ""),
    ],
)  # fmt: skip
def test_markup_is_resolved(markup: str, plain: str) -> None:
    assert plain_text(markup) == plain


def test_dates_that_are_none_stay_words() -> None:
    assert plain_text("{{birth date|1990|13|45}}") == "1990"
    assert plain_text("{{start date|spring of 1990}}") == "spring of 1990"


@pytest.mark.parametrize(
    "hostile",
    [
        "{{" * 5_000, "[[" * 5_000, "<ref>" * 5_000, "{{a|" * 3_000 + "}}" * 3_000, "'" * 9_000, "<br" * 5_000,
        "* " * 9_000,
    ],
)  # fmt: skip
def test_hostile_markup_is_bounded(hostile: str) -> None:
    begin = time.process_time()
    plain = plain_text(hostile)
    # A fifth of a second at most; were it the square of the length it would be minutes.
    assert time.process_time() - begin < 10
    assert len(plain) <= 2 * MAX_CHARS


@given(st.text(alphabet="{}[]|<>='*;/ abr\n123", max_size=400))
def test_anything_becomes_text_without_templates(markup: str) -> None:
    plain = plain_text(markup)
    assert "{{" not in plain
    assert "[[" not in plain


def test_an_infobox_keeps_its_facts_in_order_and_drops_its_layout() -> None:
    box = {"Name": "X", "image": "x.jpg", "Birth Place": "[[Rome]]", "map_caption": "here", "floors": 7, "nothing": ""}
    assert list(facts(box)) == [("name", "X"), ("birth_place", "Rome"), ("floors", "7")]


def test_an_infobox_of_a_thousand_keys_is_cut() -> None:
    assert len(list(facts({f"key{number}": "v" for number in range(1_000)}))) == 150
