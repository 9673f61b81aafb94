"""A statement beside its question: it may only be about what the question says.

A model completes what it does not find: another name, a value nobody said, a near column.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from rapidfuzz import fuzz
from sqlglot import exp

from services.kg.comparisons import Comparison, tables_of
from services.kg.entities import NameIndex
from services.kg.generate.ground import LEAST_LETTERS, WEAK_WORDS, beginnings_of, extent_of, named, other_side, words_of
from services.kg.generate.rules.guessing import resolved
from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.interrogatives import WHETHER
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, asking_words
from services.kg.generate.sql.linking import TITLES
from services.kg.generate.sql.schema import FEW_VALUES
from services.kg.generate.sql.statement import Statement, drop
from services.kg.selects import table_name
from services.kg.store.names import normalise

_WHETHER = re.compile(rf"\W*(?:{'|'.join(WHETHER)})\b", re.IGNORECASE)
_DAY_ASKED = re.compile(r"\W*(?:on |by )?(?:what|which) date\b", re.IGNORECASE)
_HOUR_ASKED = re.compile(r"\b(?:what|which) (?:time|hour)\b", re.IGNORECASE)
_WHEN = re.compile(r"\W*when\b", re.IGNORECASE)
_AMOUNT_ASKED = re.compile(r"\b(?:how (?:much|many)|what|when|where|whose|who)\b")
_ARTICLES = ("a", "an", "the")
# Two spellings of a word beside others of its name, in percent.
ALIKE = 75.0
# What says a flag by no word of its name, by the last one.
_OTHERWISE = {"paid": ("owe", "owing", "outstanding", "overdue", "arrears", "settle"), "active": ("current", "still")}


def name_entities(statement: Statement, query: str, spots: Sequence[Spot], names: NameIndex) -> bool:
    """Write names whole that the question says in part or misspells; False where it does not say one.

    Of a comparison of two names the statement gets the one that it lacks.
    """

    def whole(name: str, kind: str) -> str:
        best = resolved(names, name, (kind,), partial=True)
        return best.surface if best is not None else name

    compared = [one for one in statement.comparisons() if one.is_name and not isinstance(one.node, exp.Like)]
    for one in compared:
        kind = one.key.entity
        own = [extent_of(str(literal.this), (kind,), query, spots) for literal in one.literals]
        said = [name for name in own if name is not None]
        if len(said) < len(own):
            return False
        other = other_side(said[0], query, spots) if len(compared) == len(said) == 1 else None
        texts = [exp.Literal.string(whole(name, kind)) for name in filter(None, (*said, other))]
        if other is not None and isinstance(one.node, exp.EQ):
            if not _compare(statement, one, texts):
                return False
            continue
        for literal, text in zip(one.literals, texts, strict=False):
            literal.replace(text)
    return True


def _compare(statement: Statement, one: Comparison, names: Sequence[exp.Literal]) -> bool:
    """Ask a statement of both names of a comparison, of which it had one; whether it can be.

    Where that one stands in a SELECT within another, the other belongs to the outer one: A's deposit beside B's.
    """
    if one.node.find_ancestor(exp.Select) in statement.sides:
        one.node.replace(exp.In(this=one.node.this.copy(), expressions=list(names)))
        return True
    own, other = names
    outer = statement.sides[0]
    same = [table for table in tables_of(outer) if table.name == table_name(one.function)]
    if len(statement.sides) > 1 or len(same) != 1:
        return False
    for literal in one.literals:
        literal.replace(own)
    outer.where(exp.EQ(this=exp.column(one.key.name, same[0].alias_or_name), expression=other), copy=False)
    return True


def without_guesses(statement: Statement, said: str) -> None:
    """Drop texts that the question does not say of a row that it names: the district of Ann's house is no condition.

    Args:
        said: the question, and the stored values that it says.
    """
    for one in list(_on_texts(statement)):
        is_guess = isinstance(one.node, exp.EQ) and all(_is_unsaid(text, said) for text in one.texts)
        if is_guess and any(_describes(one, other) for other in _beside(one.node)):
            drop(one.node)


def _beside(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that hold with one, all of which rows must meet."""
    top = node
    while isinstance(top.parent, exp.And | exp.Paren):
        top = top.parent
    if isinstance(top.parent, exp.Where):
        yield from (one for one in top.unnest().flatten() if one is not node)


