"""How rows and statements read: Jinja templates of the domain's files, sandboxed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.kg.definition.folder import BrokenPart
from services.kg.definition.schema import DomainFile
from services.kg.outcome import Outcome

# What every template of a statement may name.
OF_STATEMENT = frozenset({"names", "entities", "of_kind", "rows", "when"})


_ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
_ENVIRONMENT.filters["quoted"] = lambda values: [f'"{value}"' for value in values]


def template(text: str, names: Iterable[str]) -> Template:
    """A template that may name those; BrokenPart where it cannot be read, or names something else."""
    known = frozenset(names)
    try:
        used, made = _compiled(text)
    except TemplateSyntaxError as error:
        raise BrokenPart(error.message or "cannot be read", line=error.lineno - 1) from None
    if unknown := sorted(used - known):
        raise BrokenPart(f"{', '.join(unknown)} cannot be named here; {', '.join(sorted(known))} can")
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


class Texts:
    """How a domain reads. `template` makes one of a text, the names that it may have, and its place in the file."""

    def __init__(self, file: DomainFile, template: Callable[..., Template | None]) -> None:
        texts, parts = file.texts, file.functions
        named = {name: frozenset({*part.keys, *part.subject}) for name, part in parts.items()}
        every = frozenset().union(*named.values())
        rows, leads = ("texts", "row"), ("texts", "rows")
        self._rows = {
            name: template(part.row, named[name], "functions", name, "row") or template(texts.row, every, *rows)
            for name, part in parts.items()
        }
        self._leads = {
            name: template(part.rows, OF_STATEMENT, "functions", name, "rows")
            or template(texts.rows, OF_STATEMENT, *leads)
            for name, part in parts.items()
        }
        self._subjects = {name: part.subject[0] for name, part in file.functions.items()}
        self._owner = template(texts.owner, every, "texts", "owner")
        self._missing = template(texts.missing, OF_STATEMENT, "texts", "missing")
        self._totals = template(texts.totals, frozenset({"n", "has"}), "texts", "totals")
        self._owner_names = texts.owner_names

    def row(self, function: str, row: Mapping[str, Any]) -> str:
        """A row's subject in words: 'the film "Alien" (1979)'; empty of a row without a name."""
        made = self._rows.get(function)
        if made is not None:
            return made.render(row)
        name = row.get(self._subjects.get(function, ""))
        return "" if name is None else str(name)

    def rows(self, outcome: Outcome) -> str:
        """What a statement's rows are in words: 'films in which Sigourney Weaver acted'."""
        made = self._leads.get(outcome.function.name) if outcome.function is not None else None
        names = self.names(outcome)
        return made.render(statement_context(outcome, names)) if made is not None else " and ".join(names)

    def owner(self, row: Mapping[str, Any]) -> str:
        """Whose a row is, for facts of any name; "" where the row does not say."""
        return self._owner.render(row) if self._owner is not None else ""

    def missing(self, outcome: Outcome) -> str:
        """A known absence: "Arsenal had no game in May 2024."."""
        return self._missing.render(statement_context(outcome, self.names(outcome))) if self._missing else ""

    def totals(self, summary: Mapping[str, Any]) -> str:
        """Totals of a window."""
        if self._totals is None:
            return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items())
        has = {name: value is not None for name, value in summary.items()}
        return self._totals.render(n={name: int(value or 0) for name, value in summary.items()}, has=has)

    def names(self, outcome: Outcome) -> list[str]:
        """Whom a statement is about, once each."""
        owners = [self.owner(row) for row in outcome.rows] if self._owner_names else []
        return list(dict.fromkeys(filter(None, owners)) or dict.fromkeys(one.surface for one in outcome.entities))
