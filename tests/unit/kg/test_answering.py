"""Who writes the program in the mode `auto`: rules first, a model that can where theirs finds nothing."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from sqlalchemy import Engine

from proto.kg import KgExecuteRequest, KgMode, KgRequest, KgStatus
from services.kg.answering import Answering, Attempt
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate.base import Written
from services.kg.generate.rules.values import Values
from services.kg.generate.spans import Spot, Spotter
from services.kg.generate.sql.writer import SqlWriter
from services.kg.language.catalogue import Catalogue
from services.kg.outcome import Outcome
from services.kg.settings import KgSettings
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.errors import ServiceTimeout
from services.kit.llm import LLM
from tests.mesh.fakes import FakeGenerator
from tests.places.store import DOMAINS
from tests.unit.kg.graph import ASKED
from tests.unit.kg.library import drafted_graph

pytestmark = pytest.mark.anyio

REQUEST = KgRequest(query="who directed inception?", domain="movie")


class Served:
    """A generator that serves an adapter, or does not."""

    def __init__(self, *, serves: bool) -> None:
        self._serves = serves

    async def serves(self, _name: str, *, allow_s: float) -> bool:
        assert allow_s > 0
        return self._serves


class Scripted(Answering):
    """Writers whose programs have the statuses that a test names; `modes` are those that wrote."""

    def __init__(
        self, statuses: dict[str, KgStatus], *, serves: bool, base_model_writes: bool = False, spotter: Any = None
    ) -> None:
        executor, llm = cast(Any, SimpleNamespace(catalogue=CATALOGUE)), cast(Any, Served(serves=serves))
        settings = KgSettings(kg_base_model_writes=base_model_writes)
        super().__init__(executor, {}, {}, llm, settings, spotter=spotter)
        self.modes: list[str] = []
        self._statuses = statuses

    async def _program(self, mode: KgMode, task: Any) -> Attempt:
        self.modes.append(mode)
        if mode not in self._statuses:
            raise ServiceTimeout("generator", "too late")
        return Attempt(Written(mode, mode), (Outcome(mode, self._statuses[mode]),), write_ms=1, calls=0)

    def _response(self, attempt: Attempt, *rest: Any) -> Any:
        return attempt.written.program, [item.stage for item in (rest[3] if len(rest) > 3 else ())]


@pytest.mark.parametrize(
    ("statuses", "serves", "writes", "answer", "modes"),
    [
        # No model is asked where the rules find something; where they do not, one that can is, and no other.
        ({"rules": "ok", "program": "ok"}, True, False, "rules", ["rules"]),
        ({"rules": "no_program", "program": "ok"}, True, False, "program", ["rules", "program"]),
        ({"rules": "no_program", "program": "ok"}, False, True, "program", ["rules", "program"]),
        ({"rules": "no_program", "program": "ok"}, False, False, "rules", ["rules"]),
        # The rules stand where the model finds nothing either.
        ({"rules": "empty", "program": "no_entity"}, True, False, "rules", ["rules", "program"]),
    ],
)
async def test_rules_come_first_and_a_model_that_can_after_them(
    statuses: dict[str, KgStatus], serves: bool, writes: bool, answer: str, modes: list[str]
) -> None:
    answering = Scripted(statuses, serves=serves, base_model_writes=writes)
    response: Any = await answering.answer(REQUEST, Budget(5))
    assert response == (answer, [])
    assert answering.modes == modes


async def test_a_model_that_fails_is_named_and_the_rules_stand() -> None:
    response: Any = await Scripted({"rules": "empty"}, serves=True).answer(REQUEST, Budget(5))
    assert response == ("rules", ["generator"])


class Spots:
    """A graph that knows one film."""

    def spot(self, query: str, _domain: str) -> list[Spot]:
        start = query.find("inception")
        return [Spot("inception", start, start + 9, "movie", 1.0, 1, quoted=False)] if start >= 0 else []


@pytest.mark.parametrize(
    ("query", "modes"),
    [("who directed inception?", ["rules", "program"]), ("how tall is the tower of my town?", ["rules"])],
)
async def test_no_model_is_asked_about_what_the_graph_does_not_know(query: str, modes: list[str]) -> None:
    answering = Scripted({"rules": "no_entity", "program": "ok"}, serves=True, spotter=Spots())
    await answering.answer(KgRequest(query=query, domain="movie"), Budget(5))
    assert answering.modes == modes


class OwnDomain(Scripted):
    """A catalogue with a domain of one's own."""

    def __init__(self, statuses: dict[str, KgStatus], spotter: Any, settings: KgSettings) -> None:
        super().__init__(statuses, serves=True, spotter=spotter)
        self._executor = cast(Any, SimpleNamespace(catalogue=read_catalogue(CATALOGUE, DOMAINS)))
        self._settings = settings


