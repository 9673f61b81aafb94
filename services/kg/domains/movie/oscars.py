"""One slug for all names that an Academy Award had over the years, and the slug that people's words mean.

The Academy renames: the award for the film was Outstanding Picture (1928), Outstanding Production, Outstanding Motion
Picture, Best Motion Picture and is Best Picture since 1963. Families of names are matched by pattern, first fit wins.
"""

import re

# The slug, and what the Academy's name for it looks like, in lower case.
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (slug, re.compile(pattern))
    for slug, pattern in (
        ("honorary", r"honorary|special award|special foreign|commendation|sawyer|special achievement award$"),
        ("thalberg", r"thalberg"),
        ("hersholt", r"hersholt"),
        ("sound_editing", r"sound (?:effects )?editing|special achievement award \(sound|^sound effects$"),
        ("visual_effects", r"visual effects|^special effects|engineering effects"),
        ("actor_supporting", r"actor in a supporting"),
        ("actor_leading", r"^actor\b"),
        ("actress_supporting", r"actress in a supporting"),
        ("actress_leading", r"^actress\b"),
        ("animated_feature", r"animated feature"),
        ("animated_short", r"\((?:animated|cartoon)\)|animated short"),
        ("documentary_short", r"documentary.*short"),
        ("documentary_feature", r"documentary"),
        ("live_action_short", r"short (?:film|subject)"),
        ("international_feature", r"foreign language|international feature"),
        ("assistant_director", r"assistant director"),
        ("director", r"^directing"),
        ("dance_direction", r"dance direction"),
        ("production_design", r"art direction|production design"),
        ("cinematography", r"cinematography"),
        ("costume_design", r"costume"),
        ("film_editing", r"film editing"),
        ("makeup", r"makeup"),
        ("original_song", r"^music \((?:original song|song)(?:\)|--)"),
        ("original_score", r"^music\b"),
        ("sound", r"^sound"),
        (
            "screenplay_original",
            r"writing.*(?:\(original screenplay|written directly|not previously published|screenplay--original"
            r"|\(story and screenplay)",
        ),
        ("original_story", r"writing \((?:original story|motion picture story|original motion picture story)"),
        ("title_writing", r"title writing"),
        ("screenplay_adapted", r"^writing"),
        ("unique_picture", r"unique and artistic"),
        ("picture", r"picture|outstanding production"),
    )
)

_LEAD = r"(?:best|top|the|award|awards|oscar|oscars|academy|for|winner|winning|outstanding|achievement|in|a|an|of)"
_NOISE = re.compile(rf"\b{_LEAD}\b|[^a-z ]")

# What people call an award, without "best" and the like; the first pattern that is found decides.
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (slug, re.compile(pattern))
    for slug, pattern in (
        ("actor_supporting", r"supporting (?:male )?actor|actor supporting|supporting male"),
        (
            "actress_supporting",
            r"supporting (?:female )?actress|actress supporting|supporting female|female supporting",
        ),
        ("actress_leading", r"actress|(?:lead|leading) (?:female|woman|lady)|female lead"),
        ("assistant_director", r"assistant director"),
        ("actor_leading", r"actor|(?:lead|leading) (?:male|man)|male lead"),
        ("visual_effects", r"visual|special effects|\bvfx\b|^effects"),
        ("sound_editing", r"sound (?:effects )?(?:editing|editor|effects)"),
        ("sound", r"sound"),
        ("animated_short", r"animat\w+ short|short (?:film |subject )?animat\w+|cartoon"),
        ("animated_feature", r"animat"),
        ("documentary_short", r"documentary.*short|short.*documentary"),
        ("documentary_feature", r"documentar"),
        ("live_action_short", r"live action|short (?:film|subject|movie)|^short"),
        ("international_feature", r"foreign|international|non english"),
        ("dance_direction", r"dance"),
        ("production_design", r"production design|art direct|set decorat"),
        ("director", r"direct"),
        ("cinematography", r"cinematogra|photography"),
        ("costume_design", r"costume"),
        ("film_editing", r"edit"),
        ("makeup", r"make ?up|hairstyl"),
        ("original_song", r"song"),
        ("original_score", r"score|music|soundtrack|composer"),
        ("original_story", r"original story|motion picture story|^story"),
        ("screenplay_adapted", r"adapt"),
        ("screenplay_original", r"original|screenplay|writ|script"),
        ("honorary", r"honorary|lifetime"),
        ("thalberg", r"thalberg"),
        ("hersholt", r"hersholt|humanitarian"),
        ("picture", r"picture|film|movie|production"),
    )
)

# Words that leave open which of several awards is meant.
_SEVERAL: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"^supporting(?: role| performance)?$"), ("actor_supporting", "actress_supporting")),
    (re.compile(r"^(?:lead|leading)(?: role| performance)?$"), ("actor_leading", "actress_leading")),
    (
        re.compile(r"^(?:screenplay|writing|writer|script|screenwriting)$"),
        ("screenplay_original", "screenplay_adapted"),
    ),
    (re.compile(r"^shorts?(?: film| subject)?$"), ("live_action_short", "animated_short", "documentary_short")),
)

CATEGORY_KEYS: tuple[str, ...] = tuple(slug for slug, _ in _FAMILIES)
_EFFECTS_AWARD = "special achievement award (visual effects)"


def category_key(category: str, year: int) -> str:
    """The slug of the Academy's own name of an award.

    Args:
        category: as the Academy wrote it, in any case: "DOCUMENTARY (Feature)".
        year: of the ceremony; the one documentary award of 1942 and 1943 went to shorts and features alike.

    Returns:
        One of `CATEGORY_KEYS`, or a slug of the name itself for an award that is in none of the families.
    """
    name = " ".join(category.casefold().split())
    if name == _EFFECTS_AWARD:
        return "visual_effects"
    if year <= 1943 and name == "documentary":
        return "documentary_feature"
    for slug, pattern in _FAMILIES:
        if pattern.search(name):
            return slug
    return re.sub(r"[^a-z0-9]+", "_", name).strip("_") or "other"


def find_category(text: str) -> tuple[str, ...]:
    """The slugs that people's words mean: "best actor", "best film", "VISUAL EFFECTS", "actor in a leading role".

    The name of a slug and the Academy's names are understood too. Several where the words leave it open, as "best
    screenplay" does; none for words that mean no award.
    """
    plain = " ".join(text.casefold().replace("_", " ").replace("-", " ").split())
    if plain.replace(" ", "_") in CATEGORY_KEYS:
        return (plain.replace(" ", "_"),)
    if "(" in plain:
        return (category_key(text, 2000),)
    words = " ".join(_NOISE.sub(" ", plain).split())
    for pattern, slugs in _SEVERAL:
        if pattern.search(words):
            return slugs
    return next(((slug,) for slug, pattern in _WORDS if pattern.search(words)), ())
