"""Rules for films, their people, and the Oscars."""

import re

from services.kg.domains.movie.oscars import find_category
from services.kg.generate.rules.question import Question, listed, quote

# What a question's words ask of a film; the first that fits.
FILM_KEYS = (
    (
        r"original(?:ly)?\b.{0,30}\b(?:title|name|called)|(?:title|name|called)\b.{0,40}\b(?:original|"
        r"at first|first chosen)|official (?:title|name)|officially (?:named|titled|called)|(?:named|"
        r"titled|called) at first",
        "original_title",
    ),
    (r"language|tongue|spoken", "original_language"),
    (r"profit", "profit"),
    (r"budget|cost\b|expens", "budget"),
    (r"box.?office|gross|earn|revenue|ticket sales|takings|money|financial|sales|receipts|made more", "revenue"),
    (r"direct|creative decisions|behind the camera|helm|film-?maker", "director"),
    (r"produc(?:er|ed)", "producer"),
    (r"runtime|running time|how long|longer|longest|shorter|length|duration|minutes", "length"),
    (r"\brat(?:ing|ed)\b|\bscore\b|vote", "rating"),
    (r"genre|kind of (?:movie|film)|type of (?:movie|film)", "genres"),
    (
        r"releas|premier|come out|came out|theat|first (?:shown|screened|available|seen)|public|debut|"
        r"screened|cinemas|open(?:ed)? in|shown|earlier|older|newer|first|when|what (?:date|year|day)|"
        r"which (?:date|year|day)",
        "release_date",
    ),
)
_PEOPLE_AWARDS = re.compile(r"act|direct")
_CATEGORY = re.compile(
    r"(?:best |for |in |the )?((?:lead(?:ing)? |supporting )?(?:actor|actress)|visual effects|"
    r"animated(?: feature| short)?(?: film)?|"
    r"documentary(?: feature| short)?(?: film)?|director|directing|(?:original |adapted )?screenplay|cinematography|"
    r"original (?:song|score)|costume design|film editing|sound(?: editing| mixing)?|makeup|production design|"
    r"international (?:feature )?film|foreign (?:language )?film|picture|film|movie)\b"
)
_JOBS = (
    (r"compos|score\b|music", "Original Music Composer"),
    (r"screenplay|wrote|writ", "Screenplay"),
    (r"cinematogra|photograph", "Director of Photography"),
    (r"edit", "Editor"),
)
_CHARACTER = re.compile(
    r"(?:play(?:ed|s)?|portray(?:ed|s)?|voice[ds]?|act(?:ed)? as|cast as)(?: (?:the|a)? ?(?:role|part|"
    r"character) of| the (?:role|part|character))? "
    r"(?P<role>[^?]+?)(?: (?:in|from|of)\b|\?|$)",
    re.IGNORECASE,
)


_AWARD = (
    r"\boscars?\b|academy award|\bbest (?:\w+ )?(?:actor|actress|picture|director|documentary|animated|foreign)\b|"
    r"best visual effects"
)
_GENRE = re.compile(
    r"\b(action|adventure|animat\w+|comed(?:y|ies)|crime|documentar(?:y|ies)|drama|family|fantasy|history|horror|music|"
    r"mystery|romance|science fiction|sci-fi|thriller|war|western)s? (?:movies?|films?)\b"
)


# What the graph does not know of films and their people; other facts of them would be beside the point.
_UNKNOWN = (
    r"married|marri|spouse|husband|wife|divorc|dating|relationship|girlfriend|boyfriend|parents?\b|"
    r"child(?:ren)?\b|siblings?|"
    r"school|college|universit|\btall\b|height|net worth|palme|emmy|golden globe|bafta|cannes|tony award|grammy|"
    r"soundtrack|filmed|filming|\bshot\b|located?|percentage|influential|nationality|religion|streaming"
)