@pytest.mark.parametrize(
    ("settings", "query", "domain", "modes"),
    [
        (KgSettings(kg_sql=True), "how many are there?", "places", ["rules", "sql"]),
        (KgSettings(kg_base_model_writes=True), "how many are there?", "places", ["rules", "sql"]),
        (KgSettings(), "how many are there?", "places", ["rules"]),
        # A question that the classifier labels belongs there by the names that it says.
        (KgSettings(kg_sql=True), "how many are there?", "movie", ["rules", "rules"]),
        (KgSettings(kg_sql=True), "how many has inception?", "movie", ["rules", "rules", "program"]),
    ],
)
async def test_a_model_writes_sql_for_a_domain_of_ones_own(
    settings: KgSettings, query: str, domain: str, modes: list[str]
) -> None:
    answering = OwnDomain({"rules": "no_program", "sql": "ok", "program": "ok"}, Spots(), settings)
    await answering.answer(KgRequest(query=query, domain=domain), Budget(5))
    assert answering.modes == modes


@pytest.mark.parametrize(
    ("query", "program", "modes"),
    [
        ("who runs Peru?", 'get_country("Peru")', ["rules", "sql"]),
        ("tell me about Peru", 'get_country("Peru")', ["rules"]),
        ("what is the area of Peru?", 'get_country("Peru")["area"]', ["rules"]),
    ],
)
async def test_a_model_is_asked_where_rules_only_tell_all_there_is(query: str, program: str, modes: list[str]) -> None:
    class Rules(OwnDomain):
        async def _program(self, mode: KgMode, task: Any) -> Attempt:
            return replace(await super()._program(mode, task), written=Written(program, mode))

    answering = Rules({"rules": "ok", "sql": "empty"}, Spots(), KgSettings(kg_sql=True))
    response: Any = await answering.answer(KgRequest(query=query, domain="places"), Budget(5))
    assert answering.modes == modes
    assert response == (program, [])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Catalogue]]:
    with drafted_graph(tmp_path_factory.mktemp("library"), "library") as graph:
        yield graph


@asynccontextmanager
async def answering_from(graph: tuple[Engine, Catalogue], generator: FakeGenerator) -> AsyncIterator[Answering]:
    engine, catalogue = graph
    names, spotter = NameIndex(engine, catalogue), Spotter(engine, catalogue)
    async with http_client(httpx.ASGITransport(generator.app)) as http:
        llm = LLM(ServiceClient("generator", "http://g", http))
        writers = {"sql": SqlWriter(llm, catalogue, names, Values(engine), spotter)}
        executor, settings = Executor(engine, names, catalogue), KgSettings(kg_write_cap_s=30.0)
        answering = Answering(executor, writers, {}, llm, settings, spotter=spotter)
        yield answering
        answering.close()


TOTAL = "SELECT SUM(price) FROM book WHERE genre = 'Essay'"
COUNTRY = "SELECT country FROM author WHERE name = 'Cy Page'"
NORWAY = "SELECT name FROM author WHERE country = 'Norway'"
IN_PRINT = "SELECT in_print FROM book WHERE title = 'By Night'"
OF_VELLUM = "SELECT title FROM book WHERE author = 'Di Vellum'"
DEAREST = "SELECT price FROM book ORDER BY price DESC LIMIT 1"


