"""Contract of the KG-API-parser: a question in, facts in words out, with the program that fetched them."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from proto.base import Contract, Count, Degradation, Query, QueryTime, Score, StageTiming

MAX_PROGRAM_CHARS = 2_000
MAX_STATEMENTS = 8
# Accuracy of rules over typed facts where it was measured (57 of 58).
RULES_ACCURACY = 0.98

# Path -> (task, request, response), where they are not named after each other.
ROUTES = {
    "/kg/query": ("Query", "KgRequest", "KgResponse"),
    "/kg/execute": ("Execute", "KgExecuteRequest", "KgResponse"),
}

KgStatus = Literal[
    "ok",
    "empty",
    "no_entity",
    "ambiguous",
    "no_event",
    "unknown_key",
    "stale",
    "parse_error",
    "timeout",
    "no_program",
]
# The classifier's labels are five; a graph may have further domains, which its owner added.
DomainName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
KgMode = Literal["auto", "program", "function-calling", "sql", "rules"]


class KgRequest(Contract):
    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it was asked; facts after it are hidden.")
    domain: DomainName | None = Field(
        None,
        description="The domain whose functions may be called; all are tried where none is named. A question that "
        "names what a domain of your own knows belongs to that, unless this one answers it.",
    )
    mode: KgMode = Field(
        "auto",
        description="Who writes the program: the LLM in the regularized language, as function calls or as SQL, or "
        "rules without an LLM. `auto` is rules first, then the LLM where it was taught to write programs, or as SQL "
        "for a domain of your own.",
    )
    max_tokens: int = Field(1_000, ge=50, le=4_000, description="Cap of the facts' text, in generator tokens.")


class KgExecuteRequest(Contract):
    program: str = Field(min_length=1, max_length=MAX_PROGRAM_CHARS, description="In the graph's language, or SELECTs.")
    query_time: QueryTime | None = Field(None, description="Facts after it are hidden; now by default.")
    domain: DomainName = Field("open", description="The domain in which functions are looked for first.")
    max_tokens: int = Field(1_000, ge=50, le=4_000, description="Cap of the facts' text, in generator tokens.")


class KgEntity(Contract):
    """What a name was taken for."""

    name: str = Field(description="As the program has it.")
    kind: str = Field("", description="Kind of entity: movie, company, artist ...")
    surface: str = Field("", description="The graph's own name for it.")
    entity_ids: tuple[str, ...] = Field((), description="Its identifiers; several for namesakes.")
    score: Score = Field(0, description="How well the names agree.")
    how: str = Field("", description="exact, alias, tokens or fuzzy.")


class KgStatement(Contract):
    """One statement of a program and what came of it."""

    source: str = Field(max_length=2 * MAX_PROGRAM_CHARS, description="The statement as it was run.")
    status: KgStatus = Field(description="What came of it.")
    text: str = Field("", description="Its facts in words, or what is missing in words.")
    rows_json: str = Field("[]", description="Its rows as a JSON array of objects, typed values.")
    row_count: Count = Field(0, description="Rows found, before any cap.")
    value_json: str = Field("", description="The aggregate as a JSON value; empty when there is none.")
    entities: tuple[KgEntity, ...] = Field((), description="What its names were taken for.")
    windows: tuple[str, ...] = Field((), description="What its times were taken for.")
    notes: tuple[str, ...] = Field((), description="What a reader must know beside the facts.")
    error: str = Field("", description="What was wrong.")
    expected: tuple[str, ...] = Field((), description="What would have been right, best first.")


KgRule = Literal["comparison", "yes or no", "difference", "age", "count", "aggregate", "list", "value", "statement"]


class KgSettled(Contract):
    """An answer that follows from typed facts: by a rule, or as a statement finds it whose model is sure of it."""

    answer: str = Field(min_length=1, description="As CRAG scores it, on one line.")
    rule: KgRule = Field(description="The rule; `statement` where a model wrote one and is sure of it.")
    inputs: tuple[str, ...] = Field((), description="The values that it follows from, in words.")
    probability: Score = Field(RULES_ACCURACY, description="How likely it is right, by what was measured.")


class KgResponse(Contract):
    status: KgStatus = Field(description="The best status of the statements.")
    program: str = Field("", description="The program that was run.")
    domain: str = Field("", description="The domain that it was written for.")
    mode: KgMode = Field("auto", description="Who wrote it; `auto` when it came with the request.")
    statements: tuple[KgStatement, ...] = Field((), max_length=MAX_STATEMENTS, description="In program order.")
    text: str = Field("", description="All facts in words, ready for a prompt.")
    settled: KgSettled | None = Field(None, description="What the facts settle by themselves, where a rule is certain.")
    degraded: tuple[Degradation, ...] = Field((), description="What was missing; empty when all went well.")
    unasked: str = Field(
        "",
        description="A domain of your own whose tables no model was asked about, since nothing says that the question "
        "belongs there. A request that names it has one asked.",
    )
    repaired: bool = Field(False, description="Whether a second program replaced the first.")
    llm_calls: Count = Field(0, description="Requests to the generator.")
    prompt_tokens: Count = Field(0, description="Tokens read by it.")
    completion_tokens: Count = Field(0, description="Tokens written by it.")
    as_of: str = Field("", description="The last day that the domain's sources know of.")
    write: StageTiming = Field(default_factory=StageTiming, description="Where writing the program spent its time.")
    execute: StageTiming = Field(default_factory=StageTiming, description="Where executing it spent its time.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Both together.")


class KgKey(Contract):
    name: str = Field(description="As programs spell it.")
    kind: str = Field(description="text, integer, number, money, percent, date or flag.")
    aliases: tuple[str, ...] = Field((), description="Other spellings.")


class KgFunction(Contract):
    name: str = Field(description="As programs spell it.")
    domain: DomainName = Field(description="The domain that defines it.")
    summary: str = Field("", description="What it is for.")
    parameters: tuple[str, ...] = Field((), description="By position; optional ones end in `?`.")
    keys: tuple[KgKey, ...] = Field((), description="What can be projected, compared and sorted by.")
    facets: tuple[str, ...] = Field((), description="Keys that stand for the rows of another function.")
    aliases: tuple[str, ...] = Field((), description="Other spellings.")


class KgCatalogue(Contract):
    functions: tuple[KgFunction, ...] = Field((), description="All that programs may call.")
