"""Programs to rows. Every statement gets a status of its own; what one lacks does not cost the others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, Engine, func, select

from services.kg.compile import MAX_ROWS, Compiler, Findings
from services.kg.entities import NameIndex
from services.kg.errors import ExecutionTimeout, KgError, LanguageError, NoEntity, NothingKnown, ParseError
from services.kg.language.bind import BoundCall, BoundCombine, BoundGroup, BoundQuery, BoundWhere
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Literal_, Nothing, Slice, render
from services.kg.outcome import Outcome, Scalar
from services.kg.rows import Rows, view_of
from services.kg.store.engine import deadline
from services.kg.store.tables import stated_total
from services.kg.values import combined, scalar

ASKER = ZoneInfo("America/Los_Angeles")
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
            return self._aggregated(source, query, rows, shown)
        total = self._count(rows)
        found = self._rows(rows, shown, MAX_ROWS) if total else []
        total = self._stated_or(rows, query, total)
        counted = query.aggregate == "len"
        if counted and total == 0 and not self._has_rows(rows):
            raise NothingKnown(
                f"nothing is known that could be counted: {', '.join(e.surface for e in self._findings.entities)}"
            )
        return self._outcome(source, query, rows, shown, found, total, value=counted or None)

    def _has_rows(self, rows: Rows) -> bool:
        """Whether the graph has any row of each entity: a count of nothing is only then a fact about it."""
        if self._findings.status is not None or self._findings.stated or NO_ROWS_STATED in self._findings.notes:
            return True
        view = view_of(rows.function.view) if rows.evidence else rows.source
        return all(
            self._connection.execute(select(view.c[column]).where(view.c[column].in_(ids)).limit(1)).first()
            for column, ids in rows.evidence
        )

    def _aggregated(self, source: str, query: BoundQuery, rows: Rows, shown: tuple[Key, ...]) -> Outcome:
        how = cast(Literal["avg", "sum", "min", "max"], query.aggregate)
        numeric = [key for key in shown if key.kind in NUMERIC or how in ("min", "max")]
        if not numeric:
            numeric = [key for key in rows.function.keys if key.kind in NUMERIC][:1]
        if not numeric:
            raise ParseError(f"{how} needs a number, and {rows.function.name} has none")
        key = numeric[-1]
        inner = rows.select([rows.c[key.name].label("value")]).subquery()
        value = self._connection.execute(select(getattr(func, how)(inner.c.value))).scalar()
        total = self._count(rows)
        if how in ("min", "max") and value is not None:
            rows.where.append(rows.c[key.name] == value)
        found = self._rows(rows, (key,), MAX_ROWS) if total else []
        return self._outcome(source, query, rows, (key,), found, total, value=scalar(value))

    def _count(self, rows: Rows) -> int:
        if rows.identity:
            inner = rows.select([rows.c[rows.identity].label("one")], ordered=rows.limit is not None).subquery()
            statement = select(func.count(inner.c.one.distinct()))
        else:
            inner = rows.select([next(iter(rows.source.c)).label("one")], ordered=rows.limit is not None).subquery()
            statement = select(func.count()).select_from(inner)
        return int(self._connection.execute(statement).scalar() or 0)

    def _rows(self, rows: Rows, shown: tuple[Key, ...], limit: int) -> list[dict[str, Scalar]]:
        keys = tuple(dict.fromkeys((*rows.function.subject, *(key.name for key in shown))))
        names = [name for name in keys if name in rows.source.c]
        columns: list[ColumnElement[Any]] = [rows.c[name] for name in names]
        if rows.identity:
            columns.append(rows.c[rows.identity])
        statement = rows.select(columns)
        if rows.limit is None or rows.limit > limit:
            statement = statement.limit(limit * 2 if rows.identity else limit)
        lines: dict[Any, dict[str, Scalar]] = {}
        for index, row in enumerate(self._connection.execute(statement)):
            line = {name: scalar(row[position]) for position, name in enumerate(names)}
            # A person with two credits in a film is one line of its list, unless the credits are what is asked for.
            same = (row[-1], *(line[key.name] for key in shown if key.name in line)) if rows.identity else index
            lines.setdefault(same, line)
        return list(lines.values())[:limit]

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
        statement = select(stated_total.c.total).where(
            stated_total.c.relation == relation, stated_total.c.entity_id == ids[0]
        )
        stated = self._connection.execute(statement).scalar()
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
        query: BoundQuery,
        rows: Rows,
        shown: tuple[Key, ...],
        found: list[dict[str, Scalar]],
        total: int,
        *,
        value: Scalar = None,
    ) -> Outcome:
        counted = value is True and query.aggregate == "len"
        values = [row.get(key.name) for row in found for key in shown]
        if self._findings.status is not None:
            status = self._findings.status
        elif self._findings.stated:
            # The source states totals without their parts: they are the row.
            status, found, counted, value = "ok", [dict(self._findings.summary)], False, None
        elif counted:
            status = "ok"
        elif not found or all(one is None for one in values):
            status = "empty"
        else:
            status = "ok"
        return Outcome(
            source,
            status,
            rows.function,
            tuple(key.name for key in shown),
            tuple(found),
            total,
            total if counted else value,
            "" if self._findings.stated and not counted else query.aggregate or "",
            tuple(self._findings.entities),
            tuple(self._findings.windows),
            tuple(self._findings.notes),
            summary=dict(self._findings.summary),
        )

    def _combine(self, source: str, bound: BoundCombine) -> Outcome:
        values: list[Scalar] = []
        rows: list[Mapping[str, Scalar]] = []
        function: Function | None = None
        shown: tuple[str, ...] = ()
        for query in bound.queries:
            outcome = self._fetch("", query, self._compiler.compile(query))
            one = outcome.value
            if one is None and outcome.rows:
                one = outcome.rows[0].get(outcome.shown[-1])
            values.append(one)
            rows += outcome.rows[:1]
            function, shown = outcome.function, outcome.shown
        value = combined(bound.how, values)
        return Outcome(
            source,
            "empty" if value is None else "ok",
            function,
            shown,
            tuple(rows),
            len(rows),
            value,
            bound.how,
            entities=tuple(self._findings.entities),
            windows=tuple(self._findings.windows),
            notes=tuple(self._findings.notes),
        )
