"""What a draft knows of the words of names: units, measures, synonyms, who does what; and singular and plural."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from services.kg.definition.folder import Folder

if TYPE_CHECKING:
    import inflect


def units() -> dict[str, dict[str, Any]]:
    """By the last word of a name, how values are written."""
    return _table("units.yaml")


def words_of_unit(name: str) -> list[str]:
    """What people say for a unit, by the last word of a column's name."""
    known = units().get(name, {})
    return list(known.get("words", [known["unit"]] if "unit" in known else []))


def synonyms(name: str) -> list[str]:
    """Other words for what has this name: client of `customer`."""
    words = name.replace("_", " ")
    return [other for group in _synonyms() if words in group for other in group if other != words]


def spoken(key: str) -> dict[str, list[str]]:
    """By a key's last words: `words` that ask for it, `also` what asks nothing, adjectives of `more` and `less`."""
    known, words = measures(), key.split("_")
    inner = words[1:-1]
    # What is open to the public leads nowhere.
    telling = (
        one for one in words if one in words_of_names("telling") and not (one in inner and one in ("from", "to"))
    )
    parts = list(telling) + ["_".join(words[first:]) for first in range(len(words))]
    verbs = _verbs_of_doer(words[-1])
    return next((known[one] for one in parts if one in known), {"words": verbs} if verbs else {})


def _verbs_of_doer(noun: str) -> list[str]:
    """What people do who are called so: visitors visit, riders ride."""
    stem = noun[:-2]
    return [stem, f"{stem}e"] if noun in words_of_names("persons") and noun.endswith(("er", "or")) else []


@cache
def _synonyms() -> list[list[str]]:
    groups = cast(list[str], Folder(files("lab.draft")).content("synonyms.yaml").data)
    return [group.split(", ") for group in groups]


@cache
def measures() -> dict[str, dict[str, list[str]]]:
    return {name: said for names, said in _table("measures.yaml").items() for name in names.split(", ")}


@cache
def words_of_names(kind: str) -> frozenset[str]:
    """Words of names: `done` are of dates, `vague` ask for no key, `telling` tell more than the last one."""
    return frozenset(str(_table("names.yaml")[kind]).split())


@cache
def _table(name: str) -> dict[str, dict[str, Any]]:
    return cast(dict[str, dict[str, Any]], Folder(files("lab.draft")).content(name).data)


@cache
def _english() -> "inflect.engine":
    # Its import takes seconds, and who only asks drafts nothing.
    import inflect

    return inflect.engine()


def singular(name: str) -> str:
    """`countries` as `country`; a word that is none stays."""
    head, _, last = name.rpartition("_")
    one = _english().singular_noun(last) if last else False
    return f"{head}_{one}".lstrip("_") if one else name


def plural(name: str) -> str:
    return str(_english().plural_noun(name.replace("_", " ")))
