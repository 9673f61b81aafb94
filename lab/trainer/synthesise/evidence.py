"""Passages of a made-up question: facts in the graph's words, other facts, old ones, or none that answer."""

import json
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lab.trainer.dataset import Kind
from lab.trainer.synthesise.drawing import Thing
from lab.trainer.synthesise.engine import Engine, Question, Section
from lab.trainer.synthesise.graph import Statement
from lab.trainer.synthesise.pages import filler
from lab.trainer.synthesise.record import Record
from services.gateway.normalize import INVALID, UNKNOWN

# Longer prompts would cost more to read than they teach.
MAX_CHARS = 3_600
# Facts of other questions that may stand beside.
KEPT = 60
# How many stand there, and the share of facts that are not in the graph's words.
BESIDE = {0: 5.0, 1: 2.0, 2: 1.5, 3: 1.0, 5: 0.5}
OTHERWISE = 0.3
# Of answered numbers so many have an older value beside them, and of passages so many a sentence of some page.
OUTDATED, PAGES = 0.06, 0.12
# The section whose questions make records of a kind.
SECTIONS: dict[Kind, Section] = {"answer": "patterns", "unknown": "patterns", "invalid_question": "premises"}
# Why a question cannot be answered, and how often.
MISSING: dict[str, float] = {
    "beyond": 3.5,
    "other thing": 2.0,
    "other facts": 2.0,
    "in part": 1.2,
    "not known": 0.8,
    "out of date": 0.7,
}
TRIES = 30
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(slots=True)
class Evidence:
    """Makes records for the answer: questions with passages.

    Args:
        engine: of the questions.
    """

    engine: Engine
    _bank: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def record(self, kind: Kind) -> Record | None:
        """A question of a kind with its passages; None where the draw gave none."""
        if kind == "unknown":
            return self._unanswered()
        question = self.engine.make(SECTIONS[kind])
        return self._record(question, self._texts(question.statements), question.answer or INVALID)

    def _unanswered(self) -> Record | None:
        case = self.engine.phrasing.weighted(MISSING)
        if case == "beyond" and "beyond" not in self.engine.sections:
            return None
        question = self.engine.make("beyond" if case == "beyond" else "patterns")
        texts: list[str] = []
        match case:
            case "beyond":
                texts = self._about(question, "")
            case "other thing":
                texts = self._other_thing(question)
            case "other facts":
                texts = self._about(question, question.answer)
            case "in part":
                texts = self._in_part(question)
            case "out of date":
                texts = self._out_of_date(question)
            case _:
                question, texts = self._unknown_thing(question)
        return self._record(replace(question, kind="unknown"), texts, UNKNOWN) if texts else None

    def _record(self, question: Question, texts: Sequence[str], answer: str) -> Record | None:
        """A record of these facts among others."""
        v = self.engine.phrasing
        passages = list(texts)
        if question.kind == "answer" and v.chance(OUTDATED):
            passages = _with_older(v.between(2016, 2021), v.between(1, 3), passages, answer)
        beside = self._beside(question, v.weighted(BESIDE))
        if v.chance(PAGES):
            beside.append(filler(v, self.engine.names))
        passages += beside
        if beside or v.chance(0.3):
            v.rng.shuffle(passages)
        elif len(passages) > 1 and v.chance(0.6):
            passages = ["\n".join(passages)]
        self._bank.extend((text, question.domain) for text in texts)
        if not passages or sum(map(len, passages)) > MAX_CHARS:
            return None
        stands = question.kind == "answer" and any(answer in passage for passage in passages)
        return Record(
            query=question.query,
            query_time=question.when,
            domain=question.domain,
            question_type=question.question_type,
            kind=question.kind,
            answer=answer,
            pattern=question.pattern,
            passages=tuple(passages),
            support=(answer,) if stands else (),
            program=question.program,
        )

    def _beside(self, question: Question, count: int) -> list[str]:
        """Facts of earlier questions of the domain that name nothing of this one."""
        names = _names(question)
        fit = [text for text, domain in self._bank if domain == question.domain and not _mentions(text, names)]
        return self.engine.phrasing.some(list(dict.fromkeys(fit)), count)

    def _texts(self, statements: Sequence[Statement]) -> list[str]:
        v = self.engine.phrasing
        return [otherwise(self.engine, one) if v.chance(OTHERWISE) else one.text for one in statements]

    def _about(self, question: Question, answer: str) -> list[str]:
        """Other facts of a question's things, without the answer."""
        v = self.engine.phrasing
        programs = self.engine.about(question)
        v.rng.shuffle(programs)
        for slot, program in programs:
            statements = self.engine.run(
                program, replace(question, slots={**question.slots, "x": question.slots[slot]})
            )
            if any(one.outcome.status != "ok" for one in statements):
                continue
            texts = self._texts(statements)
            if not answer or not any(_states(text, answer) for text in texts):
                return texts
        return []

    def _other_thing(self, question: Question) -> list[str]:
        """The same facts of another thing."""
        for _ in range(TRIES):
            other = self.engine.of(question.way)
            if other is None or other.program == question.program or set(_names(other)) & set(_names(question)):
                continue
            texts = self._texts(other.statements)
            if not any(_states(text, question.answer) or _mentions(text, _names(question)) for text in texts):
                return texts
        return []

    def _in_part(self, question: Question) -> list[str]:
        """All statements but one that is needed."""
        if len(question.statements) < 2:
            return []
        hop = "*[" in question.program
        lost = len(question.statements) - 1 if hop else self.engine.phrasing.between(0, len(question.statements) - 1)
        return self._texts([one for place, one in enumerate(question.statements) if place != lost])

    def _out_of_date(self, question: Question) -> list[str]:
        """The graph's reply long after its sources end."""
        late = replace(question, when=question.when + timedelta(days=self.engine.phrasing.between(40, 300)))
        statements = self.engine.run(question.way.variant.program, late)
        if not any(one.outcome.status == "stale" for one in statements):
            return []
        return [one.text for one in statements]

    def _unknown_thing(self, question: Question) -> tuple[Question, list[str]]:
        """The question about an unknown thing of a similar name, and the graph's reply to it."""
        v = self.engine.phrasing
        slots = dict(question.slots)
        things = [slot for slot, value in slots.items() if isinstance(value, Thing) and "id" in value.values]
        if not things:
            return question, []
        for slot in things:
            near = self.engine.names.near(str(question.slots[slot])) if v.chance(0.6) else self.engine.names.coined()
            slots[slot] = Thing({**question.slots[slot].values, "name": near})
        variant = question.way.variant
        unknown = replace(question, slots=slots, query=self.engine.wording(variant, slots))
        statements = self.engine.run(variant.program, unknown)
        if any(one.outcome.status in ("ok", "stale") for one in statements):
            return question, []
        return unknown, [one.text for one in statements]


