"""`adaptive`: the graph first, then the web; an answer only where it is likelier right than wrong."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import ClassVar, Literal

from proto.options import Options
from proto.read import ReadResponse
from services.gateway import calibration, confidence, prompts
from services.gateway.calculator.wanted import asks_arithmetic
from services.gateway.confidence import Confidence, Observation
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize_sample
from services.gateway.question import plain
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance, Request, ask, estimate, fill, planned_s, probability
from services.gateway.steps.calculate import calculate
from services.gateway.steps.generate import (
    MIN_ANSWER_TOKENS,
    PLANNED_ANSWER_TOKENS,
    TAUGHT_PROMPT,
    chat,
    complete,
    fit,
    serves_adapter,
    unread,
)
from services.gateway.steps.graph_first import graph_first
from services.gateway.steps.knowledge_graph import answers, as_evidence, look_up, no_such_event
from services.gateway.steps.read import behind, extract, read
from services.gateway.steps.retrieve import RERANKING_OPTIONS, Retrieval
from services.gateway.strategies.base import Strategy
from services.kit.caution import Caution
from services.kit.concurrency import both
from services.kit.llm import Completion, Constraint, Message, Sample
from services.kit.tokens import estimate_tokens
from services.kit.untrusted import harmless

# As db3, but for the ranking, the reader's say, the extractor and tables: what found most (`docs/measurements.md`).
WEB = Retrieval(recall_k=50, rerank_k=5, fills=True, chunker="parent-child", reading=True)
SAMPLES = 3
TEMPERATURE = 0.8
SAMPLE_TOKENS = 32
# Accuracy of rules over typed facts where it was measured (57 of 58).
SETTLED = 0.98
CHOICES: tuple[Literal["yes", "no"], ...] = ("yes", "no")
# Tokens of the best passages, which are read alone at first where reading the others takes longer than this.
FIRST_TOKENS, FIRST_SAVES_S = 400, 1.5
# Questions that one passage answers, as far as the classifier can tell.
OF_ONE_PASSAGE = frozenset({"simple", "simple_w_condition", "unknown"})
PROMPTS = {name: prompts.load(name) for name in ("adaptive", "calculate", "closed_book", "entities", TAUGHT_PROMPT)}
CHECK = prompts.load_turn("check")


@dataclass(frozen=True, slots=True)
class FirstReply:
    """The generator's first reply, None where it gave none, to messages with this evidence, calculations first.

    `adapter` is empty where the base model replied.
    """

    completion: Completion | None
    messages: Sequence[Message]
    evidence: Sequence[Evidence]
    adapter: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A draft, the observation of it so far, and the reply that it is taken from."""

    draft: Draft
    observation: Observation
    first: FirstReply


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
        # Further calls by the signals that they add, the cheapest first.
        self._further_calls: dict[frozenset[str], Callable[[Context, Attempt], Awaitable[Observation]]] = {
            confidence.CHECKED: self._add_check,
            confidence.REMEMBERED: self._add_memory,
            confidence.SAMPLED: self._add_samples,
        }

    def describe(self, mesh: Mesh) -> str:
        if not self.settings.abstain:
            return f"{self.summary} Abstention is switched off: every answer is given."
        detail = mesh.weighing(self.settings).detail
        return f"{self.summary} {detail[:1].upper()}{detail[1:]}." if detail else self.summary

    async def answer(self, context: Context) -> Draft:
        # The model's answers from earlier sources.
        replies: list[Normalized] = []
        return await graph_first(
            context,
            PROMPTS["entities"],
            WEB,
            from_graph=lambda: self._from_graph(context, replies),
            read=lambda evidence: self._read(context, evidence, replies),
        )

    async def _from_graph(self, context: Context, replies: list[Normalized]) -> Draft | None:
        """The graph's answer: by a rule where one settles the question, else read from the facts and weighed."""
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
        """The answer from passages, weighed; its reply is added to those from earlier sources."""
        run = context.run
        run.signals = {}
        classification = await context.classification()
        abstention = run.hold(unread(evidence))
        passages = await fit(context, evidence, max_tokens=context.context_tokens)
        if evidence and not passages:
            return (await self._extract(context, abstention))[1]
        abstention = run.hold(Draft(evidence=tuple(passages)))
        best = await self._best(context, passages) if classification.question_type in OF_ONE_PASSAGE else []
        # Side by side, so that a generator that hangs does not delay the reader.
        first, (reading, extracted) = await both(
            self._generate(context, best or passages), self._extract(context, abstention)
        )
        fallback = extracted
        if best and first.completion is not None:
            attempt = await self._attempt(context, first, first.completion, reading, replies)
            chances = self._chances(context, attempt)
            if "high" in chances:
                run.decide("passages", f"the {len(best)} best of {len(passages)} are enough")
                return await self._weighed(context, attempt, replies)
            if (chance := chances.get(self.settings.caution)) is not None:
                fallback = run.hold(replace(attempt.draft, confidence=round(chance, 4)))
            first = await self._generate(context, passages, cached_tokens=first.completion.prompt_tokens)
        if first.completion is None:
            return fallback
        attempt = await self._attempt(context, first, first.completion, reading, replies)
        weighed = await self._weighed(context, attempt, replies)
        if weighed.kind != "unknown":
            return weighed
        return replace(weighed, candidates=behind(extracted.candidates, len(first.evidence) - len(passages)))

    async def _best(self, context: Context, passages: Sequence[Evidence]) -> list[Evidence]:
        """The best passages to read alone at first; none where all are read as soon, or one will not do."""
        mesh, question = context.mesh, context.question
        gives_all = question.every_answer or not self.settings.abstain
        if gives_all or mesh.calibration.choose(mesh.llm.model, self.settings.web_answer_adapter) is None:
            return []
        tokens = sum(estimate_tokens(item.text) for item in passages)
        twice_s = planned_s(mesh, tokens + estimate_tokens(question.query), 2 * PLANNED_ANSWER_TOKENS)
        if mesh.speed.seconds(tokens - FIRST_TOKENS, 0) < FIRST_SAVES_S or twice_s > context.run.budget.left():
            return []
        if asks_arithmetic(question.query):
            return []
        best = await fit(context, passages, max_tokens=FIRST_TOKENS)
        return best if len(best) < len(passages) else []

    async def _attempt(
        self,
        context: Context,
        first: FirstReply,
        completion: Completion,
        reading: ReadResponse | None,
        replies: Sequence[Normalized],
    ) -> Attempt:
        """The completion of the first reply, with the signals that cost no further call."""
        mesh, sample = context.mesh, completion.samples[0]
        reply, logprobs = normalize_sample(sample), confidence.logprob_signals(sample)
        observation = Observation(
            context.question.query,
            reply.kind,
            reply.answer,
            sample,
            first.evidence,
            await context.classification(),
            sources=tuple(replies),
            ranks=mesh.calibration.ranks(confidence.name_of(mesh.llm.model, first.adapter), logprobs),
            reading=reading,
        )
        draft = Draft(reply.answer, reply.kind, 0.0, _source(first.evidence), tuple(first.evidence))
        return Attempt(draft, observation, first)

    def _chances(self, context: Context, attempt: Attempt) -> dict[Caution, float]:
        """The answer's probability by what was seen, at each caution that it is given at: the settings' and `high`."""
        model = _confidence_of(context, attempt)
        if model is None:
            return {}
        signals = confidence.signals(attempt.observation)
        cautions: tuple[Caution, ...] = (self.settings.caution, "high")
        decisions = {one: model.decide(signals, one) for one in cautions}
        return {caution: one.probability for caution, one in decisions.items() if one.kind == "answer"}

    async def _weighed(self, context: Context, attempt: Attempt, replies: list[Normalized]) -> Draft:
        """The attempt's draft, weighed; its reply and its log-probabilities are added to the earlier ones."""
        mesh, sample = context.mesh, attempt.observation.sample
        replies.append(normalize_sample(sample))
        logprobs = confidence.logprob_signals(sample)
        if attempt.draft.kind == "answer" and logprobs:
            mesh.calibration.observe(confidence.name_of(mesh.llm.model, attempt.first.adapter), logprobs)
        return await self._assess(context, attempt)

    async def _assess(self, context: Context, attempt: Attempt) -> Draft:
        """The draft unchanged where every answer is wanted, else weighed by the confidence of who answered."""
        if context.question.every_answer or not self.settings.abstain:
            return await self._observe(context, attempt)
        models, generator, adapter = context.mesh.calibration, context.mesh.llm.model, attempt.first.adapter
        if models.own(generator, adapter) is None:
            context.run.degrade(calibration.STAGE, "unavailable", models.missing(generator, adapter))
        return await self._weigh(context, attempt, _confidence_of(context, attempt))

    async def _observe(self, context: Context, attempt: Attempt) -> Draft:
        """The draft unchanged, with all signals, on which a confidence can be fitted."""
        run = context.run
        run.signals = confidence.signals(attempt.observation)
        if attempt.draft.kind != "unknown":
            for call in self._further_calls.values():
                attempt = replace(attempt, observation=await call(context, attempt))
            run.signals = confidence.signals(attempt.observation)
        return replace(attempt.draft, confidence=probability(attempt.observation.sample))

    async def _weigh(self, context: Context, attempt: Attempt, model: Confidence | None) -> Draft:
        """The draft with its probability, an abstention, or the judgement that the question is invalid."""
        run, draft = context.run, attempt.draft
        signals = run.signals = confidence.signals(attempt.observation)
        if model is None:
            return replace(draft, confidence=probability(attempt.observation.sample))
        caution = self.settings.caution
        pending = [names for names in self._further_calls if model.uses(names)] if draft.kind != "unknown" else []
        if not pending:
            run.decide("check", "no further call is of use")
        while pending:
            if not model.may_change(signals, frozenset().union(*pending), caution):
                run.decide("check", "no further call could change the outcome")
                break
            attempt = replace(attempt, observation=await self._further_calls[pending.pop(0)](context, attempt))
            signals = run.signals = confidence.signals(attempt.observation)
        decision = model.decide(signals, caution)
        run.decide("confidence", f"{decision.kind} with {decision.probability:.2f}; {_thresholds(model, caution)}")
        weighed = replace(draft, confidence=round(decision.probability, 4))
        if decision.kind == "answer":
            return weighed
        if decision.kind == "invalid_question":
            return replace(weighed, answer=INVALID, kind="invalid_question")
        return replace(weighed, answer=UNKNOWN, kind="unknown", source="none")

    async def _generate(self, context: Context, passages: Sequence[Evidence], *, cached_tokens: int = 0) -> FirstReply:
        """The generator's first reply, with calculations where the question asks for them."""
        question, adapter = context.question, self.settings.web_answer_adapter
        has_adapter = await serves_adapter(context, adapter)
        evidence = passages
        if not has_adapter:
            # The adapter is not trained to read calculations, and its base model is too small to write them.
            evidence = [*await self._calculate(context, passages), *passages]
        prompt = PROMPTS[TAUGHT_PROMPT if has_adapter else "adaptive"]
        messages = chat(prompt, plain(question.query), question.query_time, evidence)
        completion = await complete(
            context, messages, max_tokens=self.settings.max_answer_tokens, adapter=adapter, cached_tokens=cached_tokens
        )
        return FirstReply(completion, messages, evidence, adapter if has_adapter else "")

    async def _extract(self, context: Context, abstention: Draft) -> tuple[ReadResponse | None, Draft]:
        """The extractive reader's spans in the abstention's evidence, and the draft from them; else the abstention."""
        query, evidence = plain(context.question.query), abstention.evidence
        reading = await read(context, query, evidence)
        if reading is None:
            return None, abstention
        threshold = self.settings.reader_threshold
        draft = extract(context.run, query, reading, evidence, _source(evidence), threshold=threshold)
        return reading, context.run.hold(draft)

    async def _calculate(self, context: Context, passages: Sequence[Evidence]) -> list[Evidence]:
        """Calculations over the passages, where the question asks for any and the time allows both calls."""
        passage_tokens = sum(estimate_tokens(item.text) for item in passages)
        answering_s = planned_s(context.mesh, passage_tokens, PLANNED_ANSWER_TOKENS)
        allowance = Allowance(self.settings.calculate_cap_s, answering_s)
        return await calculate(context, PROMPTS["calculate"], passages, allowance)

    async def _add_samples(self, context: Context, attempt: Attempt) -> Observation:
        """Add further samples at a temperature, which show whether the model repeats its answer."""
        observation, messages = attempt.observation, attempt.first.messages
        count = SAMPLES if context.options.samples is None else context.options.samples
        if not count:
            return observation
        request = Request(
            "samples",
            messages,
            max_tokens=SAMPLE_TOKENS,
            min_tokens=SAMPLE_TOKENS,
            cached_tokens=estimate(messages),
            adapter=self.settings.web_answer_adapter,
            n=count,
            temperature=TEMPERATURE,
        )
        completion = await ask(context, request)
        return observation if completion is None else replace(observation, others=_normalize_all(completion))

    async def _add_check(self, context: Context, attempt: Attempt) -> Observation:
        """Add the probability that the model, asked again, finds its answer in the documents."""
        observation, messages = attempt.observation, attempt.first.messages
        if observation.kind != "answer":
            return observation
        request = Request(
            "check",
            [*messages, Message("assistant", harmless(observation.answer)), CHECK],
            max_tokens=1,
            min_tokens=1,
            cached_tokens=estimate(messages),
            adapter=self.settings.web_answer_adapter,
            constraint=Constraint(choice=CHOICES),
            logprobs=True,
        )
        completion = await ask(context, request)
        return observation if completion is None else replace(observation, check=_yes(completion.samples[0]))

    async def _add_memory(self, context: Context, attempt: Attempt) -> Observation:
        """Add the model's answer without documents (ElectricSheep, section 4.4)."""
        question, observation = context.question, attempt.observation
        if context.options.closed_book is False:
            return observation
        messages = fill(PROMPTS["closed_book"], plain(question.query), question.query_time)
        completion = await ask(context, Request("memory", messages, SAMPLE_TOKENS, MIN_ANSWER_TOKENS))
        if completion is None:
            return observation
        return replace(observation, sources=(*observation.sources, *_normalize_all(completion)))


