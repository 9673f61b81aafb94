"""A team's own folder of data gets made-up questions, programs and evidence from the same engine."""

import random
from itertools import islice
from pathlib import Path

import pytest

from lab.trainer.errors import BadDataset
from lab.trainer.synthesise import answers, phrases, programs
from lab.trainer.synthesise.engine import Engine, every_domain
from lab.trainer.synthesise.evidence import Evidence
from lab.trainer.synthesise.phrasing import Phrasing
from services.kg.definition.domain import read_catalogue
from services.kg.language.catalogue import Catalogue

TABLES = """
boat:
  columns: {code: text, name: {type: text, required: true}, built: date, length: {type: number, unit: m}, harbour: text}
  key: [code]
"""
DOMAIN = """
summary: boats and their harbours
kinds:
  boat: {table: boat, id: code, name: name}
functions:
  get_boat:
    summary: a boat's length, harbour, and when it was built
    parameters:
      boat: {kinds: [boat], column: _code, required: true}
    view: SELECT code AS _code, name, built, length, harbour FROM boat
    keys:
      name: {kind: boat, id: _code}
      built: {type: date}
      length: {type: number, unit: m}
      harbour: {}
    subject: [name]
    default: [length, harbour]
texts:
  row: "{{ name }}"
"""
PHRASES = """
share: 1
names: {boat: ["The {Adjective} {Noun}", "{First} of {coined}"]}
world:
  - table: boat
    rows: 20
    columns:
      code: {id: b}
      name: {name: boat}
      built: {day: [1950, 2020]}
      length: {real: [4, 60, 1]}
      harbour: {words: "{place}"}
pools:
  boat: SELECT name, code AS id, harbour, length, built FROM boat
about:
  boat: ['get_boat({x})["built"]', 'get_boat({x})["length"]']
patterns:
  - name: fact
    draw: {x: boat}
    program: get_boat({x})["{key}"]
    variants:
      length: {nouns: ["the length of {x}"], whole: ["how long is {x}"]}
      harbour: {whole: ["where does {x} lie"]}
  - name: compare
    type: comparison
    draw: {a: boat, b: boat}
    whole: ["which is longer, {a} or {b}"]
    program: |-
      get_boat({a})["length"]
      get_boat({b})["length"]
    answer: {more: true}
premises:
  - name: elsewhere
    draw: {x: boat, p: {words: "{place}"}}
    whole: ["since when does {x} lie in {p}"]
    program: get_boat({x})["harbour"]
    answer: {refuted: "{p}"}
beyond:
  - {name: crew, draw: {x: boat}, whole: ["who sails {x}"]}
"""


def folder(place: Path, text: str = PHRASES) -> Path:
    own = place / "boats"
    own.mkdir()
    for name, content in (("tables.yaml", TABLES), ("domain.yaml", DOMAIN), ("phrases.yaml", text)):
        (own / name).write_text(content, encoding="utf-8")
    return place


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    own = read_catalogue(Catalogue(()), folder(tmp_path))
    assert list(own.domains) == ["boats"]
    return own


def test_questions_of_each_section_are_made_from_the_folder_alone(catalogue: Catalogue) -> None:
    with Engine(Phrasing(random.Random(0)), catalogue) as engine:
        for _ in range(20):
            made = engine.make("patterns")
            assert made.domain == "boats"
            assert made.answer
            assert made.program.startswith("get_boat(")
        assert engine.make("premises").kind == "invalid_question"
        assert engine.make("beyond").program == "none"
        evidence = Evidence(engine)
        kinds = {record.kind for _ in range(20) if (record := evidence.record("unknown")) is not None}
        assert kinds == {"unknown"}


def test_the_longer_boat_wins(catalogue: Catalogue) -> None:
    with Engine(Phrasing(random.Random(1)), catalogue) as engine:
        way = next(way for way in engine.ways if way.name == "compare")
        for _ in range(10):
            made = engine.of(way)
            assert made is not None
            a, b = made.slots["a"], made.slots["b"]
            assert made.answer == str(a if a.length > b.length else b)


def test_folders_of_the_setting_are_asked_about_beside_the_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAGMESH_KG_DOMAINS", str(folder(tmp_path)))
    assert {"boats", "movie"} <= set(phrases.load(every_domain()))


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("share: 1", "shares: 1", "shares"),
        ('draw: {x: boat}, whole: ["who sails', 'draw: {x: ship}, whole: ["who sails', "ship"),
        ("name: crew", "name: fact", "twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, before: str, after: str, named: str) -> None:
    assert before in PHRASES
    own = read_catalogue(Catalogue(()), folder(tmp_path, PHRASES.replace(before, after)))
    with pytest.raises(BadDataset, match=rf"(?s)phrases\.yaml.*{named}"):
        phrases.load(own)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("{id: b}", "{idd: b}", "idd"),
        ("table: boat", "table: ship", "ship"),
        ("name: {name: boat}", "name: {name: yacht}", "yacht"),
    ],
)
def test_rows_that_cannot_be_made_are_named(tmp_path: Path, before: str, after: str, named: str) -> None:
    assert before in PHRASES
    own = read_catalogue(Catalogue(()), folder(tmp_path, PHRASES.replace(before, after)))
    with Engine(Phrasing(random.Random(0)), own) as engine, pytest.raises(BadDataset, match=rf"boats: world.*{named}"):
        engine.make("patterns")


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('get_boat({x})["{key}"]', 'get_boat({y})["{key}"]', "fact.*'y'"),
        ("the length of {x}", "the length of {x.depth}", "fact.*depth"),
        ("SELECT name, code AS id, harbour", "SELECT name, code AS id, port", "fact.*port"),
        ('get_boat({x})["{key}"]', 'get_ship({x})["{key}"]', "tries: boats"),
    ],
)
def test_patterns_that_make_nothing_are_named(tmp_path: Path, before: str, after: str, named: str) -> None:
    assert before in PHRASES
    only = PHRASES.replace(before, after).replace("  - name: compare", "  - name: compare\n    weight: 0")
    own = read_catalogue(Catalogue(()), folder(tmp_path, only))
    with Engine(Phrasing(random.Random(0)), own) as engine, pytest.raises(BadDataset, match=rf"(?s){named}"):
        list(islice(iter(lambda: engine.make("patterns"), None), 30))


def test_a_folder_with_patterns_alone_makes_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_KG_DOMAINS", str(folder(tmp_path, PHRASES[: PHRASES.index("premises:")])))
    assert {record.kind for record in answers.generate(20, 0, "boats")} == {"answer", "unknown"}
    assert {made.domain for made in islice(programs.generate(0, "boats"), 10)} == {"boats"}
    with pytest.raises(BadDataset, match=r"ships is no domain with phrases; there are .*boats"):
        next(programs.generate(0, "ships"))


def test_a_domain_without_phrases_makes_no_questions(tmp_path: Path) -> None:
    place = folder(tmp_path)
    (place / "boats" / "phrases.yaml").unlink()
    assert phrases.load(read_catalogue(Catalogue(()), place)) == {}
