"""`adaptive`: the graph first, then the web; an answer only where it is likelier right than wrong."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Literal

from proto.read import ReadResponse
from services.gateway import calibration, confidence, prompts
from services.gateway.confidence import Confidence, Seen
from services.gateway.evidence import Evidence, asked, harmless
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize
from services.gateway.question import Question, plain
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import ask, asked_on, planned_s, probability
from services.gateway.steps.calculate import calculate
from services.gateway.steps.facts import answers, as_evidence, no_such_event
from services.gateway.steps.generate import MIN_ANSWER_TOKENS, PLANNED_ANSWER_TOKENS, chat, fit, taught
from services.gateway.steps.post_process import settle
from services.gateway.steps.read import behind, extract, read
from services.gateway.steps.statements import settle_texts
from services.gateway.strategies.db3 import Db3
from services.kit.caution import Caution
from services.kit.concurrency import both
from services.kit.llm import Completion, Constraint, Message, estimate_tokens

# Further samples tell whether the model would say the same again.
SAMPLES = 3
TEMPERATURE = 0.8
SAMPLE_TOKENS = 32
# How often a rule over typed facts is right where it was tried (57 of 58), and over statements in texts (11 of 12).
SETTLED = 0.98
SETTLED_TEXTS = 0.92
CHOICES: tuple[Literal["yes", "no"], ...] = ("yes", "no")
SOURCES: dict[str, Literal["kg", "web"]] = {"kg": "kg"}


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer that was got, and what asking more about it takes."""

    seen: Seen
    question: Question
    messages: Sequence[Message]

    @property
    def known_tokens(self) -> int:
        return sum(estimate_tokens(message.content) for message in self.messages)


@dataclass(frozen=True, slots=True)
class First:
    """The generator's first reply; None where it gave none.

    Args:
        shown: the evidence of the prompt, calculations first.
        adapter: that replied; empty for the base model.
    """

    completion: Completion | None
    messages: Sequence[Message]
    shown: Sequence[Evidence]
    adapter: str


