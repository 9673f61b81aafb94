"""Schema linking by values: which columns hold what a question says.

Lin et al. 2020, "Bridging textual and tabular data for cross-domain text-to-SQL semantic parsing", section 3.2.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rapidfuzz import fuzz
from sqlglot import exp

from services.kg.comparisons import tables_of
from services.kg.generate.ground import WEAK_WORDS, Word, is_same_word, words_of
from services.kg.generate.rules.inflection import inflections, singular
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.values import PART, Values
from services.kg.generate.rules.words import english
from services.kg.generate.spans import Spot, asking_words
from services.kg.language.catalogue import Function, Key
from services.kg.selects import table_name
from services.kg.store.names import normalise
from services.kit.text.vocabulary import MONTHS, WEEKDAYS
from services.kit.untrusted import one_line

MOST_LINKS = 4
MOST_COLUMNS = 2
# A statement has to write the value whole.
MAX_LINKED_CHARS = 120
# Letters of a code that may begin a name.
LEAST_CODE = 3
# Two spellings of a text, in percent.
SAME_TEXT = 85.0
# Of several words, short ones among them, hardly more than a letter.
ALMOST = 93.0
# Before names, and no part of them.
TITLES = frozenset(("dr", "miss", "mr", "mrs", "ms", "prof", "sir"))
# What English writes with a capital and is no name.
_CAPITAL = frozenset((*MONTHS, *WEEKDAYS, *TITLES, "i"))
_STOPS = frozenset(".?!:;")
# How a question says a value, the best first: word for word, in another form (failed of `fail`), misspelt, in part, by
# one word in small letters.
_EXACT, _INFLECTED, _MISSPELT, _PARTIAL, _BY_A_WORD = range(5)
# Values that a question says of something else, "of all our courses", and with a verb: what went out, and what is out.
_OF_ELSE = frozenset(("all", "any", "both", "none", "other"))
_OF_ELSE |= {"away", "back", "down", "in", "off", "on", "out", "over", "up"}
# Words that say so of a value within three words of it.
_ASIDE = frozenset(("included", "including", "excluded", "excluding", "except", "barring", "without", "aside", "apart"))
_BESIDE = 3
# Shorter words have forms that are other words.
LEAST_INFLECTED = 4


@dataclass(frozen=True, slots=True)
class Link:
    """A value that the question says."""

    value: str  # as it is stored
    columns: tuple[str, ...]  # `table.column`
    start: int  # of the question's words
    end: int
    how: int

    @property
    def is_telling(self) -> bool:
        """Whether hardly any other question says so: several words, all of them or misspelt."""
        return self.how < _PARTIAL and len(self.value.split()) > 1

    @property
    def is_said(self) -> bool:
        """Whether it is more than one word in small letters of a longer value."""
        return self.how < _BY_A_WORD


def linked_values(query: str, functions: Sequence[Function], values: Values, spots: Sequence[Spot]) -> list[Link]:
    """The values that a question says, in its order; of several in one place the longest. Blocks for milliseconds."""
    said = words_of(query)
    named = {word for one in functions for key in (table_name(one), *one.exact_keys) for word in key.split("_")}
    named |= set(map(singular, named))
    common = {*named, *asking_words(), *WEAK_WORDS}
    # By place, how and value: its columns, those first whose rows it names.
    places: dict[tuple[int, int, int, str], list[tuple[int, str]]] = defaultdict(list)
    for function, key in _text_keys(functions):
        column = f"{table_name(function)}.{key.name}"
        texts, is_name = values.of(function, key.name), key.entity == table_name(function)
        for value, how, start, end in _said_of(key, texts, said, spots, named, common, is_name=is_name):
            places[start, end, how, value].append((_rank(function, key), column))
        for value, how, start, end in _said_otherwise(texts, query):
            places[start, end, how, value].append((_rank(function, key), column))
    partial = Counter((start, end) for start, end, how, _ in places if how >= _PARTIAL)
    links = [
        Link(value, tuple(column for rank, column in columns if rank == min(columns)[0])[:MOST_COLUMNS], *place)
        for (*place, value), columns in places.items()
        # A part of several values tells nothing.
        if place[2] < _PARTIAL or partial[place[0], place[1]] == 1
    ]
    # "Who do I ring about the violin" is about no ring.
    links = [one for one in links if one.how < _BY_A_WORD] or links
    return sorted(_apart(links), key=lambda one: one.start)[:MOST_LINKS]


def linked_roles(query: str, functions: Sequence[Function], values: Values) -> list[Link]:
    """What rows are to others, where a value of theirs says that too: drivers of staff, whose job is Driver.

    `linked_values` leaves these out: as a column of another table, `driver` says nothing of a value. Blocks for
    milliseconds.
    """
    said, roles = words_of(query), list[Link]()
    for function in functions:
        subject = function.exact_keys[function.subject[0]].entity
        others = (
            key.name for other in functions if other is not function for key in other.keys if key.entity == subject
        )
        names = {singular(name) for name in others} - {singular(table_name(function))} if subject else set()
        for key in function.keys if names else ():
            for value in values.of(function, key.name) if key.kind == "text" and not key.entity else ():
                role = singular(normalise(value))
                places = [word for word in said if singular(word.text) == role] if role in names else []
                columns = (f"{table_name(function)}.{key.name}",)
                roles += [Link(value, columns, one.start, one.end, _EXACT) for one in places[:1]]
    return roles


def links_text(links: Iterable[Link]) -> list[str]:
    """The lines of a prompt that say where values are stored."""
    return [f"{_quoted(one.value)} is a {' or a '.join(one.columns)}" for one in links]


def capitals(query: str) -> list[int]:
    """Where words of a question are written as names are, apart from days, months and the beginnings of sentences."""
    words = words_of(query)
    return [
        one.start
        for before, one in pairwise(words)
        if one.is_capital and one.text not in _CAPITAL and not _ends_before(query, before, one)
    ]


def _ends_before(query: str, before: Word, word: Word) -> bool:
    """Whether a sentence ends between two words; the dot of a title and of an initial ends none."""
    is_short = before.text in TITLES or before.end - before.start == 1
    return not is_short and not _STOPS.isdisjoint(query[before.end : word.start])


def with_stored_values(select: exp.Select, query: str, links: Sequence[Link]) -> None:
    """Write values as they are stored where the statement has the question's spelling of them."""
    for literal in [one for one in select.find_all(exp.Literal) if one.is_string]:
        written = normalise(literal.name)
        for link in links:
            if _is_part_elsewhere(literal, link):
                continue
            is_said = written == normalise(query[link.start : link.end])
            if is_said or fuzz.ratio(written, normalise(link.value)) >= SAME_TEXT:
                literal.replace(exp.Literal.string(link.value))
                break


