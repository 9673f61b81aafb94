"""Questions read by a catalogue alone: domains drafted from CSV, loaded and asked; the questions are data beside it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.rules import RuleWriter
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter
from services.kg.outcome import Outcome
from services.kg.settle import settle
from services.kg.verbalize import verbalize
from tests.unit.kg.library import drafted_graph

NOW = datetime(2026, 11, 22, tzinfo=UTC)
QUESTIONS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
ANSWERS = {(one["domain"], question): values for one in QUESTIONS for question, values in one["answers"].items()}


@dataclass(frozen=True)
class DraftedDomain:
    """A drafted domain to ask."""

    writer: RuleWriter
    executor: Executor
    domain: str

    def program(self, question: str) -> str:
        return self.writer.program(question, NOW, self.domain)

    def outcomes(self, question: str) -> list[Outcome]:
        return self.executor.execute(self.program(question), domain=self.domain, query_time=NOW, seconds=5.0)

    def values(self, question: str) -> list[Any]:
        """The values that the program's statements show, statement by statement."""
        outcomes = self.outcomes(question)
        assert {one.status for one in outcomes} == {"ok"}, [one.message for one in outcomes]
        return [
            one.value if one.value is not None else [row.get(one.shown[-1]) for row in one.rows] for one in outcomes
        ]

    def facts(self, question: str) -> list[str]:
        """The outcomes in words."""
        return verbalize(self.outcomes(question), self.executor.catalogue.domains, NOW.date(), max_tokens=100)

    def settled(self, question: str) -> str:
        """What the outcomes settle; empty where that is nothing."""
        catalogue = self.executor.catalogue
        settled = settle(question, self.outcomes(question), lexicons(catalogue), by_rules=True)
        return settled.answer if settled else ""


Drafts = Callable[[str], DraftedDomain]  # domains by name


@contextmanager
def drafted(folder: Path, name: str, data: Path | None = None) -> Iterator[DraftedDomain]:
    """A drafted domain of `library.py`, or of the files in `data`, loaded."""
    with drafted_graph(folder, name, data) as (engine, catalogue):
        names = NameIndex(engine, catalogue)
        writer = RuleWriter(catalogue, Spotter(engine, catalogue), Values(engine), names)
        yield DraftedDomain(writer, Executor(engine, names, catalogue), name)


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drafts]:
    """Domains by name, each drafted when it is asked first."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(drafted(tmp_path_factory.mktemp(name), name)))


def questions(kind: str) -> list[tuple[str, str]]:
    """The domain and the text of the questions of a kind."""
    return [(section["domain"], question) for section in QUESTIONS for question in section.get(kind, ())]


def comparable(statements: list[Any]) -> list[Any]:
    """The values of each statement in order; a number of several rows with two decimals."""
    return [sorted(one) if isinstance(one, list) else round(one, 2) for one in statements]


@pytest.mark.parametrize(("domain", "question"), ANSWERS)
def test_questions_are_answered(drafts: Drafts, domain: str, question: str) -> None:
    assert comparable(drafts(domain).values(question)) == comparable(ANSWERS[domain, question])


@pytest.mark.parametrize(("domain", "question"), questions("none"))
def test_what_is_not_understood_word_by_word_gets_no_program(drafts: Drafts, domain: str, question: str) -> None:
    assert drafts(domain).program(question) == "none"


@pytest.mark.parametrize(("domain", "question"), questions("empty"))
def test_what_no_row_says_gets_no_answer(drafts: Drafts, domain: str, question: str) -> None:
    outcomes = drafts(domain).outcomes(question)
    assert all(not one.rows and one.value is None for one in outcomes), drafts(domain).program(question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the genre of Short Cuts?", "Novel"),
        ("When was Ada Quill born?", "1815-12-10"),
        ("Which books does Ada Quill have?", "Another Way, The Long Way"),
        ("How many books are there?", "6"),
        ("What is the average price of the books?", "$13.79"),
        ("Which book is the most expensive?", "Marbled Paper"),
        ("Is By Night in print?", "yes"),
        ("What is the country of the author of By Night?", "Peru"),
        # A row's values by several keys are none, and "isn't" asks twice.
        ("Tell me about By Night", ""),
        ("Isn't By Night in print?", ""),
        ("Is Short Cuts a novel?", ""),
    ],
)
def test_what_rules_look_up_by_all_words_is_the_answer(drafts: Drafts, question: str, answer: str) -> None:
    assert drafts("library").settled(question) == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Did Mira Holt start before Odo Pell?", "yes"),
        ("Was Odo Pell hired after Pia Ross?", "no"),
        ("Was Aquila acquired later than Cygnet?", "no"),
        ("Who started first, Mira Holt or Pia Ross?", "Mira Holt"),
        ("Which of them was acquired earlier, Aquila or Cygnet?", "Aquila"),
        ("Has Mira Holt worked here longer than Odo Pell?", "yes"),
        ("What happened to Aquila before Cygnet was acquired?", ""),
        ("Where did Mira Holt start before Odo Pell?", ""),
    ],
)
def test_of_two_days_one_is_before_the_other(drafts: Drafts, question: str, answer: str) -> None:
    assert drafts("observatory").settled(question) == answer


def test_a_facet_refuses_what_its_function_does_not_take(drafts: Drafts) -> None:
    program = 'get_office_team("Tools")["employees"]\nget_office_team(None, "Una Marsh")["employees"]'
    executor = drafts("office").executor
    accepted, refused = executor.execute(program, domain="office", query_time=NOW, seconds=5.0)
    assert {row["full_name"] for row in accepted.rows} == {"Una Marsh", "Vic"}
    assert (refused.rows, refused.message) == ((), "get_employee takes no head")


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Which order has the highest total?", 1006),
        ("Which orders are of 1 May 2023?", 1005),
        ("Which orders have a total above 1500?", 1006),
    ],
)
def test_a_row_that_has_a_number_for_a_name_shows_its_other_keys(drafts: Drafts, question: str, number: int) -> None:
    (outcome,) = drafts("shop").outcomes(question)
    assert [row["order_id"] for row in outcome.rows] == [number]
    assert {"buyer", "status", "total"} <= set(outcome.shown)


@pytest.mark.parametrize(
    ("question", "notes"),
    [
        (
            "Which two ships have the most engine cores?",
            {"the same engine cores: gale", "the same engine cores: tug02"},
        ),
        ("Which shipyard has the most ships?", {""}),
        ("What is the second highest number of engine cores?", {""}),  # the value is the same, whichever has it
    ],
)
def test_what_is_level_with_the_last_of_an_order_is_noted(drafts: Drafts, question: str, notes: set[str]) -> None:
    (outcome,) = drafts("yard").outcomes(question)
    assert outcome.status == "ok"
    assert "; ".join(outcome.notes) in notes


def test_a_row_without_a_name_is_worded_without_one(drafts: Drafts) -> None:
    assert drafts("guild").facts("What is Eyk's wage?") == ["Workers (1): wage 180 EUR."]


def test_who_was_born_on_a_day_has_an_age(drafts: Drafts) -> None:
    (text,) = drafts("academy").facts("How old is Wim Aker?")
    assert "aged 16 on 2026-11-22" in text
