"""Which lines of prose belong together: those on one passage, and the passages of one article."""

from collections.abc import Sequence
from importlib.resources import files

from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading import briefs, filters

# Lines that nothing is taught: confidences are fitted on questions about them.
SAMPLE = files("lab.trainer") / "data" / "prose" / "sample.jsonl"


def brief(pair: Pair) -> str:
    """The brief that a line was written from."""
    return pair.id.rpartition("-")[0]


def article(pair: Pair) -> str:
    """The article that a line's passage belongs to."""
    seed, _, index = brief(pair).partition("-")
    return f"{seed}-{briefs.article(int(index))}"


def telling(pair: Pair, others: Sequence[Pair], answer: str = "") -> list[Pair]:
    """Of other passages those of the same article that are sure not to answer.

    Of what no passage was made to lose the others may tell it: an `open` question is on a fact of theirs.

    Args:
        answer: of the question that a twin was made of; the pair's own where it has one.
    """
    if way(pair) in ("open", "near"):
        return []
    answer = (pair.answer or answer).lower()
    return [
        other
        for other in others
        if article(other) == article(pair)
        and brief(other) != brief(pair)
        and not (answer and answer in f"{other.title}\n{other.passage}".lower())
    ]


def way(pair: Pair) -> str:
    """How the question came about: `q`, `open`, `near`, `swap` or `cut`."""
    return pair.id.rpartition("-")[2].rstrip("0123456789")


def cut(pair: Pair) -> Pair | None:
    """An answered line over its passage without the answer's sentence; None where what is left still tells it."""
    rest = filters.without(pair.passage, pair.start, pair.answer, pair.title)
    return _twin(pair, "cut", passage=rest) if rest else None


def swapped(pair: Pair, spare: tuple[str, str]) -> Pair | None:
    """An answered line that asks about another number or name; None where it names none."""
    question = filters.swapped(pair.question, pair.passage, spare)
    return _twin(pair, "swap", question=question) if question else None


def _twin(pair: Pair, kind: str, **changes: str) -> Pair:
    return pair.model_copy(update={"id": pair.id.replace("-q", f"-{kind}"), "answer": "", "start": -1, **changes})
