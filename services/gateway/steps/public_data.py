"""Step `public_data`: stable records of the entities that a question names, as short sentences (db3, 2.3, task 1).

db3 prepared Oscars, films, Grammys and company figures ahead, keyed by entity, had the model find the entities with a
prompt for each domain, and matched them from strict to lenient: exactly, by substring, by embeddings. Here the same
data are in the knowledge graph (`cragmesh kg load`), and a program for each entity fetches them. Departures: the graph
resolves names (exactly, by alias, words, spelling) in place of the exact match; a name that it refuses is matched with
its suggestions, by substring, then by the reranker, which compares embeddings; and a name without a word of the
question is not looked up, since a model makes names up.
"""

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from proto.classify import Domain
from proto.kg import KgExecuteRequest, KgResponse, KgStatement
from proto.rerank import RerankRequest
from services.gateway import prompts
from services.gateway.confidence import COMMON
from services.gateway.context import Context
from services.gateway.evidence import RECORDS_TITLE, Evidence
from services.gateway.mesh import Mesh
from services.gateway.steps.ask import Allowance, Request, ask
from services.gateway.steps.knowledge_graph import name_missing
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure
from services.kit.llm import Constraint
from services.kit.untrusted import one_line

PROMPT = prompts.load("entities")
# Domain -> kind of its records, for the prompt, and the statements that fetch them by name.
RECORDS: dict[Domain, tuple[str, tuple[str, ...]]] = {
    "movie": (
        "films",
        (
            "get_movie({name})",
            "get_person({name})",
            "get_movie_person_oscar({name})",
            "get_movie_person_oscar(None, {name})",
        ),
    ),
    "music": ("music", ("get_grammy_person({name})", "get_grammy_song({name})")),
    "finance": ("companies", ("get_stock_pe_ratio({name})", "get_stock_market_cap({name})", "get_stock_eps({name})")),
}
NAMES = 3
NAME_CHARS = 80
NONE = "none"
# No limit on a name's length: an engine takes seconds to compile a count of characters.
ENTITIES = Constraint(regex=rf"{NONE}|[^|\n]+( \| [^|\n]+){{0,{NAMES - 1}}}")
MAX_TOKENS = 40
MIN_TOKENS = 8
# A shorter name is part of too many.
MIN_SUBSTRING_CHARS = 4
# The reranker gives 0.9 and more to another spelling of a name, below 0.3 to another name.
SIMILAR = 0.5
ROWS = 12
_ROWS = TypeAdapter(list[dict[str, JsonValue]])
_WORD = re.compile(r"\w{2,}")


async def public_data(context: Context, allowance: Allowance) -> list[Evidence]:
    """Records of the entities in the question, one reference an entity; none in domains that have none."""
    run = context.run
    domain = (await context.classification()).domain
    if domain not in RECORDS:
        run.decide("public_data", f"there are no records in the domain {domain}")
        return []
    reserve_s = run.budget.left() - run.budget.allow(allowance.cap_s, reserve_s=allowance.reserve_s)
    names = await entities(context, domain, allowance)
    if not names:
        return []
    try:
        async with run.stage("public_data") as stage:
            allow_s = run.budget.allow(reserve_s=reserve_s)
            records = await all_of(_records(context, name, domain, allow_s=allow_s) for name in names)
            evidence = [item for item in records if item]
            stage.detail = f"records of {len(evidence)} of {len(names)} names"
            return evidence
    except ServiceFailure:
        return []


async def entities(context: Context, domain: Domain, allowance: Allowance) -> list[str]:
    """The names that the model finds in the question and that share a word with it."""
    query = context.question.query
    kinds, _ = RECORDS[domain]
    messages = PROMPT.fill(kinds=kinds, query=one_line(query))
    request = Request("entities", messages, MAX_TOKENS, MIN_TOKENS, constraint=ENTITIES)
    completion = await ask(context, request, allowance)
    if completion is None:
        return []
    names = [name.strip(" \"'.") for name in completion.text.split("|")]
    names = [name for name in names if name.casefold() != NONE and len(name) <= NAME_CHARS and _occurs(name, query)]
    context.run.decide("entities", ", ".join(names) or "none")
    return list(dict.fromkeys(names))[:NAMES]


