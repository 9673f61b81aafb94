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


def engine_of(place: Path, text: str = PHRASES) -> Engine:
    return Engine(Phrasing(random.Random(0)), read_catalogue(Catalogue(()), folder(place, text)))


def test_questions_of_each_section_are_made_from_the_folder_alone(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        assert list(engine.catalogue.domains) == ["boats"]
        for _ in range(10):
            made = engine.make("patterns")
            assert made.domain == "boats"
            assert made.answer
            assert made.program.startswith("get_boat(")
        assert engine.make("premises").kind == "invalid_question"
        assert engine.make("beyond").program == "none"
        evidence = Evidence(engine)
        kinds = {record.kind for _ in range(10) if (record := evidence.record("unknown")) is not None}
        assert kinds == {"unknown"}
        way = next(way for way in engine.ways if way.name == "compare")
        for _ in range(4):
            compared = engine.of(way)
            assert compared is not None
            a, b = compared.slots["a"], compared.slots["b"]
            assert compared.answer == str(a if a.length > b.length else b)


def test_folders_of_the_setting_are_asked_about_beside_the_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAGMESH_KG_DOMAINS", str(folder(tmp_path)))
    assert {"boats", "movie"} <= set(phrases.load(every_domain()))


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("share: 1", "shares: 1", r"phrases\.yaml.*shares"),
        ('draw: {x: boat}, whole: ["who sails', 'draw: {x: ship}, whole: ["who sails', r"phrases\.yaml.*ship"),
        ("name: crew", "name: fact", r"phrases\.yaml.*twice"),
        ("{id: b}", "{idd: b}", "boats: world.*idd"),
        ("table: boat", "table: ship", "boats: world.*ship"),
        ("name: {name: boat}", "name: {name: yacht}", "boats: world.*yacht"),
        ('get_boat({x})["{key}"]', 'get_boat({y})["{key}"]', "fact.*'y'"),
        ("the length of {x}", "the length of {x.depth}", "fact.*depth"),
        ("SELECT name, code AS id, harbour", "SELECT name, code AS id, port", "fact.*port"),
        ('get_boat({x})["{key}"]', 'get_ship({x})["{key}"]', "tries: boats"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, before: str, after: str, named: str) -> None:
    assert before in PHRASES
    only = PHRASES.replace(before, after).replace("  - name: compare", "  - name: compare\n    weight: 0")
    with pytest.raises(BadDataset, match=rf"(?s){named}"), engine_of(tmp_path, only) as engine:
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
