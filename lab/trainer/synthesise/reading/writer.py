"""From a brief to a passage with questions: a model writes them, and its own answers decide which are kept."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, TypeAdapter, ValidationError

from lab.trainer.pairs import Pair
from lab.trainer.score import normalized, token_f1
from lab.trainer.synthesise.phrasing import sections
from lab.trainer.synthesise.reading import articles, filters
from lab.trainer.synthesise.reading.briefs import QUESTIONS, Brief
from services.kit.errors import BadReply
from services.kit.llm import LLM, Constraint, Message, Role, Sample
from services.kit.prompts import PromptFolder

# Of a passage, for each word of its brief; a longer one is cut at a sentence's end.
PASSAGE_TOKENS = 1.6
QUESTION_TOKENS, OPEN_TOKENS, ANSWER_TOKENS = 420, 120, 24
# Of a passage's answered questions so many are asked about something else.
SWAPS = 2
# Of a passage and its questions; of the two answers the first is greedy.
CREATIVE, QUESTIONING, SECOND = 0.7, 0.6, 0.7
# A batch of a slow machine may hold a request for minutes.
ALLOW_S = 600.0
NONE = "none"
PROMPTS = PromptFolder("lab.trainer.synthesise.reading")
# A chat model's words to its user before the text.
_PREAMBLE = re.compile(r"^(?:Certainly|Sure|Here is|Here's|Subject|Title|Text)\b[^\n]*\n")

Reply = TypeVar("Reply")
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


class QuestionAnswer(BaseModel):
    """A question and its answer, as the model writes them."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    q: Text
    a: Text


@dataclass(frozen=True, slots=True)
class Outcome:
    """A brief's outcome: the items, and how many were rejected for which reason."""

    items: list[Pair] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


_STRING: dict[str, JsonValue] = {"type": "string"}
# A question that begins as is asked for comes before its answer; else a phrase comes first, and then what asks for it.
_BEGUN = r"^{way} [A-Za-z0-9 ,.'$%-]+[?]$"


def _pair(first: str, second: str, **question: JsonValue) -> dict[str, JsonValue]:
    kinds: dict[str, JsonValue] = {"q": _STRING | question, "a": _STRING}
    return {
        "type": "object",
        "properties": {first: kinds[first], second: kinds[second]},
        "required": [first, second],
        "additionalProperties": False,
    }


def _questions(way: str) -> Constraint:
    """Six pairs: the first question begins with Why, the second with `way`."""
    begun = [_pair("q", "a", pattern=_BEGUN.format(way=word)) for word in ("Why", way)]
    pairs: list[JsonValue] = [*begun, *[_pair("a", "q")] * (QUESTIONS - len(begun))]
    schema: dict[str, JsonValue] = {"type": "array", "prefixItems": pairs, "items": False}
    return Constraint(json_schema=schema | {"minItems": QUESTIONS, "maxItems": QUESTIONS})


_PAIRS = TypeAdapter(Annotated[list[QuestionAnswer], Field(max_length=QUESTIONS)])
_TEXTS = TypeAdapter(Annotated[list[Text], Field(max_length=8)])


_ROLES: TypeAdapter[Role] = TypeAdapter(Role)
_PASSAGE, _OPEN = ([Message("system", PROMPTS.template(name).template)] for name in ("passage", "open"))
# One beginning for questions and answers, so that the engine reads a passage once for all of them; its turns stand
# under headings with their roles.
_READING = [
    Message(_ROLES.validate_python(role), text.strip()) for role, text in sections(PROMPTS.template("reading").template)
]


