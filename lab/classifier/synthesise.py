"""The training set: questions written from templates and real entities, the same at every run.

    python -m lab.classifier.synthesise

`label.txt` of each domain's folder and `data/*.txt` hold sections `== name | domain | dynamism | question type |
times`, then a template a line: `{company}` is drawn from `data/entities.txt` (`{company2}` is another one), `[a|b]` is
one of the alternatives. A section is a group: its questions are paraphrases of each other, so training and validation
never share one.
"""

import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from services.classifier.examples import QUESTIONS, Example
from services.classifier.taxonomy import HEADS
from services.kit.jsonl import BadLine

DATA = Path(__file__).parent / "data"
DOMAINS = Path(str(files("services.kg"))) / "domains"
ENTITIES = DATA / "entities.txt"
SEED = "cragmesh"
# A template with many alternatives says more than one with none.
MAX_TIMES = 7
# Shares of questions that people type without a mark at the end, or with a slip of a finger.
UNMARKED, MISTYPED, CONTRACTED, POLITE = 0.45, 0.06, 0.3, 0.04
POLITENESS = ("please tell me, ", "i was wondering, ", "quick question: ", "hey, ", "hi, ", "just curious, ")
TRIES = 4

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{([a-z_]+?)(\d?)\}")
_CONTRACTIBLE = re.compile(r"^(what|who|when|where|how) is\b")


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    labels: tuple[str, ...]
    times: int
    templates: tuple[str, ...]


def read_entities(path: Path = ENTITIES) -> dict[str, tuple[str, ...]]:
    """Names by kind.

    Raises:
        BadLine: a kind has none.
    """
    kinds: dict[str, list[str]] = {}
    for name, lines in _blocks(path):
        kinds[name] = [entity.strip() for line in lines for entity in line.split(";") if entity.strip()]
        if not kinds[name]:
            raise BadLine(path.name, f"no {name}")
    return {kind: tuple(dict.fromkeys(names)) for kind, names in kinds.items()}


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Names and files of the templates, in the order of their names."""
    templates = [(path.stem, path) for path in folder.glob("*.txt") if path.name != ENTITIES.name]
    if folder == DATA:
        templates += [(path.parent.name, path) for path in DOMAINS.glob("*/label.txt")]
    return sorted(templates)


def read_sections(folder: Path = DATA) -> list[Section]:
    """All templates, in the order of the files' names.

    Raises:
        BadLine: a section's head or a template's slot is not known.
    """
    kinds = read_entities(folder / ENTITIES.name)
    sections = []
    for stem, path in _files(folder):
        for head, lines in _blocks(path):
            name, *labels, times = (part.strip() for part in head.split("|"))
            if [label in valid for label, valid in zip(labels, HEADS.values(), strict=False)] != [True] * len(HEADS):
                raise BadLine(path.name, f"labels of {head!r}")
            for line in lines:
                if unknown := {slot for slot, _ in _SLOT.findall(line)} - kinds.keys():
                    raise BadLine(path.name, f"{line!r} asks for {', '.join(sorted(unknown))}")
            sections.append(Section(f"{stem}/{name}", tuple(labels), int(times), tuple(lines)))
    return sections


def synthesise(folder: Path = DATA) -> list[Example]:
    """The training set; equal templates and entities make equal questions, whatever else is in the files."""
    kinds = read_entities(folder / ENTITIES.name)
    distinct: set[str] = set()
    examples = []
    for section in read_sections(folder):
        domain, dynamism, question_type = section.labels
        for template in section.templates:
            rng = random.Random(f"{SEED}:{section.name}:{template}")  # noqa: S311 - repeatable, not secret
            for question in _questions(template, section.times, kinds, rng):
                if question not in distinct:
                    distinct.add(question)
                    examples.append(Example(question, domain, dynamism, question_type, section.name))
    return examples


def _questions(template: str, times: int, kinds: Mapping[str, Sequence[str]], rng: random.Random) -> Iterator[str]:
    options = max([alternatives.count("|") + 1 for alternatives in _ALTERNATIVES.findall(template)], default=0)
    slots = _SLOT.search(template) is not None
    count = min(MAX_TIMES, (times if slots else 1) + options // 2)
    distinct: set[str] = set()
    for _ in range(count * TRIES):
        plain = _fill(template, kinds, rng)
        if plain in distinct:
            continue
        distinct.add(plain)
        yield _typed(plain, rng)
        if len(distinct) == count:
            return


def _fill(template: str, kinds: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    text = template
    while match := _ALTERNATIVES.search(text):
        text = text[: match.start()] + rng.choice(match[1].split("|")) + text[match.end() :]
    chosen: dict[str, str] = {}

    def draw(match: re.Match[str]) -> str:
        slot, kind = match[0], match[1]
        if slot not in chosen:
            chosen[slot] = rng.choice([name for name in kinds[kind] if name not in chosen.values()])
        return chosen[slot]

    return " ".join(_SLOT.sub(draw, text).split())


def _typed(question: str, rng: random.Random) -> str:
    """As somebody types it: contracted, mistyped, with or without a question mark."""
    if rng.random() < CONTRACTED:
        question = _CONTRACTIBLE.sub(r"\1's", question)
    if rng.random() < MISTYPED:
        question = _mistyped(question, rng)
    if rng.random() < POLITE:
        question = rng.choice(POLITENESS) + question
    return question if rng.random() < UNMARKED else f"{question}?"


def _mistyped(question: str, rng: random.Random) -> str:
    words = question.split()
    long = [index for index, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    if not long:
        return question
    index = rng.choice(long)
    word, at = words[index], rng.randrange(1, len(words[index]) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    dropped = word[:at] + word[at + 1 :]
    words[index] = rng.choice((swapped, dropped))
    return " ".join(words)


def _blocks(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Head and lines of each section."""
    for block in ("\n" + path.read_text("utf-8")).split("\n== ")[1:]:
        head, *lines = (line.strip() for line in block.splitlines())
        yield head, [line for line in lines if line]


def render(examples: Sequence[Example]) -> str:
    """The file's text: one JSON object a line."""
    return "".join(json.dumps(asdict(example), ensure_ascii=False) + "\n" for example in examples)


def digest(examples: Sequence[Example]) -> str:
    """SHA-256 of the examples, for the model card."""
    return hashlib.sha256(render(examples).encode()).hexdigest()


def main() -> None:
    if sys.argv[1:]:
        sys.exit("It takes no arguments, and writes the questions anew.")
    examples = synthesise()
    for head in HEADS:
        print(head, dict(Counter(example.label(head) for example in examples)))
    print(f"{len(examples)} questions in {len({example.group for example in examples})} groups")
    QUESTIONS.write_text(render(examples), "utf-8")


if __name__ == "__main__":
    main()
