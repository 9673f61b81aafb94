"""Questions read by a catalogue alone: a domain drafted from CSV, loaded and asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.draft import draft
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.rules import RuleWriter
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spotter
from services.kg.load import load
from services.kg.outcome import Outcome
from services.kg.store.engine import open_store
from services.kg.verbalize import verbalize
from tests.unit.kg.library import TABLES, tables_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass(frozen=True)
class Asking:
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


def domain_of_tests(name: str) -> Any:
    """A fixture: a domain that the tests of the module share."""

    @pytest.fixture(scope="module")
    def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
        with drafted(tmp_path_factory.mktemp(name), name) as asking:
            yield asking

    return shared


asking = domain_of_tests("library")
ferries = domain_of_tests("ferries")
academy = domain_of_tests("academy")
office = domain_of_tests("office")
shop = domain_of_tests("shop")
yard = domain_of_tests("yard")
tours = domain_of_tests("tours")
almanac = domain_of_tests("almanac")
coast = domain_of_tests("coast")
guild = domain_of_tests("guild")


def told(asking: Asking, question: str) -> list[str]:
    """The facts of a question in words."""
    return verbalize(asking.outcomes(question), asking.executor.catalogue.domains, NOW.date(), max_tokens=100)


def in_order(values: list[Any]) -> list[Any]:
    return [sorted(one) if isinstance(one, list) else one for one in values]


@contextmanager
def drafted(folder: Path, name: str) -> Iterator[Asking]:
    """A domain as it is drafted from the files, loaded."""
    draft(name, tables_of(name), folder / "domains")
    catalogue = read_catalogue(CATALOGUE, folder / "domains")
    url = f"sqlite:///{folder / 'kg.sqlite'}"
    writable = open_store(url, read_only=False)
    load(TABLES / name, writable, catalogue=catalogue)
    writable.dispose()
    engine = open_store(url)
    names = NameIndex(engine, catalogue)
    writer = RuleWriter(catalogue, Spotter(engine, catalogue), Values(engine), names)
    yield Asking(writer, Executor(engine, names, catalogue), name)
    engine.dispose()


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What is the genre of Short Cuts?", [["Novel"]]),
        ("how heavy is The Long Way?", [[0.4]]),
        ("Who is the author of By Night?", [["Cy Page"]]),
        ("What are the genre and the price of Loose Leaves?", [[15]]),
        ("When was Ada Quill born?", [["1815-12-10"]]),
        ("What is the genre of Shrot Cuts?", [["Novel"]]),
        ("How many books does Ada Quill have?", [[2]]),
        ("How many books are there?", [6]),
        ("Which books does Ada Quill have?", [["The Long Way", "Another Way"]]),
        ("Which book is the most expensive?", [["Marbled Paper"]]),
        ("What are the two cheapest books?", [["By Night", "Another Way"]]),
        ("What is the second heaviest book?", [["Another Way"]]),
        ("Which books have a price above 14?", [["Marbled Paper", "Loose Leaves"]]),
        ("Which essay is the most expensive book?", [["Marbled Paper"]]),
        ("Which books are from before 1900?", [["Another Way", "The Long Way"]]),
        ("Which books are from between 1930 and 1980?", [["By Night", "Short Cuts"]]),
        ("Which books are from 1999?", [["Marbled Paper"]]),
        ("What is the oldest book?", [["The Long Way"]]),
        ("What is the average price of the books?", [pytest.approx(13.79, abs=0.01)]),
        ("Which is heavier, By Night or Marbled Paper?", [[0.2], [1.2]]),
        ("How much heavier is Marbled Paper than By Night?", [1.0]),
        ("What is the difference in price between By Night and Short Cuts?", [-5]),
        ("What is the country of the author of By Night?", [["Cy Page"], ["Peru"]]),
        ("Which authors are from Norway?", [["Ada Quill", "Bo Reed"]]),
        ("Which books are not in print?", [["Short Cuts", "Loose Leaves"]]),
        ("Is By Night in print?", [[1]]),
        ("Which book has 700 copies?", [["Marbled Paper"]]),
        ("How many novels are there?", [2]),
        ("Which of the essays is the most expensive?", [["Marbled Paper"]]),
        ("Is Short Cuts a novel?", [["Novel"]]),
        ("Which has a higher price, By Night or Short Cuts?", [[7], [12]]),
    ],
)
def test_questions_are_answered(asking: Asking, question: str, values: list[Any]) -> None:
    assert in_order(asking.values(question)) == in_order(values)


@pytest.mark.parametrize(
    "question",
    [
        "Who illustrated The Long Way?", "What is the genre of Wuthering Heights?",
        "How many pages does Short Cuts have?", "Which book is the most famous?",
        "What is the price of The Long Way in 1999?", "Which books have more than 300 pages?",
        "Who wrote the price of the author?", "What is the genre of Norway?", "", "?", '") drop table book',
        "the the the",
    ],
)  # fmt: skip
def test_what_is_not_understood_word_by_word_gets_no_answer(asking: Asking, question: str) -> None:
    assert all(not one.rows and one.value is None for one in asking.outcomes(question)), asking.program(question)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What is the salary of Una Marsh?", [[52_000]]),
        ("What is the salary of vic?", [[31_000]]),
        ("What is Vic's salary?", [[31_000]]),
        ("What is the average salary in Tools?", [41_500]),
        ("Which employees have a salary above 50000 euros?", [["Wanda Peel", "Una Marsh"]]),
        ("Which employees are trainees?", [["Vic"]]),
        ("Who are the employees of Tools?", [["Una Marsh", "Vic"]]),
        ("Who is the head of Paint?", [["Wanda Peel"]]),
        ("Which team is Una Marsh's?", [["Tools"]]),
        ("Which teams does Una Marsh work for?", [["Tools"]]),  # and not those whose head she is
        ("Who works in Tools?", [["Una Marsh", "Vic"]]),
        ("Which team was founded last?", [["Glass"]]),
        ("When was Glass founded?", [["2008-09-10"]]),
        ("How many vans have 6 wheels?", [1]),
        ("How many wheels does the Ox have?", [[4, 6]]),
    ],
)
def test_a_draft_answers_what_its_columns_say(office: Asking, question: str, values: list[Any]) -> None:
    assert in_order(office.values(question)) == in_order(values)


def test_a_facet_refuses_what_its_function_does_not_take(office: Asking) -> None:
    program = 'get_office_team("Tools")["employees"]\nget_office_team(None, "Una Marsh")["employees"]'
    taken, refused = office.executor.execute(program, domain="office", query_time=NOW, seconds=5.0)
    assert {row["full_name"] for row in taken.rows} == {"Una Marsh", "Vic"}
    assert (refused.rows, refused.message) == ((), "get_employee takes no head")


def test_what_no_column_says_is_not_answered(office: Asking) -> None:
    assert [one.status for one in office.outcomes("What are the vans used for?")] == ["no_program"]


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("How many guests came back?", [5]),
        ("How many first class guests were there?", [2]),
        ("How many women came back?", [4]),
        ("How many guests were older than 60?", [2]),
        ("What is the average age of third class guests?", [38]),
        ("How many weddings were there in 1946?", [[2291]]),
        ("In which year were there the most partings?", [[1946]]),
        ("What is the status of order 1005?", [["open"]]),
        ("What is the total of order no. 1006?", [[1500.5]]),
        ("How many orders were there in 2023?", [2]),
        ("How many orders were there in June 2023?", [1]),
        ("How many orders were there after May 2023?", [2]),
        ("How many orders were there between May 2023 and June 2023?", [2]),
        ("How many orders were there today?", [0]),
        ("Which status has the most orders?", [[2]]),  # the count beside it
        ("Which buyer had the most orders in 2023?", [[1]]),
        ("Which quarter has the highest percent 2024?", [["first"]]),
        ("How many orders over 1000 euros are there?", [1]),
        ("Which products are in order 1006?", [["Oak Desk", "Wall Clock"]]),
        ("What does the Oak Desk cost?", [[420]]),
        ("Which products cost less than 200 euros?", [["Wall Clock"]]),
    ],
)
def test_tables_as_teams_have_them_are_asked_by_number_year_and_value(
    shop: Asking, question: str, values: list[Any]
) -> None:
    assert in_order(shop.values(question)) == in_order(values)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Which order has the highest total?", 1006),
        ("Which orders are of 1 May 2023?", 1005),
        ("Which orders have a total above 1500?", 1006),
    ],
)
def test_a_row_that_has_a_number_for_a_name_is_told_with_what_is_known_of_it(
    shop: Asking, question: str, number: int
) -> None:
    (outcome,) = shop.outcomes(question)
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
def test_what_is_level_with_the_last_of_an_order_is_told(yard: Asking, question: str, notes: set[str]) -> None:
    (outcome,) = yard.outcomes(question)
    assert outcome.status == "ok"
    assert "; ".join(outcome.notes) in notes


@pytest.mark.parametrize(
    "question",
    [
        "What is the status of order 2050?",  # is no order, and no year
        "How many orders with more than 1 pieces are there?",  # an order is not as many rows as its lines
        "How many guests age?",
        "How many orders were there in May 2023 or January 2024?",  # neither of the two alone
    ],
)
def test_a_count_of_something_else_is_no_answer(shop: Asking, question: str) -> None:
    assert shop.program(question) == "none"


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("When was gale launched?", [["1899"]]),
        ("When did tug02 launch?", [["1958"]]),
        ("Which ships were launched before 1940?", [["tug01", "gale"]]),
        ("What is the oldest ship?", [["gale"]]),
        ("Who owns tug01?", [["Dr. Weiss"]]),
        ("Which ships does Dr. Weiss own?", [["gale", "tug01"]]),
        ("How many cores does mist have?", [[8]]),
        ("What is the rating of tug01?", [["B+"]]),
        ("Which ships have rating A+?", [["tug02"]]),
        ("How many ships are female?", [2]),
        ("Which ships are in Norway?", [["tug01", "tug02"]]),
        ("Which ships are in Singapore?", [["gale", "mist"]]),  # the city and the country
        ("What is the fuel capacity of the North Slip ship?", [[9000]]),
        ("Which race had the most spectators?", [[4500]]),
        ("Which race was on 2025-06-11?", [["mist - tug01, 2025-06-11"]]),
        ("How many races were held in June 2024?", [1]),
        ("How many spectators did the race on 2025-06-11 have?", [[900]]),
        ("Which repairs have not been finished?", [["R-2", "R-3"]]),
        ("How many repairs were started in 2024?", [2]),
        ("Which master had the most repairs?", [[2]]),
        ("Which master is the most common?", [[2]]),
        ("List all ships and their owners.", [["A. Lund", "B. Holm", "Dr. Weiss", "Dr. Weiss"]]),
    ],
)
def test_a_draft_knows_verbs_years_and_what_lies_behind_a_join(yard: Asking, question: str, values: list[Any]) -> None:
    assert in_order(yard.values(question)) == in_order(values)


@pytest.mark.parametrize(
    "question",
    [
        "When was tug01 owned?",  # a date is wanted, and there is one of something else
        "Which repairs are still start?",
        "Which ships rating?",
        "How many races did gale win?",
    ],
)
def test_a_key_that_narrows_nothing_lists_nothing(yard: Asking, question: str) -> None:
    assert yard.program(question) == "none"


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Who is the guide of Seal Watch?", [["Ben Orr"]]),
        ("Which trips does Ben Orr guide?", [["Cave Row", "Seal Watch"]]),
        ("Who is Cleo Pim's manager?", [["Ada Lum"]]),
        ("Who manages Ben Orr?", [["Ada Lum"]]),
        ("Where does Dusk Sail start?", [["Mole Head"]]),
        ("Which trips end at Old Quay?", [["Dusk Sail"]]),
        ("When was Seal Watch closed?", [["2024-03-02"]]),
        ("Which trips are closed?", [["Seal Watch"]]),
        ("Which trips cost more than 40 dollars?", [["Dusk Sail", "Seal Watch"]]),
        ("Which trips allow dogs?", [["Cave Row", "Seal Watch"]]),
        ("Which trip had the most riders in 2024?", [["Seal Watch"]]),
        ("How many riders did Cave Row have in 2024?", [[95]]),
        ("Who speaks Greek?", [["Cleo Pim"]]),
        ("Who joined last?", [["Cleo Pim"]]),
        ("Which is older, North Pier or Old Quay?", [["1901"], ["1888"]]),
        ("Which customer made visit V902?", [["Mina Roth"]]),
    ],
)
def test_a_draft_joins_by_role_and_heeds_who_is_asked(tours: Asking, question: str, values: list[Any]) -> None:
    assert in_order(tours.values(question)) == in_order(values)


@pytest.mark.parametrize(
    "question",
    [
        "Who closed Seal Watch?",  # neither its status nor the day
        "Who opened Old Quay?",
        "How old is Old Quay?",  # the year of its opening is no age
        "What was Seal Watch paid in?",
        "How many riders did Cave Row have in 2019?",
        "Where was Ada Lum joined?",
    ],
)
def test_a_word_that_asks_for_something_else_gets_no_answer(tours: Asking, question: str) -> None:
    assert tours.program(question) == "none"


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("How much did Low Weir generate in 2023?", [[130]]),
        ("Which mill generated the most in 2023?", [["Black Fen"]]),
        ("In which year did Low Weir generate the most?", [[2023]]),
        ("What was the average generation of Low Weir?", [120]),
        ("What fuel does Black Fen burn?", [["Coal"]]),
        ("How many megawatts does Ash Top have?", [[220]]),
        ("When was Skua launched?", [["2019-02-11"]]),
        ("Which agency launched Skua?", [["BSO"]]),
        ("Which carrier launched Tern 1?", [["Auk 5"]]),
        ("How many probes launched after 2015?", [2]),
        ("How much did Plover cost?", [[75]]),
        ("Who won East Ward in 2022?", [["Jon Hale"]]),
        ("Who ran in East Ward in 2018?", [["Ida Voss", "Jon Hale"]]),
        ("How many votes did Ida Voss get in 2018?", [2100]),
        ("How many votes were cast in East Ward in 2018?", [4000]),
        ("How many votes did Reform get in 2022?", [4700]),
        ("What percentage did Jon Hale get in 2018?", [[47.5]]),
        ("What share of the vote did Jon Hale win in 2022?", [[55.3]]),
        ("How many candidates stood in East Ward in 2022?", [2]),
        ("How long does Marsh Pot take to cook?", [[120]]),
        ("How many people does Fen Broth serve?", [[4]]),
        ("How much parsnip is in Marsh Pot?", [[250]]),
        ("How many people died in the 2010 eruption of Old Spit?", [[3]]),
        ("How many people were evacuated when Hiss erupted in 2010?", [[100]]),
        ("How often has Old Spit erupted?", [2]),
        ("When did the 2023 eruption of Old Spit end?", [["2023-03-15"]]),
        ("When did Old Spit last erupt?", [["2023-03-11"]]),
        ("What is the longest episode?", [["Slack Water"]]),
        ("Which episode was downloaded the most?", [["Spring Tide"]]),
        ("How many episodes came out in 2020?", [2]),
        ("Which episodes feature Una Berg?", [["Candle", "Slack Water"]]),
        ("How big is 9 Quay Lane?", [[82]]),  # its area, and not its rooms
        ("Who owns 12 Elm Row?", [["Hal Moe"]]),
    ],
)
def test_deeds_and_what_rows_of_one_time_have_together(almanac: Asking, question: str, values: list[Any]) -> None:
    assert in_order(almanac.values(question)) == in_order(values)


@pytest.mark.parametrize(
    "question",
    [
        "Which agency cancelled Skua?",
        "Who launched Plover?",
        "How much did Ash Top earn in 2022?",
        "How much parsnip is in Ash Top?",
        "Who visited 12 Elm Row?",
    ],
)
def test_another_deed_gets_no_answer(almanac: Asking, question: str) -> None:
    assert almanac.program(question) == "none"


def test_a_verb_asks_for_its_doer_though_a_table_is_called_by_a_form_of_it(tmp_path: Path) -> None:
    with drafted(tmp_path, "gallery") as asking:
        assert asking.values("Who painted Blue Door?") == [["Mira Sol"]]
        assert in_order(asking.values("Which paintings did Mira Sol paint?")) == [["Blue Door", "Red Boats"]]
        assert asking.values("How many paintings are there?") == [3]


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("When does the Gannet depart?", [["08:15"]]),
        ("What time does the Tirrick arrive?", [["14:30"]]),
        ("Where does the Bonxie leave from?", [["Fethaland"]]),
        ("How many ferries go from Skaw to Lunna?", [2]),
        ("How many ferries go from Lunna to Fethaland?", [0]),
        ("When was the Solan first painted?", [["2008"]]),
        ("How many passengers does the Bonxie carry?", [[97]]),
        ("Which ferries carry more than 140 passengers?", [["Gannet", "Shearwater"]]),
    ],
)
def test_times_of_day_and_both_ends_of_a_way(ferries: Asking, question: str, values: list[Any]) -> None:
    assert in_order(ferries.values(question)) == in_order(values)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What mark did Wim Aker get in Weaving?", [[88]]),
        ("What is the average mark in Weaving?", [92.5]),
        ("Who scored below 70 in Knots?", [["Wim Aker"]]),
        ("Which brook flows into the Ulva?", [["Rill"]]),
        ("Where does the Rill flow to?", [["Ulva"]]),
        ("What is the flow of the Ulva?", [[40]]),
        ("Which brooks have no weirs?", [["Ulva"]]),
        ("Who maintains knotter?", [["Jan Eik"]]),
        ("Which tools are written in Python?", [["loomy"]]),
        ("When was loomy 1.10 released?", [["2021-02-03"]]),
        ("How many bugs were fixed in loomy 1.0?", [[4]]),
        ("Is loomy 1.0 a breaking release?", [[True]]),
        ("What is the price of rye?", [[0.9]]),
        ("Which crop has the highest price?", [["spelt"]]),
        ("Is bill B-1 settled?", [[True]]),
        ("What is the highest sum?", [[120]]),
    ],
)
def test_columns_called_as_their_table_and_numbers_by_what_they_measure(
    academy: Asking, question: str, values: list[Any]
) -> None:
    assert in_order(academy.values(question)) == in_order(values)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What is Ada Moor's wage?", [[310]]),
        ("Who earns the most?", [["Cy Vane"]]),
        ("Which guild does Bo Lark belong to?", [["Elmen"]]),
        ("How many workers does the Oaken have?", [[3]]),
        ("Which workers are farriers?", [["Ada Moor", "Cy Vane"]]),
        ("Who works remotely?", [["Ada Moor"]]),
        ("When did Bo Lark join?", [["2004"]]),
        ("How much prize money has Ashen won?", [[810]]),
        ("Who does Di Moor report to?", [["Bo Lark"]]),
        ("Who reports to Ada Moor?", [["Bo Lark", "Cy Vane"]]),
        ("How many workers report to Bo Lark?", [2]),
        ("Which halls are on the second floor?", [["Gallery", "Loft"]]),
        ("Which hall is the smallest?", [["Loft"]]),
    ],
)
def test_people_of_two_names_and_what_is_joined_by_a_tag(guild: Asking, question: str, values: list[Any]) -> None:
    assert in_order(guild.values(question)) == in_order(values)


def test_a_row_without_a_name_is_told_without_one(guild: Asking) -> None:
    texts = told(guild, "What is Eyk's wage?")
    assert texts == ["Workers (1): wage 180 EUR."]


def test_of_one_thing_that_is_named_none_is_the_first(guild: Asking) -> None:
    assert guild.program("What is the smallest Loft?") == "none"


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Which harbours are closed to visitors?", [["Kelp Bay"]]),
        ("Which harbours are no longer open to the public?", [["Kelp Bay"]]),
        ("Which harbours are Norwegian?", [["Port Ansel", "Sound End"]]),
        ("Which harbours have an inn nearby?", [["Grey Quay", "Kelp Bay", "Port Ansel"]]),
        ("What's the deepest harbour we look after?", [["Grey Quay"]]),
        ("What's Cleo Marsh's dog called?", [["Tar"]]),
        ("how many of the crew work part time?", [1]),
        ("Who has been on the team the longest?", [["Ada Quill"]]),
        ("Who joined in 2019 or later?", [["Ben Orr", "Cleo Marsh"]]),
        ("On what date was call-out 2023-02?", [["2023-06-30"]]),
        ("How many call-outs failed?", [1]),
        ("How many missions did Ada Quill lead?", [2]),
        ("Which callouts cost more than 1 million euros?", [["2023-01", "2024-01"]]),
        ("How many callouts were paid for by the state?", [2]),
        ("Which callouts cost more than 500000 euros?", [["2023-01", "2024-01"]]),
        ("Who led call-out 2023-02?", [["Cleo Marsh"]]),
        ("Which call-out saved the most people?", [["2024-01"]]),
        ("How many people did we save in 2023 altogether?", [3]),
        ("How much is a lift with Little Jo?", [[12.5]]),
        ("Which crane reaches at the greatest reach?", [["Big Olga"]]),
        ("How many overhauls cost more than 3000 euros?", [2]),
        ("Which harbour had the most expensive overhaul?", [["Port Ansel"]]),
        ("How much did we spend on overhauls altogether?", [14_500]),
    ],
)
def test_tables_of_another_hand(coast: Asking, question: str, values: list[Any]) -> None:
    assert in_order(coast.values(question)) == in_order(values)


@pytest.mark.parametrize(
    "question",
    [
        "Which harbours did we close?", "How much is a lift of 30 a day?", "Who paid for the overhauls?",
        "Which crane fell at the greatest reach?", "Which harbours are Danish?",
    ],
)  # fmt: skip
def test_what_is_said_beside_it_is_no_aside(coast: Asking, question: str) -> None:
    assert all(not one.rows and one.value is None for one in coast.outcomes(question)), coast.program(question)


def test_who_was_born_on_a_day_has_an_age(academy: Asking) -> None:
    (text,) = told(academy, "How old is Wim Aker?")
    assert "aged 16 on 2026-11-22" in text


def test_two_columns_of_numbers_hold_those_who_met(tmp_path: Path) -> None:
    with drafted(tmp_path, "club") as asking:
        assert asking.values("Who was white in bout 102?") == [["Tomas Igle"]]
        assert asking.values("Which members are still alive?") == [["Tomas Igle", "Zsofia Bart"]]
        assert asking.values("When did Arvid Lind die?") == [["1950-08-19"]]
        # A number that tells rows apart is nobody.
        assert asking.program("Who refereed bout 101?") == "none"


def test_what_stays_from_year_to_year_is_not_added_up(almanac: Asking) -> None:
    assert in_order(almanac.values("How many staff did Black Fen have?")) == [[290, 310]]


def test_two_joins_of_one_role_and_people_of_people(tmp_path: Path) -> None:
    with drafted(tmp_path, "press") as asking:
        assert asking.values("Who wrote Cold Ice?") == [["Ann Reed"]]
        assert in_order(asking.values("Which articles did Cy Dorn write?")) == [["First Snow", "Late Rain"]]
        # Of the talk's own city, not its author's; an article has only the latter.
        assert asking.values("Which talks are in Oslo?") == [["Sand Live"]]
        assert asking.values("Which articles are from Oslo?") == [["Cold Ice"]]
        assert asking.values("Who is the manager of Bo Falk?") == [["Ann Reed"]]
        assert in_order(asking.values("Who reports to Ann Reed?")) == [["Bo Falk", "Cy Dorn"]]
        # One verb says both who manages her and whom she manages.
        assert asking.program("Who does Bo Falk manage?") == "none"
