"""Questions over pages of one size that no cache has seen: what differs between two of them is time, not work."""

import random
from typing import Any

PAGES, PARAGRAPHS = 5, 30
KINDS = ("lighthouse", "mill", "bridge", "foundry", "observatory")


def question(seed: int) -> dict[str, Any]:
    """A request for `/answer`: five pages of some 9,000 characters, one of which says the year that is asked for."""
    chance = random.Random(seed)
    town = f"{_name(chance)} {_name(chance)}"
    pages = [_page(kind, town, chance) for kind in KINDS[:PAGES]]
    return {"query": f"in what year was the {KINDS[0]} of {town} opened?", "search_results": pages}


def _page(kind: str, town: str, chance: random.Random) -> dict[str, str]:
    lines = [f"The {kind} of {town} was opened in {chance.randrange(1700, 1980)} after {chance.randrange(2, 9)} years."]
    lines += [_paragraph(kind, chance) for _ in range(PARAGRAPHS)]
    body = "".join(f"<p>{line}</p>" for line in lines)
    html = (
        f"<html><head><title>{town}</title></head><body><main><h1>The {kind} of {town}</h1>{body}</main></body></html>"
    )
    return {"page_name": f"The {kind} of {town}", "page_url": f"https://example.org/{kind}", "page_result": html}


def _paragraph(kind: str, chance: random.Random) -> str:
    who, where = _name(chance), _name(chance)
    return (
        f"In {chance.randrange(1700, 1980)} {who} of {where} had {chance.randrange(2, 90)} people at the {kind}, "
        f"and paid {chance.randrange(200, 9_000)} crowns for stone from {_name(chance)}. A report to {_name(chance)} "
        f"calls it sound, but for a wall of {chance.randrange(3, 60)} metres that {_name(chance)} built anew."
    )


def _name(chance: random.Random) -> str:
    syllables = ("ar", "bel", "cor", "dun", "el", "fen", "gar", "hol", "is", "kir", "lan", "mor", "nes", "ost", "ver")
    return "".join(chance.choice(syllables) for _ in range(3)).capitalize()
