"""The worked examples are right: each parses, binds, is canonical, and asks about what its question names."""

import json
import re
from collections import Counter
from importlib.resources import files

import pytest

from services.kg.domains import CATALOGUE
from services.kg.generate.examples import Library, load_library, mask
from services.kg.generate.ground import ground
from services.kg.generate.names import literals
from services.kg.language.bind import Binder
from services.kg.language.parse import parse
from services.kg.language.tree import Nothing, Query, render
from services.kit.encoder import Encoder

pytestmark = pytest.mark.anyio
LIBRARY = load_library(CATALOGUE)
ALL = [(domain, example) for domain, examples in LIBRARY.examples.items() for example in examples]


@pytest.mark.parametrize("domain", LIBRARY.examples)
def test_examples_are_right(domain: str) -> None:
    for example in LIBRARY.examples[domain]:
        program = parse(example.program)
        assert "\n".join(map(render, program)) == example.program
        binder = Binder(CATALOGUE, domain)
        for statement in program:
            assert isinstance(statement, Nothing) or (isinstance(statement, Query) and binder.bind(statement))
        assert ground(example.program, example.query, CATALOGUE, domain) == example.program, example.query


def test_every_function_and_operator_is_shown() -> None:
    programs = {domain: "\n".join(e.program for d, e in ALL if d == domain) for domain in LIBRARY.examples}
    for domain, text in programs.items():
        for function in CATALOGUE.domains[domain].functions:
            assert function.hidden or f"{function.name}(" in text, function.name
    text = "\n".join(programs.values())
    needed = "eq( ge( le( gt( lt( where( [:1] [:3] LEN AVG SUM MIN MAX ALL diff( ratio( *["
    for surface in (*needed.split(), " sort(None, -"):
        assert surface in text, surface


def test_every_domain_has_refusals_comparisons_and_times() -> None:
    for domain in LIBRARY.examples:
        mine = [example for d, example in ALL if d == domain]
        assert sum(example.program == "none" for example in mine) >= 1
        assert sum("\n" in example.program for example in mine) >= 2
        assert not CATALOGUE.domains[domain].timed or sum(example.query_time is not None for example in mine) > 20


def test_questions_are_many_and_differ() -> None:
    counts = Counter(re.sub(r"\W+", " ", example.query.lower()).strip() for _, example in ALL)
    assert len(ALL) >= 150
    assert max(counts.values()) == 1


def test_files_hold_nothing_but_examples() -> None:
    for domain in CATALOGUE.domains:
        for line in (files("services.kg.domains") / domain / "examples.jsonl").read_text("utf-8").splitlines():
            assert set(json.loads(line)) <= {"query", "program", "query_time"}


def test_names_are_masked_whatever_their_case() -> None:
    names = literals('get_movie("alien")["director"]', CATALOGUE, "movie")
    assert names == ("alien",)
    assert mask("Who directed Alien, please?", names) == "Who directed X, please?"


async def test_without_an_encoder_some_examples_are_shown() -> None:
    assert len(await LIBRARY.nearest("who directed it?", domain="movie", k=3)) == 3
    assert await LIBRARY.nearest("who directed it?", domain="movie", k=0) == ()


async def test_the_nearest_examples_ask_the_same_and_differ_among_themselves(encoder: Encoder) -> None:
    library = Library(LIBRARY.examples, CATALOGUE)
    library.embed(encoder)
    examples = await library.nearest("what's the market cap of zzt", domain="finance", k=6)
    assert "get_stock_market_cap" in examples[-1].program
    shapes = Counter(re.sub(r'"[^"]*"', "X", example.program) for example in examples)
    assert max(shapes.values()) <= 2
    assert len(set(examples)) == 6
