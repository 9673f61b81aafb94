"""Step `post_process`: questions of time, number and logic that the facts settle by a rule (WeKnow, knowledge graph).

A language model subtracts, counts and compares badly; where the graph has returned typed values the answer follows
from them. Every rule is strict. Each word of the question must be understood: as a name of the facts, as a word of what
was looked up, as the comparison or as filler. A word that is none of these may change the question, and then nothing is
settled and the model reads the facts.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from proto.kg import KgResponse, KgStatement
from services.gateway.calculator.evaluate import number_text

Value: TypeAlias = Decimal | date
How = Literal["comparison", "yes or no", "difference", "age", "count", "aggregate", "list"]

# Longer lists are no answers of one line.
MAX_LIST = 40
LATEST_AGE = 120


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer that follows from facts.

    Args:
        answer: as CRAG scores it, on one line.
        how: the rule.
        inputs: the values that it follows from, in words.
    """

    answer: str
    how: How
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """What a statement looks up.

    Args:
        functions: names of functions in programs.
        keys: what is projected or counted; empty for what has one value only.
        needed: one of these must stand in the question, or something else is asked for.
        words: further words of such questions.
        unit: before a value where it is a currency, else behind it.
    """

    functions: frozenset[str]
    keys: frozenset[str]
    needed: re.Pattern[str]
    words: frozenset[str]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of an entity, as one statement returned it."""

    name: str
    at: int
    value: Value
    measure: Measure
    shape: str
    statement: KgStatement
    rows: tuple[dict[str, Any], ...]
    aggregate: str

    @property
    def words(self) -> str:
        return f"{self.name}: {self.statement.source.strip()} = {_words(self.value)}"


def settle(question: str, facts: KgResponse) -> Settled | None:
    """The answer, where a rule is certain of it; None for all other questions.

    Args:
        question: as it was asked.
        facts: typed rows and values of the graph; every statement of it must have succeeded.
    """
    if facts.status != "ok" or not facts.statements or any(one.status != "ok" for one in facts.statements):
        return None
    query = " ".join(question.lower().replace("’", "'").split())
    if _NEGATED.search(query):
        return None
    listed = _list(query, facts.statements)
    if listed is not None:
        return listed
    found = [_fact(query, statement) for statement in facts.statements]
    known = [fact for fact in found if fact is not None]
    return settle_facts(query, known) if len(known) == len(found) else None


def settle_facts(query: str, facts: Sequence[Fact]) -> Settled | None:
    """The answer that follows from facts, at least one, by the first rule that is certain of it.

    Args:
        query: the question in lower case, its white space single.
        facts: all that was looked up for it.
    """
    if _NEGATED.search(query):
        return None
    asked = _Asked(query, facts)
    if asked.unknown_words():
        return None
    for rule in _RULES:
        settled = rule(asked)
        if settled is not None:
            return settled
    return None


def tells_time(text: str) -> bool:
    """Whether a text in lower case may speak of a time."""
    return any(word in _TIMES or _DATED.fullmatch(word) for word in _WORD.findall(text))


# What is looked up


def _vocabulary(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _measure(functions: str, keys: str, needed: str, words: str = "", unit: str = "") -> Measure:
    return Measure(
        _vocabulary(functions),
        _vocabulary(keys),
        re.compile(rf"\b(?:{needed})", re.IGNORECASE),
        _vocabulary(words),
        unit,
    )


_STOCK = (
    "stock stocks share shares company company's companies firm ticker etf equity price prices trading traded market"
)
_FILM = "movie movies film films picture pictures cinema title titles"
_PERSON = "actor actress director person people artist singer musician born star"
_TEAM = (
    "team teams nba basketball soccer football game games match matches season league club overall total totals side"
)
MEASURES: tuple[Measure, ...] = (
    _measure(
        "get_stock_market_cap",
        "value market_cap",
        r"market (?:cap|value|worth)|capitali[sz]ation|worth|valued|valuable",
        f"{_STOCK} cap capitalization capitalisation value valued worth valuable capitalized",
        "$",
    ),
    _measure("get_stock_eps", "value eps", r"eps|earnings per share", f"{_STOCK} eps earnings earning per", "$"),
    _measure(
        "get_stock_pe_ratio",
        "value pe_ratio",
        r"pe|p/e|price[- ]to[- ]earnings?",
        f"{_STOCK} pe p/e ratio ratios price-to-earnings to earnings",
    ),
    _measure(
        "get_stock_dividend", "dividend value", r"dividends?", f"{_STOCK} dividend dividends paid pay payout yield", "$"
    ),
    _measure(
        "get_stock_price get_stock_latest",
        "volume",
        r"volume|traded|trading (?:activity|volume)",
        f"{_STOCK} volume volumes activity active actively frequently heavily daily",
        "shares",
    ),
    *(
        _measure("get_stock_price get_stock_latest", key, needed, f"{_STOCK} {words} daily day's", "$")
        for key, needed, words in (
            ("close", "clos", "close closed closing closes end ended finish finished"),
            ("open", "open", "open opened opening opens start started"),
            ("high", "high", "high highs highest intraday peak"),
            ("low", "low", "low lows lowest intraday"),
        )
    ),
    _measure(
        "get_movie",
        "release_date year",
        r"releas|c[ao]me out|comes? out|premier|older|newer|earlier|later|first|oldest|newest|made|debut|screened",
        f"{_FILM} release released releases date came come out premiere premiered made debut debuted "
        "screened hit theaters",
    ),
    _measure(
        "get_movie",
        "length",
        r"long|short|length|runtime|running time|duration|minutes",
        f"{_FILM} long length runtime running duration minutes run time",
        "minutes",
    ),
    _measure(
        "get_movie",
        "revenue",
        r"box[- ]office|gross|earn|revenue|made|make|money|sales",
        f"{_FILM} box office box-office gross grossed grossing earn earned earnings revenue revenues made make money "
        "sales worldwide globally internationally global world",
        "$",
    ),
    _measure(
        "get_movie", "budget", r"budget|cost|expensive", f"{_FILM} budget budgets cost costs production expensive", "$"
    ),
    _measure("get_movie", "rating", r"rat(?:ing|ed)|score", f"{_FILM} rating ratings rated score scored imdb average"),
    _measure(
        "get_person",
        "birthday birth_date",
        r"old|young|born|age|birth",
        f"{_PERSON} age ages birthday birth date old older younger elder",
    ),
    _measure(
        "get_movie_person_oscar",
        "",
        r"oscar|academy award",
        f"{_FILM} {_PERSON} oscar oscars academy award awards win wins won winning winner nominated nomination "
        "nominations received receive earned statuette statuettes",
    ),
    _measure(
        "get_grammy_person get_grammy_song",
        "",
        r"grammy",
        f"{_PERSON} grammy grammys grammies award awards win wins won winning winner song songs band group "
        "received receive recipient",
    ),
    _measure(
        "get_movie_person_crew",
        "",
        r"direct",
        f"{_FILM} {_PERSON} directed direct directs directing directors directorial filmography credits",
    ),
    _measure(
        "get_movie_person_cast",
        "",
        r"act(?:ed|or|ing|ress)|cast|star|appear|role|play",
        f"{_FILM} {_PERSON} acted acting cast casted members member starred starring stars appeared appear appearances "
        "roles role played part filmography credits",
    ),
    _measure(
        "get_artist_works", "", r"album|song|single|work", f"{_PERSON} album albums song songs single singles released"
    ),
    _measure("get_members", "", r"member", f"{_PERSON} member members band group"),
    *(
        _measure("get_nba_on_date get_soccer_on_date", key, needed, f"{_TEAM} {words} home away record recorded")
        for key, needed, words in (
            ("wins", r"w[io]n|victor|triumph", "win wins won winning victory victories triumphs triumph"),
            ("losses", r"lo(?:se|ss|st|sing)|defeat", "lose loses lost losing loss losses defeat defeats defeated"),
            ("draws", r"dr[ae]w|tie", "draw draws drew drawn tie tied ties"),
            ("games", r"games?|match", "play played"),
            (
                "gf",
                r"point|goal|scor",
                "point points goal goals score scored scoring scores output offensive tally put up",
            ),
        )
    ),
)
_COUNTED = frozenset({""})
_SOURCE = re.compile(r"(?:ALL )?(?:(?P<aggregate>LEN|SUM|AVG|MIN|MAX) )?(?P<function>get_\w+)\(")
_PROJECTED = re.compile(r'\["([A-Za-z_ ]+)"\]')
_NUMERAL = re.compile(r"-?[$€£]?[0-9][0-9,]*(?:\.[0-9]+)?")
# Notes that say how a count was made, and qualify nothing.
_HARMLESS_NOTE = re.compile(r"the source (?:counts \d+ and lists \d+|states that there are none)")

# What the question says

_HIGH = _vocabulary(
    "more most higher highest larger largest bigger biggest greater greatest longer longest taller tallest top"
)
_LOW = _vocabulary("less least fewer fewest lower lowest smaller smallest shorter shortest cheaper cheapest")
_EARLY = _vocabulary("older oldest elder earlier earliest first")
_LATE = _vocabulary("younger youngest newer newest later latest recently")
_FILLER = _vocabulary(
    """a an the of in on at for by to from with and or between among both two which what who whom whose that this these
    those is are was were be been being do does did has have had can could would you tell me please i i'm curious know
    want he she it it's its they their them his her there than as so far ever all how many much number times time amount
    count one ones out compared comparing comparison versus vs each other does's total overall 's s terms term if when
    over history career currently current now today day days year years old age difference average mean sum combined
    together yes no whether just respectively came comes come on reign reigns supreme world under belt"""
)
_NOW = _vocabulary("now current currently today present")
_TIMES = _vocabulary(
    """this last next previous past recent latest first second third final trading day days week weeks month months
    quarter year years today yesterday before until up through since during beginning end entire entirety throughout
    january february march april may june july august september october november december q1 q2 q3 q4 now
    date dates monday tuesday wednesday thursday friday"""
)
_DATED = re.compile(r"(?:\d{4}(?:-\d{2}){0,2}|\d{1,2}(?:st|nd|rd|th)?)")
_NEGATED = re.compile(r"\b(?:not|never|neither|nor|except|without|excluding|besides|other than|\w+n't)\b")
# Words of time that look like a comparison.
_TEMPORAL_PHRASE = re.compile(
    r"\b(?:(?:the )?(?:last|first|latest|most recent|previous|past|next) (?:\d+ )?(?:trading )?"
    r"(?:days?|weeks?|months?|quarters?|years?|games?|match(?:es)?)|day before yesterday)\b"
)
_UNTIL = re.compile(
    r"\b(?:up )?(?:until|through|by|as of)(?: the)? (?:\d{1,2}(?:st|nd|rd|th) \w+ )?\(?(?P<year>(?:19|20)\d\d)\)?"
)
_BOUND = re.compile(
    r"\b(?P<word>more than|over|above|at least|less than|fewer than|under|below|at most|exactly)\s+"
    r"(?P<sign>[$€£])?(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?)\s*(?P<scale>thousand|million|billion|trillion|k|m|bn)?\b"
)
_SCALES = {"thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12}
# What asks how much, and not which.
_AMOUNT = re.compile(r"\bhow (?:much|many|old|long)\b|\b(?:difference|average|combined|sum)\b")
_AUXILIARY = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had)\b")
_WORD = re.compile(r"[a-z0-9$%&/'.-]*[a-z0-9%]")


class _Asked:
    """A question with its facts in the order in which it names them."""

    def __init__(self, query: str, facts: Sequence[Fact]) -> None:
        self.query = query
        self.facts = tuple(sorted(facts, key=lambda fact: fact.at))
        rest = query
        for name in sorted({fact.name for fact in facts}, key=len, reverse=True):
            rest = re.sub(rf"(?<!\w){re.escape(name)}(?:'s|')?(?!\w)", " | ", rest)
        self.rest = rest = " ".join(rest.split())
        timeless = _UNTIL.sub(" ", rest) if self._ends_in_time() else rest
        self.windowed = all(fact.statement.windows for fact in facts)
        self.words = set(_WORD.findall(timeless))
        self.compared = set(_WORD.findall(_TEMPORAL_PHRASE.sub(" ", timeless)))

    @property
    def alike(self) -> bool:
        """Whether all facts are of the same kind and of different entities."""
        kinds = {(fact.shape, type(fact.value)) for fact in self.facts}
        return len(kinds) == 1 and len({fact.name for fact in self.facts}) == len(self.facts)

    def unknown_words(self) -> set[str]:
        """Words that may change the question."""
        known = set(_FILLER) | _HIGH | _LOW | _EARLY | _LATE | _NOW
        for fact in self.facts:
            known |= fact.measure.words
        left = {word for word in self.words if word not in known}
        if _BOUND.search(self.rest) and len(self.facts) == 1:
            left -= set(_WORD.findall(_BOUND.search(self.rest)[0]))  # type: ignore[index]
        if self.windowed:
            left = {word for word in left if word not in _TIMES and not _DATED.fullmatch(word)}
        return left

    def direction(self) -> int:
        """1 where the question asks for the greater value, -1 for the lesser, 0 where that is not certain."""
        dated = isinstance(self.facts[0].value, date) or self.facts[0].statement.source.endswith('["year"]')
        more, less = (_LATE, _EARLY) if dated else (_HIGH, _LOW)
        words = self.compared
        if dated and "recently" in words:
            words = words - {"more", "most"}
        if dated and words & (_HIGH | _LOW):
            return 0
        if not dated and words & (_EARLY | _LATE):
            return 0
        up, down = bool(words & more), bool(words & less)
        # The lowest high and the highest low ask for two things at once.
        key = _key(self.facts[0].statement.source)
        if key in ("high", "low") and words & {"highest", "lowest"}:
            return 0
        return 0 if up == down else 1 if up else -1

    def _ends_in_time(self) -> bool:
        """Whether "until 2019" takes nothing away: all rows are listed, and none is later."""
        until = _UNTIL.search(self.query)
        if until is None:
            return False
        return all(
            len(fact.rows) == fact.statement.row_count
            and all(isinstance(row.get("year"), int) and row["year"] <= int(until["year"]) for row in fact.rows)
            for fact in self.facts
        )


# Rules


def _choice(asked: _Asked) -> Settled | None:
    """Which of several: who is older, which has more."""
    if len(asked.facts) < 2 or not asked.alike or _AUXILIARY.match(asked.query) or _AMOUNT.search(asked.rest):
        return None
    direction = asked.direction()
    if not direction:
        return None
    ordered = sorted(asked.facts, key=lambda fact: _rank(fact.value), reverse=direction > 0)
    if ordered[0].value == ordered[1].value:
        return None
    return Settled(ordered[0].name, "comparison", _inputs(asked.facts))


def _yes_or_no(asked: _Asked) -> Settled | None:
    """Whether one has more than another, or more than a number."""
    if not _AUXILIARY.match(asked.query):
        return None
    if len(asked.facts) == 1:
        return _against_number(asked)
    if len(asked.facts) != 2 or not asked.alike or "than" not in asked.words or " or " in asked.rest:
        return None
    left, right = asked.facts
    than = [match.start() for match in re.finditer(r"\bthan\b", asked.query)]
    if len(than) != 1 or not left.at < than[0] < right.at:
        return None
    direction = asked.direction()
    if not direction:
        return None
    first, second = _rank(left.value), _rank(right.value)
    held = first > second if direction > 0 else first < second
    return Settled("yes" if held else "no", "yes or no", _inputs(asked.facts))


def _against_number(asked: _Asked) -> Settled | None:
    (fact,) = asked.facts
    bounds = list(_BOUND.finditer(asked.rest))
    if len(bounds) != 1 or not isinstance(fact.value, Decimal) or len(re.findall(r"\d[\d,.]*", asked.rest)) != 1:
        return None
    bound = bounds[0]
    if bound["sign"] and bound["sign"] != fact.measure.unit:
        return None
    limit = Decimal(bound["number"].replace(",", "")).scaleb(_SCALES.get(bound["scale"] or "", 0))
    value = fact.value
    held = {
        "more than": value > limit,
        "over": value > limit,
        "above": value > limit,
        "at least": value >= limit,
        "less than": value < limit,
        "fewer than": value < limit,
        "under": value < limit,
        "below": value < limit,
        "at most": value <= limit,
        "exactly": value == limit,
    }[bound["word"]]
    return Settled("yes" if held else "no", "yes or no", (*_inputs(asked.facts), bound[0]))


def _difference(asked: _Asked) -> Settled | None:
    """How much more, how many years older, the difference."""
    if len(asked.facts) != 2 or not asked.alike:
        return None
    spread = re.search(r"\bdifference\b", asked.rest)
    more = re.search(r"\bhow (?:much|many)\b(?: \w+){0,3}? (?P<word>\w+)(?: \S+){0,6}? than\b", asked.rest)
    years = re.search(r"\bhow many (?P<unit>years|days)\b", asked.rest)
    if not spread and not more and not years:
        return None
    left, right = asked.facts
    if not spread:
        direction = asked.direction()
        held = (_rank(left.value) - _rank(right.value)) * direction
        # "How much more" of what has less is a false premise, and not for a rule to tell.
        if not direction or held <= 0:
            return None
    if isinstance(left.value, date) and isinstance(right.value, date):
        first, last = sorted((left.value, right.value))
        if years and years["unit"] == "days":
            return Settled(f"{(last - first).days:,} days", "difference", _inputs(asked.facts))
        # Of 19 years and 10 months some say 20.
        whole = _years(first, last)
        if whole != last.year - first.year:
            return None
        return Settled(f"{whole} years", "difference", _inputs(asked.facts))
    if isinstance(left.value, Decimal) and isinstance(right.value, Decimal) and not years:
        return Settled(_with_unit(abs(left.value - right.value), left.measure), "difference", _inputs(asked.facts))
    return None


def _age(asked: _Asked) -> Settled | None:
    """How old somebody was when something came out."""
    if len(asked.facts) != 2 or not re.search(r"\b(?:how old|age)\b", asked.rest) or "difference" in asked.words:
        return None
    births = [fact for fact in asked.facts if "get_person(" in fact.statement.source]
    events = [fact for fact in asked.facts if "get_movie(" in fact.statement.source]
    if len(births) != 1 or len(events) != 1 or not re.search(r"\b(?:when|at|time)\b", asked.rest):
        return None
    birth, event = births[0].value, events[0].value
    if not isinstance(birth, date) or not isinstance(event, date) or event < birth:
        return None
    age = _years(birth, event)
    return Settled(str(age), "age", _inputs(asked.facts)) if age <= LATEST_AGE else None


def _count(asked: _Asked) -> Settled | None:
    """How many, where one statement counted them."""
    if len(asked.facts) != 1 or not re.search(r"\b(?:how many|number of|how often)\b", asked.rest):
        return None
    (fact,) = asked.facts
    if fact.aggregate != "LEN" or not isinstance(fact.value, Decimal) or _compares(asked):
        return None
    return Settled(number_text(fact.value), "count", _inputs(asked.facts))


def _aggregate(asked: _Asked) -> Settled | None:
    """An average or a total that one statement made; also one of two or more values that it names."""
    names = {"AVG": r"\b(?:average|mean)\b", "SUM": r"\b(?:total|sum|combined|altogether|overall|how many|how much)\b"}
    if _compares(asked):
        return None
    if len(asked.facts) == 1:
        (fact,) = asked.facts
        if fact.aggregate not in names or not re.search(names[fact.aggregate], asked.rest):
            return None
        if fact.aggregate == "SUM" and re.search(names["AVG"], asked.rest):
            return None
        assert isinstance(fact.value, Decimal)  # noqa: S101 - sums and averages are numbers
        return Settled(_with_unit(fact.value, fact.measure), "aggregate", _inputs(asked.facts))
    values = [fact.value for fact in asked.facts if isinstance(fact.value, Decimal)]
    if len(values) != len(asked.facts) or not asked.alike or " or " in asked.rest:
        return None
    total = sum(values, Decimal(0))
    if re.search(r"\b(?:average|mean)\b", asked.rest) and not re.search(r"\b(?:total|sum|combined)\b", asked.rest):
        return Settled(_with_unit(total / len(values), asked.facts[0].measure), "aggregate", _inputs(asked.facts))
    if re.search(r"\b(?:combined|together|sum)\b", asked.rest):
        return Settled(_with_unit(total, asked.facts[0].measure), "aggregate", _inputs(asked.facts))
    return None


def _list(query: str, statements: Sequence[KgStatement]) -> Settled | None:
    """All of something, where one statement listed all of it and the question is as its program says it."""
    if len(statements) != 1 or not statements[0].source.startswith("ALL get_stock_price("):
        return None
    statement = statements[0]
    key, rows = _key(statement.source), _rows(statement)
    if key != "date" or not 1 <= len(rows) <= MAX_LIST or len(rows) != statement.row_count or not statement.windows:
        return None
    values = [row.get(key) for row in rows]
    if len(statement.entities) != 1 or not all(isinstance(value, str) and value for value in values):
        return None
    at = place(query, statement.entities[0].name)
    rising = re.search(r"where\((gt|lt)\(close, open\)\)", statement.source)
    if at is None or rising is None or not re.search(r"\b(?:days|dates)\b", query):
        return None
    up = bool(re.search(r"\bhigher\b", query))
    if up == bool(re.search(r"\blower\b", query)) or up != (rising[1] == "gt"):
        return None
    return Settled(", ".join(map(str, values)), "list", (statement.source,))


# Facts


def _fact(query: str, statement: KgStatement) -> Fact | None:
    """The one value of a statement; None when it has none, several, or one that the question does not ask for."""
    source = _SOURCE.match(statement.source)
    if source is None or len(statement.entities) != 1 or statement.error:
        return None
    if any(not _HARMLESS_NOTE.fullmatch(note) for note in statement.notes):
        return None
    entity = statement.entities[0]
    at = place(query, entity.name)
    if at is None:
        return None
    rows = _rows(statement)
    aggregate = source["aggregate"] or ""
    raw, key = _value(statement, rows, aggregate)
    value = typed(raw)
    measure = _measure_of(source["function"], key, query)
    if value is None or measure is None:
        return None
    if aggregate == "LEN" and not _counts_once(rows, statement, query):
        return None
    name = entity.name.lower().strip()
    shape = statement.source.lower().replace(f'"{name}"', '"*"')
    return Fact(name, at, value, measure, shape, statement, rows, aggregate)


def _value(statement: KgStatement, rows: tuple[dict[str, Any], ...], aggregate: str) -> tuple[Any, str]:
    """The value of a statement and the key that it is of."""
    key = _key(statement.source)
    if len(rows) == 1 and "games" in rows[0]:
        key = _total_of(statement.source, aggregate)
        return rows[0].get(key), _played(key)
    if statement.value_json:
        return json.loads(statement.value_json), _total_key(statement.source, key, aggregate)
    if aggregate or len(rows) != 1 or statement.row_count != 1:
        return None, key
    row = rows[0]
    if not key and "value" in row:
        key = "value"
    return row.get(key), key


def _total_of(source: str, aggregate: str) -> str:
    """The total over a window of games that a program means."""
    if aggregate == "SUM":
        return _key(source)
    side = "home_" if '"Home"' in source else "away_" if '"Away"' in source else ""
    for letter, name in (("W", "wins"), ("L", "losses"), ("D", "draws")):
        if f'eq(result, "{letter}")' in source:
            return f"{side}{name}" if name != "draws" or not side else ""
    return "" if side or "where(" in source else "games"


def _played(key: str) -> str:
    return key.removeprefix("home_").removeprefix("away_")


def _total_key(source: str, key: str, aggregate: str) -> str:
    """A count has no key; one of games has what was counted."""
    if aggregate != "LEN":
        return key
    return _played(_total_of(source, aggregate)) if "_on_date(" in source else ""


def _counts_once(rows: tuple[dict[str, Any], ...], statement: KgStatement, query: str) -> bool:
    """Whether a count is of what the question counts: an award of a year once, and wins where wins are asked for."""
    if "get_movie_person_oscar(" in statement.source:
        wins = "eq(winner, true)" in statement.source
        if wins == bool(re.search(r"\bnominat", query)):
            return False
    if rows and all("category" in row and "year" in row for row in rows):
        return len({(row["year"], row["category"]) for row in rows}) == len(rows)
    return True


def _measure_of(function: str, key: str, query: str) -> Measure | None:
    for measure in MEASURES:
        keys = measure.keys or _COUNTED
        if function in measure.functions and key in keys and measure.needed.search(query):
            return measure
    return None


def _rows(statement: KgStatement) -> tuple[dict[str, Any], ...]:
    try:
        rows = json.loads(statement.rows_json)
    except ValueError:
        return ()
    return tuple(row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()


def _key(source: str) -> str:
    projected = _PROJECTED.findall(source)
    return str(projected[-1]) if projected and projected[-1] != "len" else ""


def typed(raw: Any) -> Value | None:
    """A number, a whole date, or None."""
    if isinstance(raw, bool) or raw is None:
        return None
    if isinstance(raw, int | float):
        value = Decimal(str(raw))
        return value if value.is_finite() else None
    text = str(raw).strip()
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    if _NUMERAL.fullmatch(text):
        return Decimal(re.sub(r"[$€£,]", "", text))
    return None


def place(query: str, name: str) -> int | None:
    """Where the question first names an entity, in whole words."""
    name = name.lower().strip()
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query) if name else None
    return found.start() if found else None


def _compares(asked: _Asked) -> bool:
    """Whether words of comparison stand beside a single value, which then is not the whole answer."""
    return bool(asked.compared & (_LOW | _EARLY | _LATE | (_HIGH - {"top"}))) or bool(_BOUND.search(asked.rest))


def _rank(value: Value) -> Decimal:
    return Decimal(value.toordinal()) if isinstance(value, date) else value


def _years(first: date, last: date) -> int:
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


def _with_unit(value: Decimal, measure: Measure) -> str:
    if measure.unit == "$" and abs(value) >= 1:
        return f"${value:,.0f}" if abs(value) >= 1_000 and value == value.to_integral_value() else f"${value:,.2f}"
    text = number_text(value)
    return f"${text}" if measure.unit == "$" else f"{text} {measure.unit}".rstrip()


def _words(value: Value) -> str:
    return value.isoformat() if isinstance(value, date) else number_text(value)


def _inputs(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(fact.words for fact in facts)


_RULES: tuple[Callable[[_Asked], Settled | None], ...] = (_age, _difference, _choice, _yes_or_no, _count, _aggregate)
