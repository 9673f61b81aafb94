"""Programs by a domain's readings: the first that fits the question writes its statements."""

import re
from collections.abc import Mapping, Sequence

from services.kg.generate.rules.english import english
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.question import Question, all_of, quote
from services.kg.generate.rules.words import NOTHING, Hop, Narrow, Reading, Show
from services.kg.language.catalogue import Parameter
from services.kit.text.vocabulary import SMALL, TENS

# Three names in one call are the most that a program takes together.
TOGETHER = 3
_TOP = r"(?P<number>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|twenty)"
_MANY = re.compile(
    rf"\b(?:top|first|last|latest|newest|best|biggest|largest|highest|most recent|oldest|longest) {_TOP}\b|"
    rf"\b{_TOP.replace('number', 'before')} (?:\w+ )?(?:last|latest|first|most recent|newest|\w+est)\b"
)
_RANK = re.compile(
    r"(?:number|no\.?|#|rank(?:ed)?|position|spot|place)\s*(?P<number>\d{1,3}|one|two|three|four|five|six|seven|eight|"
    r"nine|ten)\b|\b(?:top|first) (?:spot|place|position|song|of)\b|\btopped\b|\b(?P<ordinal>\d{1,3})(?:st|nd|rd|th) "
    r"(?:place|spot|position)\b"
)


def read(lexicon: Lexicon, question: Question) -> list[str]:
    """The statements of the first reading that fits; none when none does."""
    for reading in lexicon.words.readings:
        if reading.function == NOTHING:
            if suits(reading, question):
                return []
            continue
        statements = _Writer(lexicon, reading, question).statements()
        if statements:
            return statements
    return []


