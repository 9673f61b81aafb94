"""Rows to words: one sentence a fact, with what was resolved, the window, the totals, and what is missing.

A generator reads this text as evidence, so nothing in it may mislead: numbers are whole or rounded, never cut; a list
that is not shown in full says so; an absence is said as an absence.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date

from services.kg.codes import spell
from services.kg.language.catalogue import Domain, Function, Key
from services.kg.outcome import Outcome, Scalar
from services.kit.text.dates import whole_years

# Lines of one list; the total is always said.
MAX_ITEMS = 10
# A generator's token is shorter than this in English; what is cut by it stays below the budget.
CHARS_PER_TOKEN = 3.5
# The least that a statement gets, whatever the others need.
MIN_CHARS = 200
AGGREGATES = {
    "avg": "average",
    "sum": "total",
    "min": "lowest",
    "max": "highest",
    "diff": "difference",
    "ratio": "ratio",
}
STATUS = {
    "no_program": "No function of the knowledge graph fits the question.",
    "timeout": "The knowledge graph did not answer in time.",
}


def verbalize(outcomes: Sequence[Outcome], domains: Mapping[str, Domain], today: date, *, max_tokens: int) -> list[str]:
    """The text of each statement; all together within the budget of tokens.

    `today` is the date of the question, for ages; `max_tokens` are for all texts together.
    """
    texts = [_statement(outcome, domains, today, MAX_ITEMS) for outcome in outcomes]
    budget = int(max_tokens * CHARS_PER_TOKEN)
    for items in (5, 3, 1):
        if sum(map(len, texts)) <= budget:
            break
        texts = [_statement(outcome, domains, today, items) for outcome in outcomes]
    share = max(MIN_CHARS, budget // max(1, len(texts)))
    if sum(map(len, texts)) > budget:
        texts = [_cut(text, share) for text in texts]
    ages = _ages(outcomes)
    if ages and texts:
        texts[-1] = f"{texts[-1]} {ages}"
    return texts


def _statement(outcome: Outcome, domains: Mapping[str, Domain], today: date, items: int) -> str:
    notes = f" (Note: {'; '.join(outcome.notes)}.)" if outcome.notes else ""
    function = outcome.function
    if function is None:
        possible = outcome.expected[:5] if outcome.status in ("unknown_key", "parse_error") else ()
        near = f" Possible: {', '.join(possible)}." if possible else ""
        return STATUS.get(outcome.status) or f"{_capital(outcome.message).rstrip('.')}.{near}"
    domain = domains[function.domain]
    if outcome.status == "no_event":
        return domain.wording.missing(outcome) or f"Nothing is known of {_names(domain, outcome)}{_in(outcome)}."
    if not outcome.rows and outcome.value is None:
        return f"The knowledge graph knows nothing of this: {domain.wording.rows(outcome)}{_in(outcome)}.{notes}"
    if outcome.aggregate == "len" and outcome.value is not None:
        body = f"Number of {domain.wording.rows(outcome)}{_in(outcome)}: {grouped(outcome.value)}."
        if outcome.rows:
            body += f" {_list(domain, outcome, today, items)}"
    elif outcome.aggregate:
        body = _aggregate(domain, outcome, today, items)
    elif outcome.summary and outcome.rows[0] == outcome.summary:
        body = ""
    elif function.grouped:
        by = " and ".join(function.exact_keys[name].words for name in function.subject)
        body = f"{_capital(domain.wording.rows(outcome))}{_in(outcome)} by {by}: {_list(domain, outcome, today, items)}"
    elif len(outcome.rows) == 1 and function.pair is None and (fact := _fact(domain, outcome, today)):
        body = fact
    else:
        # Of what an entity has several, or what has no name, a list says one better than a sentence does.
        body = f"{_capital(domain.wording.rows(outcome))}{_in(outcome)} ({grouped(outcome.total)}): "
        body += _list(domain, outcome, today, items)
    if outcome.summary and (outcome.total != 1 or not body):
        body = f"{_names(domain, outcome)}{_in(outcome)}: {domain.wording.totals(outcome.summary)}. {body}".rstrip()
    return body + notes


def _fact(domain: Domain, outcome: Outcome, today: date) -> str:
    """ "The budget of the film "Alien" (1979) is $11,000,000." for each key that was asked for.

    Empty of what has no name.
    """
    function, row = _function(outcome), outcome.rows[0]
    if function.dynamic and row.get("key") is not None and "value" in row:
        return f"{_dynamic(domain, function, row)}."
    if function.narrates:
        return f"{_item(domain, outcome, row, today)}."
    subject = domain.wording.row(function.name, row)
    if not subject:
        return ""
    return " ".join(_said(key, subject, row.get(key.name), today) for key in _keys(outcome))


def _said(key: Key, subject: str, value: Scalar, today: date) -> str:
    if value is None:
        return f"No {key.words} of {subject} is known."
    if str(value) == subject:
        # "Breed: Boxer": the breed of Boxer is Boxer.
        return f"{_capital(key.words)}: {subject}."
    return f"The {key.words} of {subject} is {_value(key, value, today)}."


def _dynamic(domain: Domain, function: Function, row: Mapping[str, Scalar]) -> str:
    """ "The death date of Edward Hopper is ..."; prose speaks for itself."""
    owner = domain.wording.owner(row) or domain.wording.row(function.name, row)
    if row["key"] == function.prose:
        return f"{owner}: {str(row['value']).rstrip('.')}"
    return f"The {_words(str(row['key']))} of {owner} is {_dynamic_value(function, row)}"


def _dynamic_value(function: Function, row: Mapping[str, Scalar]) -> str:
    number = row.get("number")
    if isinstance(number, int | float):
        key = str(row["key"]).lower()
        if any(word in key for word in function.percent) and abs(number) < 10:
            return f"{grouped(round(number * 100, 3))}%"
        return grouped(number)
    return str(row["value"])


def _words(key: str) -> str:
    """`fullTimeEmployees` and `death_date` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").lower()