def _is_part_elsewhere(literal: exp.Literal, link: Link) -> bool:
    """Whether a text is looked for within the cells of a column that does not have the value: titles with Goose."""
    like = literal.find_ancestor(exp.Like)
    columns = {column.rpartition(".")[2] for column in link.columns}
    return like is not None and "%" in literal.name and like.this.name.lower() not in columns


def with_values_where_they_are(
    select: exp.Select, links: Sequence[Link], functions: Sequence[Function], values: Values
) -> None:
    """Ask for a value in a column that has it, where the statement's own column has not: no supplier is a cheese.

    Blocks for milliseconds.
    """
    for one in list(select.find_all(exp.EQ)):
        if not isinstance(one.this, exp.Column) or not isinstance(one.expression, exp.Literal):
            continue
        name, value = one.this.name.lower(), one.expression.name
        places = [link.columns[0].split(".") for link in links if link.value == value]
        having = [function for function in functions if name in function.exact_keys]
        if not places or not having or any(values.stored(function, name, value) for function in having):
            continue
        table, column = places[0]
        other = next((function for function in functions if table_name(function) == table), None)
        kind = other.exact_keys[other.subject[0]].entity if other is not None else ""
        kinds = {function.exact_keys[name].entity for function in having if function is not other}
        if other is None or not kind or kind not in kinds:
            one.this.replace(exp.column(column))
        elif column not in other.subject:
            # The runs to a site of that type, and not the sites.
            named = exp.select(exp.column(other.subject[0])).from_(exp.to_table(table))
            named = named.where(exp.EQ(this=exp.column(column), expression=one.expression.copy()))
            one.set("expression", exp.Subquery(this=named))


