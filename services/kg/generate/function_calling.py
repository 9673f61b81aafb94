"""Programs by function calling, as ElectricSheep tried it (section 4.5): a JSON list of calls over the same functions.

The list is decoded under a JSON schema made from the catalogue, read strictly, and translated into a program, so that
one executor serves all writers. What a call cannot say, such as an order or a sum, this writer cannot ask for.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from services.kg.errors import KgError
from services.kg.generate.base import PROMPTS, RESERVE_S, Written, conversation, domain_question
from services.kg.generate.examples import Example, Library
from services.kg.generate.ground import ground
from services.kg.generate.spans import Spotter, spots_in
from services.kg.language import tree
from services.kg.language.catalogue import Catalogue, Function, Key
from services.kg.language.decoding import TIME_WORDS
from services.kg.language.parse import parse
from services.kg.language.tree import Argument, Condition, List_, Literal_, Query, Reference, Value, conditions_of
from services.kit.budget import Budget
from services.kit.errors import BadReply
from services.kit.llm import LLM, Constraint, Message

MAX_CALLS = 4
MAX_TOKENS = 200
COUNT = "len"
# Arguments that may be left empty.
_TIME = rf"^(([0-9]|{'|'.join(TIME_WORDS)})[a-z0-9 -]*)?$"
_NUMBER = r"^[0-9]*$"
_TEXT = r'^[^"\\\n]*$'
REFERENCE = "*"
_PROMPT = PROMPTS.template("function_calling")


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    function_name: str = Field(max_length=40)
    args: list[JsonValue] = Field(max_length=8)


_CALLS = TypeAdapter(list[_Call])


@dataclass(frozen=True, slots=True)
class FunctionCallingWriter:
    """Asks the generator for calls; see `ProgramWriter` for the arguments."""

    llm: LLM
    catalogue: Catalogue
    library: Library
    k: int = 4
    spotter: Spotter | None = None

    async def write(
        self, query: str, *, query_time: datetime, domain: str, budget: Budget, feedback: str = ""
    ) -> Written:
        """See `Writer.write`; a reply that is no list of calls is a ServiceFailure, too."""
        spots = await spots_in(query, domain, self.spotter)
        examples = await self.library.nearest(query, domain=domain, k=self.k, names=[spot.text for spot in spots])
        completion = await self.llm.chat(
            self.messages(query, examples, query_time=query_time, domain=domain, feedback=feedback),
            max_tokens=MAX_TOKENS,
            allow_s=budget.allow(reserve_s=RESERVE_S),
            constraint=Constraint(json_schema=call_schema(self.catalogue, domain)),
        )
        try:
            program = await asyncio.to_thread(to_program, completion.text, self.catalogue, domain)
        except (ValidationError, KgError) as error:
            raise BadReply("generator", f"no list of calls: {type(error).__name__}") from error
        program = await asyncio.to_thread(ground, program, query, self.catalogue, domain, spots)
        return Written(program, "function-calling", completion.prompt_tokens, completion.completion_tokens)

    def messages(
        self, query: str, examples: Sequence[Example], *, query_time: datetime, domain: str, feedback: str = ""
    ) -> list[Message]:
        """The chat; examples that calls cannot express are left out."""
        system = _PROMPT.substitute(functions=signatures(self.catalogue, domain))
        replies = ((one, to_calls(one.program, self.catalogue, domain)) for one in examples)
        question = domain_question(query, query_time, self.catalogue.domains[domain], feedback)
        return conversation(system, [(one, reply) for one, reply in replies if reply is not None], question)


def signatures(catalogue: Catalogue, domain: str) -> str:
    """One line a function: its name, its args, its keys, what it is for."""
    lines = []
    for function in catalogue.domains[domain].shown:
        args = ", ".join((*(parameter.name for parameter in function.parameters), "filter", "key"))
        keys = "any" if function.dynamic else "|".join(function.projected)
        lines.append(f"{function.name}({args})[{keys}]: {function.summary}")
    return "\n".join(lines)


@lru_cache(maxsize=64)
def call_schema(catalogue: Catalogue, domain: str) -> dict[str, JsonValue]:
    """The JSON schema of a list of calls over one domain's functions."""
    calls: list[JsonValue] = [_schema(function) for function in catalogue.domains[domain].shown]
    return {"type": "array", "maxItems": MAX_CALLS, "items": {"anyOf": calls}}