def statements(question: Question) -> list[str]:
    """The statements for a question, none when no rule fits."""
    if question.says(_UNKNOWN):
        return []
    films, people = question.sides("movie"), question.sides("movie_person")
    if len(films) > 1 and not question.compares:
        films = [max(films, key=len)]
    if question.says(r"franchise|\bseries\b|sequels|how many .*(?:movies|films) (?:are|were) there") and not people:
        names = films or [re.sub(r" (?:franchise|series|movies|films)$", "", name) for name in _guess(question)]
        return [f'ALL get_movie({quote(name)})["title"]' for name in names[:2]]
    if question.says(_AWARD) and (found := _oscar(question, films, people)):
        return found
    if films and (role := _role(question)):
        return [f'get_movie_person_cast({quote(films[0])}, None, eq(character, {quote(role)}))["name"]']
    if question.says(r"born|birth|how old|\bage\b|\bolder\b|younger|come into this world|\belder\b") and (
        people or not films
    ):
        films = [film for film in films if film not in people]
        found = [f'get_person({quote(name)})["birthday"]' for name in people or _guess(question)]
        return found[:3] + [f'get_movie({quote(film)})["release_date"]' for film in films[:1]]
    if people and ((not films and question.says(_FILMS)) or (set(films) & set(people) and question.says(_BY_PERSON))):
        return _filmography(question, people)
    if films and question.says(_OF_CAST):
        return _cast(question, films, people)
    if not films and question.says(_BY_PERSON) and (guessed := _guess(question)):
        return _filmography(question, guessed)
    names = films or ([] if question.says(_GENRE.pattern) else _guess(question))
    for pattern, job in _JOBS:
        if question.says(pattern) and not question.says(r"direct|release|language|box"):
            return [f'get_movie_person_crew({quote(name)}, None, eq(job, "{job}"))["name"]' for name in names[:2]]
    for pattern, key in FILM_KEYS:
        if names and question.says(pattern):
            return [f'get_movie({quote(name)})["{key}"]' for name in names[:3]]
    return _of_year(question) if not names else []


# Films are asked for, by somebody: "films directed by x", "x's film with the highest", "the last movie x acted in".
_BY_PERSON = (
    r"(?:movies?|films?|pictures?)\b.*\b(?:directed by|by|starring|star|role|act(?:ed)?|appear|direct(?:ed)?)\b|"
    r"'s (?:first|last|latest)? ?(?:movies?|films?|pictures?)\b|directorial|together|debut as"
)
_FILMS = r"movies?|films?|pictures?|roles?\b|starr?|together|direct|\bact(?:ed|ing|or|ress)?\b|appear|credits|played"
_OF_CAST = r"\bcast(?:ed)?\b|actors|actress|starr?(?:ed|ing|s)\b|who (?:acted|plays?|was in (?!charge))|characters"


def _guess(question: Question) -> list[str]:
    name = question.guess()
    return [name] if name else []


def _role(question: Question) -> str:
    match = _CHARACTER.search(question.text)
    if not match or not question.says(
        r"^\W*(?:who|which act|what act|name of the act|tell me who|can you tell me who|whom|the part|the role)"
    ):
        return ""
    role = match["role"].strip(" ,\"'")
    inside = any(spot.kind == "movie_person" and spot.text.lower() == role.lower() for spot in question.spots)
    return "" if inside or len(role) > 60 else role


def _oscar(question: Question, films: list[str], people: list[str]) -> list[str]:
    category = _category(question)
    won = "" if question.says(r"nominat|nominee|up for") else "eq(winner, true)"
    years = [year for year in question.years if 1928 <= year <= 2100]
    if years and category and not people and not (films and question.compares):
        shown = (
            "name"
            if _PEOPLE_AWARDS.search(category) and not question.says(r"^\W*(?:which|what) (?:movie|film)")
            else "film"
        )
        return [
            _awards("None", "None", _all(f"eq(year, {year})", f"eq(category, {quote(category)})", won), shown)
            for year in years[:1]
        ]
    spoken = question.says(r"\b(?:movies?|films?)\b")
    names = films if films and (spoken or len(films) >= len(people)) else people
    if not names and not years and (guessed := _guess(question)):
        films = names = guessed
    if not names:
        return []
    if names is films and not question.names("movie") and people and not spoken:
        names = people
    count = question.says(r"how many|number of|most|more|fewer|often|times|came out on top")
    statements = []
    for name in names[:3]:
        pair = (quote(name), "None") if name in films and names is films else ("None", quote(name))
        if count:
            statements.append(f"LEN {_awards(*pair, won or 'None')}")
        else:
            specific = category and category not in ("film", "movie", "picture")
            conditions = _all(f"eq(category, {quote(category)})" if specific else "", won)
            statements.append(
                _awards(
                    *pair,
                    conditions,
                    "name" if pair[1] == "None" and question.says(r"^\W*(?:who|which act)") else "category",
                )
            )
    return statements


