"""The language: what models write is mended or refused with a typed error, and printing is the inverse of parsing."""

import random
import re
import string
import time
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.kg.domains import CATALOGUE
from services.kg.errors import LanguageError, ParseError, UnknownName
from services.kg.language import tree
from services.kg.language.bind import Binder
from services.kg.language.decoding import decoding_grammar, schema_text
from services.kg.language.parse import parse, parse_each
from services.kg.language.repair import MAX_CHARS, MAX_DEPTH, MAX_STATEMENTS
from services.kg.language.tree import Argument, Call, Condition, List_, Literal_, Query, Reference, Statement, render

NAMES = CATALOGUE.spellings


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("get_movie('Madea's Big Day')['revenue']", 'get_movie("Madea\'s Big Day")["revenue"]'),
        ('get_movie("x")[revenue]', 'get_movie("x")["revenue"]'),
        ('get_movie("x")["revenue"', 'get_movie("x")["revenue"]'),
        ('get_movie("x"]["revenue"])', 'get_movie("x")["revenue"]'),
        ('get_movie("x', 'get_movie("x")'),
        ('get_movie("x)["revenue"]', 'get_movie("x")["revenue"]'),
        ('get_movie("x")[len"]', 'LEN get_movie("x")'),
        ('movie("x")["budget"]', 'get_movie("x")["budget"]'),
        ('get_all_movie("x")["title"]', 'ALL get_movie("x")["title"]'),
        ('```\nAnswer: get_movie("x")["title"]\n```</s>', 'get_movie("x")["title"]'),
        ("get_movie(“x”)[“title”]", 'get_movie("x")["title"]'),
        ('get_movie("x")["a"] get_movie("y")["b"]', 'get_movie("x")["a"]\nget_movie("y")["b"]'),
        ('get_movie("x")["a"]; get_movie("y")["b"];', 'get_movie("x")["a"]\nget_movie("y")["b"]'),
        (
            'get_person("x")["music"]\nsort(None,-release_date)[title]',
            'get_person("x")["music"] sort(None, -release_date)["title"]',
        ),
        (
            'get_person("x")["music"]\nALL sort(eq(release_date,2020),release_date)',
            'ALL get_person("x")["music"] sort(eq(release_date, 2020), release_date)',
        ),
        ("get_stock_price(abc, recent friday)[close]", 'get_stock_price(abc, recent friday)["close"]'),
        ("get_open('mosque, tabriz')", 'get_open("mosque, tabriz")'),
        ("average", "AVG *"),
        ("None", "none"),
        ("NONE.", "none"),
        ('3 get_movie("x")["title"]', '3 get_movie("x")["title"]'),
        ('AVG get_stock_price("x","this week")["high"]', 'AVG get_stock_price("x", "this week")["high"]'),
    ],
)
def test_what_models_write_is_mended(written: str, meant: str) -> None:
    assert "\n".join(map(render, parse(written, NAMES))) == meant


BROKEN = (
    "what?", "get_movie", "sort(None, x)", 'get_movie("x")[1:2:3]', 'get_movie("x") where()',
    'get_movie("x") where("y")', 'get_movie("x") sort(None)', "eq(year, 1)", '"just a string"', "diff()", "*[",
)  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_statement_says_where(text: str) -> None:
    (parsed,) = parse_each(text, NAMES)
    assert parsed.statement is None
    assert str(parsed.error)


@pytest.mark.parametrize(
    "text",
    ["x" * 10_000_000, "(" * (MAX_DEPTH + 1), "get_movie([" * MAX_DEPTH, 'get_movie("x")\n' * (MAX_STATEMENTS + 1)],
    ids=["characters", "brackets", "calls", "statements"],
)
def test_what_is_too_much_is_refused_whole_and_at_once(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ParseError):
        parse_each(text)
    assert time.perf_counter() - began < 10


# Names as people have them: no line breaks or quotes, which a program cannot hold.
texts = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp"), exclude_characters="\"\\“”„«»‘’‚`'<|"), min_size=1, max_size=20
).map(lambda text: unicodedata.normalize("NFC", text).strip())
quoted = texts.filter(bool).map(Literal_)
keys = st.sampled_from(["title", "year", "release_date", "revenue"])
numbers = st.integers(0, 10**12).map(Literal_)
conditions = st.builds(
    Condition,
    st.sampled_from(["eq", "neq", "ge", "le", "gt", "lt"]),
    keys,
    st.tuples(st.one_of(quoted, numbers, st.sampled_from([True, False]).map(Literal_))),
)
references = st.builds(Reference, st.one_of(st.none(), st.integers(1, 8)), keys)
arguments: st.SearchStrategy[Argument] = st.one_of(
    quoted,
    numbers,
    st.just(Literal_(None)),
    conditions,
    references,
    keys.map(tree.Descending),
    st.lists(quoted, min_size=1, max_size=3).map(lambda items: List_(tuple(items))),
    st.lists(conditions, min_size=2, max_size=3).map(lambda items: List_(tuple(items))),
)
calls = st.builds(Call, st.sampled_from(["get_movie", "get_stock_price"]), st.lists(arguments, max_size=4).map(tuple))
steps = st.one_of(
    st.lists(keys, min_size=1, max_size=3).map(lambda names: tree.Project(tuple(names))),
    st.builds(tree.Slice, st.integers(0, 9), st.one_of(st.none(), st.integers(10, 20))),
    st.lists(conditions, min_size=1, max_size=3).map(lambda items: tree.Where(tuple(items))),
    st.builds(tree.Sort, st.lists(conditions, max_size=2).map(tuple), keys, st.booleans()),
)
queries = st.builds(
    Query,
    st.one_of(calls, st.builds(Reference, st.one_of(st.none(), st.integers(1, 8)))),
    st.lists(steps, max_size=3).map(tuple),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from(["avg", "sum", "min", "max", "len"])),
    st.one_of(st.none(), st.integers(1, 50)),
)
plain_queries = st.builds(Query, calls, st.lists(steps, max_size=2).map(tuple))
combined = st.lists(plain_queries, min_size=1, max_size=2).map(tuple)
statements = st.one_of(
    queries,
    st.just(tree.Nothing()),
    st.builds(tree.Combine, st.sampled_from(["diff", "ratio", "sum"]), combined).map(Query),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(statements, min_size=1, max_size=3).map(tuple))
