"""Programs to rows. Each statement has a status of its own: one that fails does not cost the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, func, or_, select
from sqlalchemy.exc import DBAPIError

from proto.kg import KgStatus
from services.kg.comparisons import in_words
from services.kg.compile import MAX_ROWS, Compiler
from services.kg.entities import NameIndex
from services.kg.errors import ExecutionTimeout, KgError, ParseError
from services.kg.language.bind import BoundCall, BoundCombine, BoundGroup, BoundQuery, BoundWhere
from services.kg.language.catalogue import NUMERIC, Catalogue, Function, Key
from services.kg.language.parse import Parsed, parse_each
from services.kg.language.tree import Aggregate, Literal_, Nothing, Slice, Sql, render
from services.kg.outcome import OF_SELECT, Outcome, Scalar
from services.kg.rows import Rows, view_of
from services.kg.scope import Findings
from services.kg.selects import selection_of
from services.kg.store.engine import deadline, is_interrupted
from services.kg.store.tables import stated_total
from services.kg.syntax import parse_select
from services.kg.values import combined, scalar

# Rows that tie with the last one shown: so many are named.
MAX_TIES = 3
NO_ROWS_STATED = "the source states that there are none"


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs programs against a store."""

    engine: Engine
    names: NameIndex
    catalogue: Catalogue

    def execute(self, program: str, *, domain: str, query_time: datetime, seconds: float = 1.0) -> list[Outcome]:
        """Outcomes in program order; blocks, so it belongs in a worker thread.

        Args:
            program: text in the regularized language.
            domain: its functions are looked up first.
            query_time: with its zone; later events are hidden.
            seconds: for all statements together; those that get no time have the status `timeout`.

        Raises:
            ParseError: the whole is too long, has too many statements or is nested too deeply.
            StoreError: the store cannot be read.
        """
        parsed = parse_each(program, self.catalogue.spellings)
        return self.run(parsed, domain=domain, query_time=query_time, seconds=seconds)

    def run(
        self, parsed: Sequence[Parsed], *, domain: str, query_time: datetime, seconds: float = 1.0
    ) -> list[Outcome]:
        """As `execute`, for a program that is parsed already."""
        outcomes: list[Outcome] = []
        try:
            with deadline(seconds), self.engine.connect() as connection:
                now = self.catalogue.asked(query_time, domain)
                compiler = Compiler(connection, self.names, self.catalogue, domain, now)
                run = _Run(connection, compiler)
                for one in parsed:
                    outcomes.append(run.statement(one))
        except ExecutionTimeout as error:
            late = parsed[len(outcomes) :]
            outcomes += [Outcome(one.text, "timeout", message=str(error)) for one in late]
        return outcomes


