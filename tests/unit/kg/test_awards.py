"""Awards are one under all their names, and free text names its people."""

from collections.abc import Callable

import pytest

from services.kg.definition.vocabulary import Vocabulary
from services.kg.domains import CATALOGUE
from services.kg.domains.credits import nominees, performers, workers

OSCARS = CATALOGUE.domains["movie"].folder.model("categories.yaml", Vocabulary)[0]
GRAMMYS = CATALOGUE.domains["music"].folder.model("categories.yaml", Vocabulary)[0]


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (["OUTSTANDING PICTURE", "OUTSTANDING PRODUCTION", "BEST MOTION PICTURE", "BEST PICTURE"], "picture"),
        (["ACTOR", "ACTOR IN A LEADING ROLE"], "actor_leading"),
        (["ACTRESS IN A SUPPORTING ROLE"], "actress_supporting"),
        (["DIRECTING", "DIRECTING (Comedy Picture)"], "director"),
        (["SPECIAL EFFECTS", "ENGINEERING EFFECTS", "SPECIAL ACHIEVEMENT AWARD (Visual Effects)"], "visual_effects"),
        (["DOCUMENTARY (Feature)", "DOCUMENTARY FEATURE FILM"], "documentary_feature"),
        (["DOCUMENTARY (Short Subject)", "DOCUMENTARY SHORT FILM"], "documentary_short"),
        (["SHORT FILM (Animated)", "SHORT SUBJECT (Cartoon)"], "animated_short"),
        (["SHORT FILM (Live Action)", "SHORT SUBJECT (One-reel)"], "live_action_short"),
        (["FOREIGN LANGUAGE FILM", "INTERNATIONAL FEATURE FILM"], "international_feature"),
        (["MUSIC (Song)", "MUSIC (Original Song)"], "original_song"),
        (["MUSIC (Original Score)", "MUSIC (Adaptation Score)", "MUSIC (Scoring)"], "original_score"),
        (["SOUND RECORDING", "SOUND MIXING", "SOUND"], "sound"),
        (["SOUND EDITING", "SOUND EFFECTS"], "sound_editing"),
        (["WRITING (Original Screenplay)", "WRITING (Story and Screenplay)"], "screenplay_original"),
        (["WRITING (Adapted Screenplay)", "WRITING (Adaptation)"], "screenplay_adapted"),
        (["ART DIRECTION (Color)", "PRODUCTION DESIGN"], "production_design"),
        (["HONORARY AWARD", "SPECIAL AWARD", "SPECIAL FOREIGN LANGUAGE FILM AWARD"], "honorary"),
    ],
)  # fmt: skip
def test_an_award_is_one_under_all_its_names(names: list[str], key: str) -> None:
    assert {OSCARS.code(name, 1990) for name in names} == {key}
    assert {OSCARS.code(name.lower(), 1990) for name in names} == {key}
    assert key in OSCARS.codes


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("best actor", "actor_leading"), ("Best Film", "picture"), ("VISUAL EFFECTS", "visual_effects"),
        ("actor in a leading role", "actor_leading"), ("best supporting actress", "actress_supporting"),
        ("documentary (feature)", "documentary_feature"), ("best animated film", "animated_feature"),
        ("best animated short film", "animated_short"), ("foreign language film", "international_feature"),
        ("best director", "director"), ("original song", "original_song"), ("cheese", ""), ("", ""),
        ("best screenplay", "screenplay_original screenplay_adapted"),
        ("supporting role", "actor_supporting actress_supporting"),
    ],
)  # fmt: skip
def test_peoples_words_mean_awards(words: str, keys: str) -> None:
    assert OSCARS.find(words) == tuple(keys.split())


def test_every_key_is_understood_as_itself() -> None:
    assert [OSCARS.find(key) for key in OSCARS.codes] == [(key,) for key in OSCARS.codes]


@pytest.mark.parametrize(
    ("awards", "name", "key"),
    [
        (OSCARS, "BEST STUNT (Group)", "best_stunt_group"),
        (GRAMMYS, "Album Of The Year", "best_album"),
        (GRAMMYS, "Album Of The Year - Classical", "album_of_the_year_classical"),
        (GRAMMYS, "Best R&B Song", "best_randb_song"),
        (GRAMMYS, "Best New Artist", "best_new_artist"),
    ],
)
def test_awards_of_all_fields_have_codes_others_their_names(awards: Vocabulary, name: str, key: str) -> None:
    assert awards.code(name) == key


@pytest.mark.parametrize(
    ("people", "text", "names"),
    [
        (nominees, "Music and Lyric by Ann Bee and Cee Dee", ["Ann Bee", "Cee Dee"]),
        (nominees, "Ann Bee, Cee Dee and Eff Gee, Producers", ["Ann Bee", "Cee Dee", "Eff Gee"]),
        (nominees, "Art Direction: Ann Bee; Set Decoration: Cee Dee", ["Ann Bee", "Cee Dee"]),
        (nominees, "Acme Studio Sound Department, Ann Bee, Sound Director", ["Ann Bee"]),
        (nominees, "Sammy Davis, Jr.", ["Sammy Davis Jr"]),
        (nominees, "", []),
        (performers, "Beyoncé Featuring Jay-Z", ["Beyoncé", "Jay-Z"]),
        (performers, "Earth, Wind & Fire", ["Earth, Wind & Fire", "Earth", "Wind", "Fire"]),
        (performers, "Yo-Yo Ma, Jorge Calandrelli, conductor", ["Yo-Yo Ma", "Jorge Calandrelli"]),
        (performers, "(Various Artists)", []),
        (
            workers,
            "Ann Bee & Cee Dee, producers; Eff Gee, engineer/mixer (Dua Lipa)",
            ["Dua Lipa", "Ann Bee", "Cee Dee", "Eff Gee"],
        ),
    ],
)
def test_free_text_names_its_people(people: Callable[[str], list[str]], text: str, names: list[str]) -> None:
    assert people(text) == names