class Adaptive(Db3):
    name = "adaptive"
    summary = (
        "Graph first, then the web, as db3, with calculations where they are asked for; each answer is weighed by a "
        "fitted model from what was seen on the way, and what is likelier wrong than right becomes an abstention. "
        "Calls whose result could not change the outcome are not made."
    )

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._answer_prompt = prompts.load("adaptive")
        self._check_turn = Message("user", prompts.load("check").user.template)
        self._calculate_prompt = prompts.load("calculate")
        self._memory_prompt = prompts.load("closed_book")
        # Calls that tell more about an answer, the cheapest first, by the signals that they bring.
        self._looks: dict[frozenset[str], Callable[[Asked, Run, Mesh], Awaitable[Seen]]] = {
            confidence.CHECKED: self._checked,
            confidence.GAINED: self._gained,
            confidence.REMEMBERED: self._remembered,
            confidence.SAMPLED: self._sampled,
        }

    def describe(self, mesh: Mesh) -> str:
        if not self.settings.abstain:
            return f"{self.summary} Abstention is switched off: every answer is given."
        detail = mesh.weighing(self.settings).detail
        return f"{self.summary} {detail[:1].upper()}{detail[1:]}." if detail else self.summary

    async def _knowledge(self, question: Question, run: Run, mesh: Mesh) -> Draft | None:
        """The graph's answer: by a rule where the facts are typed and the rule is certain, else read and weighed."""
        facts = await self.look_up(question, run, mesh)
        if facts is None:
            return None
        shown = as_evidence(facts)
        if no_such_event(run, facts):
            return Draft(INVALID, "invalid_question", SETTLED, "kg", (shown,))
        if not answers(run, facts):
            return None
        settled = settle(question.query, facts)
        if settled is not None:
            run.decide("post_process", f"{settled.how}: {', '.join(settled.inputs)}")
            return Draft(settled.answer, "answer", SETTLED, "kg", (shown,))
        draft = await self._read(question, run, mesh, [shown])
        return draft if draft.kind == "answer" else None

    async def _read(self, question: Question, run: Run, mesh: Mesh, found: Sequence[Evidence]) -> Draft:
        settings = self.settings
        run.signals = {}
        await run.classified.wait()
        shown = await fit(run, mesh, found, max_tokens=settings.max_context_tokens)
        query = plain(question.query)
        if found and not shown:
            await self._extracted(query, run, mesh, run.best.evidence)
            return run.best
        run.best = Draft(evidence=tuple(shown))
        settled = settle_texts(query, [item.text for item in shown], question.query_time.date())
        if settled is not None:
            run.decide("post_process", f"{settled.how}: {', '.join(settled.inputs)}")
            return Draft(settled.answer, "answer", SETTLED_TEXTS, _source(shown), tuple(shown))
        # From here on a generator that hangs costs the reader nothing.
        first, reading = await both(
            self._generated(question, run, mesh, shown), self._extracted(query, run, mesh, shown)
        )
        if first.completion is None:
            return run.best
        calculations = len(first.shown) - len(shown)
        shown = list(first.shown)
        said = _normal(first.completion)[0]
        seen = Seen(
            question.query,
            said.kind,
            said.answer,
            first.completion.samples[0],
            shown,
            run.classification,
            sources=tuple(run.replies),
            ranks=_ranks(mesh, first.adapter, first.completion, said),
            reading=reading,
        )
        run.replies.append(said)
        draft = Draft(said.answer, said.kind, 0.0, _source(shown), tuple(shown))
        weighed = await self._judged(draft, Asked(seen, question, first.messages), run, mesh, first.adapter)
        if weighed.kind != "unknown":
            return weighed
        return replace(weighed, candidates=behind(run.best.candidates, calculations))

    async def _judged(self, draft: Draft, got: Asked, run: Run, mesh: Mesh, adapter: str) -> Draft:
        """The draft as it is where every answer is wanted, else weighed by the confidence that fits who answered."""
        if got.question.every_answer or not self.settings.abstain:
            return await self._unweighed(draft, got, run, mesh)
        if mesh.calibration.own(mesh.llm.model, adapter) is None:
            run.degrade(calibration.STAGE, "unavailable", mesh.calibration.missing(mesh.llm.model, adapter))
        return await self._weighed(draft, got, run, mesh, mesh.calibration.choose(mesh.llm.model, adapter))

    async def _unweighed(self, draft: Draft, got: Asked, run: Run, mesh: Mesh) -> Draft:
        """The draft as it is, with all signals: what a confidence is to be fitted on."""
        run.signals = confidence.signals(got.seen)
        if draft.kind != "unknown":
            for look in self._looks.values():
                got = replace(got, seen=await look(got, run, mesh))
            run.signals = confidence.signals(got.seen)
        return replace(draft, confidence=probability(got.seen.sample))

    async def _generated(self, question: Question, run: Run, mesh: Mesh, shown: Sequence[Evidence]) -> First:
        """The generator's first reply, with calculations where they are asked for."""
        settings = self.settings
        has_adapter = await taught(run, mesh, settings.web_answer_adapter)
        if not has_adapter:
            # The adapter has not been taught to read calculations, and its base model is too small to write them.
            shown = [*await self._computed(question, run, mesh, shown), *shown]
        prompt = self._taught_prompt if has_adapter else self._answer_prompt
        messages = chat(prompt, plain(question.query), question.query_time, shown)
        completion = await ask(
            run,
            mesh,
            "generate",
            messages,
            max_tokens=settings.max_answer_tokens,
            min_tokens=MIN_ANSWER_TOKENS,
            optional=False,
            adapter=settings.web_answer_adapter,
            logprobs=True,
        )
        return First(completion, messages, shown, settings.web_answer_adapter if has_adapter else "")

    async def _extracted(self, query: str, run: Run, mesh: Mesh, shown: Sequence[Evidence]) -> ReadResponse | None:
        """What the extractive reader finds; the run's best becomes its answer, or an abstention that shows it."""
        reading = await read(run, mesh, query, shown, cap_s=self.settings.read_cap_s)
        if reading is not None:
            run.best = extract(run, query, reading, shown, _source(shown), threshold=self.settings.reader_threshold)
        return reading

    async def _computed(self, question: Question, run: Run, mesh: Mesh, shown: Sequence[Evidence]) -> list[Evidence]:
        """Calculations over what will be shown, where the question asks for any and the time allows both calls."""
        read = sum(estimate_tokens(item.text) for item in shown)
        return await calculate(
            run,
            mesh,
            self._calculate_prompt,
            question,
            shown,
            cap_s=self.settings.calculate_cap_s,
            reserve_s=planned_s(mesh, read, PLANNED_ANSWER_TOKENS),
            max_context_tokens=self.settings.calculate_max_tokens,
        )

    async def _weighed(self, draft: Draft, got: Asked, run: Run, mesh: Mesh, model: Confidence | None) -> Draft:
        """The draft with its probability, an abstention, or the judgement that the question is invalid."""
        run.signals = confidence.signals(got.seen)
        if model is None:
            # Without a fitted model nothing hangs on more signals.
            return replace(draft, confidence=probability(got.seen.sample))
        caution = self.settings.caution
        pending = [names for names in self._looks if model.uses(names)] if draft.kind != "unknown" else []
        if not pending:
            run.decide("check", "no further call is of use")
        while pending:
            if not model.may_change(run.signals, frozenset().union(*pending), caution):
                run.decide("check", "no further call could change the outcome")
                break
            got = replace(got, seen=await self._looks[pending.pop(0)](got, run, mesh))
            run.signals = confidence.signals(got.seen)
        decision = model.decide(run.signals, caution)
        run.decide("confidence", f"{decision.kind} with {decision.probability:.2f}; {_lines(model, caution)}")
        confident = round(decision.probability, 4)
        if decision.kind == "answer":
            return replace(draft, confidence=confident)
        if decision.kind == "invalid_question":
            return Draft(INVALID, "invalid_question", confident, draft.source, draft.evidence)
        return Draft(UNKNOWN, "unknown", confident, "none", draft.evidence)

    async def _sampled(self, got: Asked, run: Run, mesh: Mesh) -> Seen:
        """What the same model says again, at a temperature."""
        drawn = await ask(
            run,
            mesh,
            "samples",
            got.messages,
            max_tokens=SAMPLE_TOKENS,
            min_tokens=SAMPLE_TOKENS,
            known_tokens=got.known_tokens,
            adapter=self.settings.web_answer_adapter,
            n=SAMPLES,
            temperature=TEMPERATURE,
        )
        return got.seen if drawn is None else replace(got.seen, others=_normal(drawn))

    async def _checked(self, got: Asked, run: Run, mesh: Mesh) -> Seen:
        """Whether the model that answered finds its answer in the documents, when it looks again."""
        if got.seen.kind != "answer":
            return got.seen
        checked = await ask(
            run,
            mesh,
            "check",
            [*got.messages, Message("assistant", harmless(got.seen.answer)), self._check_turn],
            max_tokens=1,
            min_tokens=1,
            known_tokens=got.known_tokens,
            adapter=self.settings.web_answer_adapter,
            constraint=Constraint(choice=CHOICES),
            logprobs=True,
        )
        return got.seen if checked is None else replace(got.seen, check=_yes(checked))

    async def _gained(self, got: Asked, run: Run, mesh: Mesh) -> Seen:
        """How likely its answer is to the model that gave it, when it is shown no documents.

        The adapter that answered is asked: a ratio of two models' probabilities would tell their styles apart.
        """
        sample = got.seen.sample
        text = sample.text.strip()
        if got.seen.kind != "answer" or not sample.token_logprobs or not mesh.llm.scores or harmless(text) != text:
            return got.seen
        scored = await ask(
            run,
            mesh,
            "gain",
            [*self._without_documents(got.question), Message("assistant", text)],
            max_tokens=1,
            min_tokens=1,
            adapter=self.settings.web_answer_adapter,
            scored=True,
        )
        return got.seen if scored is None else replace(got.seen, unaided=scored.samples[0].token_logprobs)

    def _without_documents(self, question: Question) -> list[Message]:
        query, query_time = asked(plain(question.query)), asked_on(question.query_time)
        return self._memory_prompt.fill(query=query, query_time=query_time)

    async def _remembered(self, got: Asked, run: Run, mesh: Mesh) -> Seen:
        """What the model says of its own, without documents (ElectricSheep, section 4.4)."""
        told = await ask(
            run,
            mesh,
            "memory",
            self._without_documents(got.question),
            max_tokens=SAMPLE_TOKENS,
            min_tokens=MIN_ANSWER_TOKENS,
        )
        return got.seen if told is None else replace(got.seen, sources=(*got.seen.sources, *_normal(told)))


