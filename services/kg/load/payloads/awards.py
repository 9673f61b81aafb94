"""Oscar and Grammy nominations, and the people that their free text names."""

import re

from services.kg.domains.movie.oscars import category_key as oscar_key
from services.kg.domains.movie.tables import oscar, oscar_nominee
from services.kg.domains.music import grammys
from services.kg.domains.music.tables import grammy, grammy_artist
from services.kg.load.graph import Graph
from services.kg.load.identity import grammy_id, oscar_id, slug

# "Music and Lyric by A", "Screenplay by B", "Produced by C": what comes before a name.
_CREDIT = re.compile(
    r"^(?:(?:[\w./-]+\s+){0,6}?by\s+|(?:art direction|set decoration|production design|interior decoration"
    r"|photographic effects|sound effects|music|lyrics?|adaptation score|to)\s*(?:by\s+|:\s*))",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"\b(?:producers?|directors?|composers?|artists?|conductors?|engineers?|mixers?|songwriters?|soloists?|arrangers?"
    r"|musical director|sound director|head of department|art directors?|lyricists?|performers?|vocalists?"
    r"|choir|chorus|orchestra|ensemble|remixers?|authors?|notes|mastering|surround|video|album|narrators?|librettist"
    r"|compilation)\b",
    re.IGNORECASE,
)
_CREW_ROLE = re.compile(
    r"(?:(?:co-?|executive )?producers?|music|lyrics?|song|score|story|screenplay|adaptation|orchestral score"
    r"|(?:musical |sound |music )?directors?"
    r"|[\w .-]*(?:department|studio|company|corporation|corp|inc|ltd)[\w .-]*)\.?",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\s*;\s*|\s*,\s*(?:and\s+)?|\s+and\s+|\s+&\s+", re.IGNORECASE)
_FEATURING = re.compile(
    r"\s+(?:featuring|feat\.?|ft\.?|with|starring|duet with|vs\.?)\s+|\s*;\s*|\s*/\s*", re.IGNORECASE
)
_LIST = re.compile(r"\s*,\s*(?:and\s+)?|\s+&\s+|\s+and\s+", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\s*\(([^()]*)\)\s*$")
_SUFFIX = re.compile(r",\s*(Jr|Sr|II|III|IV|M\.?D|Ph\.?D)\b\.?", re.IGNORECASE)
MAX_NAMES = 40
# The 76th ceremony was held in 2004; they are yearly since 1935.
_BEFORE_FIRST = 1928
# Awards whose nominee is a person or a band, not a song.
_FOR_PEOPLE = re.compile(r"new artist|producer of the year|remixer of the year|classical producer", re.IGNORECASE)
_NOT_A_NAME = frozenset(
    {"various artists", "various", "jr", "the", "and", "others", "unknown", "original cast", "soundtrack", "none"}
)


def _is_name(text: str) -> bool:
    return 1 < len(text) <= 80 and any(c.isalpha() for c in text) and text.casefold() not in _NOT_A_NAME


def nominees(text: str) -> list[str]:
    """The people of an Oscar nomination: "Music and Lyric by A and B", "C, Producer", "D, E and F, Producers"."""
    found: list[str] = []
    for part in _SPLIT.split(_SUFFIX.sub(r" \1", text)[:2_000]):
        name = _CREDIT.sub("", part.strip(" .")).strip()
        if _is_name(name) and not _ROLE.fullmatch(name) and not _CREW_ROLE.fullmatch(name):
            found.append(name)
    return list(dict.fromkeys(found))[:MAX_NAMES]


def performers(text: str) -> list[str]:
    """The artists of a credit: "X featuring Y & Z" are three, and the whole as well, for it may be a band's name.

    The whole comes first: "Earth, Wind & Fire", "Macklemore & Ryan Lewis".
    """
    return [name for name, _ in _credited(text)]


def _credited(text: str) -> list[tuple[str, bool]]:
    """Names of a credit, and whether each is one of a list and perhaps no name: "Simon & Garfunkel" is no Simon."""
    found: dict[str, bool] = {}
    for part in _FEATURING.split(_SUFFIX.sub(r" \1", text)[:2_000]):
        whole = part.strip(" ,.()")
        if not whole:
            continue
        pieces = [piece.strip() for piece in _LIST.split(whole)]
        named = [piece for piece in pieces if not _ROLE.fullmatch(piece)]
        if len(named) == len(pieces):
            found[whole] = False
        for name in named:
            found.setdefault(name, " " not in name)
    return [(name, doubtful) for name, doubtful in found.items() if _is_name(name)][:MAX_NAMES]


def workers(text: str) -> list[str]:
    """The people of a Grammy's `workers`: "A & B, producers; C, engineer (D)"."""
    found: list[str] = []
    rest = text[:4_000]
    performer = _IN_BRACKETS.search(rest)
    if performer:
        found += performers(performer[1])
        rest = rest[: performer.start()]
    for group in rest.split(";"):
        for piece in _LIST.split(_SUFFIX.sub(r" \1", group)):
            name = piece.strip(" .")
            if _is_name(name) and not _ROLE.search(name.split("/")[0]):
                found.append(name)
    return list(dict.fromkeys(found))[:MAX_NAMES]


def put_oscar(
    graph: Graph,
    *,
    year: int,
    ceremony: int | None,
    category: str,
    nominee: str | None,
    film: str | None,
    winner: bool,
    film_year: int | None = None,
    movie_id: str | None = None,
    occurrence: int = 1,
) -> str:
    """One nomination, tied to the film by title and year and to its people by name."""
    key = oscar_key(category, year)
    number = ceremony or year - _BEFORE_FIRST
    identifier = oscar_id(number, key, film, nominee) + (f"/{occurrence}" if occurrence > 1 else "")
    if film and not movie_id:
        movie_id = graph.film(film, year=film_year or year - 1)
    graph.put(
        oscar,
        oscar_id=identifier,
        year=year,
        film_year=film_year or year - 1,
        ceremony=number,
        category=category.upper() if category.islower() else category,
        category_key=key,
        nominee=nominee,
        film=film,
        winner=winner,
        movie_id=movie_id,
    )
    # There the nominee is a country.
    people = () if key == "international_feature" else nominees(nominee or "")
    for name in people:
        graph.put(oscar_nominee, oscar_id=identifier, person_id=graph.make_person(name, weak=True))
    return identifier


def put_grammy(
    graph: Graph,
    *,
    year: int,
    category: str,
    nominee: str,
    winner: bool,
    artist: str | None = None,
    workers_text: str | None = None,
    weak: bool = False,
) -> str:
    """One award, tied to everyone whom it names, each by exact name; of `weak` rows others' spelling stays."""
    key = grammys.category_key(category)
    identifier = grammy_id(year, key, nominee)
    for_people = _FOR_PEOPLE.search(category) is not None
    in_brackets = _IN_BRACKETS.search(workers_text or "")
    by = performers(artist or (in_brackets[1] if in_brackets else ""))
    # A source that names nobody leaves the work to one that does.
    work = graph.make_work(nominee, by[0]) if by and not for_people else None
    graph.put(
        grammy,
        weak=weak,
        grammy_id=identifier,
        year=year,
        edition=grammys.edition(year),
        category=category,
        category_key=key,
        nominee=nominee,
        artist=artist,
        workers=workers_text,
        winner=winner,
        work_id=work,
    )
    names: list[tuple[str, bool]] = []
    if for_people:
        names += _credited(nominee)
    if artist:
        names += _credited(artist)
    if workers_text:
        names += [(name, " " not in name) for name in workers(workers_text)]
    seen: set[str] = set()
    for name, doubtful in names:
        if slug(name) in seen or (doubtful and not graph.knows_artist(name)):
            continue
        seen.add(slug(name))
        graph.put(grammy_artist, grammy_id=identifier, artist_id=graph.make_artist(name, weak=True))
    return identifier