class Writer:
    """Writes passages and questions with one model.

    Args:
        llm: the model.
        requests: the most that are under way at once.
    """

    def __init__(self, llm: LLM, *, requests: int) -> None:
        self._llm = llm
        self._slots = asyncio.Semaphore(requests)

    @property
    def model(self) -> str:
        return self._llm.model

    async def write(self, identifier: str, brief: Brief) -> Outcome:
        """Items of one brief; `identifier` begins their ids.

        Raises:
            ServiceFailure: the model gave no usable reply.
        """
        outcome = Outcome()
        passage = await self._passage(brief)
        if flaw := filters.passage_flaw(passage):
            outcome.rejected[flaw] += 1
            return outcome
        pairs, open_questions = await asyncio.gather(
            self._questions(brief, passage, outcome), self._open(brief, outcome)
        )
        item = partial(Pair, kind=brief.kind, title=brief.title, passage=passage)
        flaws = _flaws([*(pair.q for pair in pairs), *open_questions], passage)
        checks = []
        for number, (pair, flaw) in enumerate(zip(pairs, flaws, strict=False)):
            if not flaw and filters.strange(pair.q, f"{brief.title} {passage}"):
                flaw = "names what is not in the passage"
            place = flaw or filters.locate(pair.a, pair.q, passage)
            if isinstance(place, str):
                outcome.rejected[place] += 1
                continue
            start, answer = place
            answered = item(id=f"{identifier}-q{number}", question=pair.q, answer=answer, start=start)
            checks.append(self._checked(answered, outcome))
        for number, (question, flaw) in enumerate(zip(open_questions, flaws[len(pairs) :], strict=True)):
            if flaw:
                outcome.rejected["open: " + flaw] += 1
                continue
            unanswered = item(id=f"{identifier}-open{number}", question=question, answer="", start=-1)
            checks.append(self._checked(unanswered, outcome))
        outcome.items.extend(one for one in await asyncio.gather(*checks) if one)
        answerable = [one for one in outcome.items if one.answer]
        twins = [
            self._checked(twin, outcome) for one in answerable[:SWAPS] if (twin := articles.swapped(one, brief.spare))
        ]
        # The first, which asks for a reason, and the last, over a passage that no longer tells it.
        for one in (*answerable[:1], *answerable[1:][-1:]):
            if twin := articles.cut(one):
                twins.append(self._checked(twin, outcome, one.answer))
            else:
                outcome.rejected["cut: still told"] += 1
        outcome.items.extend(one for one in await asyncio.gather(*twins) if one)
        return outcome

    async def _passage(self, brief: Brief) -> str:
        notes = "\n".join(f"- {fact}" for fact in brief.facts)
        order = (
            f"About: {brief.name} ({brief.topic})\nNotes:\n{notes}\nStyle: {brief.style}\n"
            f"Length: about {brief.words} words\nKind of text: {brief.order}"
        )
        sample = await self._chat(_PASSAGE, order, max_tokens=int(brief.words * PASSAGE_TOKENS), temperature=CREATIVE)
        return _tidy(sample)

    async def _questions(self, brief: Brief, passage: str, outcome: Outcome) -> list[QuestionAnswer]:
        order = f"Text: {passage}\n\nWrite {QUESTIONS} questions: one with Why, one with {brief.way}, and others."
        return await self._list(_PAIRS, _questions(brief.way), _READING, order, QUESTION_TOKENS, outcome)

    async def _open(self, brief: Brief, outcome: Outcome) -> list[str]:
        notes = "\n".join(f"{number}. {fact}" for number, fact in enumerate(brief.open_facts, 1))
        order = f"About: {brief.name} ({brief.topic})\n{notes}"
        count = len(brief.open_facts)
        texts = Constraint(json_schema={"type": "array", "items": _STRING, "minItems": count, "maxItems": count})
        return await self._list(_TEXTS, texts, _OPEN, order, OPEN_TOKENS, outcome)

    async def _list(
        self,
        adapter: TypeAdapter[list[Reply]],
        constraint: Constraint,
        prompt: list[Message],
        order: str,
        max_tokens: int,
        outcome: Outcome,
    ) -> list[Reply]:
        """A list that the model writes as JSON; empty, and counted, where it breaks off or is of another shape."""
        try:
            sample = await self._chat(
                prompt, order, max_tokens=max_tokens, temperature=QUESTIONING, constraint=constraint
            )
            return adapter.validate_json(sample.text)
        except (BadReply, ValidationError):
            outcome.rejected["reply breaks the schema"] += 1
            return []

    async def _checked(self, item: Pair, outcome: Outcome, cut: str = "") -> Pair | None:
        """The item, if the model's own two answers are the item's; with the first where that is a shorter span.

        Items that have no answer by construction include hard ones, to which the model replies all the same: a question
        about something else always passes, one whose sentence was taken out unless a reply is `cut`, the answer that
        stood there. Where only the model says that the passage does not tell it, it must say so once.
        """
        way = articles.way(item)
        if way == "swap":
            return item
        replies = []
        for temperature in (0.0, SECOND):
            sample = await self._chat(
                _READING,
                f"Text: {item.passage}\n\nQuestion: {item.question}",
                max_tokens=ANSWER_TOKENS,
                temperature=temperature,
                stop=("\n",),
            )
            replies.append(sample.text.strip())
        silent = [normalized(reply) == NONE for reply in replies]
        if cut:
            flaw = "cut: answered all the same" if any(filters.agree(reply, cut) for reply in replies) else ""
        elif not item.answer:
            flaw = "" if any(silent) else f"{way}: answered all the same"
        elif any(silent):
            flaw = "own answer: none"
        else:
            alike = filters.agree(replies[0], item.answer) and filters.agree(replies[1], replies[0])
            flaw = "" if alike else "own answer: another"
        if flaw:
            outcome.rejected[flaw] += 1
            return None
        return item if not item.answer else _shortened(item, replies[0])

    async def _chat(self, prompt: list[Message], user: str, **options: Any) -> Sample:
        messages = [*prompt, Message("user", user)]
        async with self._slots:
            return (await self._llm.chat(messages, allow_s=ALLOW_S, **options)).samples[0]


def _flaws(questions: Sequence[str], passage: str) -> list[str]:
    """The flaw of each question, empty where it has none; a repetition of an earlier one is a flaw."""
    flaws = []
    for index, question in enumerate(questions):
        repeated = any(token_f1(question, other) >= filters.SAME for other in questions[:index])
        flaws.append(filters.question_flaw(question, passage) or ("asked twice" if repeated else ""))
    return flaws


def _shortened(item: Pair, reply: str) -> Pair:
    """The item with a reply as its answer, where that is a part of it."""
    place = filters.locate(reply, item.question, item.answer)
    if isinstance(place, str):
        return item
    start, answer = place
    return item.model_copy(update={"answer": answer, "start": item.start + start})


def _tidy(sample: Sample) -> str:
    """A passage without marks of Markdown, cut at a sentence's end where the model wrote too much."""
    lines = [line.strip().lstrip("#").replace("**", "").strip() for line in sample.text.strip().splitlines()]
    text = "\n".join(line for line in lines if line and line != "---")
    text = _PREAMBLE.sub("", text)
    if sample.finish_reason == "length":
        ends = [end for _, end in filters.sentences(text)]
        text = text[: ends[-2]] if len(ends) > 1 else ""
    return text
