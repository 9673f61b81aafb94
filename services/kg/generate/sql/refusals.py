"""Why a statement is about something else than its question, which no answer is better than.

A model completes what it does not find: another name, a value nobody said, a near column.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from rapidfuzz import fuzz
from sqlglot import exp

from services.kg.comparisons import tables_of
from services.kg.generate.ground import WEAK_WORDS, beginnings_of, named, words_of
from services.kg.generate.rules.interrogatives import WHETHER
from services.kg.generate.rules.lexicon import Lexicon
from services.kg.generate.rules.phrases import compiled
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, asking_words
from services.kg.generate.sql.grounding import is_unsaid, on_texts
from services.kg.generate.sql.linking import TITLES
from services.kg.generate.sql.schema import FEW_VALUES
from services.kg.generate.sql.statement import Statement, one_value
from services.kg.generate.sql.times import is_of_today
from services.kg.language.catalogue import NUMERIC, Key
from services.kg.store.names import normalise

_WHETHER = re.compile(rf"\W*(?:{'|'.join(WHETHER)})\b", re.IGNORECASE)
_DAY_ASKED = re.compile(r"\W*(?:on |by )?(?:what|which) date\b", re.IGNORECASE)
_HOUR_ASKED = re.compile(r"\b(?:what|which) (?:time|hour)\b", re.IGNORECASE)
_WHEN = re.compile(r"\W*when\b", re.IGNORECASE)
_AMOUNT_ASKED = re.compile(r"\b(?:how (?:much|many)|what|when|where|whose|who)\b")
_ARTICLES = ("a", "an", "the")
# Two spellings of a word beside others of its name, in percent.
ALIKE = 75.0
# What puts people in the order of their births.
_AGE = re.compile(
    r"\b(?:(?:old|young|new)(?:er|est)?|elde(?:r|st)|age[ds]?|born|births?|birth(?:day|date)s?|dob|senior|junior)\b"
)
# Rows in a certain state are meant, whatever it is called.
_IN_A_STATE = re.compile(
    r"\b(?:still|actually|really|in the end|took place|taken place|go(?:ne|es)? ahead|went (?:ahead|through)|"
    r"fell through|(?:not|without|excluding|leaving out|ignoring) (?:counting )?(?:the )?"
    r"(?:cancelled|canceled|refunded|rejected|failed|voided|withdrawn))\b"
)
_STATES = frozenset(("state", "status", "stage", "outcome", "result", "phase", "condition"))
# A number of rows, and no value: "just the one lot", "only once".
_SO_MANY_ROWS = re.compile(r"\b(?:just|only) (?:the )?(?:once|twice|(?:one|two|three) ([a-z]+))\b")
HOW_MANY = re.compile(r"\bhow many ((?:(?!(?:are|did|do|does|had|has|have|is|was|were)\b)[a-z-]+ ?){1,3})")
# What each person has for themselves.
CONTACTS = frozenset(("phone", "telephone", "mobile", "email", "fax", "address", "contact"))
_NEVER = re.compile(r"(?<!\bi )(?<!\bi have )(?<!\bi've )\b(?:never|not once)\b(?! (?:mind|remember))")
# Who or what has never had or done something, which no state of theirs tells.
_WHO_NEVER = re.compile(r"\bha(?:ve|s) never (?:had|failed|missed|been (?:to|in|at|on))\b")
_NEGATIVE = re.compile(r"\b(?:no|not|none|never|un\w+|in\w+|non\w*)\b", re.IGNORECASE)
UNSAID_FLAG = "yes or no for what is not said"
# What says a flag by no word of its name, by the last one.
_OTHERWISE = {"paid": ("owe", "owing", "outstanding", "overdue", "arrears", "settle"), "active": ("current", "still")}


def asks_no_flag(select: exp.Select, query: str, flags: Collection[str]) -> bool:
    """Whether a statement tells yes or no where the question wants an amount, a day, a place or somebody."""
    items = select.expressions
    is_flag = len(items) == 1 and isinstance(items[0], exp.Column) and items[0].name.lower() in flags
    return is_flag and _AMOUNT_ASKED.match(query.lower().strip()) is not None


def doubts(
    statement: Statement, query: str, said: str, spots: Sequence[Spot], values: Values, lexicon: Lexicon
) -> Iterator[str]:
    """The reasons why a statement is about something else than its question; none where it may be about it.

    Args:
        said: the question, and the stored values that it says.
    """
    texts = [text for one in statement.comparisons() for text in one.texts]
    reasons = (
        (_leaves_out(texts, spots), "a name is left out"),
        (_is_another_name(texts, query), "another name"),
        (any(_unsaid(statement, said, values)), "a text that is not said"),
        (_asks_unsaid_flag(statement, query, lexicon), UNSAID_FLAG),
        (any(_counted_nowhere(statement, values)), "a count of what no row has"),
        (_counts_what_it_names(statement), "a count of what is named"),
        (_counts_before(statement, values), "a count of days before the first"),
        (_tells_a_text(statement, query), "a text for a day"),
        (_tells_a_day(statement, query), "a day for a time of day"),
        (_tells_its_condition(statement, query), "its own condition"),
        (_sorts_by_age(statement, query, lexicon), "an order by age"),
        (_leaves_out_state(statement, query), "without the state that is meant"),
        (_is_of_so_many(statement, query, lexicon), "a value for a number of rows"),
        (_counts_without_groups(statement), "an order by a count of nothing"),
        (_counts_others(statement, query, lexicon), "a count of other rows"),
        (_tells_a_code(statement, query, values), "a code for somebody"),
        (_tells_of_another(statement, query), "what another one has"),
        (_tells_no_reason(statement, query), "no reason for why"),
        (_leaves_out_never(statement, query), "without the never that is said"),
        (_computes_with_texts(statement), "texts that are computed with"),
    )
    yield from (reason for is_so, reason in reasons if is_so)


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


def _unsaid(statement: Statement, said: str, values: Values) -> Iterator[str]:
    """Texts that the question does not say, of keys with more of them than a prompt shows.

    Of a few, which the model was shown, one may be meant in other words.
    """
    for one in on_texts(statement):
        texts = [text.strip("%") for text in one.texts]
        if any(is_unsaid(text, said) for text in texts):
            shown = values.of(one.function, one.key.name)
            if not 0 < len(shown) <= FEW_VALUES:
                yield from texts


def _asks_unsaid_flag(statement: Statement, query: str, lexicon: Lexicon) -> bool:
    """Whether rows are told apart by yes or no for what no word of the question says: whether a late one is in use."""
    words = [word.text for word in words_of(query)]
    columns = [one for where in statement.tree.find_all(exp.Where) for one in where.find_all(exp.Column)]
    for function, key in filter(None, map(statement.place_of, columns)):
        otherwise = _OTHERWISE.get(key.name.rpartition("_")[2], ())
        if key.kind != "flag" or compiled((*lexicon.plain(function.name, key.name), *otherwise)).search(query):
            continue
        parts = [part for part in beginnings_of(key.name) if part not in WEAK_WORDS]
        if not asking_words().issuperset(parts) and not any(part in word for part in parts for word in words):
            return True
    return False


def _counted_nowhere(statement: Statement, values: Values) -> Iterator[str]:
    """Texts that no row has, of which rows are counted. Blocks for milliseconds.

    That there are none is no answer: who asks how many came to Kielder does not ask whether there was a trip.
    """
    for one in on_texts(statement) if statement.is_counted else ():
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


def _computes_with_texts(statement: Statement) -> bool:
    """Whether it computes with what is no number: a database takes the hours of times and the years of days."""
    computed = statement.tree.find_all(exp.Add, exp.Sub, exp.Mul, exp.Div)
    sides = [one_value(side) for one in computed for side in (one.left, one.right)]
    if any(isinstance(side, exp.CurrentDate | exp.CurrentTimestamp) or side.is_string for side in sides):
        return True
    places = (statement.place_of(side) for side in sides if isinstance(side, exp.Column))
    return any(place is not None and place[1].kind not in NUMERIC for place in places)


def _counts_what_it_names(statement: Statement) -> bool:
    """Whether rows are counted that are named one by one: how many cats Ann has is not how many Anns there are."""
    return any(isinstance(one, exp.Count) for one in statement.outputs) and statement.names_its_rows


def _tells_a_text(statement: Statement, query: str) -> bool:
    """Whether it tells a text alone where the question wants a day, or names somebody for `when`.

    When a mill was last greased is not by whom; when a stall is open may be told in words.
    """
    place = statement.only_place
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
    looked_for = {one.key.name for one in on_texts(statement) if isinstance(one.node, exp.EQ)}
    return bool(keys) and len(outputs) == len(statement.outputs) and keys <= looked_for


def _sorts_by_age(statement: Statement, query: str, lexicon: Lexicon) -> bool:
    """Whether rows are put in the order of births, which no word says: the last who passed are not the youngest."""
    ordered = [one.this for one in statement.tree.find_all(exp.Ordered, exp.Max, exp.Min)]
    places = filter(None, (statement.place_of(one) for one in ordered if isinstance(one, exp.Column)))
    births = [lexicon.plain(function.name, key.name) for function, key in places if key.spell == "age"]
    is_said = _AGE.search(query.lower()) is not None or any(compiled(one).search(query.lower()) for one in births)
    return bool(births) and not is_said


def _leaves_out_state(statement: Statement, query: str) -> bool:
    """Whether the question wants rows in a certain state, as what "actually took place", of which nothing is asked."""
    if _IN_A_STATE.search(query.lower()) is None:
        return False
    wheres = list(statement.tree.find_all(exp.Where))
    columns = [one for where in wheres for one in where.find_all(exp.Column)]
    columns += [one for output in statement.outputs for one in output.find_all(exp.Column)]
    asked = [place[1] for one in columns if (place := statement.place_of(one)) is not None]
    is_asked = any(_is_state(key) or key.kind in (*NUMERIC, "flag") for key in asked)
    # What is still to come has not come yet.
    is_asked |= any(where.find(exp.Null) or is_of_today(where) for where in wheres)
    return any(map(_is_state, statement.keys)) and not is_asked and not statement.names_its_rows


def _is_state(key: Key) -> bool:
    return key.name.rpartition("_")[2] in _STATES


def _is_of_so_many(statement: Statement, query: str, lexicon: Lexicon) -> bool:
    """Whether so many rows are asked for, and none are counted: "who has sold us just the one lot"."""
    asked = _SO_MANY_ROWS.search(query.lower())
    if asked is None or statement.tree.find(exp.Count, exp.Limit) is not None:
        return False
    places = filter(None, map(statement.place_of, statement.tree.find_all(exp.Column)))
    is_counted = any(key.name.endswith("_count") for _, key in places)
    is_of_rows = asked[1] is None or compiled(lexicon.every_noun).fullmatch(asked[1]) is not None
    return is_of_rows and not is_counted


def _counts_without_groups(statement: Statement) -> bool:
    """Whether rows are put in the order of a count that is not one of each: all of them are one group."""
    return any(
        one.find(exp.Count) is not None and one.parent_select is not None and not one.parent_select.args.get("group")
        for one in statement.tree.find_all(exp.Ordered)
        if one.find(exp.Subquery) is None
    )


def _counts_others(statement: Statement, query: str, lexicon: Lexicon) -> bool:
    """Whether other rows are counted than the question names, which have nothing of theirs: payments for tests."""
    asked, select = HOW_MANY.search(query.lower()), statement.sides[0]
    tables = tables_of(select)
    is_count = [type(one) for one in statement.outputs] == [exp.Count] and statement.tree.find(exp.Distinct) is None
    if asked is None or not is_count or len(tables) != 1:
        return False
    own = statement.functions[tables[0].name]
    named = [one for one in lexicon.own.shown if compiled(lexicon.rows(one)).search(asked[1])]
    kinds = {key.entity for key in own.keys if key.entity}
    theirs = {one.exact_keys[one.subject[0]].entity for one in named}
    return bool(named) and own not in named and kinds.isdisjoint(theirs)


def _tells_a_code(statement: Statement, query: str, values: Values) -> bool:
    """Whether it tells codes or numbers alone where the question wants somebody: C07. Blocks for milliseconds."""
    place = statement.only_place
    if place is None or not query.lower().strip().startswith(("who ", "whom ", "whose ")):
        return False
    texts = values.of(place[0], place[1].name) if place[1].kind == "text" else ()
    return place[1].kind in NUMERIC or (bool(texts) and all(any(map(str.isdigit, one)) for one in texts))


def _tells_of_another(statement: Statement, query: str) -> bool:
    """Whether it tells what somebody else has than whom the question names: a customer's phone for the mechanic's."""
    place = statement.only_place
    named = {one.key.entity for one in statement.comparisons() if one.is_name}
    if place is None or place[1].entity or not named:
        return False
    function, key = place
    roles = [one for one in function.keys if one.entity and key.name.startswith(f"{one.name}_")]
    is_contact = not CONTACTS.isdisjoint(key.name.split("_"))
    is_said = any(word.text in query.lower() for role in roles for word in words_of(role.name.replace("_", " ")))
    # A booking has no phone of its own, but whoever it is made for has.
    is_of_person = any(one.entity in named for one in function.keys if one.name not in function.subject and one.entity)
    return is_contact and is_of_person and any(role.entity not in named for role in roles) and not is_said


def _tells_no_reason(statement: Statement, query: str) -> bool:
    """Whether it tells no text, or only a state or a name, where the question wants a reason: why did Gil leave."""
    places = filter(None, (statement.place_of(one) for one in statement.outputs if isinstance(one, exp.Column)))
    is_text = any(key.kind == "text" and not key.entity and not _is_state(key) for _, key in places)
    return query.lower().strip().startswith("why ") and not is_text


def _leaves_out_never(statement: Statement, query: str) -> bool:
    """Whether the question wants what never was, and the statement denies nothing and compares with no zero."""
    text = query.lower()
    is_of_one = statement.names_its_rows or _WHETHER.match(query) is not None
    if _NEVER.search(text) is None or is_of_one or statement.tree.find(exp.Having) is not None:
        return False
    places = filter(None, map(statement.place_of, statement.tree.find_all(exp.Column)))
    tells_state = any(_is_state(key) or key.kind == "flag" or key.name.endswith("_count") for _, key in places)
    if tells_state and not _WHO_NEVER.search(text):
        return False
    is_denied = statement.tree.find(exp.Not, exp.NEQ, exp.Is, exp.Except, exp.Null) is not None
    literals = list(statement.tree.find_all(exp.Literal))
    is_denied |= any(_NEGATIVE.search(one.name) if one.is_string else float(one.name) == 0 for one in literals)
    return not is_denied
