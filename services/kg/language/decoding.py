"""The language as prompts show it to a model, and the grammar that its output is held to, both from the catalogue.

The decoding grammar (EBNF as xgrammar and llguidance read it) admits the canonical surface that `tree.render` prints,
with keys and aliases of each function, so that a constrained model cannot write a program that does not bind. Aliases
are admitted because a model that means "box office" must not be forced to the nearest canonical key by its letters.
"""

import json
from collections.abc import Iterable
from functools import lru_cache

from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key, Parameter

MAX_STATEMENTS = 4
AGGREGATES = ("AVG", "SUM", "MIN", "MAX", "LEN")
# Words of a name and of a time, to stop a model that repeats itself. Words, because an engine compiles a count of
# characters for seconds and a count of words in a few milliseconds.
MAX_NAME_WORDS = 14
MAX_TIME_WORDS = 6
# Kinds of keys that are compared with numbers and aggregated.
NUMBERS = NUMERIC - {"flag"}
# The first words of a time without a digit; any other word there belongs to another argument.
TIME_WORDS = (
    *("yesterday", "today", "tomorrow", "day", "last", "latest", "this", "next", "past", "previous", "recent", "most"),
    *("current", "first", "second", "third", "fourth", "final", "q1", "q2", "q3", "q4", "since", "before", "after"),
    *("until", "between", "from", "week", "month", "quarter", "year", "ipo", "now", "opening", "end"),
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
)
# A fact of an entity that has facts of any name.
ANY_KEY = '[a-z] [a-zA-Z0-9_]* (" " [a-zA-Z0-9_]+){0,4}'


@lru_cache(maxsize=64)
def decoding_grammar(catalogue: Catalogue, domain: str) -> str:
    """The EBNF of programs over one domain's functions."""
    every, functions = catalogue.domains[domain].functions, catalogue.domains[domain].shown
    numeric = any(key.kind in NUMBERS for function in functions for key in function.keys)
    rules = [
        f'root ::= "none" | statement ("\\n" statement){{0,{MAX_STATEMENTS - 1}}}',
        "statement ::= prefix? query" + (' | ("diff(" | "ratio(") query ", " query ")"' if numeric else ""),
        f"query ::= {' | '.join(_rule(function) for function in functions)}",
        f"prefix ::= {_choice([*(f'{one} ' for one in AGGREGATES if numeric), 'ALL ', 'ALL LEN '])}",
        f'name ::= "\\"" word (" " word){{0,{MAX_NAME_WORDS - 1}}} "\\""',
        r'word ::= [^"\\\n\t ]+',
        f'time ::= "\\"" ([0-9] | {_choice(TIME_WORDS)}) [a-z0-9-]* (" " [a-z0-9-]+){{0,{MAX_TIME_WORDS - 1}}} "\\""',
        'year ::= "\\"" ("18" | "19" | "20") [0-9] [0-9] "\\""',
        "number ::= [0-9]+",
        'rows ::= "[:" [1-9] [0-9]? "]"',
    ]
    keys = {key.name for function in functions for key in function.keys if key.entity}
    keys |= {name for function in functions for name, facet in function.facets.items() if facet.show}
    named = ANY_KEY if any(function.dynamic for function in functions) else f"({_choice(sorted(keys))})"
    if any(parameter.kind == "entity" for function in every for parameter in function.parameters):
        rules.append(f'reference ::= "*" [1-3]? "[\\"" {named} "\\"]"')
    reached = {facet.function for function in functions for facet in function.facets.values()}
    for function in every:
        if not function.hidden:
            rules += _call(function)
        if not function.hidden or function.name in reached:
            rules += _steps(function)
    return "\n".join(rules) + "\n"


def schema_text(catalogue: Catalogue, domain: str) -> str:
    """One line a function: its call, its keys, its purpose."""
    lines = []
    for function in catalogue.domains[domain].shown:
        parameters = ", ".join(
            parameter.name if parameter.required or parameter.kind == "entity" else f"{parameter.name}?"
            for parameter in function.parameters
        )
        conditions = ", conditions" if function.conditioned else ""
        shown = "key" if function.dynamic else "|".join(function.projected)
        lines.append(f"{function.name}({parameters}{conditions})[{shown}]: {function.summary}")
    return "\n".join(lines)


