"""The wording of rows and statements: Jinja templates of the domain's files, sandboxed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.kg.definition.folder import BrokenPart
from services.kg.definition.schema import DomainFile
from services.kg.outcome import Outcome

# The names of every template of a statement.
OF_STATEMENT = frozenset({"names", "entities", "of_kind", "rows", "when"})


_ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
_ENVIRONMENT.filters["quoted"] = lambda values: [f'"{value}"' for value in values]


def template(text: str, names: Iterable[str]) -> Template:
    """A template over these names; BrokenPart where the text is no template, or has another name."""
    possible = frozenset(names)
    try:
        names_used, compiled = _compiled(text)
    except TemplateSyntaxError as error:
        raise BrokenPart(error.message or "cannot be read", line=error.lineno - 1) from None
    if unknown := sorted(names_used - possible):
        raise BrokenPart(f"{', '.join(unknown)} cannot be named here; {', '.join(sorted(possible))} can")
    return compiled


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> tuple[set[str], Template]:
    """The names in a template, and the template; functions of a domain share many."""
    return meta.find_undeclared_variables(_ENVIRONMENT.parse(text)), _ENVIRONMENT.from_string(text)


def statement_context(outcome: Outcome, names: Sequence[str]) -> dict[str, Any]:
    """The values of `OF_STATEMENT`."""
    entities: dict[str, list[str]] = {}
    for entity in outcome.entities:
        entities.setdefault(entity.kind, []).append(entity.surface)

    def of_kind(kind: str) -> list[str]:
        return entities.get(kind, [])

    when = f"in the time asked for: {', '.join(outcome.windows)}" if outcome.windows else ""
    return {"names": list(names), "entities": entities, "of_kind": of_kind, "rows": outcome.rows, "when": when}


class Texts:
    """The wording of a domain. `template` makes one of a text, its possible names, and its place in the file."""

    def __init__(self, file: DomainFile, template: Callable[..., Template | None]) -> None:
        texts, parts = file.texts, file.functions
        named = {name: frozenset({*part.keys, *part.subject}) for name, part in parts.items()}
        every = frozenset().union(*named.values())
        row, rows = template(texts.row, every, "texts", "row"), template(texts.rows, OF_STATEMENT, "texts", "rows")
        self._row, self._rows = dict[str, Template | None](), dict[str, Template | None]()
        for name, part in parts.items():
            self._row[name] = template(part.row, named[name], "functions", name, "row") or row
            self._rows[name] = template(part.rows, OF_STATEMENT, "functions", name, "rows") or rows
        self._subjects = {name: part.subject[0] for name, part in parts.items()}
        self._owner = template(texts.owner, every, "texts", "owner")
        self._missing = template(texts.missing, OF_STATEMENT, "texts", "missing")
        self._totals = template(texts.totals, frozenset({"n", "has"}), "texts", "totals")
        self._owner_names = texts.owner_names

    def row(self, function: str, row: Mapping[str, Any]) -> str:
        """A row's subject in words: 'the film "Alien" (1979)'; empty for a row without a name."""
        template = self._row.get(function)
        if template is not None:
            return template.render(row)
        name = row.get(self._subjects.get(function, ""))
        return "" if name is None else str(name)

    def rows(self, outcome: Outcome) -> str:
        """A statement's rows in words: 'films in which Sigourney Weaver acted'."""
        template = self._rows.get(outcome.function.name) if outcome.function is not None else None
        names = self.names(outcome)
        return template.render(statement_context(outcome, names)) if template is not None else " and ".join(names)

    def owner(self, row: Mapping[str, Any]) -> str:
        """The owner of a row of a dynamic function; empty where the row has none."""
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
        """The entities that a statement is about, once each."""
        owners = [self.owner(row) for row in outcome.rows] if self._owner_names else []
        return list(dict.fromkeys(filter(None, owners)) or dict.fromkeys(one.surface for one in outcome.entities))