def with_left_out_values(select: exp.Select, query: str, links: Sequence[Link]) -> None:
    """Add a condition on the value that the question says word for word, where the statement has none of its values.

    Nor may it have another one of that column, as of "the served ones, not the cancelled", or one of the same words;
    and of "cancelled ones included" it is none.
    """
    over = {table.name.lower(): one for one in select.find_all(exp.Select) for table in tables_of(one)}
    written = {one.name for one in select.find_all(exp.Literal)}
    if written.intersection(one.value for one in links):
        return
    words = {singular(word) for text in written for word in normalise(text).split()}
    columns = {one.this.name.lower() for one in select.find_all(exp.EQ, exp.NEQ, exp.In)}
    for link in links:
        table, _, column = link.columns[0].partition(".")
        is_told = column in columns or words.issuperset(map(singular, normalise(link.value).split()))
        is_told |= _is_said_aside(query, link)
        if link.how == _EXACT and table in over and not is_told and link.value.lower() not in _OF_ELSE:
            condition = exp.EQ(this=exp.column(column), expression=exp.Literal.string(link.value))
            over[table].where(condition, copy=False)


def _is_said_aside(query: str, link: Link) -> bool:
    """Whether a value is said to be counted too, or to be left out."""
    before, behind = query[: link.start].lower().split()[-_BESIDE:], query[link.end :].lower().split()[:_BESIDE]
    return not _ASIDE.isdisjoint(word.strip(",.;:?!()") for word in (*before, *behind))


def _quoted(value: str) -> str:
    return "'{}'".format(one_line(value)[:MAX_LINKED_CHARS].replace("'", "''"))


def _text_keys(functions: Sequence[Function]) -> Iterator[tuple[Function, Key]]:
    return ((one, key) for one in functions for key in one.keys if key.kind == "text")


def _rank(function: Function, key: Key) -> int:
    """0 for the names of a table's rows, 1 for names of others, 2 for texts, 3 for what another table is joined for."""
    if key.entity:
        return int(key.entity != table_name(function) or key.name not in function.subject)
    return 3 if any(key.name.startswith(f"{one.name}_") for one in function.keys if one.entity) else 2


def _said_of(
    key: Key,
    texts: Sequence[str],
    said: list[Word],
    spots: Sequence[Spot],
    named: set[str],
    common: set[str],
    *,
    is_name: bool,
) -> Iterator[tuple[str, int, int, int]]:
    """Values of a key that the question says: the value, how, and where.

    Args:
        is_name: whether they name the rows of their table.
    """
    if not texts and key.entity:
        # Too many to look at: names that the graph's index has seen.
        yield from ((one.text, _EXACT, one.start, one.end) for one in spots if one.kind == key.entity)
        return
    for text in texts:
        value = text.removeprefix(PART)
        words = _strong(value)
        run = _run(words, said)
        if run is not None and named.issuperset(words):
            continue
        if run is not None:
            first, last, how = run
            yield value, how, said[first].start, said[last].end
        elif len(words) > 1 and (part := _part(words, said, common, is_name=is_name)) is not None:
            yield value, *part
        elif (named_so := _named_so(value, said, common)) is not None:
            yield value, _PARTIAL, *named_so


def _said_otherwise(texts: Sequence[str], query: str) -> Iterator[tuple[str, int, int, int]]:
    """As `_said_of`, values that a question says in other words: what was called off is cancelled."""
    synonyms = english().synonyms
    for text in texts:
        for phrase in synonyms.get(text.lower(), ()):
            # A single word may well be about something else.
            if (match := compiled((phrase,)).search(query)) is not None:
                yield text, _EXACT if " " in match[0] else _INFLECTED, match.start(), match.end()


@lru_cache(maxsize=20_000)
def _strong(text: str) -> tuple[str, ...]:
    """The words of a value without those that names share."""
    words = tuple(word.text for word in words_of(text))
    return tuple(word for word in words if word not in WEAK_WORDS) or words


