"""What rows of the made-up world are made for: other rows, years, days of trading, games, facts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from lab.trainer.synthesise.drawing import Drawing, Slots, Thing, fill

# A price's day: how far it opens from the close before, and closes from its opening.
OPENS, CLOSES = (0.97, 1.03), (0.96, 1.045)
SATURDAY = 5
Source = Callable[[Drawing, Mapping[str, Any], Slots], Iterable[Any]]


def items(drawing: Drawing, spec: Any, slots: Slots) -> Iterator[Any]:
    """The items of a source: the rows of a table by its name, or what a mapping says.

    Raises:
        ValueError: there is no such source.
    """
    if isinstance(spec, str):
        yield from drawing.rows[spec]
        return
    for kind, source in SOURCES.items():
        if kind in spec:
            yield from source(drawing, spec, slots)
            return
    raise ValueError(f"{spec} is no source; there are {', '.join(SOURCES)}")


def _some(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[Any]:
    """Several of a list of the phrasebook."""
    low, high = spec["count"]
    for one in d.phrasing.some(d.book.lists[spec["some"]], d.phrasing.between(low, high)):
        yield d.settled(one)


def _weeks(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[str]:
    """The Saturdays of the last weeks."""
    saturday = d.last - timedelta(days=(d.last.weekday() - SATURDAY) % 7)
    for week in range(spec["weeks"]):
        yield (saturday - timedelta(days=7 * week)).isoformat()


def _quarters(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[str]:
    """Days a quarter apart, the last of them some weeks before the world's last day."""
    low, high = spec["quarters"]
    last = d.last - timedelta(days=d.phrasing.between(3, 80))
    for number in range(d.phrasing.between(low, high)):
        yield (last - timedelta(days=91 * number)).isoformat()


def _prices(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[Thing]:
    """A walk through the last trading days."""
    v = d.phrasing
    level = v.price() + 0.5
    for back in range(spec["prices"], -1, -1):
        day = d.last - timedelta(days=back)
        if day.weekday() >= SATURDAY:
            continue
        start = round(level * v.rng.uniform(*OPENS), 2)
        level = max(0.1, round(start * v.rng.uniform(*CLOSES), 2))
        yield Thing(
            {
                "date": day.isoformat(),
                "open": start,
                "high": round(max(start, level) * 1.01, 2),
                "low": round(min(start, level) * 0.99, 2),
                "close": level,
                "volume": v.between(100, 90_000) * 100,
            }
        )


def _games(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[Thing]:
    """Rounds in which all teams of a kind play, each game from both sides; those ahead have no result."""
    v = d.phrasing
    teams = d.matching(spec["games"], spec["where"])
    every, ahead = spec["every"], spec.get("ahead", 0)
    number = 0
    for turn in range(spec["rounds"]):
        monday = d.last + timedelta(days=every * (ahead - spec["rounds"] + turn))
        order = v.some(teams, len(teams))
        for home, away in zip(order[::2], order[1::2], strict=False):
            number += 1
            day = monday + timedelta(days=v.between(1, every - 2))
            yield from _sides(d, spec, number, day, home, away)


def _sides(d: Drawing, spec: Mapping[str, Any], number: int, day: date, home: Thing, away: Thing) -> Iterator[Thing]:
    v = d.phrasing
    mine, theirs = (v.between(*spec["score"]) for _ in range(2))
    if mine == theirs and not spec.get("draws", False):
        mine += v.pick((-1, 1, 2, 3))
    played = day < d.last
    shared = {key: d.draw(recipe, {}) for key, recipe in spec.get("shared", {}).items()}
    for team, other, venue, scored, conceded in (
        (home, away, "Home", mine, theirs),
        (away, home, "Away", theirs, mine),
    ):
        result = "W" if scored > conceded else "L" if scored < conceded else "D"
        yield Thing(
            {
                **shared,
                "number": f"{day:%Y%m%d}{number:04d}",
                "team": team,
                "other": other,
                "date": day.isoformat(),
                "weekday": f"{day:%a}",
                "venue": venue,
                "played": played,
                "result": result if played else None,
                "scored": scored if played else None,
                "conceded": conceded if played else None,
            }
        )


def _facts(d: Drawing, spec: Mapping[str, Any], slots: Slots) -> Iterator[Thing]:
    """The facts of a kind of thing."""
    for number, (key, fact) in enumerate(d.book.facts[fill(spec["facts"], slots)].items()):
        yield Thing({"key": fact.stored or key, "fact": fact, "order": number})


SOURCES: dict[str, Source] = {
    "rows": lambda d, spec, slots: d.matching(spec["rows"], spec["where"]),
    "some": _some,
    "years": lambda d, spec, slots: range(spec["years"][0], spec["years"][1] + 1),
    "range": lambda d, spec, slots: range(spec["range"][0], spec["range"][1] + 1),
    "weeks": _weeks,
    "quarters": _quarters,
    "prices": _prices,
    "games": _games,
    "facts": _facts,
}
