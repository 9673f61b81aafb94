"""People's words and sources' names become codes."""

import pytest

from services.kg.definition.vocabulary import Vocabulary

PRIZES = Vocabulary.model_validate(
    {
        "words": {"^writ": ["novel", "play"], "novel|book": "novel", "play|drama": "play"},
        "names": {"^fiction": "novel", "^stage": {"code": "play", "until": 1950}, "^stage work": "opera"},
        "noise": r"\b(?:best|the)\b",
        "official": r"\(",
    }
)
PLAIN = Vocabulary.model_validate({"words": {"new": "newcomer", "^w": "W"}, "otherwise": "slug"})
# An empty pattern is none.
EMPTY = Vocabulary.model_validate({"words": {"^rap album$": "rap"}, "noise": "", "official": ""})


@pytest.mark.parametrize(
    ("vocabulary", "words", "codes"),
    [
        (PRIZES, "Best Book", ("novel",)),
        (PRIZES, "the drama of a novel", ("novel",)),  # the first pattern decides
        (PRIZES, "writing", ("novel", "play")),
        (PRIZES, "cookery", ()),
        # A code and a source's name
        (PRIZES, "opera", ("opera",)),
        (PRIZES, "FICTION (long)", ("novel",)),
        (PLAIN, "rap album", ("rap_album",)),
        (PLAIN, "Won", ("W",)),
        (EMPTY, "Rap album", ("rap",)),
        (EMPTY, "jazz", ()),
    ],
)
def test_people_s_words_mean_codes(vocabulary: Vocabulary, words: str, codes: tuple[str, ...]) -> None:
    assert vocabulary.find(words) == codes


@pytest.mark.parametrize(
    ("vocabulary", "name", "year", "code"),
    [
        # A name may have had another meaning.
        (PRIZES, "Stage work", 1940, "play"),
        (PRIZES, "Stage work", 1960, "opera"),
        (PRIZES, "Stage work", None, "opera"),
        # A name that no pattern has is a code of its own.
        (PRIZES, "  Poetry & Song ", None, "poetry_and_song"),
        (PRIZES, "!!", None, "other"),
        # Without names the words are the names.
        (PLAIN, "A New One", None, "newcomer"),
    ],
)
def test_a_source_s_name_has_a_code(vocabulary: Vocabulary, name: str, year: int | None, code: str) -> None:
    assert vocabulary.code(name, year) == code