def suits(reading: Reading, question: Question) -> bool:
    """Whether a question has the words and the names of a reading."""
    if reading.when and not question.says(reading.when):
        return False
    if reading.also_when and not question.says(reading.also_when):
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

    def statements(self) -> list[str]:
        if not suits(self.reading, self.question) or not all(self._says(need) for need in self.reading.needs):
            return []
        calls = self._names()
        if calls is None:
            return []
        written = [self._statement(names) for names in calls]
        for hop in self.reading.then:
            if len(written) == 1 and self._goes_on(hop):
                return self._hop(calls[0], hop)
        for other in self.reading.also:
            written += _Writer(self.lexicon, other, self.question).statements()
        return written

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
                return not question.time or question.time.startswith("next ")
            case "hop":
                return any(self._goes_on(hop) for hop in self.reading.then)
            case "window":
                return question.window if question.time else bool(question.years)
            case "number":
                return rank(question) is not None
            case "show":
                return self._chosen() != ""
            case "value":
                return self._captured() != ""
            case key:
                return self.lexicon.value(question, self.rows.name, key) != ""

    # What it calls

    def _names(self) -> list[dict[str, list[str]]] | None:
        """Names by parameter, for each call; None where a name is needed and there is none."""
        reading, question = self.reading, self.question
        by = self._parameters()
        if not by:
            return [{}] if reading.by is not None or not reading.guess else None
        (first, kinds), *others = by.items()
        names = question.sides(*kinds)
        if not names and reading.guess:
            guessed = question.guess(reading.guess_after, reading.strip)
            names = [guessed] if guessed else []
        if not names:
            return None
        together = len(names) > 1 and question.says(reading.together)
        if len(names) > 1 and not together and not reading.many and not question.compares:
            several = question.says(english().several)
            names = names if several else [max(names, key=len)]
        rest = {name: question.names(*kinds)[:TOGETHER] for name, kinds in others}
        rest = {name: [one for one in found if one not in names] for name, found in rest.items()}
        groups = [names[:TOGETHER]] if together else [[name] for name in names[: reading.each]]
        return [{first: group, **rest} for group in groups]

    def _parameters(self) -> dict[str, tuple[str, ...]]:
        """Parameters that take names, with the kinds of these."""
        if self.reading.by is not None:
            return {name: (kind,) for name, kind in self.reading.by.items()}
        return {one.name: one.entities for one in self.function.parameters if one.kind == "entity"}

    def _call(self, names: Mapping[str, Sequence[str]]) -> str:
        arguments = [self._argument(one, names) for one in self.function.parameters]
        conditions = self._conditions()
        where = ""
        if self.function.conditioned and not self.reading.facet:
            arguments.append(all_of(conditions))
        else:
            while arguments and arguments[-1] == "None":
                arguments.pop()
            where = f" where({', '.join(conditions)})" if conditions else ""
        facet = f'["{self.reading.facet}"]' if self.reading.facet else ""
        return f"{self.function.name}({', '.join(arguments)}){facet}{where}"

    def _argument(self, parameter: Parameter, names: Mapping[str, Sequence[str]]) -> str:
        question, reading = self.question, self.reading
        match parameter.kind:
            case "entity":
                return all_of([quote(one) for one in names.get(parameter.name, ())[:TOGETHER]])
            case "time":
                first = self.function.span is None or parameter.name == self.function.span[0]
                time = self._time() if first else ""
                return quote(time) if time else "None"
            case "integer" if reading.years == "argument":
                years = sorted(set(question.years))
                last = self.function.span is not None and parameter.name == self.function.span[1]
                if not years or (last and (len(years) < 2 or not question.says(english().between))):
                    return "None"
                return quote(str(years[-1] if last else years[0]))
            case "integer":
                number = rank(question)
                return "None" if number is None else str(number)
            case _:
                value = self.lexicon.value(question, self.function.name, parameter.name)
                return quote(value) if value else "None"

    def _dated(self) -> bool:
        time = self.question.time
        return bool(time) and compiled(self.reading.no_time).fullmatch(time) is None

    def _time(self) -> str:
        reading, question = self.reading, self.question
        time = question.time if reading.time else ""
        if not time and reading.time and question.years and reading.years == "time":
            time = str(question.years[0])
        if time == question.time and not self._dated():
            time = ""
        if not time:
            fitting = (one.value for one in reading.default_time if not one.when or question.says(one.when))
            time = next(fitting, "")
        return time

    # What it narrows, sorts and shows

    def _conditions(self) -> list[str]:
        found = [text for one in self.reading.where if (text := self._condition(one))]
        if self.reading.value and (captured := self._captured()):
            found.append(f"eq({self.reading.value}, {quote(captured)})")
        if self.reading.years not in ("", "argument", "time"):
            found += self._years(self.reading.years)
        return found

    def _condition(self, narrow: Narrow) -> str:
        question = self.question
        if (narrow.when and not question.says(narrow.when)) or question.says(narrow.unless):
            return ""
        if narrow.compare:
            return f"{narrow.sign}({narrow.key}, {narrow.compare})"
        value = narrow.value
        if value is None:
            value = self.lexicon.value(question, self.rows.name, narrow.key)
            if not value:
                return ""
        text = str(value).lower() if isinstance(value, bool) else quote(value) if isinstance(value, str) else str(value)
        return f"eq({narrow.key}, {text})"

    def _years(self, key: str) -> list[str]:
        years = sorted(set(self.question.years))
        if not years:
            return []
        kind = self.rows.exact_keys[key].kind if key in self.rows.exact_keys else "integer"
        ends = [quote(str(year)) if kind == "date" else str(year) for year in (years[0], years[-1])]
        if len(years) > 1:
            return [f"ge({key}, {ends[0]})", f"le({key}, {ends[1]})"]
        sign = bound_of_year(self.question)
        return [f"{sign}({key}, {ends[0]})"]

    def _captured(self) -> str:
        chosen = [name for names in (self._names() or [])[:1] for group in names.values() for name in group]
        text = self.question.captures(self.reading.value_when, chosen)
        subjects = {kind for kinds in self._parameters().values() for kind in kinds}
        known = {spot.text.lower() for spot in self.question.spots if spot.kind not in subjects}
        return "" if text.lower() in known else text

    def _chosen(self) -> str:
        return choose(self.lexicon, self.question, self.rows.name, self.reading.show)

    def _statement(self, names: Mapping[str, Sequence[str]]) -> str:
        reading = self.reading
        call = self._call(names)
        if self._counts():
            return f"LEN {call}"
        shown = self._chosen() or reading.otherwise
        projected = f'["{shown}"]' if shown else ""
        if ordered := self._ordered():
            key, descending, top = ordered
            return f"{call} sort(None, {'-' if descending else ''}{key}){projected}[:{top}]"
        aggregate = self._aggregate(shown)
        if aggregate:
            return f"{aggregate} {call}{projected}"
        # A list of some years only is shown as it is, not asked for as all.
        some = reading.facet and self.question.years
        return f"{'ALL ' if reading.every and not some else ''}{call}{projected}"

    def _counts(self) -> bool:
        count = self.reading.count
        if count == "never" or self.question.says(self.reading.count_unless):
            return False
        if count == "always":
            return True
        return self.question.says(count or english().count)

    def _ordered(self) -> tuple[str, bool, int] | None:
        """Key, whether descending, and rows shown, where the question asks for the ends of a list."""
        reading, question = self.reading, self.question
        for order in reading.order:
            if not order.when or question.says(order.when):
                least = order.least if order.least is not None else question.says(english().least)
                return order.key, not least, many(question) or order.top
        words = english()
        last = question.says(words.last) and not question.says(words.first[:1])
        if reading.first and (last or question.says(words.first)):
            return reading.first, last, many(question) or 1
        return None

    def _aggregate(self, shown: str) -> str:
        reading, question = self.reading, self.question
        several = reading.windows.get(shown)
        if several is None and shown not in reading.total:
            return ""
        if reading.windows and not question.window:
            return ""
        if question.says(english().average):
            return "AVG"
        if shown in reading.total and question.says(english().total):
            return "SUM"
        return several.upper() if several else ""

    def _goes_on(self, hop: Hop) -> bool:
        """Whether a further fact is asked for of what the first statement finds."""
        if not self.question.says(hop.when):
            return False
        if hop.count and self.question.says(hop.count):
            return True
        return choose(self.lexicon, self.question, hop.function or self.function.name, _others(hop)) != ""

    def _hop(self, names: Mapping[str, Sequence[str]], hop: Hop) -> list[str]:
        first = f'{self._call(names)}["{hop.key}"]'
        target = hop.function or self.function.name
        shown = choose(self.lexicon, self.question, target, _others(hop))
        if hop.count and self.question.says(hop.count):
            return [first, f'LEN {target}(*["{hop.key}"])' + (f'["{shown}"]' if shown else "")]
        return [first, f'{target}(*["{hop.key}"])["{shown}"]'] if shown else [first]


