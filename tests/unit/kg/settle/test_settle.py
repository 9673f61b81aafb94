"""Facts that settle a question by themselves, and the many that only seem to."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proto.kg import KgEntity, KgSettled
from services.kg.domains import CATALOGUE
from services.kg.generate.rules.lexicon import lexicons
from services.kg.outcome import Outcome
from services.kg.settle import settle

LAST_WEEK = ("last week (2023-05-01 to 2023-05-05)",)
FUNCTION = re.compile(r"(?:ALL )?(?:(LEN|SUM|AVG|MIN|MAX) )?(get_\w+)\(")
SHOWN = re.compile(r'\["(\w+)"\]')
DOMAINS = {function.name: function.domain for function in reversed(CATALOGUE.functions)}


def settled_by(question: str, outcomes: tuple[Outcome, ...]) -> KgSettled | None:
    return settle(question, outcomes, lexicons(CATALOGUE))


def statement(
    source: str,
    name: str,
    rows: list[dict[str, Any]] | None = None,
    *,
    value: Any = None,
    windows: tuple[str, ...] = (),
    count: int | None = None,
    notes: tuple[str, ...] = (),
) -> Outcome:
    rows = rows or []
    match = FUNCTION.match(source)
    assert match is not None
    function, shown = CATALOGUE.function(match[2], DOMAINS[match[2]]), tuple(SHOWN.findall(source))
    total, aggregate = len(rows) if count is None else count, (match[1] or "").lower()
    entities = (KgEntity(name=name, kind="thing", surface=name.title(), entity_ids=(name,)),)
    outcome = Outcome(source, "ok", function, shown, tuple(rows), total, value, aggregate, entities, windows)
    return replace(outcome, notes=notes)


def born(name: str, day: str) -> Outcome:
    return statement(f'get_person("{name}")["birthday"]', name, [{"name": name, "birthday": day}])


def film(name: str, key: str, value: object) -> Outcome:
    return statement(f'get_movie("{name}")["{key}"]', name, [{"title": name, "year": 1990, key: value}])


def cap(name: str, value: float) -> Outcome:
    return statement(f'get_stock_market_cap("{name}")', name, [{"company": name, "ticker": name, "value": value}])


def oscars(name: str, *awards: tuple[int, str], value: int | None = None) -> Outcome:
    rows = [{"film": "x", "year": year, "category": category, "name": name, "winner": 1} for year, category in awards]
    program = f'LEN get_movie_person_oscar(None, "{name}", eq(winner, true))'
    return statement(program, name, rows, value=len(rows) if value is None else value)


def wins(name: str, games: int, won: int, *, letter: str = "W", side: str = "") -> Outcome:
    where = f'eq(venue, "{side.title()}"), ' if side else ""
    totals = {"games": games, "wins": won, "losses": games - won, "home_wins": won // 2, "home_losses": 3}
    program = f'LEN get_nba_on_date("{name}", "2019") where({where}eq(result, "{letter}"))'
    return statement(program, name, [totals], windows=("2019 (2019-01-01 to 2019-12-31)",), count=0)


def price(name: str, key: str, value: float) -> Outcome:
    rows = [{"company": name, "ticker": name, "date": "2023-05-02", key: value}]
    source = f'get_stock_price("{name}", "yesterday")["{key}"]'
    return statement(source, name, rows, windows=("yesterday (2023-05-02)",))


def combined(how: str, name: str, key: str, value: float) -> Outcome:
    rows = [{"company": name, "ticker": name, "date": "2023-05-02", key: value}]
    source = f'{how} get_stock_price("{name}", "last week")["{key}"]'
    return statement(source, name, rows, value=value, windows=LAST_WEEK)


def directed(name: str, count: int) -> Outcome:
    notes = (f"the source counts {count} and lists 0",)
    program = f'LEN get_movie_person_crew(None, "{name}", eq(job, "Director"))'
    return statement(program, name, value=count, count=count, notes=notes)


ADA, BEN = born("ada moss", "1970-03-01"), born("ben ito", "1982-11-20")
OLD, NEW = film("tin harbour", "release_date", "1991-05-01"), film("salt road", "release_date", "2004-09-10")
LENGTHS = (film("tin harbour", "length", 96), film("salt road", "length", 131))
BUDGETS = (film("tin harbour", "budget", 9e6), film("salt road", "budget", 2e6))
REVENUES = (film("tin harbour", "revenue", 9e6), film("salt road", "revenue", 2e7))
OSCARS_WON = (oscars("ada moss", (1999, "A"), (2001, "A")), oscars("ben ito", (1999, "B")))
AN_OSCAR_EACH = (oscars("ada moss", (1999, "A")), oscars("ben ito", (1999, "B")))
RATINGS = (film("tin harbour", "rating", 6.1), film("salt road", "rating", 7.5))
CAPS = (cap("zqa", 5e9), cap("zqb", 6e9))
DIRECTED = (directed("ada moss", 4), directed("ben ito", 9))
WINS = (wins("harbor gulls", 80, 41), wins("hill bears", 80, 39))
LOSSES = (wins("harbor gulls", 80, 41, letter="L"), wins("hill bears", 80, 39, letter="L"))
HOME_LOSSES = wins("harbor gulls", 80, 41, letter="L", side="home")
CLOSED = (price("zqa", "close", 4.1), price("zqb", "close", 4.2))
VOLUMES = (price("zqa", "volume", 10), price("zqb", "volume", 20))
GRAMMY = statement(
    'LEN get_grammy_person("ada moss")', "ada moss", [{"category": "A", "year": 2001, "nominee": "x"}], value=1
)
RISING_DAYS = statement(
    'ALL get_stock_price("zqa", "last week") where(gt(close, open))["date"]',
    "zqa",
    [{"ticker": "ZQA", "date": "2023-05-01"}, {"ticker": "ZQA", "date": "2023-05-04"}],
    windows=LAST_WEEK,
)

SETTLED: list[tuple[str, tuple[Outcome, ...], str]] = [
    # Which of several
    ("who is older, ada moss or ben ito?", (ADA, BEN), "ada moss"),
    ("Who is younger: Ada Moss or Ben Ito?", (ADA, BEN), "ben ito"),
    ("who was born first, ada moss or ben ito?", (ADA, BEN), "ada moss"),
    (
        "is the tern newer than the corrin?",
        (film("MV Tern", "release_date", "2022-01-01"), film("MV Corrin", "release_date", "1988-01-01")),
        "yes",
    ),
    (
        "which is longer, the tern or the corrin?",
        (film("MV Tern", "length", 90), film("MV Corrin", "length", 95)),
        "MV Corrin",
    ),
    ("who among ada moss and ben ito is the younger one?", (ADA, BEN), "ben ito"),
    ("which film came out first, tin harbour or salt road?", (OLD, NEW), "tin harbour"),
    ("which movie was released later, tin harbour or salt road?", (OLD, NEW), "salt road"),
    ("which was released more recently, salt road or tin harbour?", (NEW, OLD), "salt road"),
    ("which of the films tin harbour and salt road is older?", (OLD, NEW), "tin harbour"),
    ("which is longer, tin harbour or salt road?", LENGTHS, "salt road"),
    ("which film is shorter, tin harbour or salt road?", LENGTHS, "tin harbour"),
    ("which movie had the bigger budget, tin harbour or salt road?", BUDGETS, "tin harbour"),
    ("which movie grossed more worldwide, tin harbour or salt road?", REVENUES, "salt road"),
    ("which of the two has the lower rating, tin harbour or salt road?", RATINGS, "tin harbour"),
    ("which company has a larger market cap, zqa or zqb?", CAPS, "zqb"),
    ("which company is worth less now, zqa or zqb?", CAPS, "zqa"),
    ("which has the highest market capitalization: zqa, zqb or zqc?", (*CAPS, cap("zqc", 1e9)), "zqb"),
    ("who won more oscars, ada moss or ben ito?", OSCARS_WON, "ada moss"),
    ("who has fewer academy awards, ada moss or ben ito?", OSCARS_WON, "ben ito"),
    ("which director has the most movies, ada moss or ben ito?", DIRECTED, "ben ito"),
    ("who had more wins in 2019: harbor gulls or hill bears?", WINS, "harbor gulls"),
    ("who had fewer losses in 2019: harbor gulls or hill bears?", LOSSES, "harbor gulls"),
    ("which stock closed higher yesterday, zqa or zqb?", CLOSED, "zqb"),
    ("which one had the lower trading volume on the last trading day, zqa or zqb?", VOLUMES, "zqa"),
    ("was ada moss or ben ito born first?", (ADA, BEN), "ada moss"),
    ("which of our films goes longer, tin harbour or salt road?", LENGTHS, "salt road"),
    # Yes or no
    ("is ada moss older than ben ito?", (ADA, BEN), "yes"),
    ("is ben ito older than ada moss?", (BEN, ADA), "no"),
    ("was tin harbour released earlier than salt road?", (OLD, NEW), "yes"),
    ("did salt road gross more than tin harbour?", REVENUES, "yes"),
    ("did salt road gross less than tin harbour?", REVENUES, "no"),
    ("does zqa have a higher market cap than zqb?", CAPS, "no"),
    ("does zqa have a higher market cap than zqb?", (cap("zqa", 6e9), cap("zqb", 6e9)), "no"),
    ("has ada moss won more oscars than ben ito?", AN_OSCAR_EACH, "no"),
    ("did salt road gross more than $15 million?", (film("salt road", "revenue", 2e7),), "yes"),
    ("did salt road gross more than 25,000,000?", (film("salt road", "revenue", 2e7),), "no"),
    ("did salt road have a budget of under $3 million?", (film("salt road", "budget", 2e6),), "yes"),
    ("has ada moss won at least 2 oscars?", (oscars("ada moss", (1999, "A"), (2001, "A")),), "yes"),
    ("has ada moss won more than 2 oscars?", (oscars("ada moss", (1999, "A"), (2001, "A")),), "no"),
    # Differences
    ("what is the age difference between ada moss and ben ito?", (ADA, BEN), "12 years"),
    ("how many years older is ada moss than ben ito?", (ADA, BEN), "12 years"),
    ("how many years younger is ben ito than ada moss?", (ADA, BEN), "12 years"),
    ("what is the difference between the budget of tin harbour and salt road?", BUDGETS, "$7,000,000"),
    ("how much longer is salt road than tin harbour?", LENGTHS, "35 minutes"),
    ("how much more did salt road gross than tin harbour?", REVENUES, "$11,000,000"),
    ("how many more oscars has ada moss won than ben ito?", OSCARS_WON, "1"),
    # Ages
    ("how old was ada moss when salt road came out?", (ADA, NEW), "34"),
    ("what was ada moss's age at the time of salt road's release?", (ADA, NEW), "34"),
    ("how old was ben ito when tin harbour was released?", (BEN, OLD), "8"),
    # Counts
    ("how many oscars has ada moss won?", (oscars("ada moss", (1999, "A"), (2001, "A")),), "2"),
    ("how many movies has ada moss directed?", (directed("ada moss", 14),), "14"),
    ("how many games did harbor gulls win in 2019?", (wins("harbor gulls", 80, 41),), "41"),
    ("how many home games did harbor gulls lose in 2019?", (HOME_LOSSES,), "3"),
    ("how many grammys has ada moss won until 2019?", (GRAMMY,), "1"),
    # Averages and totals
    ("what was the average closing price of zqa last week?", (combined("AVG", "zqa", "close", 12.5),), "$12.50"),
    ("what was the total trading volume of zqa last week?", (combined("SUM", "zqa", "volume", 500),), "500 shares"),
    ("what is the combined budget of tin harbour and salt road?", BUDGETS, "$11,000,000"),
    ("what is the average length of tin harbour and salt road?", LENGTHS, "113.5 minutes"),
    # Lists
    ("on which days did zqa's stock close higher last week?", (RISING_DAYS,), "2023-05-01, 2023-05-04"),
]


@pytest.mark.parametrize(("question", "statements", "answer"), SETTLED)
def test_what_the_facts_settle(question: str, statements: tuple[Outcome, ...], answer: str) -> None:
    settled = settled_by(question, statements)
    assert settled is not None
    assert settled.answer == answer
    assert settled.inputs


def test_euros_are_not_compared_with_dollars() -> None:
    for amount, is_settled in (("$100", True), ("€100", False), ("£100", False)):
        question = f"is the market cap of zqa more than {amount} billion?"
        assert (settled_by(question, (cap("zqa", 1.05e11),)) is not None) == is_settled


def test_a_word_that_is_not_understood_settles_nothing() -> None:
    # Lists are held to their program instead.
    for question, statements, _ in SETTLED:
        other = question.replace("?", " underwater?")
        assert "ALL " in statements[0].source or settled_by(other, statements) is None, other


@pytest.mark.parametrize("status", ["stale", "empty", "ambiguous"])
def test_facts_that_are_not_sure_settle_nothing(status: Any) -> None:
    for question, statements, _ in SETTLED:
        doubtful = replace(statements[-1], status=status)
        assert settled_by(question, (*statements[:-1], doubtful)) is None, question


FILM = "which is longer, tin harbour or salt road?"
OLDER = "who is older, ada moss or ben ito?"
OSCARS = "how many oscars has ada moss won?"
UNSETTLED: list[tuple[str, tuple[Outcome, ...]]] = [
    # A side is missing, unknown, or not in the question
    (OLDER, (ADA,)),
    ("who is older, ada moss or cy dahl?", (ADA, BEN)),
    (OLDER, (ADA, ADA)),
    (OLDER, (ADA, born("ben ito", "1982"))),
    (OLDER, (ADA, statement('get_person("ben ito")["birthday"]', "ben ito", []))),
    (OLDER, (ADA, statement('get_person("ben ito")["birthday"]', "ben ito", [{"birthday": None}]))),
    (OLDER, ()),
    # A tie
    (OLDER, (ADA, born("ben ito", "1970-03-01"))),
    ("who won more oscars, ada moss or ben ito?", AN_OSCAR_EACH),
    # Different things, or of a kind that does not compare
    ("which is older, tin harbour or ben ito?", (OLD, BEN)),
    (FILM, (film("tin harbour", "length", 96), film("salt road", "budget", 131))),
    ("who is taller, ada moss or ben ito?", (ADA, BEN)),
    (FILM, (film("tin harbour", "length", "long"), film("salt road", "length", 1))),
    ("which stock closed higher yesterday, zqa or zqb?", (price("zqa", "close", 4.1), price("zqb", "open", 4.2))),
    ("was ada moss or ben ito older than cy dahl?", (ADA, BEN)),
    # No direction, or two
    ("who is it, ada moss or ben ito, by age?", (ADA, BEN)),
    ("which has more or fewer oscars, ada moss or ben ito?", (oscars("ada moss", (1999, "A")), oscars("ben ito"))),
    ("which is the better film by rating, tin harbour or salt road?", RATINGS),
    # The question is about something else than the program
    ("which has more capacity, zqa or zqb?", CAPS),
    ("which film had the higher grossing weekend, tin harbour or salt road?", REVENUES),
    ("how many oscar nominations has ada moss?", (oscars("ada moss", (1999, "A")),)),
    ("how many movies did ada moss direct with ben ito?", (directed("ada moss", 4),)),
    ("how many movies did ada moss direct in 2004?", (directed("ada moss", 4),)),
    ("how many oscars has ada moss won since 2000?", (oscars("ada moss", (1999, "A"), (2001, "A")),)),
    ("how many grammys has ada moss won until 2000?", (GRAMMY,)),
    # Counted twice, or not all of it
    (OSCARS, (oscars("ada moss", (1999, "A"), (1999, "A")),)),
    (OSCARS, (replace(oscars("ada moss", (1999, "A")), notes=("names two people",)),)),
    # Negations
    ("who is not older, ada moss or ben ito?", (ADA, BEN)),
    ("isn't ada moss older than ben ito?", (ADA, BEN)),
    # False premises are not for rules
    ("how many years older is ben ito than ada moss?", (ADA, BEN)),
    ("how much longer is tin harbour than salt road?", LENGTHS),
    ("how old was ben ito when the harbour came out?", (BEN, film("the harbour", "release_date", "1971-01-01"))),
    # Some say one number, some another
    ("what is the age difference between ada moss and ben ito?", (ADA, born("ben ito", "1982-01-20"))),
    # Sums of what is no number, averages of two things
    ("what is the combined age of ada moss and ben ito?", (ADA, BEN)),
    ("what was the total volume of zqa last week?", (combined("AVG", "zqa", "volume", 5),)),
    ("what was the highest average closing price of zqa last week?", (combined("AVG", "zqa", "close", 5),)),
    # A number in the question that is no bound
    ("did salt road gross more than €15 million?", (film("salt road", "length", 2e7),)),
    ("did salt road gross $15 million?", (film("salt road", "revenue", 2e7),)),
    # Plain look-ups
    ("when was tin harbour released?", (OLD,)),
    ("who directed tin harbour?", (OLD,)),
    ("", (OLD,)),
]


@pytest.mark.parametrize(("question", "statements"), UNSETTLED)
def test_what_they_do_not_settle(question: str, statements: tuple[Outcome, ...]) -> None:
    assert settled_by(question, statements) is None


@given(
    st.text(max_size=120),
    st.lists(st.sampled_from([ADA, BEN, OLD, NEW, cap("zqa", 1.0), directed("ada moss", 3)]), max_size=4),
)
def test_any_question_is_settled_or_not(question: str, statements: list[Outcome]) -> None:
    settled = settled_by(question, tuple(statements))
    assert settled is None or (settled.answer and "\n" not in settled.answer)


@given(st.dates().filter(lambda day: day.year > 1800), st.dates().filter(lambda day: day.year > 1800))
def test_the_two_ways_to_ask_agree(first: Any, second: Any) -> None:
    one, other = born("ada moss", first.isoformat()), born("ben ito", second.isoformat())
    choice = settled_by(OLDER, (one, other))
    answer = settled_by("is ada moss older than ben ito?", (one, other))
    assert answer is not None
    assert (choice is not None and choice.answer == "ada moss") == (answer.answer == "yes")