def _run(words: tuple[str, ...], said: Sequence[Word]) -> tuple[int, int, int] | None:
    """Where a question says all of the words one after the other: the first and the last word, and how."""
    strong = [index for index, word in enumerate(said) if word.text not in WEAK_WORDS]
    for at in range(len(strong) - len(words) + 1) if words else ():
        places = strong[at : at + len(words)]
        pairs = [(word, said[index].text) for word, index in zip(words, places, strict=True)]
        if all(word == other or singular(word) == singular(other) for word, other in pairs):
            return places[0], places[-1], _EXACT
        if len(pairs) == 1 and len(words[0]) >= LEAST_INFLECTED and pairs[0][1] in inflections(words[0]):
            return places[0], places[0], _INFLECTED
        # A single word in small letters may well be another one: advance for Advanced.
        may_be_misspelt = len(pairs) > 1 or said[places[0]].is_capital
        if may_be_misspelt and (all(is_same_word(word, other) for word, other in pairs) or _is_alike(pairs)):
            return places[0], places[-1], _MISSPELT
    return None


def _is_alike(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether several words are those of a value but for a letter, however short: Heather Bel."""
    if len(pairs) < 2 or any(word.isdigit() != other.isdigit() for word, other in pairs):
        return False
    written, said = (" ".join(pair[side] for pair in pairs) for side in (0, 1))
    return all(word[0] == other[0] for word, other in pairs) and fuzz.ratio(written, said) >= ALMOST


def _part(
    words: tuple[str, ...], said: Sequence[Word], common: set[str], *, is_name: bool
) -> tuple[int, int, int] | None:
    """How and where a question says some words of a value: one that is written as a name, or several together.

    Args:
        is_name: whether one word in small letters is enough: the desk of a Captain's desk.
    """
    best: list[Word] = []
    best_how = _BY_A_WORD
    run: list[Word] = []
    for word in (*said, None):
        if word is not None and any(is_same_word(word.text, other) for other in words):
            run.append(word)
            continue
        telling = [one for one in run if one.text not in common]
        if telling and len(run) > len(best):
            how = _PARTIAL if len(run) > 1 or telling[0].is_capital else _BY_A_WORD
            if how == _PARTIAL or (is_name and telling[0].text in words):
                best, best_how = run, how
        run = []
    return (best_how, best[0].start, best[-1].end) if best else None


def _named_so(code: str, said: Sequence[Word], common: set[str]) -> tuple[int, int] | None:
    """Where the only name stands that has a word which a code begins: WHI of the Whimbrel, PET of the Storm Petrel."""
    if not (code.isalpha() and code.isupper() and len(code) >= LEAST_CODE):
        return None
    begins = code.lower()
    begun = [at for at, one in enumerate(said) if one.text.startswith(begins) and _is_of_name(one, common)]
    if len(begun) != 1:
        return None
    first = last = begun[0]
    while first and _is_of_name(said[first - 1], common) and said[first].start - said[first - 1].end == 1:
        first -= 1
    while last + 1 < len(said) and _is_of_name(said[last + 1], common) and said[last + 1].start - said[last].end == 1:
        last += 1
    return said[first].start, said[last].end


def _is_of_name(word: Word, common: set[str]) -> bool:
    return word.is_capital and word.text not in common


def _apart(links: Iterable[Link]) -> Iterator[Link]:
    """Of values in places that overlap those of the longest; of one place those that are said best."""
    chosen: list[Link] = []
    for one in sorted(links, key=lambda link: (link.how >= _PARTIAL, link.start - link.end, link.how, link.start)):
        overlapping = [other for other in chosen if other.start < one.end and one.start < other.end]
        if all(_is_beside(one, other) for other in overlapping):
            chosen.append(one)
            yield one


def _is_beside(one: Link, other: Link) -> bool:
    """Whether two values are said by the same words as well: a payment that failed, and a test."""
    is_alike = one.how == other.how or max(one.how, other.how) <= _INFLECTED
    return is_alike and (one.start, one.end) == (other.start, other.end)