def _list(domain: Domain, outcome: Outcome, today: date, items: int) -> str:
    rows = outcome.rows
    shown = [_item(domain, outcome, row, today) for row in rows[:items]]
    if outcome.total > len(shown):
        if len(rows) == outcome.total and len(rows) > items >= 3:
            # The ends of a sorted list are what questions ask for.
            tail = items // 3
            last = [_item(domain, outcome, row, today) for row in rows[-tail:]]
            shown = [*shown[: items - tail], "...", *last]
        return f"{'; '.join(shown)} (showing {min(items, len(rows))} of {grouped(outcome.total)})."
    return f"{'; '.join(shown)}."


def _item(domain: Domain, outcome: Outcome, row: Mapping[str, Scalar], today: date) -> str:
    function = _function(outcome)
    if function.dynamic and row.get("key") is not None and "value" in row:
        return f"{_words(str(row['key']))}: {_dynamic_value(function, row)}"
    keys = _keys(outcome)
    values = [(key, row.get(key.name)) for key in keys]
    if function.narrates:
        more = [
            f"{k.words} {_value(k, v, today)}" for k, v in values if k.name not in function.subject and v is not None
        ]
        return "; ".join([domain.wording.row(function.name, row), *more])
    # The rows of a list are named by what they were asked for, or by their subject.
    subjects = [name for name in function.subject if name in outcome.shown]
    if not subjects:
        known = "; ".join(f"{key.words} {_value(key, value, today)}" for key, value in values if value is not None)
        return ": ".join(filter(None, (domain.wording.row(function.name, row), known or "not known")))
    first, *rest = [(key, value) for key, value in values if value is not None] or [(keys[0], "unknown")]
    more = [f"{key.words} {_value(key, value, today)}" for key, value in rest]
    # Namesakes are told apart by their year, winners of several years as well; a person is of no year.
    apart = function.apart.get(first[0].name, "")
    if apart and row.get(apart) and not any(key.kind == "date" or key.name == apart for key in keys):
        more.insert(0, str(row[apart]))
    return _value(first[0], first[1], today) + (f" ({', '.join(more)})" if more else "")