@pytest.mark.parametrize(
    ("query", "statement", "choice", "is_told"),
    [
        ("where is Cy Page from?", COUNTRY, "country", True),
        ("who employs Cy Page?", COUNTRY, "none", False),
        ("who employs Cy Page?", COUNTRY, "name", True),
        ("the number of Cy Page?", "SELECT name FROM author WHERE name = 'Cy Page'", "", False),
        ("who is page?", "SELECT name FROM author WHERE name = 'Page'", "", True),
        ("the fines on essays in total?", TOTAL, "none", False),
        ("the fines on essays in total?", TOTAL, "price", True),
        ("the price of all essays in total?", TOTAL, "", True),
        # What the question says, and what no near column is mistaken for, is not asked about.
        ("the country of Cy Page?", COUNTRY, "", True),
        ("who is it?", NORWAY, "", True),
        ("Is By Night sold?", IN_PRINT, "", True),
        ("what lies on top?", DEAREST, "", True),
        # Which of several is asked for nobody knows.
        ("which book is by Di Vellum?", OF_VELLUM, "", False),
        ("which books are by Di Vellum?", OF_VELLUM, "", True),
        ("when is it?", OF_VELLUM, "", False),
    ],
)
async def test_a_near_column_is_not_told_for_one_that_is_not_there(
    library: tuple[Engine, Catalogue], query: str, statement: str, choice: str, is_told: bool
) -> None:
    generator = FakeGenerator(lambda body: choice if "choice" in body["structured_outputs"] else statement)
    async with answering_from(library, generator) as answering:
        request = KgRequest(query=query, domain="library", mode="sql", query_time=ASKED)
        response = await answering.answer(request, Budget(60))
    assert (response.program != "none", response.status) == (is_told, "ok" if is_told else "no_program")
    assert (response.llm_calls, response.repaired) == (1 + bool(choice), False)
    if choice:
        asked = generator.requests[1]
        assert asked["structured_outputs"]["choice"][-1] == "none"
        found = "price = 39.25" if statement == TOTAL else "country = Peru"
        assert asked["messages"][-1]["content"].endswith(f"Found: {found}\nQuestion: {query}")


@pytest.mark.parametrize(("logprob", "calls"), [(-0.01, 1), (-0.5, 2)])
async def test_a_column_is_not_asked_about_where_its_statement_is_likely(
    library: tuple[Engine, Catalogue], logprob: float, calls: int
) -> None:
    generator = FakeGenerator(lambda body: "country" if "choice" in body["structured_outputs"] else COUNTRY)
    generator.adapters, generator.logprob = ["sql"], logprob
    async with answering_from(library, generator) as answering:
        request = KgRequest(query="where is Cy Page from?", domain="library", mode="sql", query_time=ASKED)
        response = await answering.answer(request, Budget(60))
    assert (response.status, response.llm_calls) == ("ok", calls)


async def test_what_questions_about_added_domains_share_is_read_before_the_first(
    library: tuple[Engine, Catalogue],
) -> None:
    generator = FakeGenerator(lambda _: "")
    async with answering_from(library, generator) as answering:
        await answering.read_ahead(answering._llm)
    *_, tables, check = (one["messages"][-1]["content"] for one in generator.requests)
    assert tables.startswith("CREATE TABLE author (")
    assert check.startswith("Columns:")


class Runs:
    """Runs nothing, and remembers the domains of programs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.domains: list[str] = []

    def execute(self, _program: str, *, domain: str, **_: Any) -> list[Outcome]:
        self.domains.append(domain)
        return [Outcome("", "ok")]


class RunsLive(Runs):
    async def execute(self, _program: str, *, domain: str, **_: Any) -> list[Outcome]:  # type: ignore[override]
        return super().execute("", domain=domain)


async def test_a_domain_of_ones_own_runs_on_the_store_where_a_live_api_serves_the_bundled_ones() -> None:
    catalogue = read_catalogue(CATALOGUE, DOMAINS)
    store, live = Runs(catalogue), RunsLive(catalogue)
    llm = cast(Any, Served(serves=False))
    answering = Answering(cast(Any, store), {}, {}, llm, KgSettings(), live=cast(Any, live))
    for domain in ("movie", "places"):
        request = KgExecuteRequest(program="none", domain=domain)
        await answering.execute(request, Budget(5))
    assert (store.domains, live.domains) == (["places"], ["movie"])
