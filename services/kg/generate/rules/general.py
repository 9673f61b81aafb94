"""Programs of a domain without readings, by its catalogue alone.

Each function reads the question in its own way: its parameters take the names, its keys the words; numbers, values and
superlatives narrow and sort its rows. A reading that leaves a word over has not understood the question and is none.
Where several understand it, the plainest is taken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from services.kg.generate.rules.calls import Wanted, call_of, statement_of
from services.kg.generate.rules.circumstances import take_circumstances
from services.kg.generate.rules.english import english
from services.kg.generate.rules.figures import thresholds as thresholds_of
from services.kg.generate.rules.interrogatives import (
    asked_for,
    asks_how_much,
    asks_when,
    asks_whether,
    by_deed,
    by_whom,
    doer,
    is_done,
    of_link,
    reported,
    sums,
    values_may_answer,
    where,
    who,
    without_company,
)
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.literals import literals as literals_of
from services.kg.generate.rules.literals import marks
from services.kg.generate.rules.orders import comparative, superlative
from services.kg.generate.rules.question import Question
from services.kg.generate.rules.ratios import ratio
from services.kg.generate.rules.roles import Roles, subject_of
from services.kg.generate.rules.tokens import BESIDE, Mention, Range, Tokens, apart_from
from services.kg.generate.rules.totals import averaged, grouped, tally, total
from services.kg.generate.rules.values import Values
from services.kg.language.catalogue import Function

_JOINTS = frozenset(("and", ",", "or", "&", "as", "plus", "/"))
# Names that one question compares.
MOST_NAMES = 4
# What a reading costs beside one that says all by one call.
HOP, DEFAULT, LITERAL, SECOND = 2.0, 1.0, 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """A program for the question, and how far it is from the plainest one."""

    statements: tuple[str, ...]
    cost: float


def general(lexicon: Lexicon, question: Question, values: Values | None = None) -> list[str]:
    """The statements of the plainest reading that understands every word; none when no reading does."""
    functions = lexicon.own.shown
    tokens = Tokens(question, lexicon.fillers)
    found: list[Reading] = []
    for function in functions:
        found += _Reader(lexicon, Roles(lexicon, function, tokens.copy(), values)).readings()
    if min((one.cost for one in found), default=HOP) >= HOP:
        for first, second in product(functions, repeat=2):
            found += _hops(lexicon, tokens, first, second, values)
    if share := ratio(lexicon, tokens, functions):
        found.append(Reading((share,), HOP))
    best = min(found, key=lambda one: one.cost, default=None)
    return list(best.statements) if best is not None else []


def _hops(
    lexicon: Lexicon, tokens: Tokens, first: Function, second: Function, values: Values | None
) -> Iterator[Reading]:
    """A fact of a fact: the names lead to a key of the first function, whose values the second goes on with."""
    for key in first.keys:
        parameter = next((one for one in second.parameters if key.entity in one.entities), None)
        if parameter is None or not tokens.names():
            continue
        before = Roles(lexicon, first, tokens.copy(), values)
        names = _bind(before)
        if names is None or (before.primary and before.subject == key and before.primary.name in names):
            continue
        own_rows = key.entity == before.subject.entity
        head = before.head()
        places = before.tokens.find((*lexicon.plain(first.name, key.name), *lexicon.nouns(key.entity)))
        # What the question wants is no step on the way to it, but for "which of the neighbours".
        wanted = None if own_rows or asks_when(before) else head
        places = [one for one in places if wanted is None or not one.overlaps(wanted)]
        if not places:
            continue
        before.take(*(places if own_rows else places[:1]))
        before.take_apposed(names)
        call = call_of(first, names, [])
        after = Roles(lexicon, second, before.tokens, values)
        reader = _Reader(lexicon, after, bound={parameter.name: [f'*["{key.name}"]']}, hop=True)
        for reading in reader.readings():
            if len(reading.statements) == 1:
                statement = f'{call}["{key.name}"]'
                yield Reading((statement, *reading.statements), reading.cost + HOP)


def _bind(roles: Roles) -> dict[str, list[str]] | None:
    """The names of the question by the parameters that take them; None where one takes none of them."""
    given: dict[str, list[str]] = {}
    tokens = roles.tokens
    parameters = [one for one in roles.function.parameters if one.kind == "entity"]
    if roles.function.pair is None and roles.primary is not None:
        parameters.sort(key=lambda one: one is not roles.primary)
    for place in tokens.names():
        spots = tokens.spots_at(place)
        if roles.takes_value_before(place, spots):
            continue
        if above := roles.above(place, spots):
            if above in {one.name for one in parameters}:
                given.setdefault(above, []).append(spots[0].text)
            continue
        fitting = [(one, spot) for one in parameters for spot in spots if spot.kind in one.entities and roles.says(one)]
        apposed = [(one, spot) for one, spot in fitting if roles.apposed(place, spot.kind)]
        free = [(one, spot) for one, spot in apposed or fitting if one.name not in given or one is roles.primary]
        if not free:
            if not roles.take_value(place, spots):
                return None
            continue
        parameter, spot = free[0]
        given.setdefault(parameter.name, []).append(spot.text)
    return given


@dataclass
class _Reader:
    """One function's readings of a question."""

    lexicon: Lexicon  # of the domain
    roles: Roles  # the words as the function takes them
    bound: dict[str, list[str]] = field(default_factory=dict)  # parameter -> values that are given already
    hop: bool = False  # the names belong to the statement before
    tallied: bool = False  # whether "how many" asks for a number of each row
    cost: float = 0.0

    def readings(self) -> Iterable[Reading]:
        """The readings that leave no word over; the tokens are used up."""
        names = self._names()
        if names is None:
            return
        roles, tokens = self.roles, self.roles.tokens
        if len(roles.mentions) > 1:
            # Who is named is not asked for: "in which year did Anna win", of prizes and who won them.
            roles.take(*roles.outside_values([one.place for one in roles.mentions if one.key in names]))
        head = roles.head()
        if asks_when(roles):
            roles.take(*apart_from(tokens.find(english().dates), [one.place for one in roles.mentions]))
        thresholds = thresholds_of(roles)
        said = roles.conditions()
        extreme = superlative(roles)
        own = names.get(roles.primary.name, []) if roles.primary is not None else []
        several = len(own) > 1
        one_thing = len(own) == 1 and roles.function.pair is None and not self._is_second()
        if extreme is not None and one_thing and tokens.word(0) in ("which", "what", "who"):
            # Of one thing that is named none is the first.
            return
        # "How much heavier" is a difference, and names what differs.
        asking = (("diff", english().difference), ("ratio", english().ratio))
        keyed = [one.place for one in roles.mentions]
        computed, places = next(
            ((how, some) for how, words in asking if (some := apart_from(tokens.find(words), keyed))), ("", [])
        )
        measures = (extreme.key,) if extreme and several else comparative(roles) if several else ()
        roles.take(*places)
        counting = tokens.find(english().count)
        mean = averaged(roles)
        shown, counted = self._shown(counting)
        shown = shown or of_link(roles, names) or reported(roles, names)
        shown = mean or asked_for(roles, shown, named=bool(own))
        ordered = [extreme.key] if extreme else list(measures)
        roles.take_idle([*(one.key for one in shown), *ordered, *names, roles.subject.name])
        aggregate = total(roles, shown) if extreme is None else ""
        if self.tallied and not aggregate and extreme is None and self._is_second():
            aggregate = tally(roles, shown, thresholds)
        nouns = [*tokens.find(roles.nouns), *roles.classes]
        roles.take(*nouns)
        roles.take_apposed(names)
        roles.take(*tokens.find(english().every), *tokens.find(english().together))
        if several and any(not mention.counted for mention in shown):
            roles.take(*tokens.find((*english().greater, *english().lesser)))
        beside = marks(roles, shown)
        unnamed = literals_of(roles, shown)
        self.cost += LITERAL * len(unnamed)
        literals = [*beside, *unnamed]
        if not own and not nouns and (extreme is not None or not shown) and (people := who(roles) or where(roles)):
            nouns, head = [people], people
        conditions = [*roles.named]
        group = grouped(roles, shown, nouns) if head is not None and extreme is None and not own else ""
        take_circumstances(roles, nouns, ordered)
        if tokens.doubt or tokens.unread() or (computed and not several) or not self._listed(shown):
            return
        if counted and nouns and not own:
            # "How many courses are taught in German" asks for no teacher.
            shown = [one for one in shown if not is_done(roles, one)]
        rows = bool(nouns) and (head is None or not shown or any(head.overlaps(one) for one in nouns))
        keys = list(dict.fromkeys(mention.key for mention in shown))
        rows = rows and not (asks_when(roles) and any(key in roles.dated for key in keys))
        if extreme is not None and (rows or extreme.value):
            # "Which element was discovered last?" asks for no year.
            keys = [extreme.key] if extreme.value else [key for key in keys if key != extreme.key]
            rows = not extreme.value
        # "Which districts did Frost win", "who won Westfall": of rows that only link, the value says what happened.
        happened = bool(names and said) and (not own or roles.function.pair is not None)
        if happened and not keys and (key := doer(roles, names)):
            keys = [key]
        if not shown and not keys and (nouns or self.hop) and asks_when(roles) and roles.dated:
            # "When did it last erupt" wants no eruption, but the day of one.
            keys, rows = [extreme.key if extreme else roles.dated[0]], False
        if rows and not keys and not counted and by_whom(roles, nouns):
            return
        if rows and not counted and asks_how_much(roles):
            # "How much did Ann claim" wants no claim, but what it came to.
            keys, rows = [key for key in sums(roles) if not keys or key in keys], False
            if len(keys) != 1:
                return
            if not own and not aggregate and tokens.all_of(english().total):
                aggregate = "SUM"
        whether = [key for key, _ in said if roles.function.key(key).kind == "flag"] if asks_whether(roles) else []
        if names and whether and not thresholds:
            conditions += [condition for key, condition in (*literals, *said) if key not in whether]
            keys, rows = whether, False
        elif own and not keys:
            if (said or literals) and not values_may_answer(roles):
                return
            # "Is radon a noble gas?"
            keys = [key for key, _ in (*said, *literals)]
        else:
            conditions += [condition for _, condition in (*literals, *said)]
        conditions += thresholds
        equal = [one.partition(",")[0] for one in conditions if one.startswith("eq(")]
        if len(set(equal)) < len(equal):
            # From one and to the other: no row has two values of a key.
            return
        if thresholds and own:
            self.cost += HOP
        # "On which streets do ginkgos grow": nothing but these rows has streets, if there is nothing nearer.
        headed = bool(names) and self._has_only(keys) and any(roles.opens(one.place) for one in roles.mentions)
        self.cost += DEFAULT if headed and not own else 0
        asked = {*keys, extreme.key if extreme else ""}
        timed = any(f"({key}, " in one for one in thresholds for key in roles.dated)
        if timed and any(one.counted and one.key in asked for one in roles.mentions):
            # "Who had the most orders in 2024": that is the orders' year, and their number is of all years.
            return
        # By its key alone, or by the year that is its name: "how many divorces were there in 1980".
        alone = bool(shown) and self._alone(shown[0].key)
        dated = any(one.startswith(f"eq({roles.subject.name}, ") for one in thresholds)
        deed = bool(names or conditions) and by_deed(roles, shown)
        linked = (happened and bool(keys)) or deed or (bool(names) and alone and self.tallied)
        highest = extreme is not None and extreme.value and self._alone(extreme.key)
        told = bool(literals) or linked or headed or highest or (alone and (aggregate or dated or group))
        if not own and not nouns and not self._is_second() and not told:
            # Rows that nothing names are not what the question wants: a country's area is not that of its cities.
            return
        if group:
            yield Reading((f"{call_of(roles.function, names, conditions)} {group}",), self.cost + DEFAULT)
        elif several:
            yield from self._compared(names, measures[:1] or keys[:1], computed)
        elif names or roles.function.whole or conditions:
            wanted = Wanted(
                names,
                conditions,
                extreme,
                keys,
                aggregate="LEN" if counted else aggregate if not own or self._is_second() else "",
                rows=rows and bool(not own or keys or conditions),
                many=bool(conditions) or extreme is not None or not own,
            )
            if statement := statement_of(roles, wanted):
                yield Reading((statement,), self.cost + (0 if wanted.many or keys else DEFAULT))

    def _names(self) -> dict[str, list[str]] | None:
        """Values by parameter; None where a name has no place, or nothing says that this function is meant."""
        roles = self.roles
        names = {} if self.hop else _bind(roles)
        if names is None or any(one.required and one.name not in names for one in roles.function.parameters):
            return None
        if self._is_second() and not any(self._alone(mention.key) for mention in roles.mentions):
            own = roles.own_words()
            if not own and who(roles) is None and not of_link(roles, names):
                return None
            self.cost += SECOND
            roles.take(*own)
        return {**names, **self.bound}

    def _alone(self, key: str) -> bool:
        """Whether no other function has this key: a department's average salary is that of its people."""
        return sum(key in one.exact_keys for one in self.lexicon.own.shown) == 1

    def _has_only(self, keys: Sequence[str]) -> bool:
        """Whether some keys are asked for, and no other function has any of them."""
        return bool(keys) and all(map(self._alone, keys))

    def _is_second(self) -> bool:
        """Whether another function has the same rows by themselves: neighbours are countries too."""
        function = self.roles.function
        kind = self.roles.subject.entity
        functions = self.lexicon.own.shown
        same = [one for one in functions if kind and subject_of(one).entity == kind]
        own = [one for one in same if one.pair is None]
        return bool(kind) and function is not (own or same)[0]

    def _shown(self, counting: Sequence[Range]) -> tuple[list[Mention], bool]:
        """The keys that are asked for, and whether rows are counted."""
        roles, tokens = self.roles, self.roles.tokens
        free = without_company(roles, [one for one in roles.mentions if tokens.free(one.place)])
        shown: list[Mention] = []
        counted = False
        # "How many passengers" counts these, whatever key is spoken of behind it.
        rows = {noun.first for noun in tokens.find(roles.nouns)} - {one.place.first for one in free}
        values = [one for one in counting if one.end not in rows]
        for mention in free:
            count = next((one for one in values if 0 <= mention.place.first - self._told(one, mention) <= BESIDE), None)
            if mention.counted and count is None:
                facets = (one for one in roles.function.facets if mention.place in tokens.find(roles.phrases(one)))
                if not (facet := next(facets, "")):
                    continue
                mention = Mention(mention.place, facet)
            if count is not None and not roles.numeric(mention) and mention.key not in roles.function.facets:
                continue
            if count is not None:
                counted = counted or not roles.numeric(mention)
                self.tallied |= roles.numeric(mention)
                roles.take(count)
            roles.take(mention.place)
            shown.append(mention)
        for one in counting:
            if tokens.free(one):
                counted = True
                roles.take(one)
        return shown, counted

    def _told(self, count: Range, mention: Mention) -> int:
        """Where "how many" ends, with what goes with the key behind it: "how many people" did it serve."""
        also = self.lexicon.key(self.roles.function.name, mention.key).also
        return next((one.end for one in self.roles.tokens.find(also) if one.first == count.end), count.end)

    def _listed(self, shown: Sequence[Mention]) -> bool:
        """Whether several keys stand beside each other; the population of the capital is neither of the two."""
        return all(
            one.key == other.key or any(word in _JOINTS for word in self.roles.tokens.between(one.place, other.place))
            for one, other in pairwise(shown)
        )

    def _compared(self, names: Mapping[str, list[str]], keys: Sequence[str], computed: str) -> Iterator[Reading]:
        """One statement a name, or what is computed of two."""
        primary = self.roles.primary
        assert primary is not None  # noqa: S101 - several names are those of the rows
        own = names[primary.name]
        if not keys or len(own) > MOST_NAMES:
            return
        others = {name: texts for name, texts in names.items() if name != primary.name}
        calls = [f'{call_of(self.roles.function, {**others, primary.name: [one]}, ())}["{keys[0]}"]' for one in own]
        if computed and len(calls) == 2:
            yield Reading((f"{computed}({', '.join(calls)})",), self.cost)
        elif not computed:
            yield Reading(tuple(calls), self.cost)
