"""A domain that a team added, CSV to answers: the mesh answers from it, whatever the classifier takes a question as."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_lifespan import LifespanManager
from pydantic import HttpUrl

from services.kg.app import create_app
from services.kg.definition.folder import BrokenDomain
from services.kg.settings import KgSettings
from tests.mesh.conftest import HOSTS, LIGHTHOUSE, Elsewhere, Services
from tests.mesh.fakes import Faulty
from tests.places.store import DOMAINS, fill

pytestmark = pytest.mark.anyio

COUNTRIES = frozenset({"AT", "DE", "ES", "HU", "IS", "PE", "PT", "SK"})


@pytest.fixture(scope="module")
async def places(to_generator: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """The service of the graph with the domain of places and the bundled ones."""
    url = fill(tmp_path_factory.mktemp("places"), countries=COUNTRIES)
    settings = KgSettings(
        kg_database=url,
        kg_domains=DOMAINS,
        kg_base_model_writes=True,
        generator_url=HttpUrl(HOSTS["generator_url"]),
        threads=1,
    )
    app = create_app(settings, transport=to_generator)
    async with LifespanManager(app, startup_timeout=60, shutdown_timeout=30) as manager:
        yield manager.app


@pytest.fixture
def mesh(services: Services, places: Any) -> Services:
    services.faults["kg"] = Faulty(places)
    return services


def from_facts(body: dict[str, Any]) -> str:
    """A generator that knows the capital of Portugal from the facts alone."""
    shown = "\n".join(message["content"] for message in body["messages"])
    return "Lisbon" if "The capital of Portugal is Lisbon" in shown else "i don't know"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("What is the capital of Portugal?", "Lisbon"),
        ("which countries border slovakia", "Austria"),
        ("What currency do they pay with in Budapest?", "Forint"),
        ("How many airports does Iceland have?", "airports"),
        ("Is Keflavik airport higher than Reykjavik Airport?", "Keflavik"),
    ],
)
async def test_a_question_finds_the_domain_that_it_belongs_to(mesh: Services, query: str, text: str) -> None:
    body = (await mesh.kg("query", query=query, domain="finance", mode="rules")).json()
    assert (body["status"], body["domain"]) == ("ok", "places"), body["program"]
    assert text in body["text"]


async def test_what_it_does_not_know_stays_where_it_was(mesh: Services) -> None:
    body = (await mesh.kg("query", query="who directed inception?", domain="movie", mode="rules")).json()
    assert body["domain"] == "movie"


async def test_the_gateway_answers_from_it(mesh: Services) -> None:
    mesh.generator.reply = from_facts
    async with mesh.usual() as gateway:
        question = {"query": "What is the capital of Portugal?", "search_results": [LIGHTHOUSE]}
        body = (await gateway.post("/answer", json=question)).json()
    assert (body["answer"], body["source"], body["kg"]["domain"]) == ("Lisbon", "kg", "places")
    assert [citation["source"] for citation in body["citations"]] == ["kg"]


async def test_a_model_writes_under_the_domains_grammar_and_without_an_adapter(mesh: Services) -> None:
    mesh.generator.adapters = ["kg-api"]
    mesh.generator.reply = lambda _: 'get_country("peru")["population"]'
    body = (await mesh.kg("query", query="what is the headcount of peru", domain="places", mode="program")).json()
    asked = mesh.generator.requests[-1]
    assert "get_country(" in asked["structured_outputs"]["grammar"]
    assert "get_movie(" not in asked["structured_outputs"]["grammar"]
    assert asked["model"] == "fake"
    assert "get_airport" in asked["messages"][0]["content"]
    assert (body["mode"], body["status"]) == ("program", "ok")
    assert json.loads(body["statements"][0]["rows_json"])[0]["population"] > 30_000_000


async def test_a_model_writes_sql_where_rules_do_not_understand(mesh: Services) -> None:
    sql = "SELECT population FROM country WHERE name = 'Peru'"
    mesh.generator.reply = lambda body: "population" if "choice" in body["structured_outputs"] else sql
    body = (await mesh.kg("query", query="how many souls dwell in peru", domain="places")).json()
    asked, checked = (request["messages"][-1]["content"] for request in mesh.generator.requests)
    assert "CREATE TABLE country" in asked
    assert "Found: population = 3" in checked
    assert "'Peru' is a country.name" in asked
    program = "SELECT population FROM country WHERE LOWER(name) = LOWER('Peru')"
    assert (body["mode"], body["status"], body["program"]) == ("sql", "ok", program)


@pytest.mark.parametrize(
    ("query", "domain"),
    [
        ("how many souls dwell in South Americaa?", "places"),
        ("how many souls dwell in south america?", "places"),
        ("how many souls dwell in South America, says Zork?", "movie"),
        ("how many souls dwell there?", "movie"),
    ],
)
async def test_a_question_belongs_to_the_domain_whose_texts_it_says(mesh: Services, query: str, domain: str) -> None:
    mesh.generator.reply = lambda _: "SELECT SUM(population) FROM country WHERE continent = 'South America'"
    body = (await mesh.kg("query", query=query, domain="movie")).json()
    assert body["domain"] == domain
    assert (body["status"] == "ok") == (domain == "places")


@pytest.mark.parametrize(
    ("adapters", "elsewhere", "answer"),
    [
        # Nothing says that the question belongs there: its tables are asked when nothing else answers.
        (["sql"], "i don't know", "122 million"),
        (["sql"], "Seven", "Seven"),
        # A model that was not taught to say of other questions that no table answers them is not asked.
        ([], "i don't know", "i don't know"),
    ],
)
async def test_tables_are_asked_last_where_nothing_says_that_a_question_belongs_there(
    mesh: Services, adapters: list[str], elsewhere: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.llm.MODELS_TTL_S", -1)

    def reply(body: dict[str, Any]) -> str:
        if "regex" in body.get("structured_outputs", {}):
            return "SELECT SUM(population) FROM country"
        if "choice" in body.get("structured_outputs", {}):
            return "population"
        return "122 million" if "The total population" in str(body["messages"]) else elsewhere

    mesh.generator.adapters, mesh.generator.reply = adapters, reply
    async with mesh.usual(abstain=False) as gateway:
        body = (await gateway.post("/answer", json={"query": "how many souls dwell there?"})).json()
    assert (body["answer"], body["kg"]["mode"]) == (answer, "sql" if answer == "122 million" else "rules")
    assert body["kg"]["unasked"] == ("places" if answer == "Seven" else "")


@pytest.mark.parametrize(("logprob", "answer", "rule"), [(-0.01, "31,989,256 people", "statement"), (-2.0, "Read", "")])
async def test_a_model_that_is_sure_of_its_statement_is_not_read_again(
    mesh: Services, logprob: float, answer: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.llm.MODELS_TTL_S", -1)

    def reply(body: dict[str, Any]) -> str:
        if "regex" in body.get("structured_outputs", {}):
            return "SELECT SUM(population) FROM country WHERE continent = 'South America'"
        return "population" if "choice" in body.get("structured_outputs", {}) else "Read"

    mesh.generator.adapters, mesh.generator.reply, mesh.generator.logprob = ["sql"], reply, logprob
    async with mesh.usual(abstain=False) as gateway:
        body = (await gateway.post("/answer", json={"query": "how many souls dwell in south america?"})).json()
    assert (body["answer"], body["source"]) == (answer, "kg")
    settled = body["kg"]["settled"]
    assert (settled["rule"] if settled else "") == rule
    assert not settled or body["confidence"] == settled["probability"] < 1


async def test_the_catalogue_lists_it(mesh: Services) -> None:
    async with mesh.client("kg") as kg:
        functions = (await kg.get("/kg/catalogue")).json()["functions"]
    assert {"get_country", "get_movie"} <= {function["name"] for function in functions}
    assert {function["domain"] for function in functions if function["name"] == "get_country"} == {"places"}


async def test_a_domain_that_is_none_is_refused(mesh: Services) -> None:
    reply = await mesh.kg("query", query="how high is it?", domain="mountains")
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["field"] == "domain"
    assert "places" in error["message"]


def test_a_broken_folder_stops_the_start_and_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "domains" / "ships"
    folder.mkdir(parents=True)
    (folder / "tables.yaml").write_text("ship: {columns: {name: text}, key: [name]}\n", encoding="utf-8")
    (folder / "domain.yaml").write_text("summary: ships\nfunctions: {}\n", encoding="utf-8")
    with pytest.raises(BrokenDomain, match=r"ships.*domain\.yaml, line 2, functions"):
        create_app(KgSettings(kg_domains=tmp_path / "domains"))


async def test_a_domain_that_is_not_loaded_harms_no_other(demo_graph: str) -> None:
    """The store was made before the folder: its domain is left out until it is loaded."""
    app = create_app(KgSettings(kg_database=demo_graph, kg_domains=DOMAINS, threads=1))
    async with LifespanManager(app, startup_timeout=60, shutdown_timeout=30) as manager:
        transport = httpx.ASGITransport(manager.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kg") as kg:
            body = (await kg.post("/kg/query", json={"query": "who directed inception?", "domain": "movie"})).json()
            refused = await kg.post("/kg/query", json={"query": "how big is peru?", "domain": "places"})
    assert body["status"] == "ok"
    assert refused.status_code == 422