def _category(question: Question) -> str:
    found = [match[1] for match in _CATEGORY.finditer(question.words)]
    strong = [one for one in found if one not in ("film", "movie")] or [
        one for one in found if question.says(rf"best {one}")
    ]
    return next((one for one in strong if find_category(one)), "")


def _awards(film: str, person: str, conditions: str, shown: str = "") -> str:
    return f"get_movie_person_oscar({film}, {person}, {conditions})" + (f'["{shown}"]' if shown else "")


def _all(*conditions: str) -> str:
    kept = [one for one in conditions if one]
    return "None" if not kept else kept[0] if len(kept) == 1 else f"[{', '.join(kept)}]"


def _filmography(question: Question, people: list[str]) -> list[str]:
    directed = question.says(r"direct|film-?maker|helm")
    function, job = ("get_movie_person_crew", 'eq(job, "Director")') if directed else ("get_movie_person_cast", "")
    together = len(people) > 1 and question.says(r"together|both|share|co-?star|each other|with")
    groups = [people[:3]] if together else [[name] for name in people[:3]]
    years = sorted(set(question.years))
    span = (
        []
        if not years
        else [f"eq(year, {years[0]})"]
        if len(years) == 1
        else [f"ge(year, {years[0]})", f"le(year, {years[-1]})"]
    )
    calls = [f"{function}(None, {listed(group)}, {_all(job, *span)})" for group in groups]
    if question.says(
        r"how many|number of|count|most (?:movies|films)|more (?:movies|films)|highest number|fewer"
    ) and not question.says(r"box office|gross"):
        return [f"LEN {call}" for call in calls]
    if question.says(r"box.?office|gross|earn|revenue|commercial|success"):
        return [f'{call} sort(None, -revenue)["title"][:5]' for call in calls]
    if question.says(r"rated|rating"):
        return [f'{call} sort(None, -rating)["title"][:5]' for call in calls]
    if question.says(r"first|debut|earliest|oldest"):
        return [f'{call} sort(None, release_date)["title"][:1]' for call in calls]
    if question.says(r"latest|last|newest|most recent|recent"):
        return [f'{call} sort(None, -release_date)["title"][:1]' for call in calls]
    return [f'ALL {call}["title"]' for call in calls]


def _cast(question: Question, films: list[str], people: list[str]) -> list[str]:
    if people and not question.compares:
        return [f'get_movie_person_cast({quote(films[0])}, {listed(people)}, None)["character"]']
    together = len(films) > 1 and question.says(r"both|common|shared?")
    groups = [films[:3]] if together else [[film] for film in films[:3]]
    calls = [f"get_movie_person_cast({listed(group)}, None, None)" for group in groups]
    if question.says(r"how many|number of|larger|bigger|more|size"):
        return [f"LEN {call}" for call in calls]
    return [f'ALL {call}["name"]' for call in calls]


def _of_year(question: Question) -> list[str]:
    if not question.years:
        return []
    if match := _GENRE.search(question.words):
        count = "LEN " if question.says(r"how many|number of|count") else "ALL "
        genre = re.sub(r"ies$", "y", match[1]) if match[1] != "sci-fi" else "science fiction"
        return [f'{count}get_year_movies("{question.years[0]}") where(eq(genres, {quote(genre)}))']
    key = "rating" if question.says(r"rated|rating|best") else "length" if question.says(r"longest") else "revenue"
    return [f'get_year_movies("{question.years[0]}") sort(None, -{key})["title"][:5]']