def otherwise(engine: Engine, statement: Statement) -> str:
    """A statement's rows as a table, lines or JSON; its own text where it has no rows to show so."""
    outcome, v = statement.outcome, engine.phrasing
    function = outcome.function
    if function is None or outcome.aggregate or not outcome.rows or outcome.total > len(outcome.rows):
        return statement.text
    columns = list(dict.fromkeys((*function.subject, *outcome.shown)))
    rows = [{key: row[key] for key in columns if row.get(key) is not None} for row in outcome.rows]
    heads = [key for key in columns if any(key in row for row in rows)]
    spelt = v.chance(0.5)
    words = {key: key.replace("_", " ") if spelt else key for key in heads}
    match v.pick(("table", "lines", "json")):
        case "table":
            body = "\n".join("| " + " | ".join(str(row.get(key, "")) for key in heads) + " |" for row in rows)
            return f"| {' | '.join(words.values())} |\n|{' --- |' * len(heads)}\n{body}"
        case "lines":
            return "\n\n".join("\n".join(f"{words[key]}: {row[key]}" for key in heads if key in row) for row in rows)
        case _:
            return json.dumps(rows[0] if len(rows) == 1 else rows, ensure_ascii=False)


def _with_older(year: int, later: int, texts: Sequence[str], answer: str) -> list[str]:
    """A number's text beside one that gives an older value, each with the year that it was written."""
    if len(texts) != 1 or texts[0].count(answer) != 1 or not (number := _NUMBER.search(answer)) or "-" in answer:
        return list(texts)
    digits = number[0]
    older = digits.replace(digits[0], "1" if digits[0] != "1" else "2", 1)
    old = texts[0].replace(answer, answer.replace(digits, older))
    return [f"(as of {year}) {old}", f"(as of {year + later}) {texts[0]}"]


def _names(question: Question) -> list[str]:
    """All names of a question's things."""
    things = [value for value in question.slots.values() if isinstance(value, Thing)]
    return [str(name).lower() for thing in things for name in (thing, thing.values.get("name", "")) if str(name)]


def _mentions(text: str, names: Sequence[str]) -> bool:
    lower = text.lower()
    return any(name in lower for name in names)


def _states(text: str, answer: str) -> bool:
    return any(part.lower() in text.lower() for part in answer.split(", ")) if answer else False
