"""Programs to rows. Every statement gets a status of its own; what one lacks does not cost the others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, Engine, func, select

from proto.kg import KgStatus
from services.kg.compile import MAX_ROWS, Compiler
from services.kg.entities import NameIndex
from services.kg.errors import ExecutionTimeout, KgError, LanguageError, NoEntity, NothingKnown, ParseError
from services.kg.language.bind import BoundCall, BoundCombine, BoundGroup, BoundQuery, BoundWhere
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Aggregate, Literal_, Nothing, Slice, render
from services.kg.outcome import Outcome, Scalar
from services.kg.rows import Rows, view_of
from services.kg.scope import Findings
from services.kg.store.engine import deadline
from services.kg.store.tables import stated_total
from services.kg.values import combined, scalar

ASKER = ZoneInfo("America/Los_Angeles")
# Of several that are level, so many are named beside the ones shown.
MAX_LEVEL = 3
NO_ROWS_STATED = "the source states that there are none"


class Executor:
    """Runs programs against a store."""

    def __init__(self, engine: Engine, names: NameIndex, catalogue: Catalogue) -> None:
        self._engine = engine
        self._names = names
        self.catalogue = catalogue

    def execute(self, program: str, *, domain: str, query_time: datetime, seconds: float = 1.0) -> list[Outcome]:
        """Outcomes in program order; blocks, so it belongs in a worker thread.

        Args:
            program: text in the regularized language.
            domain: where functions are looked for first.
            query_time: with its zone; facts of events after it are hidden.
            seconds: for all statements together; those that get no time have the status `timeout`.

        Raises:
            ParseError: the whole is too long, has too many statements or is nested too deeply.
            StoreError: the store cannot be read.
        """
        return self.run(
            parse_each(program, self.catalogue.spellings), domain=domain, query_time=query_time, seconds=seconds
        )

    def run(
        self, parsed: Sequence[Parsed], *, domain: str, query_time: datetime, seconds: float = 1.0
    ) -> list[Outcome]:
        """As `execute`, for what is parsed already."""
        outcomes: list[Outcome] = []
        try:
            with deadline(seconds), self._engine.connect() as connection:
                compiler = Compiler(connection, self._names, self.catalogue, domain, query_time.astimezone(ASKER))
                run = _Run(connection, compiler)
                for one in parsed:
                    outcomes.append(run.statement(one))
        except ExecutionTimeout as error:
            late = parsed[len(outcomes) :]
            outcomes += [Outcome(one.text, "timeout", message=str(error)) for one in late]
        return outcomes


class _Run:
    """One program: statements see the rows of those before."""

    def __init__(self, connection: Connection, compiler: Compiler) -> None:
        self._connection = connection
        self._compiler = compiler

    @property
    def _findings(self) -> Findings:
        return self._compiler.findings

    def statement(self, parsed: Parsed) -> Outcome:
        """Run one statement; its errors are its outcome, those of the store are raised."""
        self._compiler.findings = Findings()
        if parsed.error is not None or parsed.statement is None:
            self._skip()
            return self._failed(parsed.text, parsed.error or ParseError("cannot be read"))
        if isinstance(parsed.statement, Nothing):
            self._skip()
            return Outcome("none", "no_program", message="no function fits the question")
        source = render(parsed.statement)
        bound_before = len(self._compiler.binder.functions)
        try:
            bound = self._compiler.binder.bind(parsed.statement)
            if isinstance(bound, BoundCombine):
                self._compiler.done.append(None)
                return self._combine(source, bound)
            rows = self._compiler.compile(bound)
            self._compiler.done.append(rows)
            return self._fetch(source, bound, rows)
        except ExecutionTimeout:
            raise
        except KgError as error:
            if len(self._compiler.binder.functions) == bound_before:
                self._compiler.binder.skip()
            del self._compiler.done[bound_before:]
            self._compiler.done.append(None)
            return self._failed(source, error)

    def _skip(self) -> None:
        self._compiler.binder.skip()
        self._compiler.done.append(None)

    def _failed(self, source: str, error: KgError) -> Outcome:
        expected = error.expected if isinstance(error, LanguageError) else ()
        if isinstance(error, NoEntity):
            expected = error.candidates
        return Outcome(
            source, error.status, entities=tuple(self._findings.entities), message=str(error), expected=tuple(expected)
        )

    def _fetch(self, source: str, query: BoundQuery, rows: Rows) -> Outcome:
        function = rows.function
        shown = rows.shown or tuple(function.key(name) for name in rows.default or function.default)
        if query.aggregate in ("avg", "sum", "min", "max"):
            return self._aggregated(source, query.aggregate, rows, shown)
        found, total = self._rows(rows, shown, told_apart=query.aggregate is None)
        total = self._stated_or(rows, query, total)
        counted = query.aggregate == "len"
        if counted and total == 0 and not self._has_rows(rows):
            names = ", ".join(entity.surface for entity in self._findings.entities)
            raise NothingKnown(f"nothing is known that could be counted: {names}")
        return self._outcome(source, query.aggregate, function, shown, found, total, total if counted else None)

    def _has_rows(self, rows: Rows) -> bool:
        """Whether the graph has any row of each entity: a count of nothing is only then a fact about it."""
        if self._findings.status is not None or self._findings.stated or NO_ROWS_STATED in self._findings.notes:
            return True
        view = view_of(rows.function.view) if rows.evidence else rows.source
        return all(
            self._connection.execute(select(view.c[column]).where(view.c[column].in_(ids)).limit(1)).first()
            for column, ids in rows.evidence
        )

    def _aggregated(self, source: str, how: Aggregate, rows: Rows, shown: tuple[Key, ...]) -> Outcome:
        numeric = [key for key in shown if key.kind in NUMERIC or how in ("min", "max")]
        numeric = numeric or [key for key in rows.function.keys if key.kind in NUMERIC][:1]
        if not numeric:
            raise ParseError(f"{how} needs a number, and {rows.function.name} has none")
        key = numeric[-1]
        inner = rows.select([rows.c[key.name].label("value")]).subquery()
        value = self._connection.scalar(select(getattr(func, how)(inner.c.value)))
        total = self._count(rows)
        if how in ("min", "max") and value is not None:
            rows.where.append(rows.c[key.name] == value)
        found = self._rows(rows, (key,))[0] if total else []
        return self._outcome(source, how, rows.function, (key,), found, total, scalar(value))

    def _count(self, rows: Rows) -> int:
        counted = rows.c[rows.identity] if rows.identity else next(iter(rows.source.c))
        inner = rows.select([counted.label("one")], ordered=rows.limit is not None).subquery()
        number = select(func.count(inner.c.one.distinct())) if rows.identity else select(func.count())
        return int(self._connection.scalar(number.select_from(inner)) or 0)

    def _rows(
        self, rows: Rows, shown: tuple[Key, ...], *, told_apart: bool = False
    ) -> tuple[list[dict[str, Scalar]], int]:
        """The first rows, and how many there are in all; only where more may follow the database counts them.

        Args:
            told_apart: note which further rows are level with the last, where an order cuts them off.
        """
        keys = dict.fromkeys((*rows.function.subject, *(key.name for key in shown)))
        names = [name for name in keys if name in rows.source.c]
        columns: list[ColumnElement[Any]] = [rows.c[name] for name in names]
        cut = rows.limit if told_apart and rows.ranked and rows.limit and rows.limit <= MAX_ROWS else None
        if cut is not None:
            columns.append(rows.order[0][0].label("level"))
        if rows.identity:
            columns.append(rows.c[rows.identity])
        statement, most = rows.select(columns), MAX_ROWS * 2 if rows.identity else MAX_ROWS
        if cut is not None:
            statement = statement.limit(cut + MAX_LEVEL + 1)
        elif rows.limit is None or rows.limit > MAX_ROWS:
            statement = statement.limit(most)
        found = self._connection.execute(statement).all()
        if cut is not None:
            self._note_level(rows, shown, [dict(row._mapping) for row in found], cut)
            found = found[:cut]
        total = len({row[-1] for row in found} - {None}) if rows.identity else len(found)
        if len(found) >= most:
            total = self._count(rows)
        lines: dict[Any, dict[str, Scalar]] = {}
        for index, row in enumerate(found if total else ()):
            line = {name: scalar(row[position]) for position, name in enumerate(names)}
            # A person with two credits in a film is one line of its list, unless the credits are what is asked for.
            same = (row[-1], *(line[key.name] for key in shown if key.name in line)) if rows.identity else index
            lines.setdefault(same, line)
        return list(lines.values())[:MAX_ROWS], total

    def _note_level(self, rows: Rows, shown: tuple[Key, ...], found: Sequence[Mapping[str, Any]], cut: int) -> None:
        """Note the rows beyond `cut` that are level with the last before it and show something else."""
        if len(found) <= cut or (level := found[cut - 1]["level"]) is None:
            return
        told = [tuple(str(row[key.name]) for key in shown if key.name in row) for row in found]
        names = [
            " ".join(str(row[name]) for name in rows.function.subject if row.get(name) is not None) for row in found
        ]
        others = dict.fromkeys(
            name
            for row, shows, name in zip(found[cut:], told[cut:], names[cut:], strict=True)
            if row["level"] == level and shows not in told[:cut] and name and name not in names[:cut]
        )
        if others:
            key = rows.function.exact_keys.get(rows.order[0][0].name)
            more = [*list(others)[:MAX_LEVEL], *(["others"] if len(others) > MAX_LEVEL else [])]
            self._findings.notes.append(f"the same {key.words if key else 'place'}: {', '.join(more)}")

    def _stated_or(self, rows: Rows, query: BoundQuery, total: int) -> int:
        """The larger of what is listed and what the source states that there is."""
        call = query.source
        plain = not any(isinstance(step, BoundWhere | Slice | BoundGroup) for step in query.steps)
        if not isinstance(call, BoundCall) or not plain or len(call.arguments) != 1 or len(call.conditions) > 1:
            return total
        ((name, _),) = call.arguments.items()
        for condition in call.conditions:
            value = condition.values[0] if len(condition.values) == 1 else None
            if condition.operator != "eq" or not isinstance(value, Literal_):
                return total
            name = f"{name} {condition.key.name}={str(value.value).lower()}"
        relation = rows.function.totals.get(name)
        ids = [one for entity in self._findings.entities for one in entity.entity_ids]
        if relation is None or len(ids) != 1:
            return total
        of = (stated_total.c.relation == relation, stated_total.c.entity_id == ids[0])
        stated = self._connection.scalar(select(stated_total.c.total).where(*of))
        if stated is None:
            return total
        if stated > total:
            self._findings.notes.append(f"the source counts {stated} and lists {total}")
        elif stated == 0 and total == 0:
            self._findings.notes.append(NO_ROWS_STATED)
        return max(total, int(stated))

    def _outcome(
        self,
        source: str,
        aggregate: Aggregate | None,
        function: Function,
        shown: tuple[Key, ...],
        rows: list[dict[str, Scalar]],
        total: int,
        value: Scalar,
    ) -> Outcome:
        findings = self._findings
        known = aggregate == "len" or any(row.get(key.name) is not None for row in rows for key in shown)
        status: KgStatus = findings.status or ("ok" if known or findings.stated else "empty")
        if findings.stated and findings.status is None:
            # The source states totals without their parts: they are the row.
            rows, value = [dict(findings.summary)], None
        made = "" if findings.stated and value is None else aggregate or ""
        return Outcome(
            *(source, status, function, tuple(key.name for key in shown), tuple(rows), total, value, made),
            **self._learnt(),
            summary=dict(findings.summary),
        )

    def _learnt(self) -> Any:
        found = self._findings
        return {"entities": tuple(found.entities), "windows": tuple(found.windows), "notes": tuple(found.notes)}

    def _combine(self, source: str, bound: BoundCombine) -> Outcome:
        outcomes = [self._fetch("", query, self._compiler.compile(query)) for query in bound.queries]
        values = [one.rows[0].get(one.shown[-1]) if one.value is None and one.rows else one.value for one in outcomes]
        rows = tuple(one.rows[0] for one in outcomes if one.rows)
        value, last = combined(bound.how, values), outcomes[-1]
        status: KgStatus = "empty" if value is None else "ok"
        return Outcome(source, status, last.function, last.shown, rows, len(rows), value, bound.how, **self._learnt())