def _aggregate(domain: Domain, outcome: Outcome, today: date, items: int) -> str:
    function = _function(outcome)
    how = AGGREGATES.get(outcome.aggregate, outcome.aggregate)
    key = key_of(outcome, outcome.shown[-1])
    if outcome.value is None:
        return f"The {how} {key.words} cannot be computed: values are missing."
    of = _names(domain, outcome) or domain.wording.rows(outcome)
    kind = key if key.kind != "date" else Key(key.name, "integer", unit="days")
    text = f"The {how} {key.words} of {of}{_in(outcome)} is {_value(kind, outcome.value, today)}"
    if outcome.aggregate in ("min", "max") and outcome.rows:
        return f"{text}, of {'; '.join(domain.wording.row(function.name, row) for row in outcome.rows[:3])}."
    inputs = [
        f"{domain.wording.row(function.name, row)}: {_value(key, row[key.name], today)}"
        for row in outcome.rows[:items]
        if row.get(key.name) is not None
    ]
    counted = f"{grouped(outcome.total)} value{'' if outcome.total == 1 else 's'}"
    return f"{text}, from {counted}: {'; '.join(inputs)}."


def _ages(outcomes: Sequence[Outcome]) -> str:
    """Ages at the other dates of the same program: who asks for a birthday and a date means to subtract them."""
    firsts = [(o, row, key) for o in outcomes for row in o.rows[:1] for key in (_keys(o) if o.function else ())]
    births = [(row.get(_function(o).subject[0]), row.get(key.name)) for o, row, key in firsts if key.spell == "age"]
    dates = [row.get(key.name) for _, row, key in firsts if key.ages]
    sentences = []
    for name, birth in births:
        for when in dates:
            age = _age(birth, when)
            if age is not None:
                sentences.append(f"{name} was {age} years old on {when}.")
    return " ".join(sentences)


def _age(birth: Scalar, when: Scalar | date) -> int | None:
    try:
        born, day = date.fromisoformat(str(birth)), date.fromisoformat(str(when)[:10])
    except ValueError:
        return None
    years = whole_years(born, day)
    return years if 0 <= years <= 150 else None


def _value(key: Key, value: Scalar, today: date) -> str:
    """A value with its unit, rounded, its code spelt out."""
    if isinstance(value, str) and key.kind != "date":
        return spell(key, value)
    match key.kind:
        case "money" if isinstance(value, int | float):
            return _money(value)
        case "flag":
            return "yes" if value else "no"
        case "date":
            age = _age(value, today) if key.spell == "age" else None
            return str(value) + (f" (aged {age} on {today}, if alive)" if age is not None else "")
        case _:
            unit = f" {key.unit}" if key.unit else ""
            text = str(value) if key.spell == "plain" else grouped(value)
            return text + unit


def _money(value: float) -> str:
    if abs(value) < 1_000:
        return f"${value:,.4f}" if 0 < abs(value) < 0.1 else f"${value:,.2f}"
    scales = ((1e12, "trillion"), (1e9, "billion"))
    words = next((f" ({value / scale:.2f} {name})" for scale, name in scales if abs(value) >= scale), "")
    return f"${value:,.0f}{words}"


def grouped(value: Scalar) -> str:
    """A number with commas between its thousands and at most three decimals; anything else as it is."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _keys(outcome: Outcome) -> list[Key]:
    return [key_of(outcome, name) for name in outcome.shown]


def key_of(outcome: Outcome, name: str) -> Key:
    """The key of a statement's rows that is called so; one of plain text where its function has none."""
    return (outcome.function.exact_keys.get(name) if outcome.function else None) or Key(name)


def _function(outcome: Outcome) -> Function:
    assert outcome.function is not None  # noqa: S101 - callers have checked
    return outcome.function


def _names(domain: Domain, outcome: Outcome) -> str:
    return " and ".join(domain.wording.names(outcome))


def _in(outcome: Outcome) -> str:
    # A window that was asked for by its dates is labelled by them once, not "A to B (A to B)".
    halves = [(label, label[: (len(label) - 3) // 2]) for label in outcome.windows]
    labels = [half if label == f"{half} ({half})" else label for label, half in halves]
    return f" ({', '.join(labels)})" if labels else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cut(text: str, chars: int) -> str:
    """A text up to the end of an item within so many characters."""
    if len(text) <= chars:
        return text
    kept = text[:chars]
    end = max(kept.rfind("; "), kept.rfind(". "), kept.rfind("\n"))
    return (kept[:end] if end > chars // 2 else kept.rpartition(" ")[0]) + " ... (cut to fit)"
