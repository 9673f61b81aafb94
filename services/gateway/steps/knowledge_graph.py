"""Step `kg`: facts of the knowledge graph, and an answer from them alone (db3, section 2.3)."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from proto.classify import Classification
from proto.kg import KgMode, KgRequest, KgResponse
from services.gateway.context import Context
from services.gateway.evidence import GRAPH_TITLE, Evidence
from services.gateway.normalize import INVALID
from services.gateway.run import Draft, Run
from services.gateway.steps.generate import Generation, read_and_answer
from services.kit.errors import ServiceFailure
from services.kit.prompts import Prompt

# Statuses of a program with results.
FOUND = frozenset({"ok", "stale"})
# Of an answer from facts, and of the prompt around them.
ANSWER_TOKENS = 75
FRAME_TOKENS = 100
# Rows that are told one by one.
MAX_LISTED = 12
_SAME = re.compile(r"the same [^:]+: ")
# Which one of several is wanted, or by what else they are told apart.
_OF_ONE = re.compile(
    r"\b(?:(?:any|just|name|only) one|an example|(?:begin|start|end)(?:s|n?ing)? (?:with|in))\b", re.IGNORECASE
)
# The only column that a SELECT tells.
_OUTPUT = re.compile(r"SELECT (?:DISTINCT )?(\w+) FROM ")
# How much two spellings of one name share: a letter of nine differs.
SAME_NAME = 0.88
# Before a name of a list they say that it is none of it.
EXCLUDING = frozenset(("but", "except", "neither", "no", "nor", "not", "without"))
_ITEMS = re.compile(r"[,;] (?:and )?| and ")


async def look_up(context: Context, mode: KgMode | None = None, *, domain: str = "") -> KgResponse | None:
    """Facts in a domain, else in the question's, or in any without a label; None when the service failed or is not
    wanted.

    The program is written as the request says, else as `mode` says, else as the settings say.
    """
    question, run, settings = context.question, context.run, context.settings
    writer = context.options.kg or mode or settings.kg_mode
    if writer == "off":
        run.plan("kg", "not asked: the request says so")
        return None
    allow_s = context.before_generation(settings.kg_cap_s)
    label = await context.classification()
    request = KgRequest(
        query=question.query,
        query_time=question.query_time,
        # Where the classifier failed the graph finds the domain that knows what the question names.
        domain=domain or (label.domain if label.domain_certainty else None),
        mode=writer,
        max_tokens=settings.kg_max_tokens,
    )
    try:
        async with run.stage("kg") as stage:
            response = await context.mesh.query_kg(request, allow_s=allow_s)
            stage.add(response.timing)
            stage.detail = f"{response.status}: {response.program}"[:500]
    except ServiceFailure:
        return None
    run.kg = response
    name_missing(run, response)
    return response


def name_missing(run: Run, response: KgResponse) -> None:
    """Name what the knowledge graph lacked, and that it ran out of time."""
    run.degrade_all(response.degraded)
    if response.status == "timeout":
        run.degrade("kg", "timeout", "the program took too long")


def as_evidence(response: KgResponse) -> Evidence:
    """The facts as a reference."""
    until = f", known until {response.as_of}" if response.as_of else ""
    return Evidence(text=response.text, page=0, page_name=f"{GRAPH_TITLE}{until}", source="kg")


def with_whole_list(answer: str, query: str, facts: KgResponse) -> str:
    """An answer that names some rows of a SELECT, with those that it leaves out, each as it is written there.

    So it is where nothing but their names is told, which gives no reason to leave one out, and with what comes to just
    as much as the first: a tie is no victory. An answer may also call them by what they all are ("huts").
    """
    if facts.mode != "sql" or len(facts.statements) != 1 or _OF_ONE.search(query):
        return answer
    (statement,) = facts.statements
    rows = json.loads(statement.rows_json)
    if not rows or len(rows) != statement.row_count or len(rows) > MAX_LISTED:
        return answer
    told = _OUTPUT.match(statement.source)
    names: list[Any] = [row[told[1]] if told and told[1] in row else next(iter(row.values()), None) for row in rows]
    ties = [name for note in statement.notes if (same := _SAME.match(note)) for name in _names(note[same.end() :])]
    if "others" in ties:
        ties = []
    is_told_alone = told is not None and " WHERE " in statement.source
    if not all(isinstance(name, str) for name in names) or not (is_told_alone or (len(rows) == 1 and ties)):
        return answer
    whole = list(dict.fromkeys([*names, *ties]))
    items = _ITEMS.split(answer)
    if {one.casefold() for one in items} == {name.casefold() for name in whole}:
        return answer
    said = {_as_written(one, whole) for one in items}
    is_what_they_are = len(whole) > 1 and statement.text.casefold().startswith(f"{answer.casefold()} (")
    if not (said <= set(whole) or is_what_they_are):
        return answer
    return (", " if not any("," in name for name in whole) else "; ").join(whole)


def _as_written(item: str, names: Sequence[str]) -> str:
    """The name that an item repeats, a letter aside or with a word before it; the item itself where it is none."""
    score, best = max((SequenceMatcher(None, item.casefold(), name.casefold()).ratio(), name) for name in names)
    before, _, name = item.partition(" ")
    has_word_before = name == best and before.casefold() not in EXCLUDING
    return best if score >= SAME_NAME or has_word_before else item


def _names(text: str) -> list[str]:
    """The names of a note, which are apart by semicolons where one has a comma."""
    return text.split("; " if "; " in text else ", ")


def facts_of(facts: KgResponse | None) -> list[Evidence]:
    """The facts as a reference; none where the graph has none."""
    return [as_evidence(facts)] if facts and facts.status in FOUND else []


def no_such_event(context: Context, facts: KgResponse, classification: Classification) -> bool:
    """Whether the question is invalid for a game that did not take place."""
    checks_premise = context.options.false_premise is not False
    return checks_premise and facts.status == "no_event" and classification.domain == "sports"


def answers(facts: KgResponse, classification: Classification) -> bool:
    """Whether there are facts, and not too old for a real-time question."""
    outdated = facts.status == "stale" and classification.dynamism == "real-time"
    return facts.status in FOUND and not outdated


async def answer_from_facts(context: Context, prompt: Prompt, facts: KgResponse, *, adapter: str) -> Draft | None:
    """The answer from the facts; None where they give none.

    A day without the game in question makes the question false (db3, section 2.3: "no match" is answered with "invalid
    question"). Facts that end before a real-time question do not answer it.
    """
    classification = await context.classification()
    if no_such_event(context, facts, classification):
        return Draft(INVALID, "invalid_question", 1.0, "kg", (as_evidence(facts),))
    if not answers(facts, classification):
        return None
    max_tokens = context.within_context(context.settings.kg_max_tokens + FRAME_TOKENS)
    generation = Generation(prompt, max_tokens, ANSWER_TOKENS, adapter)
    draft = await read_and_answer(context, generation, [as_evidence(facts)])
    # Facts alone show no other false premise: the web comes next.
    return replace(draft, source="kg") if draft.kind == "answer" else None
