"""Lines of prose that belong together: those on one passage, the passages of one article, a question and its twins."""

import re
from collections.abc import Sequence
from importlib.resources import files

from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading import briefs, filters

# Lines that nothing is taught: confidences are fitted on questions about them.
SAMPLE = files("lab.trainer") / "data" / "prose" / "sample.jsonl"

# A brief's name, the seed and its number, and a line's id: its brief's, how the question came about, and a number.
BRIEF = r"\d{1,12}-\d{1,12}"
LINE = rf"{BRIEF}-(?:q|open|swap|cut)\d+"


def brief(line: Pair) -> str:
    """The brief that a line was written from."""
    return line.id.rpartition("-")[0]


def article(line: Pair) -> str:
    """The article that a line's passage belongs to."""
    seed, _, index = brief(line).partition("-")
    return f"{seed}-{briefs.article(int(index))}"


def grouped(pair: Pair) -> Pair:
    """A pair in the group of its article, where its id is a line's of prose."""
    if pair.group or not re.fullmatch(LINE, pair.id):
        return pair
    return pair.model_copy(update={"group": f"prose:{article(pair)}"})


def telling(pair: Pair, others: Sequence[Pair], answer: str = "") -> list[Pair]:
    """Of other passages those of the same article that are sure not to answer.

    Of what no passage was made to lose the others may tell it: an `open` question is on a fact of theirs.

    Args:
        answer: of the question that a twin was made of; the pair's own where it has one.
    """
    if way(pair) == "open":
        return []
    answer = (pair.answer or answer).lower()
    return [
        other
        for other in others
        if article(other) == article(pair)
        and brief(other) != brief(pair)
        and not (answer and answer in f"{other.title}\n{other.passage}".lower())
    ]


def way(line: Pair) -> str:
    """How the question came about.

    It is `q` for a question with an answer, `open` for one on a fact that the passage does not tell, `swap` for one
    that names something else, `cut` for one whose sentence was taken out.
    """
    return line.id.rpartition("-")[2].rstrip("0123456789")


def original(line: Pair) -> str:
    """The id of the answered line that a twin was made of; a line's own where it is none."""
    return line.id.replace(f"-{way(line)}", "-q")


def cut(line: Pair) -> Pair | None:
    """An answered line over its passage without the answer's sentence; None where what is left still tells it."""
    rest = filters.without(line.passage, line.start, line.answer, line.title)
    return _twin(line, "cut", passage=rest) if rest else None


def swapped(line: Pair, spare: tuple[str, str]) -> Pair | None:
    """An answered line that asks about something else; None where it names nothing.

    Args:
        spare: a digit, and a name in place of one.
    """
    question = filters.swapped(line.question, line.passage, spare)
    return _twin(line, "swap", question=question) if question else None


def _twin(line: Pair, kind: str, **changes: str) -> Pair:
    identifier = line.id.replace("-q", f"-{kind}")
    return line.model_copy(update={"id": identifier, "answer": "", "start": -1, **changes})
