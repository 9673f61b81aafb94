from services.kg.definition.vocabulary import Vocabulary

PRIZES = Vocabulary.model_validate(
    {
        "words": {"^writ": ["novel", "play"], "novel|book": "novel", "play|drama": "play"},
        "names": {"^fiction": "novel", "^stage": {"code": "play", "until": 1950}, "^stage work": "opera"},
        "noise": r"\b(?:best|the)\b",
        "official": r"\(",
    }
)


def test_people_s_words_mean_codes_the_first_pattern_decides() -> None:
    assert PRIZES.find("Best Book") == ("novel",)
    assert PRIZES.find("the drama of a novel") == ("novel",)
    assert PRIZES.find("writing") == ("novel", "play")
    assert PRIZES.find("cookery") == ()


def test_a_code_and_a_source_s_name_are_understood_too() -> None:
    assert PRIZES.find("opera") == ("opera",)
    assert PRIZES.find("FICTION (long)") == ("novel",)


def test_a_name_may_have_meant_something_else_once() -> None:
    assert PRIZES.code("Stage work", 1940) == "play"
    assert PRIZES.code("Stage work", 1960) == "opera"
    assert PRIZES.code("Stage work") == "opera"


def test_a_name_that_no_pattern_has_is_a_code_of_its_own() -> None:
    assert PRIZES.code("  Poetry & Song ") == "poetry_and_song"
    assert PRIZES.code("!!") == "other"


def test_without_names_the_words_are_the_names_and_a_text_may_be_its_own_code() -> None:
    plain = Vocabulary.model_validate({"words": {"new": "newcomer"}, "otherwise": "slug"})
    assert plain.code("A New One") == "newcomer"
    assert plain.find("rap album") == ("rap_album",)
    assert Vocabulary.model_validate({"words": {"^w": "W"}}).find("Won") == ("W",)


def test_an_empty_pattern_is_none() -> None:
    words = {"^rap album$": "rap"}
    assert Vocabulary.model_validate({"words": words, "noise": "", "official": ""}).find("Rap album") == ("rap",)
    assert Vocabulary.model_validate({"words": words, "noise": "", "official": ""}).find("jazz") == ()
