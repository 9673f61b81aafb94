"""`adaptive`: the graph first, then the web; an answer only where it is likelier right than wrong."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Literal

from services.gateway import confidence, prompts
from services.gateway.confidence import Confidence, Seen
from services.gateway.evidence import Evidence, harmless
from services.gateway.mesh import Mesh
from services.gateway.normalize import INVALID, UNKNOWN, Normalized, normalize
from services.gateway.question import Question, plain
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import NAMING_RESERVE_S, ask
from services.gateway.steps.facts import answers, as_evidence, no_such_event
from services.gateway.steps.generate import MIN_ANSWER_TOKENS, chat, fit, taught
from services.gateway.steps.post_process import settle
from services.gateway.steps.statements import settle_texts
from services.gateway.strategies.db3 import Db3
from services.kit.llm import Completion, Constraint, Message, estimate_tokens

# Further samples tell whether the model would say the same again.
SAMPLES = 3
TEMPERATURE = 0.8
SAMPLE_TOKENS = 32
# A probability so far from the line cannot cross it by what one more call may tell.
SURE = 0.25
# How often a rule over typed facts is right where it was tried (57 of 58).
SETTLED = 0.98
CHOICES: tuple[Literal["yes", "no"], ...] = ("yes", "no")
SOURCES: dict[str, Literal["kg", "web"]] = {"kg": "kg"}


class Adaptive(Db3):
    name = "adaptive"
    summary = (
        "Graph first, then the web, as db3; each answer is weighed by a fitted model from what was seen on the way, "
        "and what is likelier wrong than right becomes an abstention. Calls whose result could not change the outcome "
        "are not made."
    )

    def __init__(self, settings: GatewaySettings) -> None:
        super().__init__(settings)
        self._answer_prompt = prompts.load("adaptive")
        self._check_turn = Message("user", prompts.load("check").user.template)
        self._models = confidence.load() if settings.abstain else {}

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
        await run.classified.wait()
        shown = await fit(run, mesh, found, max_tokens=settings.max_context_tokens)
        if found and not shown:
            return run.best
        abstention = Draft(evidence=tuple(shown))
        run.best = abstention
        query = plain(question.query)
        settled = settle_texts(query, [item.text for item in shown])
        if settled is not None:
            run.decide("post_process", f"{settled.how}: {', '.join(settled.inputs)}")
            return Draft(settled.answer, "answer", SETTLED, _source(shown), tuple(shown))
        has_adapter = await taught(run, mesh, settings.web_answer_adapter)
        prompt = self._taught_prompt if has_adapter else self._answer_prompt
        messages = chat(prompt, query, question.query_time, shown)
        first = await ask(
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
        if first is None:
            return abstention
        said = _normal(first)[0]
        seen = Seen(question.query, said.kind, said.answer, first.samples[0], shown, run.classification)
        draft = Draft(said.answer, said.kind, 0.0, _source(shown), tuple(shown))
        adapter = settings.web_answer_adapter if has_adapter else ""
        model = confidence.choose(self._models, mesh.llm.model, adapter)
        return await self._weighed(draft, seen, messages, run, mesh, model)

    async def _weighed(
        self, draft: Draft, seen: Seen, messages: Sequence[Message], run: Run, mesh: Mesh, model: Confidence | None
    ) -> Draft:
        """The draft with its probability, an abstention, or the judgement that the question is invalid."""
        run.signals = confidence.signals(seen)
        if model is None:
            # Without a fitted model nothing hangs on more signals, but for the runs that it is to be fitted on.
            if draft.kind != "unknown" and not self.settings.abstain:
                run.signals = confidence.signals(await self._looked_again(seen, messages, run, mesh))
            return replace(draft, confidence=round(exp(run.signals["logprob_mean"]), 4))
        decision = model.decide(run.signals)
        samples, check = model.uses(confidence.SAMPLED), model.uses(confidence.CHECKED)
        if draft.kind == "unknown" or not (samples or check):
            run.decide("check", "no further call is of use")
        elif decision.margin >= SURE:
            run.decide("check", "no further call could change the outcome")
        else:
            again = await self._looked_again(seen, messages, run, mesh, samples=samples, check=check)
            run.signals = confidence.signals(again)
            decision = model.decide(run.signals)
        run.decide("confidence", f"{decision.kind} with {decision.probability:.2f}; {_lines(model)}")
        probability = round(decision.probability, 4)
        if decision.kind == "answer":
            return replace(draft, confidence=probability)
        if decision.kind == "invalid_question":
            return Draft(INVALID, "invalid_question", probability, draft.source, draft.evidence)
        return Draft(UNKNOWN, "unknown", probability, "none", draft.evidence)

    async def _looked_again(
        self,
        seen: Seen,
        messages: Sequence[Message],
        run: Run,
        mesh: Mesh,
        *,
        samples: bool = True,
        check: bool = True,
    ) -> Seen:
        """Further samples, and the model's own check; each left out where it is not wanted or the time is short."""
        known = sum(estimate_tokens(message.content) for message in messages)
        if samples:
            seen = await self._sampled(seen, messages, run, mesh, known)
        if check and seen.kind == "answer":
            seen = await self._checked(seen, messages, run, mesh, known)
        return seen

    async def _sampled(self, seen: Seen, messages: Sequence[Message], run: Run, mesh: Mesh, known: int) -> Seen:
        drawn = await ask(
            run,
            mesh,
            "samples",
            messages,
            max_tokens=SAMPLE_TOKENS,
            min_tokens=SAMPLE_TOKENS,
            known_tokens=known,
            reserve_s=NAMING_RESERVE_S,
            adapter=self.settings.web_answer_adapter,
            n=SAMPLES,
            temperature=TEMPERATURE,
        )
        return seen if drawn is None else replace(seen, others=tuple((one.kind, one.answer) for one in _normal(drawn)))

    async def _checked(self, seen: Seen, messages: Sequence[Message], run: Run, mesh: Mesh, known: int) -> Seen:
        checked = await ask(
            run,
            mesh,
            "check",
            [*messages, Message("assistant", harmless(seen.answer)), self._check_turn],
            max_tokens=1,
            min_tokens=1,
            known_tokens=known,
            constraint=Constraint(choice=CHOICES),
            logprobs=True,
        )
        return seen if checked is None else replace(seen, check=_yes(checked))


def _lines(model: Confidence) -> str:
    invalid = "" if model.invalid is None else f", invalid from {model.invalid.threshold:.2f} on"
    return f"given from {model.answer.threshold:.2f} on{invalid}"


def _normal(completion: Completion) -> list[Normalized]:
    return [normalize(sample.text, finished=sample.finish_reason != "length") for sample in completion.samples]


def _yes(completion: Completion) -> float:
    """Probability of `yes`; what is not given to the word that was said is the other's."""
    sample = completion.samples[0]
    said = exp(sample.token_logprobs[0]) if sample.token_logprobs else 1.0
    return said if sample.text == "yes" else 1.0 - said


def _source(shown: Sequence[Evidence]) -> Literal["kg", "web", "model"]:
    return SOURCES.get(shown[0].source, "web") if shown else "model"
