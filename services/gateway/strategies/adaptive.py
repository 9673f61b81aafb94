"""`adaptive`: the graph first, then the web; an answer only where it is likelier right than wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from proto.kg import RULES_ACCURACY
from proto.options import Options
from proto.read import ReadResponse
from services.gateway import calibration, confidence, prompts
from services.gateway.calculator.wanted import asks_arithmetic
from services.gateway.confidence import Confidence, Observation
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID, normalize_sample
from services.gateway.question import asks_whether, plain
from services.gateway.run import Draft
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance, probability
from services.gateway.steps.calculate import calculate
from services.gateway.steps.generate import (
    PLANNED_ANSWER_TOKENS,
    TAUGHT_PROMPT,
    chat,
    complete,
    fit,
    serves_adapter,
    unread,
)
from services.gateway.steps.graph_first import graph_first, unasked_last
from services.gateway.steps.knowledge_graph import answers, as_evidence, look_up, no_such_event, with_whole_list
from services.gateway.steps.read import behind, extract, read
from services.gateway.steps.retrieve import RERANKING_OPTIONS, Retrieval
from services.gateway.strategies.base import Strategy
from services.kit.caution import Caution
from services.kit.concurrency import both
from services.kit.llm import Completion
from services.kit.tokens import estimate_tokens

# As db3, but for the ranking, the reader's say, the extractor and tables: what found most (`docs/measurements.md`).
WEB = Retrieval(recall_k=50, rerank_k=5, fills=True, chunker="parent-child", reading=True)
# Tokens of the best passages, which are read alone at first where reading the others takes longer than this.
FIRST_TOKENS, FIRST_SAVES_S = 400, 1.5
# Questions that one passage answers, as far as the classifier can tell.
OF_ONE_PASSAGE = frozenset({"simple", "simple_w_condition", "unknown"})
PROMPTS = {name: prompts.load(name) for name in ("adaptive", TAUGHT_PROMPT)}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A draft, the observation of it so far, and the completion that it is taken from."""

    draft: Draft
    observation: Observation
    completion: Completion

    @property
    def adapter(self) -> str:
        """The adapter that replied, empty where the base model did."""
        return self.completion.adapter

    def with_reading(self, reading: ReadResponse | None) -> "Attempt":
        """The attempt with what the extractive reader says of its evidence."""
        return replace(self, observation=replace(self.observation, reading=reading))


class Adaptive(Strategy):
    name = "adaptive"
    summary = (
        "Graph first, then the web, as db3, with calculations where they are asked for; each answer is weighed by a "
        "fitted model from what was seen on the way, and what is likelier wrong than right becomes an abstention."
    )
    options = RERANKING_OPTIONS | {"context_tokens", "kg", "calculator", "false_premise"}
    parts: ClassVar = {
        "kg": Options(kg="off"),
        "rerank": Options(rerank=False),
        "tables": Options(tables=False),
        "calculator": Options(calculator=False),
        "false-premise": Options(false_premise=False),
    }

    def describe(self, mesh: Mesh, settings: GatewaySettings) -> str:
        if not settings.abstain:
            return f"{self.summary} Abstention is switched off: every answer is given."
        detail = mesh.weighing(settings).detail
        return f"{self.summary} {detail[:1].upper()}{detail[1:]}." if detail else self.summary

    async def answer(self, context: Context) -> Draft:
        draft = await graph_first(context, WEB, from_graph=_from_graph, read=_read)
        return await unasked_last(context, draft, from_graph=_from_graph)


async def _from_graph(context: Context, *, domain: str = "") -> Draft | None:
    """The graph's answer: by a rule where one settles the question, else read from the facts and weighed."""
    facts = await look_up(context, domain=domain)
    if facts is None:
        return None
    classification = await context.classification()
    if no_such_event(context, facts, classification):
        return Draft(INVALID, "invalid_question", RULES_ACCURACY, "kg", (as_evidence(facts),))
    if not answers(facts, classification):
        return None
    # Where nothing says that the question belongs to these tables, a model that is sure of its statement is not enough.
    if facts.settled is not None and not (domain and facts.settled.rule == "statement"):
        context.run.decide("settled", f"{facts.settled.rule}: {', '.join(facts.settled.inputs)}")
        answer = with_whole_list(facts.settled.answer, context.question.query, facts)
        return Draft(answer, "answer", facts.settled.probability, "kg", (as_evidence(facts),))
    draft = await _read(context, [as_evidence(facts)])
    if draft.kind != "answer":
        return None
    return replace(draft, answer=with_whole_list(draft.answer, context.question.query, facts))


