"""What facts settle by themselves: comparisons, yes or no, differences, ages, counts, totals and lists (WeKnow-RAG).

A language model subtracts, counts and compares badly; where the graph has returned typed values the answer follows
from them. Every rule is strict. Each word of the question must be understood: as a name of the facts, as a word of what
was looked up, as the comparison or as filler. A word that is none of these may change the question, and then nothing is
settled and the model reads the facts. What is looked up, and by which words, is the domain's `words.yaml`.
"""

from collections.abc import Mapping, Sequence

from proto.kg import KgSettled
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.outcome import Outcome
from services.kg.settle.facts import fact_of
from services.kg.settle.rules import RULES, listed
from services.kg.settle.stated import affirmed, chosen, found, looked_up, stated
from services.kg.settle.wording import NEGATED, Wording

__all__ = ["settle"]
# From the first probability on a model's statement is told as it finds it, below the second no rule settles anything by
# it; between them one may. Of all else a reader says whether it answers.
SURE, DOUBTED = 0.85, 0.3
# As the first, where it computes a number, in which a reader sees nothing more.
SURE_OF_NUMBERS = 0.75
# What a model's SELECT settles, by the rule's name.
_OF_SELECTS = (("yes or no", affirmed), ("comparison", chosen), ("value", looked_up))


def settle(
    question: str,
    outcomes: Sequence[Outcome],
    lexicons: Mapping[str, Lexicon],
    *,
    by_rules: bool = False,
    probability: float | None = None,
) -> KgSettled | None:
    """The answer, where a rule is certain of it, or a model of its statement; None for all other questions.

    Every statement of the program must have succeeded.

    Args:
        by_rules: whether rules wrote the program, and no model.
        probability: that the program is right, where a model says so; of what it doubts a reader says what it tells.
    """
    if not outcomes or any(one.status != "ok" or one.function is None for one in outcomes):
        return None
    query = " ".join(question.lower().replace("’", "'").split())
    if probability is not None and probability < DOUBTED:
        return None
    settled = _by_a_rule(query, outcomes, lexicons, by_rules=by_rules)
    sure = SURE if outcomes[0].value is None else SURE_OF_NUMBERS
    if settled is None and (probability or 0.0) >= sure and (answer := found(query, outcomes)) is not None:
        return KgSettled(answer=answer, rule="statement", inputs=(outcomes[0].source,), probability=probability)
    return settled


def _by_a_rule(
    query: str, outcomes: Sequence[Outcome], lexicons: Mapping[str, Lexicon], *, by_rules: bool
) -> KgSettled | None:
    if by_rules and (answer := stated(query, outcomes, lexicons)) is not None:
        return KgSettled(answer=answer, rule="value", inputs=tuple(one.source.strip() for one in outcomes))
    if NEGATED.search(query):
        return None
    for kind, of_select in () if by_rules else _OF_SELECTS:
        if (answer := of_select(query, outcomes)) is not None:
            return KgSettled(answer=answer, rule=kind, inputs=(outcomes[0].source,))
    if (answer := listed(query, outcomes)) is not None:
        return KgSettled(answer=answer, rule="list", inputs=(outcomes[0].source,))
    facts = [fact for outcome in outcomes if (fact := fact_of(query, outcome, lexicons)) is not None]
    wording = Wording(query, facts)
    if len(facts) != len(outcomes) or wording.unknown_words():
        return None
    for name, rule in RULES.items():
        if (answer := rule(wording)) is not None:
            return KgSettled(answer=answer, rule=name, inputs=wording.inputs)
    return None