def _occurs(name: str, query: str) -> bool:
    """Whether a question has a rare word of a name, or all words of a name of common ones."""
    words, query_words = set(_WORD.findall(name.casefold())), set(_WORD.findall(query.casefold()))
    rare = words - COMMON
    return bool(rare & query_words) if rare else bool(words) and words <= query_words


async def _records(context: Context, name: str, domain: Domain, *, allow_s: float) -> Evidence | None:
    """The graph's records of a name, or of the suggestion that matches it; None without records.

    Raises:
        ServiceFailure: the graph did not answer.
    """
    run = context.run
    facts = await _execute(context, name, domain, allow_s=allow_s)
    entity = name
    if not _succeeded(facts):
        suggestions = list(dict.fromkeys(one for statement in facts.statements for one in statement.expected))
        entity = _substring(name, suggestions) or await _similar(context.mesh, name, suggestions, allow_s=allow_s)
        if not entity:
            run.decide("public_data", f"{name!r}: no record; the graph suggests {', '.join(suggestions) or 'nothing'}")
            return None
        facts = await _execute(context, entity, domain, allow_s=allow_s)
    lines = [line for statement in _succeeded(facts) for line in sentences(statement)]
    run.decide("public_data", f"{name!r}: taken for {entity!r}, {len(lines)} records")
    if not lines:
        return None
    return Evidence("\n".join(lines), page=0, page_name=f"{RECORDS_TITLE}: {entity}", source="public_data")


async def _execute(context: Context, name: str, domain: Domain, *, allow_s: float) -> KgResponse:
    _, statements = RECORDS[domain]
    quoted = json.dumps(" ".join(name.replace("\\", " ").replace('"', " ").split()), ensure_ascii=False)
    request = KgExecuteRequest(
        program="\n".join(statement.format(name=quoted) for statement in statements),
        query_time=context.question.query_time,
        domain=domain,
    )
    response = await context.mesh.execute_kg(request, allow_s=allow_s)
    name_missing(context.run, response)
    return response


def _succeeded(facts: KgResponse) -> list[KgStatement]:
    return [statement for statement in facts.statements if statement.status == "ok"]


def _substring(name: str, suggestions: Sequence[str]) -> str:
    """The shortest suggestion that contains the name, or that the name contains; empty without one."""
    folded = name.casefold()
    matches = [one for one in suggestions if folded in one.casefold() or one.casefold() in folded]
    return min((one for one in matches if min(len(one), len(folded)) >= MIN_SUBSTRING_CHARS), key=len, default="")


async def _similar(mesh: Mesh, name: str, suggestions: Sequence[str], *, allow_s: float) -> str:
    """The most similar suggestion; empty where none is similar enough or the reranker fails."""
    if not suggestions:
        return ""
    try:
        reply = await mesh.rerank(RerankRequest(query=name, documents=tuple(suggestions), top_n=1), allow_s=allow_s)
    except ServiceFailure:
        return ""
    best = reply.results[0] if reply.results else None
    if best is None or best.relevance_score < SIMILAR or best.index >= len(suggestions):
        return ""
    return suggestions[best.index]


def sentences(statement: KgStatement) -> list[str]:
    """A line a record: "The <attribute> is <value>." for each attribute that has a value."""
    try:
        rows = _ROWS.validate_json(statement.rows_json)
    except ValidationError:
        return []
    return [line for line in map(_line, rows) if line][:ROWS]


def _line(row: dict[str, JsonValue]) -> str:
    values = {key: value for key, value in row.items() if value not in (None, "", [])}
    if "winner" in values:
        values["winner"] = "yes" if values["winner"] else "no"
    return " ".join(f"The {key.replace('_', ' ')} is {value}." for key, value in values.items())
