"""Forms of English words."""

import pytest

from services.kg.generate.rules.inflection import degrees, inflections


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("release", {"released", "releases", "releasing"}), ("company", {"companies"}),
        ("star", {"starred", "starring", "stars"}), ("gross", {"grosses", "grossed"}),
        ("write", {"wrote", "written", "writing"}), ("win", {"won", "winning", "wins"}), ("die", {"died", "dying"}),
    ],
)  # fmt: skip
def test_regular_and_irregular_forms(word: str, forms: set[str]) -> None:
    assert forms <= set(inflections(word))


@pytest.mark.parametrize("word", ["the", "who", "p/e", "earnings", "52"])
def test_words_without_forms_stay_alone(word: str) -> None:
    assert inflections(word) == (word,)


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("long", ("longer", "longest")), ("large", ("larger", "largest")), ("big", ("bigger", "biggest")),
        ("heavy", ("heavier", "heaviest")), ("expensive", ("more expensive", "most expensive")),
        ("good", ("better", "best")), ("far north", ("more far north", "most far north")),
    ],
)  # fmt: skip
def test_degrees(adjective: str, forms: tuple[str, str]) -> None:
    assert degrees(adjective) == forms
