"""The people that the free text of awards names: "Music and Lyric by A", "B featuring C", "D, producer; E"."""

import re

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
    return [name for name, _ in credited(text)]


def credited(text: str) -> list[tuple[str, bool]]:
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
    performer = IN_BRACKETS.search(rest)
    if performer:
        found += performers(performer[1])
        rest = rest[: performer.start()]
    for group in rest.split(";"):
        for piece in _LIST.split(_SUFFIX.sub(r" \1", group)):
            name = piece.strip(" .")
            if _is_name(name) and not _ROLE.search(name.split("/")[0]):
                found.append(name)
    return list(dict.fromkeys(found))[:MAX_NAMES]
