"""The readings of a question by one function of a catalogue: what each word is to it, and the program of them all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from services.kg.generate.rules import answers
from services.kg.generate.rules.calls import Selection, statement_of
from services.kg.generate.rules.circumstances import take_circumstances
from services.kg.generate.rules.figures import months_alone, thresholds_of
from services.kg.generate.rules.interrogatives import WHETHER, asks_for_deeds, asks_what, asks_when, values_may_answer
from services.kg.generate.rules.literals import Literal, literals_of, marks_of
from services.kg.generate.rules.orders import comparative, superlative
from services.kg.generate.rules.roles import Roles, subject_of
from services.kg.generate.rules.sums import averaged, grouped, is_spent, is_tally, reckoned, total
from services.kg.generate.rules.tokens import BESIDE, Mention, Range, Superlative, apart_from
from services.kg.generate.rules.trees import Name, project, query_of, where
from services.kg.generate.rules.words import english
from services.kg.language.tree import Aggregate, Combination, Combine, Condition, Query, Statement, Step

# Names that one question compares.
MOST_NAMES = 4
# What a reading costs beside one that says all by one call.
HOP, DEFAULT, LITERAL, SECOND = 2.0, 1.0, 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """A program for the question, and how far it is from the plainest one."""

    statements: tuple[Statement, ...]
    cost: float


@dataclass(frozen=True, slots=True)
class _Parse:
    """What the words of a question are to one function; none of them is left over."""

    names: dict[str, list[Name]]  # by parameter
    subjects: list[Name]  # names of the rows themselves
    head: Range | None  # what the question wants
    nouns: Sequence[Range]  # where the rows are named
    targets: Sequence[Mention]  # the keys that are asked for
    thresholds: Sequence[Condition]  # conditions on numbers and dates
    values: Sequence[Literal]  # values that are words of questions
    literals: Sequence[Literal]  # other values that rows have
    counted: bool  # whether rows are counted
    order: Superlative | None  # the end of an order that is asked for
    measures: Sequence[str]  # keys by which names are compared
    operator: Combination | None  # `diff` or `ratio` of two names
    aggregate: Aggregate | None  # sum or avg
    group: tuple[Step, ...]  # the steps to the value that most rows have


@dataclass
class Reader:
    """One function's readings of a question."""

    roles: Roles  # the words as the function takes them
    bound: dict[str, list[Name]] = field(default_factory=dict)  # parameter -> values that are given already
    hop: bool = False  # the names belong to the statement before
    tallied: bool = False  # whether "how many" asks for a number of each row
    cost: float = 0.0
    own: list[Range] = field(default_factory=list)  # where the function's own words ask for rows

    def readings(self) -> Iterator[Reading]:
        """The readings that leave no word over; the tokens are used up."""
        if (parse := self._parse()) is None or (selection := self._selection(parse)) is None:
            return
        function, keys, conditions = self.roles.function, selection.keys, selection.conditions
        # "On which streets do ginkgos grow": nothing but these rows has streets, if there is nothing nearer.
        opened = any(self.roles.opens(one.place) for one in self.roles.mentions)
        headed = opened and bool(parse.names and keys) and all(map(self._alone, keys))
        if not self._is_meant(parse, selection, headed=headed):
            return
        if parse.thresholds and parse.subjects:
            self.cost += HOP
        if headed and not parse.subjects:
            self.cost += DEFAULT
        if parse.group and not selection.once:
            query = query_of(function, parse.names, *where(conditions), *parse.group)
            yield Reading((query,), self.cost + DEFAULT)
        elif len(parse.subjects) > 1:
            yield from self._comparison(parse, parse.measures or keys, conditions)
        elif (parse.names or function.whole or conditions) and (statement := statement_of(self.roles, selection)):
            yield Reading((statement,), self.cost + (0 if selection.many or keys else DEFAULT))

    def _parse(self) -> _Parse | None:
        """What each word of the question is; None where one is left over or the function cannot be meant."""
        names = self._names()
        if names is None:
            return None
        roles, tokens = self.roles, self.roles.tokens
        if len(roles.mentions) > 1 or self._asks_beside_rows():
            # Who is named is not asked for: "in which year did Anna win", of prizes and who won them.
            tokens.take(*roles.outside_values([one.place for one in roles.mentions if one.key in names]))
            tokens.take(*answers.deeds_of_named(roles))
        head = roles.head()
        if asks_when(tokens):
            tokens.take(*apart_from(tokens.find(english().dates), [one.place for one in roles.mentions]))
        thresholds = thresholds_of(roles)
        values = roles.conditions()
        order = superlative(roles)
        subjects = names.get(roles.primary.name, []) if roles.primary is not None else []
        several = len(subjects) > 1
        one_thing = len(subjects) == 1 and roles.function.pair is None and not self._is_second
        if order is not None and one_thing and tokens.word(0) in ("which", "what", "who", "when"):
            # Of one thing that is named none is the first.
            return None
        operator, signs = self._operator()
        measures = (order.key,) if order and several else comparative(roles) if several else ()
        tokens.take(*signs)
        counting = tokens.find(english().count)
        average = averaged(roles) or reckoned(roles)
        targets, counted = self._targets(counting)
        targets = targets or answers.amount_of_link(roles, names) or answers.superior_key(roles, names)
        targets = average or answers.for_question_word(roles, targets, named=bool(subjects) and not measures)
        ordered = [order.key] if order else list(measures)
        roles.take_idle([*(one.key for one in targets), *ordered, *names, roles.subject.name])
        aggregate = total(roles, targets) if order is None else None
        if not aggregate and order is None:
            tally = self._adds_up(targets) and is_tally(roles, targets, thresholds)
            aggregate = "sum" if tally or is_spent(roles, targets) else None
        nouns = [*self.own, *tokens.find(roles.nouns), *roles.classes]
        tokens.take(*nouns)
        roles.take_apposed(names)
        tokens.take(*tokens.find(english().every), *tokens.find(english().together))
        if several and any(not mention.counted for mention in targets):
            tokens.take(*tokens.find((*english().greater, *english().lesser)))
        literals = marks_of(roles, targets)
        unnamed = literals_of(roles, targets)
        self.cost += LITERAL * len(unnamed)
        pronoun = answers.pronoun(roles, self._alone(order.key) if order else False)
        if pronoun is not None and not subjects and not nouns and (order is not None or not targets):
            nouns, head = [pronoun], pronoun
        group = grouped(roles, targets, nouns) if head is not None and order is None and not subjects else ()
        take_circumstances(roles, nouns, ordered)
        # The salaries of 2018 are not those of whoever started then.
        figures = bool(aggregate) or order is not None or counted or any(map(roles.numeric, targets))
        tokens.doubt |= figures and bool(roles.assumed) and not roles.is_of_rows(roles.assumed)
        tokens.doubt |= any(map(tokens.free, months_alone(tokens)))
        vague = (one for one in tokens.find_all(english().vague) if tokens.word_before(one) != "most")
        tokens.doubt |= bool(counting) and any(vague)
        # "List the theatre trips" wants no kilometres of their round trips.
        tokens.doubt |= (
            tokens.begins("list") and roles.classes.keys() >= set(nouns) and any(map(roles.numeric, targets))
        )
        # "Other than oaks" are not oaks.
        tokens.doubt |= not all(map(tokens.is_read, tokens.find_all(english().excluding)))
        if tokens.doubt or tokens.unread() or (operator and not several) or not self._listed(targets):
            return None
        if counted and nouns and not subjects:
            # "How many courses are taught in German" asks for no teacher.
            targets = [one for one in targets if not answers.is_deed(roles, one)]
        words = (names, subjects, head, nouns, targets, thresholds, values, [*literals, *unnamed])
        return _Parse(*words, counted, order, measures, operator, aggregate, group)

    def _asks_beside_rows(self) -> bool:
        """Whether the question has the rows' noun and wants something else first: "the name of the object that"."""
        nouns = self.roles.tokens.find(self.roles.nouns)
        head = self.roles.head() if nouns else None
        return head is not None and not any(map(head.overlaps, nouns))

    def _adds_up(self, targets: Sequence[Mention]) -> bool:
        """Whether a number is asked for of rows of which a thing may have several."""
        tokens, keys = self.roles.tokens, filter(None, map(self.roles.key_of, targets))
        measured = tokens.word(0) == "how" and tokens.word(1) in ("many", "much") and any(key.unit for key in keys)
        return (self._is_second and (self.tallied or measured)) or (self.roles.nameless and measured)

    def _operator(self) -> tuple[Combination | None, list[Range]]:
        """`diff` or `ratio` where the question computes one of two names, and the words that say so."""
        keyed = [one.place for one in self.roles.mentions]
        # "How much heavier" is a difference, and names what differs.
        operators: Sequence[tuple[Combination, Sequence[str]]]
        operators = (("diff", english().difference), ("ratio", english().ratio))
        for operator, phrases in operators:
            if places := apart_from(self.roles.tokens.find(phrases), keyed):
                return operator, places
        return None, []

    def _selection(self, parse: _Parse) -> Selection | None:
        """What the question asks of a call; None where the rows cannot tell it."""
        roles, tokens, order = self.roles, self.roles.tokens, parse.order
        projection = self._projection(parse)
        if projection is None:
            return None
        keys, rows, aggregate = projection
        if rows and not keys and asks_for_deeds(tokens, parse.nouns):
            return None
        if roles.means_joined(keys):
            return None
        if roles.negated and (self._is_second or parse.names or (keys and not (aggregate or parse.group))):
            # Who owns what is no bakery may own a bakery too.
            return None
        conditions = [*roles.named]
        values = [*parse.literals, *parse.values]
        flags = [key for key, _ in parse.values if roles.function.key(key).kind == "flag"]
        if parse.names and flags and tokens.word(0) in WHETHER and not parse.thresholds:
            conditions += [condition for key, condition in values if key not in flags]
            keys, rows = flags, False
        elif parse.subjects and not keys:
            if values and not values_may_answer(tokens):
                return None
            # "Is radon a noble gas?"
            keys = [key for key, _ in (*parse.values, *parse.literals)]
        else:
            conditions += [condition for _, condition in values]
        asked = [roles.function.exact_keys.get(key) for key in keys]
        if parse.subjects and keys and asks_what(tokens) and all(key and key.kind == "flag" for key in asked):
            # A flag `microchip` tells no microchip's number.
            return None
        conditions += parse.thresholds
        equal = [one.key for one in conditions if one.operator == "eq"]
        if len(set(equal)) < len(equal):
            # From one and to the other: no row has two values of a key.
            return None
        said = [*parse.names, *(one.key for one in conditions if one.values)]
        empty = [one.key for one in conditions if one.operator == "isnull"]
        if any(key == one or key.startswith(f"{one}_") for one in empty for key in said):
            # "No host with Linux" may be a host with another system.
            return None
        several = self._is_second or (roles.nameless and bool(keys))
        return Selection(
            parse.names,
            conditions,
            order,
            keys,
            counted=parse.counted,
            aggregate=aggregate if not parse.subjects or self._is_second else None,
            rows=rows and bool(not parse.subjects or keys or conditions),
            many=bool(conditions) or order is not None or not parse.subjects,
            summed=order is not None and order.amount and not order.value and several and not parse.subjects,
            once=parse.counted and self._counts_things(parse),
        )

    def _counts_things(self, parse: _Parse) -> bool:
        """Whether what is counted are the things of which these rows are: shops of inspections."""
        roles, tokens = self.roles, self.roles.tokens
        if not self._is_second or roles.function.pair is not None or parse.subjects:
            return False
        own = roles.lexicon.words.function(roles.function.name).words
        ends = [one.end for one in tokens.find_all(english().count)]
        nouns = [one for one in tokens.find_all((*own, *roles.nouns)) if any(end <= one.first for end in ends)]
        return bool(nouns) and nouns[0] not in tokens.find_all(own)

    def _projection(self, parse: _Parse) -> tuple[list[str], bool, Aggregate | None] | None:
        """The keys that are asked for, whether rows are, and the aggregate; None where the rows cannot tell it."""
        roles, tokens, nouns, order = self.roles, self.roles.tokens, parse.nouns, parse.order
        keys = list(dict.fromkeys(mention.key for mention in parse.targets))
        head = parse.head
        rows = bool(nouns) and (head is None or not parse.targets or any(map(head.overlaps, nouns)))
        rows = rows and not (asks_when(tokens) and any(key in roles.dated for key in keys))
        if order is not None and (rows or order.value):
            # "Which element was discovered last?" asks for no year.
            keys = [order.key] if order.value else [key for key in keys if key != order.key]
            rows = not order.value
        if order is not None and asks_when(tokens) and order.key in roles.dated and not set(keys) & set(roles.dated):
            # "When was it last inspected" wants the day, and neither inspection nor inspector.
            keys, rows = [order.key], False
        if not keys and self._happened(parse) and (key := answers.doer_key(roles, parse.names)):
            keys = [key]
        if not parse.targets and not keys and (nouns or self.hop) and asks_when(tokens) and roles.dated:
            # "When did it last erupt" wants no eruption, but the day of one.
            keys, rows = [order.key if order else roles.dated[0]], False
        if rows and not keys and not parse.counted and answers.asks_for_strangers(roles, nouns):
            return None
        if not rows or parse.counted or not tokens.begins("how", "much"):
            return keys, rows, parse.aggregate
        # "How much did Ann claim" wants no claim, but what it came to.
        keys = [one.name for one in roles.function.keys if one.is_money and (not keys or one.name in keys)]
        if len(keys) != 1:
            return None
        whole = not parse.subjects and bool(tokens.find_all(english().sums))
        return keys, False, parse.aggregate or ("sum" if whole else None)

    def _happened(self, parse: _Parse) -> bool:
        """Whether a value says what happened, of rows that only link: "which districts did Frost win"."""
        return bool(parse.names and parse.values) and (not parse.subjects or self.roles.function.pair is not None)

    def _is_meant(self, parse: _Parse, selection: Selection, *, headed: bool) -> bool:
        """Whether the rows are what the question wants: a country's area is not that of its cities."""
        roles, order, keys = self.roles, parse.order, selection.keys
        targets = {*keys, order.key if order else ""}
        timed = any(one.values and one.key in roles.dated for one in parse.thresholds)
        if timed and any(one.counted and one.key in targets for one in roles.mentions):
            # "Who had the most orders in 2024": that is the orders' year, and their number is of all years.
            return False
        if parse.subjects or parse.nouns or self._is_second or parse.literals or headed:
            return True
        # By its key alone, or by the year that is its name: "how many divorces were there in 1980".
        alone = bool(parse.targets) and self._alone(parse.targets[0].key)
        dated = any(one.operator == "eq" and one.key == roles.subject.name for one in parse.thresholds)
        deed = bool(parse.names or selection.conditions) and answers.asks_for_doer(roles, parse.targets)
        # "The score of the Oak in 2021" is that of a check, which nobody calls by its number.
        own = bool(keys) and not keys[0].startswith(tuple(f"{name}_" for name in parse.names))
        of_named = bool(parse.names) and alone and (self.tallied or (own and roles.nameless))
        # "What beer did Ann buy", of orders and who bought.
        done = bool(keys) and any(one.key in parse.names and one.key not in keys for one in roles.mentions)
        linked = (bool(keys) and self._happened(parse)) or deed or of_named or done
        dated_end = asks_when(roles.tokens) and bool(parse.names)
        extreme = order is not None and (order.value or selection.summed or dated_end) and self._alone(order.key)
        return linked or extreme or (alone and bool(selection.aggregate or dated or parse.group))

    def _names(self) -> dict[str, list[Name]] | None:
        """Values by parameter; None where a name has no place, or nothing says that this function is meant."""
        roles = self.roles
        names = {} if self.hop else roles.bind()
        if names is None or any(one.required and one.name not in names for one in roles.function.parameters):
            return None
        if self._is_second and not any(self._alone(mention.key) for mention in roles.mentions):
            own = roles.own_words()
            if not own and answers.person_pronoun(roles) is None and not answers.amount_of_link(roles, names):
                return None
            self.cost += SECOND
            self.own = [one for one in own if names and roles.opens(one)]
            roles.tokens.take(*own)
        return {**names, **self.bound}

    def _alone(self, key: str) -> bool:
        """Whether no other function has this key: a department's average salary is that of its people.

        What rows say of the things that they are of is those things' own: the model of a repair's van.
        """
        own = key.removeprefix(f"{self.roles.subject.name}_") if self._is_second else key
        return sum(not {key, own}.isdisjoint(one.exact_keys) for one in self.roles.lexicon.own.shown) == 1

    @cached_property
    def _is_second(self) -> bool:
        """Whether another function has the same rows by themselves: neighbours are countries too."""
        kind = self.roles.subject.entity
        same = [one for one in self.roles.lexicon.own.shown if subject_of(one).entity == kind]
        first = next((one for one in same if one.pair is None), same[0])
        return bool(kind) and self.roles.function is not first

    def _targets(self, counting: Sequence[Range]) -> tuple[list[Mention], bool]:
        """The keys that are asked for, and whether rows are counted; `counting` is where "how many" stands."""
        roles, tokens = self.roles, self.roles.tokens
        free = answers.without_company(roles, [one for one in roles.mentions if tokens.free(one.place)])
        targets: list[Mention] = []
        counted = False
        # "How many passengers" counts these, whatever key is spoken of behind it.
        rows = {noun.first for noun in tokens.find(roles.nouns)} - {one.place.first for one in free}
        values = [one for one in counting if one.end not in rows]
        for mention in free:
            between = ((one, mention.place.first - self._count_end(one, mention)) for one in values)
            count = next((one for one, words in between if 0 <= words <= BESIDE), None)
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
                tokens.take(count)
            tokens.take(mention.place)
            targets.append(mention)
        others = [one for one in counting if tokens.free(one)]
        tokens.take(*others)
        # The town of the owner of a thing is one key.
        targets = [one for one in targets if not any(other.key.startswith(f"{one.key}_") for other in targets)]
        return targets, counted or bool(others)

    def _count_end(self, count: Range, mention: Mention) -> int:
        """Where "how many" ends, with what goes with the key behind it: "how many people" did it serve."""
        also = self.roles.words_of(mention.key).also
        return next((one.end for one in self.roles.tokens.find(also) if one.first == count.end), count.end)

    def _listed(self, targets: Sequence[Mention]) -> bool:
        """Whether several keys stand beside each other; the population of the capital is neither of the two."""
        return all(
            one.key == other.key or english().joints.intersection(self.roles.tokens.between(one.place, other.place))
            for one, other in pairwise(targets)
        )

    def _comparison(self, parse: _Parse, keys: Sequence[str], conditions: Sequence[Condition]) -> Iterator[Reading]:
        """One statement for each name, or what is computed of two."""
        primary = self.roles.primary
        assert primary is not None  # noqa: S101 - several names are those of the rows
        if not keys or len(parse.subjects) > MOST_NAMES:
            return
        each = ({**parse.names, primary.name: [name]} for name in parse.subjects)
        steps = (*where(conditions), *project(keys[:1]))
        calls = tuple(query_of(self.roles.function, names, *steps) for names in each)
        if parse.operator is None:
            yield Reading(calls, self.cost)
        elif len(calls) == 2:
            yield Reading((Query(Combine(parse.operator, calls)),), self.cost)
