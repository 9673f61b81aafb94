"""How rows and statements read: Jinja templates of the domain's files, sandboxed."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.kg.outcome import Outcome

# What every template of a statement may name.
OF_STATEMENT = frozenset({"names", "entities", "of_kind", "rows", "when"})


def _quoted(values: Iterable[str]) -> list[str]:
    return [f'"{value}"' for value in values]


_ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
_ENVIRONMENT.filters["quoted"] = _quoted


class BrokenText(ValueError):
    """A template cannot be read or names what is not there; `line` counts from 0 within its text."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def template(text: str, names: Iterable[str]) -> Template:
    """A template that may name those.

    Raises:
        BrokenText: see there.
    """
    known = frozenset(names)
    try:
        used, made = _compiled(text)
    except TemplateSyntaxError as error:
        raise BrokenText(error.message or "cannot be read", error.lineno - 1) from None
    if unknown := sorted(used - known):
        raise BrokenText(f"{', '.join(unknown)} cannot be named here; {', '.join(sorted(known))} can")
    return made


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> tuple[set[str], Template]:
    """What a template names, and the template; functions of a domain share many."""
    return meta.find_undeclared_variables(_ENVIRONMENT.parse(text)), _ENVIRONMENT.from_string(text)


def statement_context(outcome: Outcome, names: Sequence[str]) -> dict[str, Any]:
    """What templates of a statement may name."""
    entities: dict[str, list[str]] = {}
    for entity in outcome.entities:
        entities.setdefault(entity.kind, []).append(entity.surface)

    def of_kind(kind: str) -> list[str]:
        return entities.get(kind, [])

    when = f"in the time asked for: {', '.join(outcome.windows)}" if outcome.windows else ""
    return {"names": list(names), "entities": entities, "of_kind": of_kind, "rows": outcome.rows, "when": when}
