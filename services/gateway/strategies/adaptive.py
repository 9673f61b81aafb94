"""`adaptive`: the graph first, then the web; an answer only where it is likelier right than wrong."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import ClassVar, Literal

from proto.options import Options
from proto.read import ReadResponse
from services.gateway import calibration, confidence, prompts
from services.gateway.confidence import Confidence, Seen
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize
from services.gateway.question import plain
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance, Request, ask, asked_on, estimate, planned_s, probability
from services.gateway.steps.calculate import calculate
from services.gateway.steps.generate import (
    MIN_ANSWER_TOKENS,
    PLANNED_ANSWER_TOKENS,
    TAUGHT_PROMPT,
    chat,
    fit,
    taught,
    unread,
)
from services.gateway.steps.graph_first import graph_first
from services.gateway.steps.knowledge_graph import answers, as_evidence, look_up, no_such_event
from services.gateway.steps.read import behind, extract, read
from services.gateway.steps.retrieve import RERANKING_OPTIONS, Retrieval
from services.gateway.strategies.base import Strategy
from services.kit.caution import Caution
from services.kit.concurrency import both
from services.kit.llm import Completion, Constraint, Message, estimate_tokens
from services.kit.untrusted import harmless, one_line

# As db3, but for the ranking, the reader's say, the extractor and tables: what found most (`docs/measurements.md`).
WEB = Retrieval(recall_k=50, rerank_k=5, fills=True, chunker="parent-child", reading=True)
# Further samples tell whether the model would say the same again.
SAMPLES = 3
TEMPERATURE = 0.8
SAMPLE_TOKENS = 32
# How often a rule over typed facts is right where it was tried (57 of 58).
SETTLED = 0.98
CHOICES: tuple[Literal["yes", "no"], ...] = ("yes", "no")
SOURCES: dict[str, Literal["kg", "web"]] = {"kg": "kg"}
PROMPTS = {name: prompts.load(name) for name in ("adaptive", "calculate", "closed_book", "entities", TAUGHT_PROMPT)}
CHECK = Message("user", prompts.load("check").user.template)


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


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer, what was seen on the way to it, and what asking more about it takes.

    Args:
        messages: that it replies to.
        adapter: that gave it; empty for the base model.
    """

    draft: Draft
    seen: Seen
    messages: Sequence[Message]
    adapter: str


