"""Times as people say them beside what programs write for them; the pairs are data, in `times.yaml`."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files

import yaml

from lab.trainer.synthesise.phrasing import MONTHS, Phrasing
from services.kit.text.vocabulary import WEEKDAY_NAMES

# Days before the question's that are spoken of.
BACK = (3, 60)
ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Time:
    """A time in a question, and in its program."""

    words: str
    program: str

    def __str__(self) -> str:
        return self.words

    def __format__(self, spec: str) -> str:
        return self.words


class Day:
    """What templates may say of a day."""

    def __init__(self, day: date) -> None:
        self.iso = day.isoformat()
        self.day, self.month, self.year = day.day, day.month, day.year
        self.ym = f"{day:%Y-%m}"
        self.said = MONTHS[day.month - 1].lower()
        self.quarter = (day.month - 1) // 3 + 1
        self.ordinal = ORDINALS[self.quarter - 1]


@cache
def _forms() -> dict[str, list[dict[str, str]]]:
    text = (files(__package__) / "times.yaml").read_text(encoding="utf-8")
    forms: dict[str, list[dict[str, str]]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return forms


def drawn_time(phrasing: Phrasing, kind: str, today: date, day: date | None) -> Time:
    """A time of a kind.

    Args:
        kind: a section of `times.yaml`.
        today: of the question.
        day: what is spoken of; a weekday before the question by default.

    Raises:
        ValueError: there is no such kind.
    """
    forms = _forms()
    if kind not in forms:
        raise ValueError(f"{kind} is no kind of time; there are {', '.join(forms)}")
    spoken = day or trading(today - timedelta(days=phrasing.between(*BACK)))
    last_month = today.replace(day=1) - timedelta(days=1)
    slots = {"d": Day(spoken), "m": Day(last_month), "w": WEEKDAY_NAMES[phrasing.between(0, 4)]}
    form = phrasing.pick(forms[kind])
    return Time(phrasing.say(form["words"], **slots), form["program"].format(**slots))


def trading(day: date) -> date:
    """The day, or the Friday before it."""
    return day - timedelta(days=max(0, day.weekday() - 4))