def test_parsing_is_the_inverse_of_printing(program: tuple[Statement, ...]) -> None:
    printed = "\n".join(map(render, program))
    if len(printed) <= MAX_CHARS:
        assert parse(printed) == program


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed_or_refused(content: bytes) -> None:
    with suppress(ParseError):
        for parsed in parse_each(content.decode("latin-1"), NAMES):
            assert (parsed.statement is None) != (parsed.error is None)


PROGRAMS = (
    'get_movie_person_crew(None, "walt becker", [eq(job, "Director"), ge(year, 2001)]) sort(None, -year)["title"][:3]',
    'get_stock_price("abc", "2024-01-01", "2024-01-07") where(gt(close, open))["date"]\nAVG *["high"]',
    'get_grammy_year("2011")["best_new_artist"]\nget_person(*["best_new_artist"])["music"]["len"]',
    'diff(get_movie("a\'s, b")["length"], get_movie("c")["length"])',
    'get_nba_on_date("nets", "2023-01") where(eq(venue, "home"), eq(result, "L"))["len"]',
)


def mutated(program: str, chance: random.Random) -> str:
    """A program with a few characters lost, doubled, swapped or put in."""
    text = list(program)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                del text[at]
            case 1:
                text.insert(at, text[at])
            case 2:
                text[at] = chance.choice(string.printable)
            case _:
                text.insert(at, chance.choice("\"'()[]*,-=\n;"))
        if not text:
            return ""
    return "".join(text)


def test_mutated_programs_are_parsed_or_refused() -> None:
    chance = random.Random(11)
    for _ in range(1_000):
        binder = Binder(CATALOGUE, "movie")
        with suppress(ParseError):
            for one in parse_each(mutated(chance.choice(PROGRAMS), chance), NAMES):
                if isinstance(one.statement, Query):
                    with suppress(LanguageError):
                        binder.bind(one.statement)


@pytest.mark.parametrize(
    ("function", "spelling", "key"),
    [
        ("get_movie", "runtime", "length"), ("get_movie", "box office", "revenue"), ("get_movie", "lenth", "length"),
        ("get_movie", "Release Date", "release_date"), ("get_movie_person_cast", "movie_name", "title"),
        ("get_soccer_on_date", "goals", "gf"), ("get_stock_price", "time", "date"),
    ],
)  # fmt: skip
def test_keys_have_the_spellings_that_people_use(function: str, spelling: str, key: str) -> None:
    assert CATALOGUE.function(function, "movie").key(spelling).name == key


def test_an_unknown_key_names_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match="length") as caught:
        CATALOGUE.function("get_movie", "movie").key("favourite colour")
    assert caught.value.status == "unknown_key"
    assert caught.value.expected


def test_the_domain_decides_between_functions_of_one_name() -> None:
    assert CATALOGUE.function("get_person", "music").domain == "music"
    assert CATALOGUE.function("get_person", "movie").domain == "movie"
    assert CATALOGUE.function("get_movie", "music").domain == "movie"


def test_spellings_mean_one_key_each() -> None:
    for function in CATALOGUE.functions:
        for key in function.keys:
            for spelling in (key.name, *key.aliases):
                match = function.find_key(spelling)
                assert match is not None
                assert match.name == key.name or spelling in (match.name, *match.aliases), (function.name, spelling)


@pytest.mark.parametrize("domain", list(CATALOGUE.domains))
def test_facets_bind(domain: str) -> None:
    for function in CATALOGUE.domains[domain].functions:
        for name in function.facets:
            arguments = ", ".join('"2000"' if p.kind == "integer" else '"x"' for p in function.parameters if p.required)
            arguments = arguments or '"x"'
            statement = parse(f'{function.name}({arguments})["{name}"]')[0]
            assert isinstance(statement, Query)
            Binder(CATALOGUE, domain).bind(statement)


@pytest.mark.parametrize("domain", list(CATALOGUE.domains))
def test_the_decoding_grammar_defines_all_that_it_uses(domain: str) -> None:
    grammar = decoding_grammar(CATALOGUE, domain)
    defined = re.findall(r"^([\w-]+) ::=", grammar, re.MULTILINE)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]', " ", grammar)
    assert len(defined) == len(set(defined))
    assert set(re.findall(r"[a-z][\w-]*", bare)) <= set(defined)
    shown = schema_text(CATALOGUE, domain)
    for function in CATALOGUE.domains[domain].functions:
        assert function.hidden or (f"{function.name}(" in shown and f'"{function.name}("' in grammar)