def _others(hop: Hop) -> list[Show]:
    return [show for show in hop.show if show.key != hop.key]


def choose(lexicon: Lexicon, question: Question, function: str, shows: Sequence[Show]) -> str:
    """The first key that is asked for; empty when none is."""
    for show in shows:
        if question.says(show.unless):
            continue
        if question.says(show.when) if show.when else lexicon.asks(question, function, show.key):
            return show.key
    return ""


def bound_of_year(question: Question) -> str:
    """How a single year narrows: "after" excludes it, "since" begins with it."""
    if re.search(r"\b(?:after|later than|newer than)\b", question.words):
        return "gt"
    if question.says(english().after):
        return "ge"
    if re.search(r"\b(?:before|prior to|earlier than|older than)\b", question.words):
        return "lt"
    return "le" if question.says(english().before) else "eq"


def rank(question: Question) -> int | None:
    """The number of a rank that the question says; a place at the top is the first."""
    match = _RANK.search(question.words)
    if match is None:
        return None
    return _number(match["number"] or match["ordinal"] or "one")


def many(question: Question) -> int | None:
    """How many rows a superlative asks for; None where it asks for one."""
    match = _MANY.search(question.words)
    return _number(match["number"] or match["before"]) if match else None


def _number(text: str) -> int:
    return int(text) if text.isdigit() else {**SMALL, **TENS}[text]


def _amounts(amount: str, count: int) -> bool:
    return {"none": count == 0, "one": count == 1, "several": count > 1, "some": count > 0}.get(amount, True)