def _describes(guess: Comparison, condition: exp.Expr) -> bool:
    """Whether a key is one of the very thing that a condition names: its own, or one that is joined by that name."""
    column = condition.this
    is_named = isinstance(condition, exp.EQ) and isinstance(condition.expression, exp.Literal)
    # Of what another SELECT finds there may be several, of which the guess may choose.
    is_named |= isinstance(condition, exp.In) and condition.args.get("query") is None
    if not is_named or not isinstance(column, exp.Column):
        return False
    is_whole = guess.function.subject == (column.name,)
    key = guess.function.exact_keys.get(column.name)
    return is_whole or (key is not None and bool(key.entity) and guess.key.name.startswith(f"{key.name}_"))


def with_items(statement: Statement, values: Values) -> None:
    """Look for an item where cells list several: PC in "PC, Switch". Blocks for milliseconds."""
    for one in list(statement.comparisons()):
        may_list = one.key.kind == "text" and not one.is_name
        may_list &= isinstance(one.node, exp.EQ | exp.NEQ | exp.In | exp.Like)
        texts = [text.strip("%") if isinstance(one.node, exp.Like) else text for text in one.texts]
        if may_list and any(values.is_listed(one.function, one.key.name, text) for text in texts):
            parts = [exp.Like(this=one.node.this.copy(), expression=exp.Literal.string(f"%{text}%")) for text in texts]
            having = exp.paren(exp.or_(*parts))
            one.node.replace(exp.Not(this=having) if isinstance(one.node, exp.NEQ) else having)


def asks_no_flag(select: exp.Select, query: str, flags: Collection[str]) -> bool:
    """Whether a statement tells yes or no where the question wants an amount, a day, a place or somebody."""
    items = select.expressions
    is_flag = len(items) == 1 and isinstance(items[0], exp.Column) and items[0].name.lower() in flags
    return is_flag and _AMOUNT_ASKED.match(query.lower().strip()) is not None


