"""A `words.yaml` is checked against its domain; what is wrong is named by file, line and key."""

import shutil
from pathlib import Path

import pytest

import services.kg.domains as bundled
from services.kg.definition.domain import read_domain
from services.kg.definition.folder import BrokenDomain
from services.kg.domains import CATALOGUE
from services.kg.generate.rules.lexicon import Lexicon, lexicons, read_words
from services.kg.generate.rules.words import Words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a bundled domain without Python, to be broken."""
    source = Path(bundled.__path__[0]) / "open"
    shutil.copytree(source, tmp_path / "places")
    return tmp_path / "places"


def test_every_bundled_domain_has_words() -> None:
    assert set(lexicons(CATALOGUE)) == set(CATALOGUE.domains)
    assert all(lexicon.words.readings for lexicon in lexicons(CATALOGUE).values())


def test_a_folder_without_the_file_has_no_words(folder: Path) -> None:
    (folder / "words.yaml").unlink()
    assert read_words(read_domain(folder)) == Words()


@pytest.mark.parametrize(
    ("text", "line", "key", "reason"),
    [
        ("kinds:\n  planet: {words: [planet]}\n", 2, "kinds.planet", "no kind planet"),
        ("functions:\n  get_planet: {words: [x]}\n", 2, "functions.get_planet", "no function get_planet"),
        ("readings:\n- function: get_open\n- function: get_moon\n", 3, "readings.1.function", "no function get_moon"),
        ("readings:\n- {function: get_open, names: {moon: some}}\n", 2, "readings.0.names.moon", "no kind moon"),
        ("keys:\n  mass:\n    words: [weigh, (heavy]\n", 3, "keys.mass.words", "not closed"),
        ("keys:\n  mass: {wrods: [weigh]}\n", 2, "keys.mass.wrods", "wrods"),
        ("unknown: [true, hot]\n", 1, "unknown", "quotes"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, text: str, line: int, key: str, reason: str) -> None:
    (folder / "words.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BrokenDomain) as raised:
        read_words(read_domain(folder))
    fault = raised.value.faults[0]
    assert fault.file.endswith("words.yaml")
    assert (fault.line, fault.key) == (line, key)
    assert reason in fault.reason


def test_keys_of_a_function_that_has_them_all_are_checked() -> None:
    words = Words.model_validate({"keys": {"wingspan": {"words": ["wide"]}}})
    assert words.faults({"get_bird": frozenset({"name"})}, frozenset()) == [
        (("keys", "wingspan"), "no function has a key wingspan")
    ]
    assert words.faults({"get_bird": None}, frozenset()) == []


def test_a_key_is_asked_for_by_its_words_and_the_catalogue_s() -> None:
    lexicon = Lexicon(
        CATALOGUE, "movie", Words.model_validate({"keys": {"length": {"words": ["last"], "more": ["long"]}}})
    )
    phrases = lexicon.phrases("get_movie", "length")
    assert {"last", "how long", "longer", "longest", "length", "runtime"} <= set(phrases)
    only = Words.model_validate({"keys": {"length": {"words": ["last"], "only": True}}})
    assert Lexicon(CATALOGUE, "movie", only).phrases("get_movie", "length") == ("last",)


def test_words_of_a_function_s_key_replace_those_of_the_domain() -> None:
    words = Words.model_validate(
        {"keys": {"value": {"words": ["worth"]}}, "functions": {"f": {"keys": {"value": {"words": ["size"]}}}}}
    )
    assert words.key("f", "value").words == ("size",)
    assert words.key("g", "value").words == ("worth",)