@dataclass(frozen=True, slots=True)
class _Run:
    """One program: statements see the rows of those before."""

    _connection: Connection
    _compiler: Compiler

    @property
    def _findings(self) -> Findings:
        return self._compiler.findings

    def statement(self, parsed: Parsed) -> Outcome:
        """Run one statement; its errors are its outcome, those of the store are raised."""
        compiler, source = self._compiler, parsed.text
        compiler.findings = Findings()
        number = len(compiler.done) + 1
        try:
            if parsed.statement is None:
                raise parsed.error or ParseError("cannot be read")
            if isinstance(parsed.statement, Nothing):
                return Outcome("none", "no_program", message="no function fits the question")
            source = render(parsed.statement)
            if isinstance(parsed.statement, Sql):
                return self._select(source)
            bound = compiler.binder.bind(parsed.statement)
            if isinstance(bound, BoundCombine):
                return self._combine(source, bound)
            rows = compiler.compile(bound)
            outcome = self._fetch(source, bound, rows)
            compiler.done.append(rows)
            return outcome
        except KgError as error:
            entities = tuple(self._findings.entities)
            return Outcome(source, error.status, entities=entities, message=str(error), expected=error.expected)
        finally:
            # A statement without rows still counts for `*2`.
            if len(compiler.binder.functions) < number:
                compiler.binder.skip()
            if len(compiler.done) < number:
                compiler.done.append(None)

    def _fetch(self, source: str, query: BoundQuery, rows: Rows) -> Outcome:
        function = rows.function
        shown = rows.shown or tuple(function.key(name) for name in rows.default or function.default)
        return self._listed_or_computed(source, query.aggregate, rows, shown, query)

    def _listed_or_computed(
        self, source: str, how: Aggregate | None, rows: Rows, shown: tuple[Key, ...], query: BoundQuery | None
    ) -> Outcome:
        """The outcome of rows; of a program's `query` what the source states counts too, and a 0 must say something."""
        if how not in (None, "len"):
            return self._aggregated(source, how, rows, shown)
        lines, total = self._lines(rows, shown, note_ties=how is None)
        if query is not None:
            total = self._stated_or(rows, query, total)
            if how and total == 0:
                self._require_known(rows)
        return self._outcome(source, how, rows.function, shown, lines, total, total if how else None)

    def _select(self, sql: str) -> Outcome:
        try:
            return self._selected(sql)
        except DBAPIError as error:
            if is_interrupted(error):
                raise
            # As sides of a UNION with other numbers of columns.
            self._connection.rollback()
            raise ParseError(f"the database refuses it: {error.orig}") from error

    def _selected(self, sql: str) -> Outcome:
        selection = selection_of(parse_select(sql), self._compiler.domain, self._compiler.tomorrow)
        for one in selection.comparisons:
            for text in one.texts if one.finds_names else ():
                self._findings.take(text, one.key.entity, text, OF_SELECT)
        self._findings.conditions += in_words([one for one in selection.comparisons if not one.finds_names])
        if selection.ranked:
            self._findings.conditions.append(selection.ranked)
        if selection.once:
            self._findings.conditions.append(f"each {selection.once} once")
        function = selection.function
        rows = Rows(function, view_of(function.view), limit=selection.limit)
        rows.order = [(rows.c[name], descending) for name, descending in selection.order]
        rows.ranked = bool(rows.order)
        if function.grouped and rows.limit is not None:
            # The most tickets are somebody's.
            rows.where.append(or_(*(rows.c[name].is_not(None) for name in function.subject)))
        shown = tuple(function.exact_keys[name] for name in function.default)
        return self._listed_or_computed(sql, selection.aggregate, rows, shown, None)

    def _require_known(self, rows: Rows) -> None:
        """Refuse a count of 0 that says nothing.

        Raises:
            KgError: of a name there is no row, or a table of a domain of one's own begins later.
        """
        if not self._has_rows(rows):
            names = ", ".join(entity.surface for entity in self._findings.entities)
            raise KgError(f"nothing is known that could be counted: {names}")
        for key, end in rows.periods:
            column = view_of(rows.function.view).c[key]
            first = self._connection.scalar(select(func.min(column)))
            if first is not None and str(first) >= end:
                raise KgError(f"what is known has its {key} from {first} on")

    def _has_rows(self, rows: Rows) -> bool:
        """Whether the graph has a row of each entity: only then is a count of 0 a fact about it."""
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
        # An average is of the values that are known.
        known = self._connection.scalar(select(func.count(inner.c.value))) or 0
        total = min(int(known), self._count(rows))
        if how in ("min", "max") and value is not None:
            rows.where.append(rows.c[key.name] == value)
        lines = self._lines(rows, (key,))[0] if total else []
        return self._outcome(source, how, rows.function, (key,), lines, total, scalar(value))

    def _count(self, rows: Rows) -> int:
        counted = rows.c[rows.identity] if rows.identity else next(iter(rows.source.c))
        inner = rows.select([counted.label("one")], ordered=rows.limit is not None).subquery()
        number = select(func.count(inner.c.one.distinct())) if rows.identity else select(func.count())
        return int(self._connection.scalar(number.select_from(inner)) or 0)

    def _lines(
        self, rows: Rows, shown: tuple[Key, ...], *, note_ties: bool = False
    ) -> tuple[list[dict[str, Scalar]], int]:
        """The first rows, and how many there are in all; the database counts them only where there may be more."""
        keys = dict.fromkeys((*rows.function.subject, *(key.name for key in shown)))
        names = [name for name in keys if name in rows.source.c]
        columns: list[ColumnElement[Any]] = [rows.c[name] for name in names]
        cut = rows.limit if note_ties and rows.ranked and rows.limit and rows.limit <= MAX_ROWS else None
        if cut is not None:
            columns.append(rows.order[0][0].label("rank_value"))
        if rows.identity:
            columns.append(rows.c[rows.identity])
        statement, most = rows.select(columns), MAX_ROWS * 2 if rows.identity else MAX_ROWS
        if cut is not None:
            statement = statement.limit(cut + MAX_TIES + 1)
        elif rows.limit is None or rows.limit > MAX_ROWS:
            statement = statement.limit(most)
        records = self._connection.execute(statement).all()
        if cut is not None:
            self._note_ties(rows, shown, [dict(record._mapping) for record in records], cut)
            records = records[:cut]
        total = len({record[-1] for record in records} - {None}) if rows.identity else len(records)
        if len(records) >= most:
            total = self._count(rows)
        lines: dict[Any, dict[str, Scalar]] = {}
        for index, record in enumerate(records if total else ()):
            line = {name: scalar(value) for name, value in zip(names, record, strict=False)}
            # A person with two credits in a film is one line of its list, unless the credits are projected.
            same = (record[-1], *(line[key.name] for key in shown if key.name in line)) if rows.identity else index
            lines.setdefault(same, line)
        return list(lines.values())[:MAX_ROWS], total

    def _note_ties(self, rows: Rows, shown: tuple[Key, ...], records: Sequence[Mapping[str, Any]], cut: int) -> None:
        """Note the rows beyond `cut` that tie with the last before it and show something else."""
        if len(records) <= cut or (last := records[cut - 1]["rank_value"]) is None:
            return
        values = [tuple(str(record[key.name]) for key in shown if key.name in record) for record in records]
        subject = rows.function.subject
        names = [" ".join(str(record[one]) for one in subject if record.get(one) is not None) for record in records]
        ties = dict.fromkeys(
            name
            for record, value, name in zip(records[cut:], values[cut:], names[cut:], strict=True)
            if record["rank_value"] == last and value not in values[:cut] and name and name not in names[:cut]
        )
        if ties:
            key = rows.function.exact_keys.get(rows.order[0][0].name)
            more = [*list(ties)[:MAX_TIES], *(["others"] if len(ties) > MAX_TIES else [])]
            between = "; " if any("," in name for name in more) else ", "
            self._findings.notes.append(f"the same {key.words if key else 'place'}: {between.join(more)}")

    def _stated_or(self, rows: Rows, query: BoundQuery, total: int) -> int:
        """The total of the rows, or the source's own where that is larger: a source may list fewer than it counts."""
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
        elif stated == total == 0:
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
        findings, made_by = self._findings, aggregate or ""
        known = aggregate == "len" or any(row.get(key.name) is not None for row in rows for key in shown)
        status: KgStatus = findings.status or ("ok" if known or findings.stated else "empty")
        if findings.stated:
            if findings.status is None:
                # The source states totals without their parts: they are the row.
                rows, value = [dict(findings.summary)], None
            made_by = "" if value is None else made_by
        fields = (source, status, function, tuple(key.name for key in shown), tuple(rows), total, value, made_by)
        return Outcome(*fields, **findings.fields(), summary=dict(findings.summary))

    def _combine(self, source: str, bound: BoundCombine) -> Outcome:
        outcomes = [self._fetch("", query, self._compiler.compile(query)) for query in bound.queries]
        for one in outcomes:
            if one.value is None and len({row.get(one.shown[-1]) for row in one.rows}) > 1:
                raise KgError(f"{bound.how} is of two values, and one side has {one.total}")
        values = [one.rows[0].get(one.shown[-1]) if one.value is None and one.rows else one.value for one in outcomes]
        rows = tuple(one.rows[0] for one in outcomes if one.rows)
        value, last = combined(bound.how, values), outcomes[-1]
        status: KgStatus = "empty" if value is None else "ok"
        fields = (source, status, last.function, last.shown, rows, len(rows), value, bound.how)
        return Outcome(*fields, **self._findings.fields())
