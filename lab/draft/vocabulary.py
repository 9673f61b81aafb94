"""The vocabulary of names, from the YAML files beside: units, measures, synonyms, deeds; and singular and plural."""

from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from services.kg.definition.folder import Folder
from services.kg.language.catalogue import CURRENCY
from services.kit.encoder import bundled_model

if TYPE_CHECKING:
    import inflect

# Shorter words are no verbs.
MIN_VERB = 4
# How nouns end that say what somebody does.
DOERS = ("er", "or")


def units() -> dict[str, dict[str, Any]]:
    """By the last word of a name, how its values are written."""
    return _table("units.yaml")


def unit_of_words(last: str, others: Collection[str]) -> dict[str, Any]:
    """How values are written, by the last word of a name and its other words, which settle what is ambiguous."""
    unit = units().get(last, {})
    return next((other for word, other in unit.get("of", {}).items() if word in others), unit)


def words_of_unit(unit: dict[str, Any]) -> list[str]:
    """What people say for a unit."""
    return list(unit.get("words", [unit["unit"]] if "unit" in unit else []))


def synonyms(name: str) -> list[str]:
    """Other words for a name: client of `customer`."""
    words = name.replace("_", " ")
    return [other for group in _synonyms() if words in group for other in group if other != words]


def phrases_of(key: str, *, of_persons: bool = False) -> dict[str, list[str]]:
    """By a key's last words: `words` that ask for it, `also` what asks nothing, adjectives of `more` and `less`.

    Args:
        of_persons: whether its values are names of persons.
    """
    words = key.split("_")
    inner = words[1:-1]
    # "Open to the public" leads nowhere.
    telling = (
        one for one in words if one in words_of_names("telling") and not (one in inner and one in ("from", "to"))
    )
    parts = list(telling) + ["_".join(words[first:]) for first in range(len(words))]
    verbs = _verbs_of_doer(words[-1], of_persons=of_persons)
    return next((measures()[one] for one in parts if one in measures()), {"words": verbs} if verbs else {})


def _verbs_of_doer(noun: str, *, of_persons: bool) -> list[str]:
    """The verb of those who are called so: visitors visit, riders ride."""
    does = (of_persons or noun in words_of_names("persons")) and noun.endswith(DOERS)
    return english_of((noun[:-2], noun[:-1])) if does else []


@cache
def usual_words() -> frozenset[str]:
    """Usual words of English: those that the bundled encoder's tokenizer keeps whole; none without its package."""
    try:
        folder = bundled_model()
    except ValueError:
        return frozenset()
    return frozenset((folder / "vocab.txt").read_text(encoding="utf-8").split())


def english_of(forms: Iterable[str]) -> list[str]:
    """The usual words among what may be one; all where none is, since one of them may be a rare one."""
    forms = list(forms)
    return [one for one in forms if one in usual_words()] or forms


def compounds(name: str) -> list[str]:
    """A name with a word that is two usual ones apart: on call of `oncall`; none where it has none."""
    words = name.split("_")
    for number, word in enumerate(words):
        halves = ((word[:at], word[at:]) for at in range(2, len(word) - 2))
        parts = [one for one in halves if word not in usual_words() and usual_words().issuperset(one)]
        if len(parts) == 1:
            return [" ".join((*words[:number], *parts[0], *words[number + 1 :]))]
    return []


def currency(word: str) -> str:
    """The currency that a word is; empty for other units."""
    unit = units().get(word, {})
    own = "USD" if unit.get("type") == "money" else str(unit.get("unit", ""))
    return own if CURRENCY.fullmatch(own) else ""


@cache
def _synonyms() -> list[list[str]]:
    groups = cast(list[str], Folder(files("lab.draft")).content("synonyms.yaml").data)
    return [group.split(", ") for group in groups]


def abbreviations(dotted: Collection[str]) -> dict[str, str]:
    """What headers shorten, with the whole words.

    Args:
        dotted: words of the header with a dot.
    """
    table = _table("abbreviations.yaml")
    return table["always"] | {short: whole for short, whole in table["dotted"].items() if short in dotted}


@cache
def measures() -> dict[str, dict[str, list[str]]]:
    return {name: phrases for names, phrases in _table("measures.yaml").items() for name in names.split(", ")}


def deeds(noun: str) -> list[str]:
    """The verbs that a noun of a deed may come from: `generate` of generation, `ship` of shipment."""
    ending = next((one for one in _table("deeds.yaml") if noun.endswith(one)), "")
    verbs = (f"{noun.removesuffix(ending)}{one}" for one in _table("deeds.yaml").get(ending, ()))
    return english_of(one for one in verbs if len(one) >= MIN_VERB)


@cache
def words_of_names(kind: str) -> frozenset[str]:
    """The words of a kind in `names.yaml`."""
    return frozenset(str(_table("names.yaml")[kind]).split())


def period_of(word: str) -> str:
    """The month of monthly; empty for other words."""
    return str(_table("names.yaml")["periods"].get(word, ""))


@cache
def _table(name: str) -> dict[str, dict[str, Any]]:
    return cast(dict[str, dict[str, Any]], Folder(files("lab.draft")).content(name).data)


@cache
def _english() -> "inflect.engine":
    # The import takes seconds, and only drafts need it.
    import inflect

    return inflect.engine()


def singular(name: str) -> str:
    """`countries` as `country`; a word that is no plural as it is."""
    head, _, last = name.rpartition("_")
    one = _english().singular_noun(last) if last else False
    return f"{head}_{one}".lstrip("_") if one else name


def plural(name: str) -> str:
    words = name.replace("_", " ")
    first, _, last = words.rpartition(" ")
    # Parts used are several already.
    is_plural = last in words_of_names("uncounted") or (last.endswith("ed") and singular(first) != first)
    return words if is_plural else str(_english().plural_noun(words))
