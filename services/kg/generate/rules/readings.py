"""Programs by a domain's readings: the first that fits the question writes its statements."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.trees import NONE, argument_of, call_of, compared, project, where
from services.kg.generate.rules.words import NOTHING, Hop, Narrow, Reading, Show, english
from services.kg.language.catalogue import Parameter
from services.kg.language.tree import (
    Aggregate,
    Argument,
    Call,
    Condition,
    Literal_,
    Query,
    Reference,
    Slice,
    Sort,
    Step,
    render,
)
from services.kit.text.vocabulary import ORDINAL_ENDING, SMALL, TENS, WEEKDAYS, alternatives

# Three names in one call are the most that a program takes together.
TOGETHER = 3
_NUMBERS = {**SMALL, **TENS}
_TEN = alternatives(word for word, number in SMALL.items() if 1 <= number <= 10)
_TOP = rf"(?P<number>\d{{1,3}}|{_TEN}|twenty)"
_MANY = re.compile(
    rf"\b(?:top|first|last|latest|newest|best|biggest|largest|highest|most recent|oldest|longest) {_TOP}\b|"
    rf"\b{_TOP.replace('number', 'before')} (?:\w+ )?(?:last|latest|first|most recent|newest|\w+est)\b"
)
_RANK = re.compile(
    rf"(?:number|no\.?|#|rank(?:ed)?|position|spot|place)\s*(?P<number>\d{{1,3}}|{_TEN})\b|"
    r"\b(?:top|first) (?:spot|place|position|song|of)\b|\btopped\b|"
    rf"\b(?P<ordinal>\d{{1,3}}){ORDINAL_ENDING} (?:place|spot|position)\b"
)


def read(lexicon: Lexicon, question: Question) -> list[str]:
    """The statements of the first reading that fits; none when none does, or a time is half read."""
    # A domain without readings needs no times for them.
    if not lexicon.words.readings or question.is_passed_over:
        return []
    for reading in lexicon.words.readings:
        if reading.function == NOTHING:
            if _suits(reading, question):
                return []
            continue
        if statements := _Writer(lexicon, reading, question).statements():
            return [render(one) for one in statements]
    return []


def _suits(reading: Reading, question: Question) -> bool:
    """Whether a question has the words and the names of a reading."""
    if any(phrases and not question.says(phrases) for phrases in (reading.when, reading.also_when)):
        return False
    if question.says(reading.unless):
        return False
    if reading.compares is not None and reading.compares != question.compares:
        return False
    return all(_amounts(amount, len(question.names(kind))) for kind, amount in reading.names.items())


class _Writer:
    """One reading of one question."""

    def __init__(self, lexicon: Lexicon, reading: Reading, question: Question) -> None:
        self.lexicon = lexicon
        self.reading = reading
        self.question = question
        self.function = lexicon.function(reading.function)
        # A facet's rows are another function's.
        facet = self.function.facets.get(reading.facet) if reading.facet else None
        self.rows = lexicon.function(facet.function) if facet else self.function

    def statements(self) -> list[Query]:
        """The reading's statements; none where it does not fit."""
        if not _suits(self.reading, self.question) or not all(map(self._says, self.reading.needs)):
            return []
        calls = self._names()
        if calls is None:
            return []
        statements = [self._statement(names) for names in calls]
        for hop in self.reading.then:
            if len(statements) == 1 and self._goes_on(hop):
                return self._hop(calls[0], hop)
        for other in self.reading.also:
            statements += _Writer(self.lexicon, other, self.question).statements()
        return statements

    def _says(self, need: str) -> bool:
        question = self.question
        match need:
            case "years":
                return bool(question.years)
            case "no_years":
                return not question.years
            case "dated":
                return self._dated()
            case "no_time":
                which, _, time = question.time.partition(" ")
                # "Next Friday" is a day all the same.
                return not question.time or (which == "next" and time not in WEEKDAYS)
            case "hop":
                return any(self._goes_on(hop) for hop in self.reading.then)
            case "window":
                return question.window if question.time else bool(question.years)
            case "number":
                return rank(question) is not None
            case "show":
                return self._key() != ""
            case "value":
                return self._captured() != ""
            case key:
                return self.lexicon.value(question, self.rows.name, key) != ""

    # What it calls

    def _names(self) -> list[dict[str, list[str]]] | None:
        """Names by parameter, for each call; None where a name is needed and there is none."""
        reading, question = self.reading, self.question
        parameters = self._parameters()
        if not parameters:
            return [{}] if reading.by is not None or not reading.guess else None
        (first, kinds), *others = parameters.items()
        names = question.sides(*kinds)
        if not names and reading.guess and (guess := question.guess(reading.guess_after, reading.strip)):
            names = [guess]
        if not names:
            return None
        together = len(names) > 1 and question.says(reading.together)
        if len(names) > 1 and not together and not reading.many and not question.compares:
            names = names if question.says(english().several) else [max(names, key=len)]
        rest = {name: [one for one in question.names(*kinds)[:TOGETHER] if one not in names] for name, kinds in others}
        groups = [names[:TOGETHER]] if together else [[name] for name in names[: reading.each]]
        return [{first: group, **rest} for group in groups]

    def _parameters(self) -> dict[str, tuple[str, ...]]:
        """Parameters that take names, with the kinds of these."""
        if self.reading.by is not None:
            return {name: (kind,) for name, kind in self.reading.by.items()}
        return {one.name: one.entities for one in self.function.parameters if one.kind == "entity"}

    def _query(self, names: Mapping[str, Sequence[str]], *steps: Step, aggregate: Aggregate | None = None) -> Query:
        function, facet, conditions = self.function, self.reading.facet, self._conditions()
        arguments = [self._argument(one, names) for one in function.parameters]
        if function.conditioned and not facet:
            return Query(Call(function.name, (*arguments, argument_of(conditions))), steps, aggregate=aggregate)
        own = (*project((facet,) if facet else ()), *where(conditions))
        return Query(call_of(function.name, arguments), (*own, *steps), aggregate=aggregate)

    def _argument(self, parameter: Parameter, names: Mapping[str, Sequence[str]]) -> Argument:
        question, reading = self.question, self.reading
        match parameter.kind:
            case "entity":
                return argument_of([Literal_(one) for one in names.get(parameter.name, ())[:TOGETHER]])
            case "time":
                first = self.function.span is None or parameter.name == self.function.span[0]
                return Literal_(self._time() or None) if first else NONE
            case "integer" if reading.years == "argument":
                years = sorted(set(question.years))
                last = self.function.span is not None and parameter.name == self.function.span[1]
                if not years or (last and (len(years) < 2 or not question.says(english().between))):
                    return NONE
                return Literal_(str(years[-1] if last else years[0]))
            case "integer":
                return Literal_(rank(question))
            case _:
                return Literal_(self.lexicon.value(question, self.function.name, parameter.name) or None)

    def _dated(self) -> bool:
        time = self.question.time
        return bool(time) and compiled(self.reading.no_time).fullmatch(time) is None

    def _time(self) -> str:
        reading, question = self.reading, self.question
        time = question.time if reading.time and self._dated() else ""
        if reading.time and not question.time and question.years and reading.years == "time":
            time = str(question.years[0])
        fitting = (one.value for one in reading.default_time if not one.when or question.says(one.when))
        return time or next(fitting, "")

    # What it narrows, sorts and shows

    def _conditions(self) -> list[Condition]:
        conditions = [condition for one in self.reading.where if (condition := self._condition(one)) is not None]
        if self.reading.value and (captured := self._captured()):
            conditions.append(compared("eq", self.reading.value, captured))
        if self.reading.years not in ("", "argument", "time"):
            conditions += self._years(self.reading.years)
        return conditions

    def _condition(self, narrow: Narrow) -> Condition | None:
        question = self.question
        if (narrow.when and not question.says(narrow.when)) or question.says(narrow.unless):
            return None
        if narrow.compare:
            return Condition(narrow.sign, narrow.key, (Literal_(narrow.compare, bare=True),))
        value = narrow.value
        if value is None:
            value = self.lexicon.value(question, self.rows.name, narrow.key) or None
        return None if value is None else compared("eq", narrow.key, value)

    def _years(self, key: str) -> list[Condition]:
        years = sorted(set(self.question.years))
        if not years:
            return []
        is_date = key in self.rows.exact_keys and self.rows.exact_keys[key].kind == "date"
        first, *_, last = [str(year) if is_date else year for year in (*years[:1], *years)]
        if len(years) > 1:
            return [compared("ge", key, first), compared("le", key, last)]
        # "1994 or before" is none that ends before it.
        signs = (*english().open_ends, *english().time_operators)
        operators = (operator for operator, phrases in signs if self.question.says(phrases))
        return [compared(next(operators, "eq"), key, first)]

    def _captured(self) -> str:
        """The value that the question's words give for the reading's `value`; empty when they give none."""
        subjects = [name for names in (self._names() or [])[:1] for group in names.values() for name in group]
        text = self.question.captures(self.reading.value_when, subjects)
        kinds = {kind for kinds in self._parameters().values() for kind in kinds}
        others = {spot.text.lower() for spot in self.question.spots if spot.kind not in kinds}
        return "" if text.lower() in others else text

    def _key(self) -> str:
        return _choose(self.lexicon, self.question, self.rows.name, self.reading.show)

    def _statement(self, names: Mapping[str, Sequence[str]]) -> Query:
        reading = self.reading
        if self._counts():
            return self._query(names, aggregate="len")
        key = self._key() or reading.otherwise
        columns = project((key,) if key else ())
        if order := self._order():
            by, descending, top = order
            return self._query(names, Sort((), by, descending), *columns, Slice(0, top))
        aggregate = self._aggregate(key)
        # A list of some years only is shown as it is, not asked for as all.
        is_whole = reading.every and aggregate is None and not (reading.facet and self.question.years)
        return replace(self._query(names, *columns, aggregate=aggregate), every=is_whole)

    def _counts(self) -> bool:
        count = self.reading.count
        if count == "never" or self.question.says(self.reading.count_unless):
            return False
        return count == "always" or self.question.says(count or english().count)

    def _order(self) -> tuple[str, bool, int] | None:
        """Key, whether descending, and number of rows, where the question asks for the ends of a list."""
        reading, question = self.reading, self.question
        for order in reading.order:
            if not order.when or question.says(order.when):
                least = order.least if order.least is not None else question.says(english().least)
                return order.key, not least, _top(question) or order.top
        words = english()
        last = question.says(words.last) and not question.says(words.first[:1])
        if reading.first and (last or question.says(words.first)):
            return reading.first, last, _top(question) or 1
        return None

    def _aggregate(self, key: str) -> Aggregate | None:
        reading, question = self.reading, self.question
        several = reading.windows.get(key)
        if several is None and key not in reading.total:
            return None
        if reading.windows and not question.window:
            return None
        if question.says(english().average):
            return "avg"
        if key in reading.total and question.says(english().total):
            return "sum"
        return several

    def _goes_on(self, hop: Hop) -> bool:
        """Whether a further fact is asked for of what the first statement finds."""
        if not self.question.says(hop.when):
            return False
        if hop.count and self.question.says(hop.count):
            return True
        return self._hop_key(hop) != ""

    def _hop_key(self, hop: Hop) -> str:
        """The key of the second statement that the question asks for; empty when it asks for none."""
        keys = [show for show in hop.show if show.key != hop.key]
        return _choose(self.lexicon, self.question, hop.function or self.function.name, keys)

    def _hop(self, names: Mapping[str, Sequence[str]], hop: Hop) -> list[Query]:
        first = self._query(names, *project((hop.key,)))
        key = self._hop_key(hop)
        call = Call(hop.function or self.function.name, (Reference(None, hop.key),))
        second = Query(call, project((key,) if key else ()))
        if hop.count and self.question.says(hop.count):
            return [first, replace(second, aggregate="len")]
        return [first, second] if key else [first]


def _choose(lexicon: Lexicon, question: Question, function: str, shows: Sequence[Show]) -> str:
    """The first key that is asked for; empty when none is."""
    for show in shows:
        if question.says(show.unless):
            continue
        if question.says(show.when) if show.when else lexicon.asks(question, function, show.key):
            return show.key
    return ""


def rank(question: Question) -> int | None:
    """The number of a rank that the question says; a place at the top is the first."""
    match = _RANK.search(question.words)
    if match is None:
        return None
    return _number(match["number"] or match["ordinal"] or "one")


def _top(question: Question) -> int | None:
    """How many rows a superlative asks for; None where it asks for one."""
    match = _MANY.search(question.words)
    return _number(match["number"] or match["before"]) if match else None


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _amounts(amount: str, count: int) -> bool:
    return {"none": count == 0, "one": count == 1, "several": count > 1, "some": count > 0}.get(amount, True)