class Adaptive(Strategy):
    name = "adaptive"
    summary = (
        "Graph first, then the web, as db3, with calculations where they are asked for; each answer is weighed by a "
        "fitted model from what was seen on the way, and what is likelier wrong than right becomes an abstention. "
        "Calls whose result could not change the outcome are not made."
    )
    options = RERANKING_OPTIONS | {"context_tokens", "kg", "calculator", "closed_book", "false_premise", "samples"}
    parts: ClassVar = {
        "kg": Options(kg="off"),
        "rerank": Options(rerank=False),
        "tables": Options(tables=False),
        "calculator": Options(calculator=False),
        "false-premise": Options(false_premise=False),
        "samples": Options(samples=0),
    }

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        # Calls that tell more about an answer, the cheapest first, by the signals that they bring.
        self._looks: dict[frozenset[str], Callable[[Context, Attempt], Awaitable[Seen]]] = {
            confidence.CHECKED: self._checked,
            confidence.REMEMBERED: self._remembered,
            confidence.SAMPLED: self._sampled,
        }

    def describe(self, mesh: Mesh) -> str:
        if not self.settings.abstain:
            return f"{self.summary} Abstention is switched off: every answer is given."
        detail = mesh.weighing(self.settings).detail
        return f"{self.summary} {detail[:1].upper()}{detail[1:]}." if detail else self.summary

    async def answer(self, context: Context) -> Draft:
        # What the model says to each source that it is shown, in turn.
        replies: list[Normalized] = []
        return await graph_first(
            context,
            PROMPTS["entities"],
            WEB,
            from_graph=lambda: self._from_graph(context, replies),
            read=lambda evidence: self._read(context, evidence, replies),
        )

    async def _from_graph(self, context: Context, replies: list[Normalized]) -> Draft | None:
        """The graph's answer: by a rule where the facts are typed and the rule is certain, else read and weighed."""
        facts = await look_up(context)
        if facts is None:
            return None
        classification = await context.classification()
        if no_such_event(context, facts, classification):
            return Draft(INVALID, "invalid_question", SETTLED, "kg", (as_evidence(facts),))
        if not answers(facts, classification):
            return None
        if facts.settled is not None:
            context.run.decide("settled", f"{facts.settled.rule}: {', '.join(facts.settled.inputs)}")
            return Draft(facts.settled.answer, "answer", SETTLED, "kg", (as_evidence(facts),))
        draft = await self._read(context, [as_evidence(facts)], replies)
        return draft if draft.kind == "answer" else None

    async def _read(self, context: Context, evidence: Sequence[Evidence], replies: list[Normalized]) -> Draft:
        """The answer that passages give, weighed.

        Args:
            replies: to earlier sources; this one's is added.
        """
        run, question = context.run, context.question
        run.signals = {}
        classification = await context.classification()
        held = run.hold(unread(evidence))
        shown = await fit(context, evidence, max_tokens=context.context_tokens)
        if evidence and not shown:
            return (await self._extracted(context, held))[1]
        held = run.hold(Draft(evidence=tuple(shown)))
        # From here on a generator that hangs costs the reader nothing.
        first, (reading, extracted) = await both(self._generated(context, shown), self._extracted(context, held))
        if first.completion is None:
            return extracted
        said = _normal(first.completion)[0]
        seen = Seen(
            question.query,
            said.kind,
            said.answer,
            first.completion.samples[0],
            first.shown,
            classification,
            sources=tuple(replies),
            ranks=_ranks(context.mesh, first.adapter, first.completion, said),
            reading=reading,
        )
        replies.append(said)
        draft = Draft(said.answer, said.kind, 0.0, _source(first.shown), tuple(first.shown))
        weighed = await self._judged(context, Attempt(draft, seen, first.messages, first.adapter))
        if weighed.kind != "unknown":
            return weighed
        return replace(weighed, candidates=behind(extracted.candidates, len(first.shown) - len(shown)))

    async def _judged(self, context: Context, attempt: Attempt) -> Draft:
        """The draft as it is where every answer is wanted, else weighed by the confidence that fits who answered."""
        if context.question.every_answer or not self.settings.abstain:
            return await self._unweighed(context, attempt)
        calibrated, generator = context.mesh.calibration, context.mesh.llm.model
        if calibrated.own(generator, attempt.adapter) is None:
            context.run.degrade(calibration.STAGE, "unavailable", calibrated.missing(generator, attempt.adapter))
        return await self._weighed(context, attempt, calibrated.choose(generator, attempt.adapter))

    async def _unweighed(self, context: Context, attempt: Attempt) -> Draft:
        """The draft as it is, with all signals: what a confidence is to be fitted on."""
        run = context.run
        run.signals = confidence.signals(attempt.seen)
        if attempt.draft.kind != "unknown":
            for look in self._looks.values():
                attempt = replace(attempt, seen=await look(context, attempt))
            run.signals = confidence.signals(attempt.seen)
        return replace(attempt.draft, confidence=probability(attempt.seen.sample))

    async def _weighed(self, context: Context, attempt: Attempt, model: Confidence | None) -> Draft:
        """The draft with its probability, an abstention, or the judgement that the question is invalid."""
        run, draft = context.run, attempt.draft
        signals = run.signals = confidence.signals(attempt.seen)
        if model is None:
            # Without a fitted model nothing hangs on more signals.
            return replace(draft, confidence=probability(attempt.seen.sample))
        caution = self.settings.caution
        pending = [names for names in self._looks if model.uses(names)] if draft.kind != "unknown" else []
        if not pending:
            run.decide("check", "no further call is of use")
        while pending:
            if not model.may_change(signals, frozenset().union(*pending), caution):
                run.decide("check", "no further call could change the outcome")
                break
            attempt = replace(attempt, seen=await self._looks[pending.pop(0)](context, attempt))
            signals = run.signals = confidence.signals(attempt.seen)
        decision = model.decide(signals, caution)
        run.decide("confidence", f"{decision.kind} with {decision.probability:.2f}; {_lines(model, caution)}")
        confident = round(decision.probability, 4)
        if decision.kind == "answer":
            return replace(draft, confidence=confident)
        if decision.kind == "invalid_question" and context.options.false_premise is not False:
            return Draft(INVALID, "invalid_question", confident, draft.source, draft.evidence)
        return Draft(UNKNOWN, "unknown", confident, "none", draft.evidence)

    async def _generated(self, context: Context, shown: Sequence[Evidence]) -> First:
        """The generator's first reply, with calculations where they are asked for."""
        settings, question = self.settings, context.question
        has_adapter = await taught(context, settings.web_answer_adapter)
        if not has_adapter:
            # The adapter has not been taught to read calculations, and its base model is too small to write them.
            shown = [*await self._computed(context, shown), *shown]
        prompt = PROMPTS[TAUGHT_PROMPT] if has_adapter else PROMPTS["adaptive"]
        messages = chat(prompt, plain(question.query), question.query_time, shown)
        request = Request(
            "generate",
            messages,
            max_tokens=settings.max_answer_tokens,
            min_tokens=MIN_ANSWER_TOKENS,
            optional=False,
            adapter=settings.web_answer_adapter,
            logprobs=True,
        )
        completion = await ask(context, request)
        return First(completion, messages, shown, settings.web_answer_adapter if has_adapter else "")

    async def _extracted(self, context: Context, held: Draft) -> tuple[ReadResponse | None, Draft]:
        """What the extractive reader finds, and the answer that it gives, or an abstention that shows it.

        Args:
            held: shows the evidence, and is what there is where nothing was read.
        """
        query, shown = plain(context.question.query), held.evidence
        reading = await read(context, query, shown)
        if reading is None:
            return None, held
        threshold = self.settings.reader_threshold
        draft = extract(context.run, query, reading, shown, _source(shown), threshold=threshold)
        return reading, context.run.hold(draft)

    async def _computed(self, context: Context, shown: Sequence[Evidence]) -> list[Evidence]:
        """Calculations over what will be shown, where the question asks for any and the time allows both calls."""
        read_tokens = sum(estimate_tokens(item.text) for item in shown)
        answering_s = planned_s(context.mesh, read_tokens, PLANNED_ANSWER_TOKENS)
        allowance = Allowance(self.settings.calculate_cap_s, answering_s)
        return await calculate(context, PROMPTS["calculate"], shown, allowance)

    async def _sampled(self, context: Context, attempt: Attempt) -> Seen:
        """What the same model says again, at a temperature."""
        count = SAMPLES if context.options.samples is None else context.options.samples
        if not count:
            return attempt.seen
        request = Request(
            "samples",
            attempt.messages,
            max_tokens=SAMPLE_TOKENS,
            min_tokens=SAMPLE_TOKENS,
            known_tokens=estimate(attempt.messages),
            adapter=self.settings.web_answer_adapter,
            n=count,
            temperature=TEMPERATURE,
        )
        drawn = await ask(context, request)
        return attempt.seen if drawn is None else replace(attempt.seen, others=_normal(drawn))

    async def _checked(self, context: Context, attempt: Attempt) -> Seen:
        """Whether the model that answered finds its answer in the documents, when it looks again."""
        seen = attempt.seen
        if seen.kind != "answer":
            return seen
        request = Request(
            "check",
            [*attempt.messages, Message("assistant", harmless(seen.answer)), CHECK],
            max_tokens=1,
            min_tokens=1,
            known_tokens=estimate(attempt.messages),
            adapter=self.settings.web_answer_adapter,
            constraint=Constraint(choice=CHOICES),
            logprobs=True,
        )
        checked = await ask(context, request)
        return seen if checked is None else replace(seen, check=_yes(checked))

    async def _remembered(self, context: Context, attempt: Attempt) -> Seen:
        """What the model says of its own, without documents (ElectricSheep, section 4.4)."""
        if context.options.closed_book is False:
            return attempt.seen
        question, seen = context.question, attempt.seen
        messages = PROMPTS["closed_book"].fill(
            query=one_line(plain(question.query)), query_time=asked_on(question.query_time)
        )
        told = await ask(context, Request("memory", messages, SAMPLE_TOKENS, MIN_ANSWER_TOKENS))
        return seen if told is None else replace(seen, sources=(*seen.sources, *_normal(told)))


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