def _lines(model: Confidence, caution: Caution) -> str:
    invalid = "" if model.invalid is None else f", invalid from {model.invalid.thresholds[caution]:.2f} on"
    return f"given from {model.answer.thresholds[caution]:.2f} on{invalid}"


def _ranks(mesh: Mesh, adapter: str, completion: Completion, said: Normalized) -> dict[str, float]:
    """Ranks of a reply's log-probabilities among those of earlier answers; an answer counts for the next."""
    name = confidence.name_of(mesh.llm.model, adapter)
    logprobs = confidence.logprob_signals(completion.samples[0])
    ranks = mesh.calibration.ranks(name, logprobs)
    if said.kind == "answer" and logprobs:
        mesh.calibration.observe(name, logprobs)
    return ranks


def _normal(completion: Completion) -> list[Normalized]:
    return [normalize(sample.text, finished=sample.finish_reason != "length") for sample in completion.samples]


def _yes(completion: Completion) -> float:
    """Probability of `yes`; what is not given to the word that was said is the other's."""
    sample = completion.samples[0]
    said = exp(sample.token_logprobs[0]) if sample.token_logprobs else 1.0
    return said if sample.text == "yes" else 1.0 - said


def _source(shown: Sequence[Evidence]) -> Literal["kg", "web", "model"]:
    found = [item.source for item in shown if item.source != "calculator"]
    return SOURCES.get(found[0], "web") if found else "model"