async def _read(context: Context, evidence: Sequence[Evidence]) -> Draft:
    """The answer from passages, weighed."""
    run = context.run
    run.signals = {}
    classification = await context.classification()
    abstention = run.hold(unread(evidence))
    passages = await fit(context, evidence, max_tokens=context.context_tokens)
    if evidence and not passages:
        return (await _extract(context, abstention))[1]
    abstention = run.hold(Draft(evidence=tuple(passages)))
    best = await _best(context, passages) if classification.question_type in OF_ONE_PASSAGE else []
    # Side by side, so that a generator that hangs does not delay the reader.
    attempt, (reading, extracted) = await both(_generate(context, best or passages), _extract(context, abstention))
    fallback = extracted
    if best and attempt:
        attempt = attempt.with_reading(reading)
        chances = _chances(context, attempt)
        if "high" in chances:
            run.decide("passages", f"the {len(best)} best of {len(passages)} are enough")
            return _weighed(context, attempt)
        if (chance := chances.get(context.settings.caution)) is not None:
            fallback = run.hold(replace(attempt.draft, confidence=round(chance, 4)))
        cached_tokens = attempt.completion.prompt_tokens
        attempt = await _generate(context, passages, cached_tokens=cached_tokens)
    if attempt is None:
        return fallback
    weighed = _weighed(context, attempt.with_reading(reading))
    if weighed.kind != "unknown":
        return weighed
    calculations = len(attempt.draft.evidence) - len(passages)
    return replace(weighed, candidates=behind(extracted.candidates, calculations))


async def _best(context: Context, passages: Sequence[Evidence]) -> list[Evidence]:
    """The best passages to read alone at first; none where all are read as soon, or one will not do."""
    mesh, question = context.mesh, context.question
    weighs = mesh.calibration.choose(mesh.llm.model, context.settings.web_answer_adapter) is not None
    if _gives_all(context) or not weighs or asks_arithmetic(question.query):
        return []
    tokens = sum(estimate_tokens(item.text) for item in passages)
    twice_s = mesh.speed.planned_s(tokens + estimate_tokens(question.query), 2 * PLANNED_ANSWER_TOKENS)
    if mesh.speed.seconds(tokens - FIRST_TOKENS, 0) < FIRST_SAVES_S or twice_s > context.run.budget.left():
        return []
    best = await fit(context, passages, max_tokens=FIRST_TOKENS)
    return best if len(best) < len(passages) else []


def _chances(context: Context, attempt: Attempt) -> dict[Caution, float]:
    """The answer's probability by what was seen, at each caution that it is given at: the settings' and `high`."""
    model = _confidence_of(context, attempt)
    if model is None:
        return {}
    signals = confidence.signals(attempt.observation)
    cautions: tuple[Caution, ...] = (context.settings.caution, "high")
    decisions = {one: model.decide(signals, one) for one in cautions}
    return {caution: one.probability for caution, one in decisions.items() if one.kind == "answer"}


def _weighed(context: Context, attempt: Attempt) -> Draft:
    """The draft with its probability, an abstention, or the judgement that the question is invalid.

    Where every answer is wanted, and where nothing is fitted that could weigh it, only its probability is added.
    """
    mesh, run, draft, observation = context.mesh, context.run, attempt.draft, attempt.observation
    models, generator = mesh.calibration, mesh.llm.model
    logprobs = confidence.logprob_signals(observation.sample)
    if observation.kind == "answer" and logprobs:
        models.observe(confidence.name_of(generator, attempt.adapter), logprobs)
    signals = run.signals = confidence.signals(observation)
    model = None
    if not _gives_all(context):
        model = _confidence_of(context, attempt)
        if models.own(generator, attempt.adapter) is None:
            run.degrade(calibration.STAGE, "unavailable", models.missing(generator, attempt.adapter))
    if model is None:
        if draft.kind == "unknown":
            return draft.withheld()
        return replace(draft, confidence=probability(observation.sample))
    caution = context.settings.caution
    decision = model.decide(signals, caution)
    run.decide("confidence", f"{decision.kind} with {decision.probability:.2f}; {_thresholds(model, caution)}")
    weighed = replace(draft, confidence=round(decision.probability, 4))
    if decision.kind == "answer":
        return weighed
    if decision.kind == "invalid_question":
        return replace(weighed, answer=INVALID, kind="invalid_question")
    return weighed.withheld(weighed.confidence)