def _schema(function: Function) -> dict[str, JsonValue]:
    # No length: an engine compiles a count of characters for seconds, and the name index refuses long names.
    text: dict[str, JsonValue] = {"type": "string"}
    names: dict[str, JsonValue] = {"anyOf": [text, {"type": "array", "items": text, "minItems": 2, "maxItems": 3}]}
    patterns = {"time": _TIME, "integer": _NUMBER}
    args: list[JsonValue] = [
        names if parameter.kind == "entity" else {"type": "string", "pattern": patterns.get(parameter.kind, _TEXT)}
        for parameter in function.parameters
    ]
    types = {"flag": "boolean", "integer": "integer"}
    filters: dict[str, JsonValue] = {key.name: {"type": types.get(key.kind, "string")} for key in _filtered(function)}
    args.append({"type": "object", "properties": filters, "additionalProperties": False})
    args.append(text if function.dynamic else {"type": "string", "enum": ["", COUNT, *function.projected]})
    count = len(args)
    return {
        "type": "object",
        "properties": {
            "function_name": {"type": "string", "const": function.name},
            "args": {"type": "array", "prefixItems": args, "items": False, "minItems": count, "maxItems": count},
        },
        "required": ["function_name", "args"],
        "additionalProperties": False,
    }


def to_program(text: str, catalogue: Catalogue, domain: str) -> str:
    """A list of calls as a program.

    Raises:
        ValidationError: the text is no list of calls.
        KgError: a call names what the catalogue does not have, or has other arguments than its signature.
    """
    calls = _CALLS.validate_json(text)
    statements = (_statement(call, catalogue, domain) for call in calls[:MAX_CALLS])
    return "\n".join(map(tree.render, statements)) or "none"


def _statement(call: _Call, catalogue: Catalogue, domain: str) -> tree.Statement:
    function = catalogue.function(call.function_name, domain)
    count = len(function.parameters)
    args: list[JsonValue] = [*call.args, *([""] * (count + 2 - len(call.args)))]
    filters, key = args[count], args[count + 1]
    arguments: list[Argument] = [_argument(value) for value in args[:count]]
    conditions = tuple(
        Condition("eq", function.key(name).name, (Literal_(value),))
        for name, value in (filters.items() if isinstance(filters, dict) else ())
        if isinstance(value, str | int | float | bool)
    )
    steps: list[tree.Step] = []
    # The language writes conditions among the arguments where two entities are linked.
    if sum(parameter.kind == "entity" for parameter in function.parameters) > 1:
        arguments.append(List_(conditions) if len(conditions) > 1 else conditions[0] if conditions else Literal_(None))
    else:
        while arguments and arguments[-1] == Literal_(None):
            arguments.pop()
        steps += [tree.Where(conditions)] if conditions else []
    if isinstance(key, str) and key not in ("", COUNT):
        steps.append(tree.Project((key,)))
    return Query(tree.Call(function.name, tuple(arguments)), tuple(steps), aggregate="len" if key == COUNT else None)


def _argument(value: JsonValue) -> Value:
    match value:
        case str() if value.startswith(REFERENCE):
            return Reference(None, value.removeprefix(REFERENCE))
        case str() if value.strip():
            return Literal_(value.strip())
        case list():
            return List_(tuple(Literal_(one) for one in value if isinstance(one, str) and one.strip()))
    return Literal_(None)


def to_calls(program: str, catalogue: Catalogue, domain: str) -> str | None:
    """A program as a list of calls; None when calls cannot express it."""
    calls = [_call(one, catalogue, domain) for one in parse(program) if isinstance(one, Query)]
    return None if None in calls else json.dumps(calls, ensure_ascii=False)


def _call(query: Query, catalogue: Catalogue, domain: str) -> dict[str, Any] | None:
    if not isinstance(query.source, tree.Call) or query.aggregate not in (None, "len") or query.head is not None:
        return None
    function = catalogue.function(query.source.function, domain)
    values: list[Any] = []
    key = COUNT if query.aggregate else ""
    conditions: list[Condition] = []
    for argument in query.source.arguments:
        match argument:
            case Condition() | List_() if filtered := conditions_of(argument):
                conditions += filtered
            case Literal_(value):
                values.append("" if value is None else str(value))
            case Reference(None, name):
                values.append(f"{REFERENCE}{name}")
            case List_(items) if all(isinstance(item, Literal_) for item in items):
                values.append([item.value for item in items if isinstance(item, Literal_)])
            case _:
                return None
    for step in query.steps:
        match step:
            case tree.Where(where):
                conditions += where
            case tree.Project((name,)) if not key:
                key = name
            case _:
                return None
    filters = {one.key: one.values[0].value for one in conditions if one.values and isinstance(one.values[0], Literal_)}
    # A constrained decoder knows them in the schema's order only.
    filters = {key.name: filters[key.name] for key in _filtered(function) if key.name in filters}
    if len(filters) < len(conditions) or any(one.operator != "eq" for one in conditions):
        return None
    values = [*values, *([""] * len(function.parameters))][: len(function.parameters)]
    return {"function_name": function.name, "args": [*values, filters, key]}


def _filtered(function: Function) -> list[Key]:
    """Keys worth comparing for equality: those of a few values, or with a comparison of their own."""
    if function.dynamic:
        return []
    return [key for key in function.keys if key.kind == "flag" or key.compare or key.name in ("year", "job", "venue")]