def _thresholds(model: Confidence, caution: Caution) -> str:
    invalid = "" if model.invalid is None else f", invalid from {model.invalid.thresholds[caution]:.2f} on"
    return f"given from {model.answer.thresholds[caution]:.2f} on{invalid}"


def _normalize_all(completion: Completion) -> list[Normalized]:
    return [normalize_sample(sample) for sample in completion.samples]


def _yes(sample: Sample) -> float:
    """Probability of `yes`, where `no` is the only alternative."""
    chosen = exp(sample.token_logprobs[0]) if sample.token_logprobs else 1.0
    return chosen if sample.text == "yes" else 1.0 - chosen


def _source(evidence: Sequence[Evidence]) -> Literal["kg", "web", "model"]:
    """The source of the best evidence, calculations aside; all but the graph's counts as the web's."""
    sources = [item.source for item in evidence if item.source != "calculator"]
    if not sources:
        return "model"
    return "kg" if sources[0] == "kg" else "web"


def _confidence_of(context: Context, attempt: Attempt) -> Confidence | None:
    """What weighs the attempt's answer; without its head of invalid questions where nobody asks for them."""
    model = context.mesh.calibration.choose(context.mesh.llm.model, attempt.first.adapter)
    if model is None or context.options.false_premise is not False:
        return model
    return model.model_copy(update={"invalid": None})