def _gives_all(context: Context) -> bool:
    return context.question.every_answer or not context.settings.abstain


async def _adapter(context: Context, passages: Sequence[Evidence]) -> str:
    """The adapter to ask: the one for yes or no where passages are asked for it, the generator serves it, and a
    confidence weighs its answers or none is wanted; else the one for web answers.
    """
    mesh, web_answer, yes_no = context.mesh, context.settings.web_answer_adapter, context.settings.yes_no_adapter
    if yes_no and _source(passages) == "web" and asks_whether(plain(context.question.query)):
        is_fitted = mesh.calibration.own(mesh.llm.model, yes_no) is not None
        if (is_fitted or _gives_all(context)) and await serves_adapter(context, yes_no, otherwise=web_answer):
            return yes_no
    return web_answer


async def _generate(context: Context, passages: Sequence[Evidence], *, cached_tokens: int = 0) -> Attempt | None:
    """The generator's answer, with calculations where the question asks for them; None where it gave no reply."""
    mesh, question, adapter = context.mesh, context.question, await _adapter(context, passages)
    has_adapter = await serves_adapter(context, adapter)
    evidence = passages
    if not has_adapter:
        # The adapter is not trained to read calculations, and its base model is too small to write them.
        evidence = [*await _calculate(context, passages), *passages]
    prompt = PROMPTS[TAUGHT_PROMPT if has_adapter else "adaptive"]
    messages = chat(prompt, plain(question.query), question.query_time, evidence)
    completion = await complete(
        context, messages, max_tokens=context.settings.max_answer_tokens, adapter=adapter, cached_tokens=cached_tokens
    )
    if completion is None:
        return None
    sample, generator = completion.samples[0], confidence.name_of(mesh.llm.model, completion.adapter)
    reply, logprobs = normalize_sample(sample), confidence.logprob_signals(sample)
    observation = Observation(
        question.query,
        reply.kind,
        reply.answer,
        sample,
        evidence,
        await context.classification(),
        ranks=mesh.calibration.ranks(generator, logprobs),
    )
    draft = Draft(reply.answer, reply.kind, 0.0, _source(evidence), tuple(evidence), generator=generator)
    return Attempt(draft, observation, completion)


async def _extract(context: Context, abstention: Draft) -> tuple[ReadResponse | None, Draft]:
    """The extractive reader's spans in the abstention's evidence, and the draft from them; else the abstention."""
    query, evidence = plain(context.question.query), abstention.evidence
    reading = await read(context, query, evidence)
    if reading is None:
        return None, abstention
    threshold = context.settings.reader_threshold
    draft = extract(context.run, query, reading, evidence, _source(evidence), threshold=threshold)
    return reading, context.run.hold(draft)


async def _calculate(context: Context, passages: Sequence[Evidence]) -> list[Evidence]:
    """Calculations over the passages, where the question asks for any and the time allows both calls."""
    passage_tokens = sum(estimate_tokens(item.text) for item in passages)
    answering_s = context.mesh.speed.planned_s(passage_tokens, PLANNED_ANSWER_TOKENS)
    allowance = Allowance(context.settings.calculate_cap_s, answering_s)
    return await calculate(context, passages, allowance)


def _thresholds(model: Confidence, caution: Caution) -> str:
    invalid = "" if model.invalid is None else f", invalid from {model.invalid.thresholds[caution]:.2f} on"
    return f"given from {model.answer.thresholds[caution]:.2f} on{invalid}"


def _source(evidence: Sequence[Evidence]) -> Literal["kg", "web", "model"]:
    """The source of the best evidence, calculations aside; all but the graph's counts as the web's."""
    sources = [item.source for item in evidence if item.source != "calculator"]
    if not sources:
        return "model"
    return "kg" if sources[0] == "kg" else "web"


def _confidence_of(context: Context, attempt: Attempt) -> Confidence | None:
    """What weighs the attempt's answer; without its head of invalid questions where nobody asks for them."""
    model = context.mesh.calibration.choose(context.mesh.llm.model, attempt.adapter)
    if model is None or context.options.false_premise is not False:
        return model
    return model.model_copy(update={"invalid": None})
