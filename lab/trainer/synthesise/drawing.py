"""Values by chance for rows and questions: the recipes of a phrasebook."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from typing import Any

from lab.trainer.synthesise.names import Names
from lab.trainer.synthesise.phrases import Phrasebook, Recipe
from lab.trainer.synthesise.phrasing import Phrasing
from lab.trainer.synthesise.times import drawn_time

Slots = Mapping[str, Any]
_WHOLE = re.compile(r"\{([\w.]+)\}")
# A name that is taken is drawn again, at most so often.
TRIES = 200
# Of names with an article so many are said without.
BARE = 0.15


class Thing:
    """A row by the names of its columns; as text it is what it is called."""

    __slots__ = ("said", "values")

    def __init__(self, values: Mapping[str, Any], said: str = "") -> None:
        self.values = dict(values)
        self.said = said or str(values.get("name", next(iter(values.values()), "")))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"{name}; there are {', '.join(self.values)}") from None

    def __str__(self) -> str:
        return self.said

    def __format__(self, spec: str) -> str:
        return format(self.said, spec)


@dataclass(slots=True)
class Drawing:
    """Draws values for one domain.

    Args:
        book: of the domain.
        last: the last day that the world knows.
        rows: of the world so far, by table, hidden columns included.
    """

    book: Phrasebook
    phrasing: Phrasing
    names: Names
    last: date
    rows: dict[str, list[Thing]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _count: int = 0

    def draw(self, recipe: Recipe, slots: Slots) -> Any:
        """A value of a recipe.

        Raises:
            ValueError: the recipe is none.
        """
        if isinstance(recipe, str):
            return fill(recipe, slots)
        if not isinstance(recipe, dict):
            return recipe
        if self.phrasing.chance(recipe.get("missing", 0.0)):
            return None
        for kind, make in RECIPES.items():
            if kind in recipe:
                return make(self, recipe, slots)
        raise ValueError(f"{recipe} is no recipe; there are {', '.join(RECIPES)}")

    def pick(self, options: Any) -> Any:
        """One of some values, or of a list of the phrasebook; its alternatives are settled."""
        if isinstance(options, str):
            options = self.book.lists[options]
        return self.settled(self.phrasing.pick(options))

    def settled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return Thing({key: self.settled(one) for key, one in value.items()})
        return self.phrasing.say(value) if isinstance(value, str) and "[" in value else value

    def called(self, kind: str) -> str:
        """A new name for a thing of a kind.

        Raises:
            ValueError: nothing says how such things are called, or all that they can be called is taken.
        """
        if kind not in self.book.names:
            raise ValueError(f"names: nothing says how {kind} is called")
        for _ in range(TRIES):
            name = self.names.called(self.phrasing.pick(self.book.names[kind]))
            if name.lower() not in self._taken:
                self._taken.add(name.lower())
                return name
        raise ValueError(f"names: all that {kind} can be called is taken")

    def identifier(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def matching(self, table: str, where: Mapping[str, Any]) -> list[Thing]:
        """Rows of a table that have these values."""
        return [one for one in self.rows[table] if all(one.values[key] == value for key, value in where.items())]


def fill(template: str, slots: Slots) -> Any:
    """A template with its slots; one that is but a slot gives the value itself."""
    path = _path(template)
    if not path:
        return template.format(**slots) if "{" in template else template
    value = slots[path[0]]
    for part in path[1:]:
        value = getattr(value, part)
    return value


@cache
def _path(template: str) -> tuple[str, ...]:
    """The slot and the attributes that a template is, if it is nothing else."""
    whole = _WHOLE.fullmatch(template)
    return tuple(whole[1].split(".")) if whole else ()


def _number(drawing: Drawing, value: Any, slots: Slots) -> int:
    return int(drawing.draw(value, slots))


def _int(d: Drawing, recipe: Recipe, slots: Slots) -> int:
    low, high = (_number(d, value, slots) for value in recipe["int"])
    return d.phrasing.between(low, max(low, high))


def _real(d: Drawing, recipe: Recipe, slots: Slots) -> float:
    low, high, places = recipe["real"]
    return float(round(d.phrasing.rng.uniform(low, high), places))


def _power(d: Drawing, recipe: Recipe, slots: Slots) -> int:
    """Ten to some power: sizes that differ widely, the larger ones mostly round."""
    value = int(10 ** d.phrasing.rng.uniform(*recipe["power"]))
    return value // 100_000 * 100_000 if value > 1_000_000 and d.phrasing.chance(0.6) else value


def _in_year(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    year = _number(d, recipe["in_year"], slots)
    return d.phrasing.day(year, year).isoformat()


def _written_day(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    day = d.phrasing.day(*recipe["written_day"])
    return f"{day:%B} {day.day}, {day.year}"


def _ago(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    low, high = recipe["ago"]
    return (d.last - timedelta(days=d.phrasing.between(low, high))).isoformat()


def _before(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    day, days = (d.draw(value, slots) for value in recipe["before"])
    return (date.fromisoformat(str(day)) - timedelta(days=int(days))).isoformat()


def _either(d: Drawing, recipe: Recipe, slots: Slots) -> Any:
    share, one, other = recipe["either"]
    return d.draw(one if d.phrasing.chance(share) else other, slots)


def _text(d: Drawing, recipe: Recipe, slots: Slots) -> str | None:
    value = fill(recipe["text"], slots)
    return None if isinstance(value, int | float) else str(value)


def _numeric(d: Drawing, recipe: Recipe, slots: Slots) -> float | None:
    value = fill(recipe["number"], slots)
    return value if isinstance(value, int | float) else None


def _row(d: Drawing, recipe: Recipe, slots: Slots) -> Thing:
    things = d.matching(recipe["row"], recipe.get("where", {}))
    return d.phrasing.pick(things[: recipe["among"]] if "among" in recipe else things)


def _some(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    """Several of a list, as one text."""
    low, high = recipe.get("count", (1, 2))
    return ", ".join(d.phrasing.some(d.book.lists[recipe["some"]], d.phrasing.between(low, high)))


def _time(d: Drawing, recipe: Recipe, slots: Slots) -> Any:
    day = fill(recipe["of"], slots) if "of" in recipe else None
    today = slots.get("today", d.last)
    return drawn_time(d.phrasing, recipe["time"], today, date.fromisoformat(str(day)[:10]) if day else None)


def _ordinal(d: Drawing, recipe: Recipe, slots: Slots) -> str:
    number = _number(d, recipe["ordinal"], slots)
    tail = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{tail}"


RECIPES: dict[str, Callable[[Drawing, Recipe, Slots], Any]] = {
    "id": lambda d, recipe, slots: d.identifier(recipe["id"]),
    "name": lambda d, recipe, slots: d.called(str(fill(recipe["name"], slots))),
    "words": lambda d, recipe, slots: d.names.called(d.pick((recipe["words"],))),
    "int": _int,
    "real": _real,
    "power": _power,
    "price": lambda d, recipe, slots: d.phrasing.price(),
    "day": lambda d, recipe, slots: d.phrasing.day(*recipe["day"]).isoformat(),
    "written_day": _written_day,
    "in_year": _in_year,
    "ago": _ago,
    "before": _before,
    "plus": lambda d, recipe, slots: sum(_number(d, value, slots) for value in recipe["plus"]),
    # With marks between its thousands, and its unit.
    "written": lambda d, recipe, slots: f"{d.draw(recipe['written'], slots):,}{recipe.get('unit', '')}",
    "chance": lambda d, recipe, slots: d.phrasing.chance(recipe["chance"]),
    "pick": lambda d, recipe, slots: d.draw(d.pick(recipe["pick"]), slots),
    "either": _either,
    "if": lambda d, recipe, slots: d.draw(recipe["then"], slots) if fill(recipe["if"], slots) else None,
    "text": _text,
    "number": _numeric,
    "last_word": lambda d, recipe, slots: str(fill(recipe["last_word"], slots)).rsplit(" ", 1)[-1],
    "row": _row,
    "some": _some,
    "time": _time,
    "ordinal": _ordinal,
    "fact": lambda d, recipe, slots: d.draw(slots[recipe["fact"]].fact.value, {}),
}


def chosen(phrasing: Phrasing, things: Sequence[Thing]) -> Thing:
    """One of some things, called by any of its columns that begin with `said`, now and then without its article."""
    thing = phrasing.pick(things)
    ways = [str(value) for column, value in thing.values.items() if column.startswith("said") and value]
    name = phrasing.pick(ways) if ways else str(thing)
    return Thing(thing.values, name.removeprefix("The ") if phrasing.chance(BARE) else name)
