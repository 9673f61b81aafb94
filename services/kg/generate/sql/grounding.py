"""A statement beside its question, with the names, values and items that this says, and without what nobody said."""

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from services.kg.comparisons import Comparison, tables_of
from services.kg.entities import NameIndex
from services.kg.generate.ground import LEAST_LETTERS, WEAK_WORDS, extent_of, named, other_side, words_of
from services.kg.generate.rules.guessing import resolved
from services.kg.generate.rules.inflection import singular
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, asking_words
from services.kg.generate.sql.statement import Statement, drop
from services.kg.selects import table_name

# Shorter texts are within many.
LEAST_PART = 4


def name_entities(statement: Statement, query: str, spots: Sequence[Spot], names: NameIndex) -> bool:
    """Write names whole that the question says in part or misspells; False where it does not say one.

    Of a comparison of two names the statement gets the one that it lacks.
    """

    def whole(name: str, kind: str) -> str:
        best = resolved(names, name, (kind,), partial=True)
        return best.surface if best is not None else name

    if not any(one.is_name for one in statement.comparisons()):
        _with_both(statement, query, spots)
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


def _with_both(statement: Statement, query: str, spots: Sequence[Spot]) -> None:
    """Ask a SELECT that ranks groups by their name of the two names that the question compares alone."""
    first, place = statement.sides[0], statement.only_place
    group = first.args.get("group")
    if place is None or group is None or group.expressions != statement.outputs:
        return
    said = [spot for spot in spots if spot.kind == place[1].entity]
    if len(said) == 2 and other_side(said[0].text, query, said) is not None:
        texts = [exp.Literal.string(one.text) for one in said]
        first.where(exp.In(this=statement.outputs[0].copy(), expressions=texts), copy=False)


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
    for one in list(on_texts(statement)):
        is_guess = isinstance(one.node, exp.EQ) and all(is_unsaid(text, said) for text in one.texts)
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


def with_parts(statement: Statement, values: Values) -> None:
    """Look for a text within the values of a column that does not have it whole: AGM 2026. Blocks for milliseconds.

    A part of words, or a few letters, is within many values.
    """
    for one in list(statement.comparisons()):
        text = one.texts[0] if len(one.texts) == 1 else ""
        if not isinstance(one.node, exp.EQ) or one.key.kind != "text" or len(text) < LEAST_PART:
            continue
        whole = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
        is_stored = values.stored(one.function, one.key.name, text)
        if not is_stored and any(map(whole.search, values.of(one.function, one.key.name))):
            one.node.replace(exp.Like(this=one.node.this.copy(), expression=exp.Literal.string(f"%{text}%")))


def on_texts(statement: Statement) -> Iterator[Comparison]:
    return (one for one in statement.comparisons() if one.key.kind == "text" and not one.is_name)


def is_unsaid(text: str, said: str) -> bool:
    return named(text, said) is None and not _is_shortened(text, said)


def _is_shortened(text: str, query: str) -> bool:
    """Whether a question has the beginning of a text's word: the dobs of Dobsonian."""
    words = {singular(word.text) for word in words_of(query) if word.text not in WEAK_WORDS}
    begun = tuple(word for word in words - asking_words() if len(word) >= LEAST_LETTERS)
    return any(word.text.startswith(begun) for word in words_of(text))