def _call(function: Function) -> list[str]:
    """The rule of a call: followed by steps over its own rows, or by a facet and steps over the facet's rows."""
    rule = _rule(function)
    arguments = _arguments(function)
    if function.conditioned:
        arguments += f' ", " ("None" | {rule}-conditions)'
    tails = [f"{rule}-steps"]
    targets: dict[str, list[str]] = {}
    for name, facet in function.facets.items():
        targets.setdefault(facet.function, []).extend((name, *facet.aliases))
    for target, names in targets.items():
        steps = target.removeprefix("get_").replace("_", "-")
        tails.append(f'"[\\"" ({_choice(names)}) "\\"]" {steps}-steps')
    return [f'{rule} ::= "{function.name}(" {arguments} ")" ({" | ".join(tails)})']


def _steps(function: Function) -> list[str]:
    rule = _rule(function)
    keys = dict.fromkeys(spelled for key in function.keys for spelled in (key.name, *key.aliases))
    key = ANY_KEY if function.dynamic else f"{rule}-key"
    project = f'"[\\"" {key} ("\\", \\"" {key}){{0,2}} "\\"]" "[\\"len\\"]"? | "[\\"len\\"]"'
    condition = f"{rule}-condition"
    return [
        f"{rule}-steps ::= ({rule}-where | {rule}-sort)? ({project})? rows?",
        f"{rule}-key ::= {_choice(keys)}",
        f'{rule}-sort ::= " sort(" ("None" | {rule}-conditions) ", " "-"? {rule}-key ")"',
        f'{rule}-where ::= " where(" {condition} (", " {condition}){{0,3}} ")"',
        f'{rule}-conditions ::= {condition} | "[" {condition} (", " {condition}){{1,3}} "]"',
        f"{condition} ::= {' | '.join(_conditions(function.keys))}",
    ]


def _arguments(function: Function) -> str:
    if not function.parameters:
        return '"None"'
    parts: list[str] = []
    optional = ""
    entities = sum(parameter.kind == "entity" for parameter in function.parameters)
    for index, parameter in enumerate(function.parameters):
        text = _argument(parameter)
        comma = '", " ' if index else ""
        if parameter.required or parameter.kind == "entity":
            required = parameter.required or (entities == 1 and not function.whole)
            parts.append(comma + (text if required else f'("None" | {text})'))
        else:
            optional += f"({comma}{text}"
            parts.append("")
    closing = ")?" * optional.count('(", " ')
    return " ".join(part for part in parts if part) + (f" {optional}{closing}" if optional else "")


def _argument(parameter: Parameter) -> str:
    if parameter.kind == "integer":
        return "year" if parameter.name in ("year", "until") else "number"
    names = '(name | "[" name (", " name){1,2} "]" | reference)'
    return {"time": "time", "text": "name"}.get(parameter.kind, names)


def _conditions(keys: Iterable[Key]) -> list[str]:
    """Conditions by the kind of the key: a number is compared with a number, a price also with another."""
    alternatives: list[str] = []
    spelt: dict[str, list[str]] = {}
    for key in keys:
        kind = "numbers" if key.kind in NUMBERS - {"money"} else key.kind
        spelt.setdefault(kind, []).extend((key.name, *key.aliases))
    text, dated, numbers, flags, money = (spelt.get(one, []) for one in ("text", "date", "numbers", "flag", "money"))
    equal, order = '"eq" | "neq"', '"eq" | "ge" | "le" | "gt" | "lt"'
    if text:
        alternatives.append(f'({equal}) "(" ({_choice(text)}) ", " name ")"')
    if dated:
        alternatives.append(f'({order}) "(" ({_choice(dated)}) ", " time ")"')
    if numbers or money:
        alternatives.append(f'({order}) "(" ({_choice([*numbers, *money])}) ", " number ")"')
    if len(money) > 1:
        alternatives.append(f'("gt" | "lt") "(" ({_choice(money)}) ", " ({_choice(money)}) ")"')
    if flags:
        alternatives.append(f'"eq(" ({_choice(flags)}) ", " ("true" | "false") ")"')
    return alternatives


def _rule(function: Function) -> str:
    return function.name.removeprefix("get_").replace("_", "-")


def _choice(options: Iterable[str]) -> str:
    return " | ".join(json.dumps(option) for option in options)
