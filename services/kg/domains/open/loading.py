"""Encyclopedia entries, whose summaries and infoboxes are wikitext, which a mapping cannot describe."""

from collections.abc import Mapping

from services.kg.domains.open.wikitext import facts, plain_text
from services.kg.load.errors import BadRow
from services.kg.load.transforms import Transform
from services.kg.load.values import text


def _infobox(value: object) -> list[dict[str, str]]:
    """The facts of an infobox, without markup."""
    if value is None or value == "":
        return []
    if not isinstance(value, Mapping):
        raise BadRow("", "is no JSON object")
    return [{"key": key, "value": one} for key, one in facts(value)]


def _wikitext(value: object) -> str | None:
    plain = text(value)
    return plain_text(plain) if plain else None


TRANSFORMS: dict[str, Transform] = {"infobox": _infobox, "wikitext": _wikitext}