def is_about_something_else(
    statement: Statement, query: str, said: str, spots: Sequence[Spot], values: Values, lexicon: Lexicon
) -> str:
    """The reason why a statement is about something else than its question; empty where it may be about it.

    Args:
        said: the question, and the stored values that it says.
    """
    texts = [text for one in statement.comparisons() for text in one.texts]
    reasons = (
        (_leaves_out(texts, spots), "a name is left out"),
        (_is_another_name(texts, query), "another name"),
        (any(_unsaid(statement, said, values)), "a text that is not said"),
        (_asks_unsaid_flag(statement, query, lexicon), "yes or no for what is not said"),
        (any(_counted_nowhere(statement, values)), "a count of what no row has"),
        (_counts_what_it_names(statement), "a count of what is named"),
        (_counts_before(statement, values), "a count of days before the first"),
        (_tells_a_text(statement, query), "a text for a day"),
        (_tells_a_day(statement, query), "a day for a time of day"),
        (_tells_its_condition(statement, query), "its own condition"),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def _leaves_out(texts: Sequence[str], spots: Sequence[Spot]) -> bool:
    """Whether a name of the question stands in no comparison, with an article or not."""
    words = {*normalise(" ".join(texts)).split(), *_ARTICLES}
    return any(not words.issuperset(normalise(spot.text).split()) for spot in spots)


def _is_another_name(texts: Sequence[str], query: str) -> bool:
    """Whether the question says a text in part, as part of another name.

    Fromagerie Brignac is not asked of where the question says "Fromagerie Delacroix".
    """
    written = [word.text for text in texts for word in words_of(text)]
    words = words_of(query)
    for text in texts:
        part = named(text, query)
        if part is None or part == text or not any(map(str.isalpha, text)):
            continue
        start = query.find(part)
        ends = (start - 1, start + len(part) + 1)
        beside = [one.text for one in words[1:] if one.is_capital and (one.end == ends[0] or one.start == ends[1])]
        if any(not any(_may_be(one, other) for other in (*written, *TITLES)) for one in beside):
            return True
    return False


def _may_be(word: str, other: str) -> bool:
    """Whether a word is another one, its beginning, or a misspelling of it."""
    return other.startswith(word) or fuzz.ratio(word, other) >= ALIKE


def _on_texts(statement: Statement) -> Iterator[Comparison]:
    return (one for one in statement.comparisons() if one.key.kind == "text" and not one.is_name)


def _unsaid(statement: Statement, said: str, values: Values) -> Iterator[str]:
    """Texts that the question does not say, of keys with more of them than a prompt shows.

    Of a few, which the model was shown, one may be meant in other words.
    """
    for one in _on_texts(statement):
        texts = [text.strip("%") for text in one.texts]
        if any(_is_unsaid(text, said) for text in texts):
            shown = values.of(one.function, one.key.name)
            if not 0 < len(shown) <= FEW_VALUES:
                yield from texts


def _is_unsaid(text: str, said: str) -> bool:
    return named(text, said) is None and not _is_shortened(text, said)


def _is_shortened(text: str, query: str) -> bool:
    """Whether a question has the beginning of a text's word: the dobs of Dobsonian."""
    words = {singular(word.text) for word in words_of(query) if word.text not in WEAK_WORDS}
    begun = tuple(word for word in words - asking_words() if len(word) >= LEAST_LETTERS)
    return any(word.text.startswith(begun) for word in words_of(text))


def _asks_unsaid_flag(statement: Statement, query: str, lexicon: Lexicon) -> bool:
    """Whether rows are told apart by yes or no for what no word of the question says: whether a late one is in use."""
    words = [word.text for word in words_of(query)]
    columns = [one for where in statement.tree.find_all(exp.Where) for one in where.find_all(exp.Column)]
    for function, key in filter(None, map(statement.place_of, columns)):
        otherwise = _OTHERWISE.get(key.name.rpartition("_")[2], ())
        if key.kind != "flag" or compiled((*lexicon.plain(function.name, key.name), *otherwise)).search(query):
            continue
        parts = [part for part in beginnings_of(key.name) if part not in WEAK_WORDS and part not in asking_words()]
        if parts and not any(part in word for part in parts for word in words):
            return True
    return False


def _counted_nowhere(statement: Statement, values: Values) -> Iterator[str]:
    """Texts that no row has, of which rows are counted. Blocks for milliseconds.

    That there are none is no answer: who asks how many came to Kielder does not ask whether there was a trip.
    """
    for one in _on_texts(statement) if statement.is_counted else ():
        if isinstance(one.node, exp.EQ):
            yield from (text for text in one.texts if text and not values.stored(one.function, one.key.name, text))


def _counts_before(statement: Statement, values: Values) -> bool:
    """Whether rows are counted of days before a table's first: nothing was written down. Blocks for milliseconds."""
    ends = (exp.EQ, exp.Like, exp.LT, exp.LTE, exp.Between)
    for one in statement.comparisons() if statement.is_counted else ():
        if one.key.kind == "date" and isinstance(one.node, ends) and one.texts:
            end = one.texts[-1].rstrip("%-")
            first = values.least(one.function, one.key.name)[: len(end)]
            if end[:1].isdigit() and (end < first or (end == first and isinstance(one.node, exp.LT))):
                return True
    return False


def _counts_what_it_names(statement: Statement) -> bool:
    """Whether rows are counted that are named one by one: how many cats Ann has is not how many Anns there are."""
    return any(isinstance(one, exp.Count) for one in statement.outputs) and any(
        one.is_name and one.key.name in one.function.subject and isinstance(one.node, exp.EQ | exp.In)
        for one in statement.comparisons()
        if one.node.find_ancestor(exp.Select) is statement.sides[0]
    )


def _tells_a_text(statement: Statement, query: str) -> bool:
    """Whether it tells a text alone where the question wants a day, or names somebody for `when`.

    When a mill was last greased is not by whom; when a stall is open may be told in words.
    """
    outputs = statement.outputs
    place = statement.place_of(outputs[0]) if len(outputs) == 1 and isinstance(outputs[0], exp.Column) else None
    if place is None or place[1].kind != "text":
        return False
    key = place[1]
    is_by_whom = bool(key.entity) or key.name.endswith("_by")
    is_dated = "date" in key.name.split("_")
    return (bool(_DAY_ASKED.match(query)) and not is_dated) or (bool(_WHEN.match(query)) and is_by_whom)


def _tells_a_day(statement: Statement, query: str) -> bool:
    """Whether it tells a day where the question wants a time of day."""
    outputs = statement.outputs
    places = [statement.place_of(one) for one in outputs if isinstance(one, exp.Column)]
    is_of_days = len(places) == len(outputs) and all(one is not None and one[1].kind == "date" for one in places)
    return is_of_days and _HOUR_ASKED.search(query) is not None


def _tells_its_condition(statement: Statement, query: str) -> bool:
    """Whether it tells nothing but a text that it looks for, where no yes or no is asked: the contact of a contact."""
    if statement.is_counted or _WHETHER.match(query):
        return False
    outputs = [one for one in statement.outputs if isinstance(one, exp.Column)]
    keys = {place[1].name for one in outputs if (place := statement.place_of(one)) is not None}
    looked_for = {one.key.name for one in _on_texts(statement) if isinstance(one.node, exp.EQ)}
    return bool(keys) and len(outputs) == len(statement.outputs) and keys <= looked_for
