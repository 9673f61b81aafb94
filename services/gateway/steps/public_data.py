"""Step `public_data`: stable records of the entities that a question names, as short sentences (db3, 2.3, task 1).

db3 prepared Oscars, films, Grammys and company figures ahead, keyed by entity, had the model find the entities with a
prompt for each domain, and matched them from strict to lenient: exactly, by substring, by embeddings. Here the same
data are in the knowledge graph (`cragmesh kg load`), so there is no second store: a program for each entity fetches
them. Where this departs: the graph's own resolution (exact, alias, words, spelling) stands for the exact match; what it
refuses is matched with the names that it suggests, by substring, then by the reranker, which compares embeddings; and a
name that shares no word with the question is not looked up, since a model makes names up.
"""

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from proto.classify import Domain
from proto.kg import KgExecuteRequest, KgResponse, KgStatement
from proto.rerank import RerankRequest
from services.gateway.confidence import COMMON
from services.gateway.context import Context
from services.gateway.evidence import RECORDS_TITLE, Evidence
from services.gateway.mesh import Mesh
from services.gateway.steps.ask import Allowance, Request, ask
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure
from services.kit.llm import Constraint
from services.kit.prompts import Prompt
from services.kit.untrusted import one_line

# What a domain's records are about, in the prompt's word, and the statements that fetch them for a name.
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
    "finance": (
        "companies",
        ("get_stock_pe_ratio({name})", "get_stock_market_cap({name})", "get_stock_eps({name})"),
    ),
}
NAMES = 3
NAME_CHARS = 80
NONE = "none"
# The names' own length is not counted here: an engine takes seconds to compile a count of characters.
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


async def public_data(context: Context, prompt: Prompt, allowance: Allowance) -> list[Evidence]:
    """Records of the entities in the question, one reference an entity; none in domains that have none.

    Args:
        prompt: finds entities; its `$kinds` is what the domain's records are about.
    """
    run = context.run
    domain = (await context.classification()).domain
    if domain not in RECORDS:
        run.decide("public_data", f"there are no records in the domain {domain}")
        return []
    until_s = run.budget.left() - run.budget.allow(allowance.cap_s, reserve_s=allowance.reserve_s)
    names = await entities(context, prompt, domain, allowance)
    if not names:
        return []
    try:
        async with run.stage("public_data") as stage:
            allow_s = run.budget.allow(reserve_s=until_s)
            found = await all_of(_records(context, name, domain, allow_s=allow_s) for name in names)
            shown = [item for item in found if item]
            stage.detail = f"records of {len(shown)} of {len(names)} names"
            return shown
    except ServiceFailure:
        return []


async def entities(context: Context, prompt: Prompt, domain: Domain, allowance: Allowance) -> list[str]:
    """The names that the model finds in the question; only such as share a word with it."""
    query = context.question.query
    kinds, _ = RECORDS[domain]
    messages = prompt.fill(kinds=kinds, query=one_line(query))
    request = Request("entities", messages, MAX_TOKENS, MIN_TOKENS, constraint=ENTITIES)
    completion = await ask(context, request, allowance)
    if completion is None:
        return []
    names = [name.strip(" \"'.") for name in completion.text.split("|")]
    kept = [name for name in names if name.casefold() != NONE and len(name) <= NAME_CHARS and _stands_in(name, query)]
    context.run.decide("entities", ", ".join(kept) or "none")
    return list(dict.fromkeys(kept))[:NAMES]


def _stands_in(name: str, query: str) -> bool:
    """Whether a question says some of a name: a word that not every question has, or the name whole."""
    words, asked_of = set(_WORD.findall(name.casefold())), set(_WORD.findall(query.casefold()))
    telling = words - COMMON
    return bool(telling & asked_of) if telling else bool(words) and words <= asked_of


async def _records(context: Context, name: str, domain: Domain, *, allow_s: float) -> Evidence | None:
    """What the graph has of a name, or of the name that was meant.

    Raises:
        ServiceFailure: the graph did not answer.
    """
    run = context.run
    facts = await _execute(context, name, domain, allow_s=allow_s)
    meant = name
    if not _succeeded(facts):
        near = list(dict.fromkeys(one for statement in facts.statements for one in statement.expected))
        meant = _substring(name, near) or await _similar(context.mesh, name, near, allow_s=allow_s)
        if not meant:
            run.decide("public_data", f"{name!r}: no record; the graph suggests {', '.join(near) or 'nothing'}")
            return None
        facts = await _execute(context, meant, domain, allow_s=allow_s)
    text = "\n".join(line for statement in _succeeded(facts) for line in sentences(statement))
    run.decide("public_data", f"{name!r}: taken for {meant!r}, {text.count(chr(10)) + 1 if text else 0} records")
    return Evidence(text=text, page=0, page_name=f"{RECORDS_TITLE}: {meant}", source="public_data") if text else None


async def _execute(context: Context, name: str, domain: Domain, *, allow_s: float) -> KgResponse:
    _, statements = RECORDS[domain]
    quoted = json.dumps(" ".join(name.replace("\\", " ").replace('"', " ").split()), ensure_ascii=False)
    request = KgExecuteRequest(
        program="\n".join(statement.format(name=quoted) for statement in statements),
        query_time=context.question.query_time,
        domain=domain,
    )
    return await context.mesh.execute_kg(request, allow_s=allow_s)


def _succeeded(facts: KgResponse) -> list[KgStatement]:
    return [statement for statement in facts.statements if statement.status == "ok"]


def _substring(name: str, near: Sequence[str]) -> str:
    """The shortest name that holds this one, or is held by it."""
    wanted = name.casefold()
    held = [one for one in near if wanted in one.casefold() or one.casefold() in wanted]
    return min((one for one in held if min(len(one), len(wanted)) >= MIN_SUBSTRING_CHARS), key=len, default="")


async def _similar(mesh: Mesh, name: str, near: Sequence[str], *, allow_s: float) -> str:
    """The most similar name, where it is similar enough; none where the reranker fails: leniency is all it gives."""
    if not near:
        return ""
    try:
        reply = await mesh.rerank(RerankRequest(query=name, documents=tuple(near), top_n=1), allow_s=allow_s)
    except ServiceFailure:
        return ""
    best = reply.results[0] if reply.results else None
    return near[best.index] if best and best.relevance_score >= SIMILAR and best.index < len(near) else ""


def sentences(statement: KgStatement) -> list[str]:
    """A line a record: "The <attribute> is <value>." for each attribute that has a value."""
    try:
        rows = _ROWS.validate_json(statement.rows_json)
    except ValidationError:
        return []
    return [line for line in map(_line, rows) if line][:ROWS]


def _line(row: dict[str, JsonValue]) -> str:
    known = {key: value for key, value in row.items() if value not in (None, "", [])}
    return " ".join(f"The {key.replace('_', ' ')} is {_value(key, value)}." for key, value in known.items())


def _value(key: str, value: JsonValue) -> str:
    if key == "winner":
        return "yes" if value else "no"
    return str(value)
