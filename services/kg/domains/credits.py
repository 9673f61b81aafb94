"""The people in the free text of awards: "Music and Lyric by A", "B featuring C", "D, producer; E"."""

import re

# What comes before a name: "Music and Lyric by", "Screenplay by", "Produced by".
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
IN_BRACKETS = re.compile(r"\s*\(([^()]*)\)\s*$")
_SUFFIX = re.compile(r",\s*(Jr|Sr|II|III|IV|M\.?D|Ph\.?D)\b\.?", re.IGNORECASE)
MAX_NAMES = 40
_NOT_A_NAME = frozenset(
    {"various artists", "various", "jr", "the", "and", "others", "unknown", "original cast", "soundtrack", "none"}
)


def _is_name(text: str) -> bool:
    return 1 < len(text) <= 80 and any(c.isalpha() for c in text) and text.casefold() not in _NOT_A_NAME


def nominees(text: str) -> list[str]:
    """The people of an Oscar nomination: "Music and Lyric by A and B", "C, Producer", "D, E and F, Producers"."""
    parts = _SPLIT.split(_SUFFIX.sub(r" \1", text)[:2_000])
    names = (_CREDIT.sub("", part.strip(" .")).strip() for part in parts)
    people = (name for name in names if _is_name(name) and not (_ROLE.fullmatch(name) or _CREW_ROLE.fullmatch(name)))
    return list(dict.fromkeys(people))[:MAX_NAMES]


def performers(text: str) -> list[str]:
    """The artists of a credit; the whole of a list comes first, since it may be a band: "Earth, Wind & Fire"."""
    return [name for name, _ in credited(text)]


def credited(text: str) -> list[tuple[str, bool]]:
    """Names of a credit, each with whether it is doubtful, a single word of a list: "Simon" of "Simon & Garfunkel"."""
    names: dict[str, bool] = {}
    for part in _FEATURING.split(_SUFFIX.sub(r" \1", text)[:2_000]):
        whole = part.strip(" ,.()")
        if not whole:
            continue
        pieces = [piece.strip() for piece in _LIST.split(whole)]
        named = [piece for piece in pieces if not _ROLE.fullmatch(piece)]
        if len(named) == len(pieces):
            names[whole] = False
        for name in named:
            names.setdefault(name, " " not in name)
    return [(name, doubtful) for name, doubtful in names.items() if _is_name(name)][:MAX_NAMES]


def workers(text: str) -> list[str]:
    """The people of a Grammy's `workers`, the performer in brackets first: "A & B, producers; C, engineer (D)"."""
    names: list[str] = []
    rest = text[:4_000]
    if performer := IN_BRACKETS.search(rest):
        names += performers(performer[1])
        rest = rest[: performer.start()]
    for group in rest.split(";"):
        for piece in _LIST.split(_SUFFIX.sub(r" \1", group)):
            name = piece.strip(" .")
            if _is_name(name) and not _ROLE.search(name.split("/")[0]):
                names.append(name)
    return list(dict.fromkeys(names))[:MAX_NAMES]
