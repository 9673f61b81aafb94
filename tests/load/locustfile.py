"""Users of the mesh, for locust; `tests.load.run` starts a mesh and these against it.

    locust -f tests/load/locustfile.py --headless --host http://127.0.0.1:8000 --scenario spike --seconds 60
        [--questions FILE] [--think 5 | --rate 2] [--strategy db3] [--page-sets 50]

Scenarios: `steady` and `soak` hold the number of users, `spike` has ten times as many for a fifth of the time, `mixed`
asks for every strategy in turn, `big-pages` sends pages of up to 1 MB, `hang-ups` leaves one question in two before it
is answered, `doors` goes through other routes too, where a refusal must have its door's own form: `/v1`, `/mcp`,
verdicts, documents written, listed, searched and removed.
Users think for `--think` seconds on average before they ask again; with `--rate` questions arrive so many a
second at random, whether or not earlier ones are answered. `--questions` are drawn from a file as `cragmesh eval run`
reads it; else the demo's pages are asked about. After the run: percentiles, the share inside the budget, the shares of
429 and 5xx, and the mesh's own overhead, which is an answer's time less the time in which any stage was at work. Late
replies, 5xx and, where it is asked for, an overhead above `--max-overhead-ms` fail the run.
"""

import json
import random
import time
from functools import cache
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gevent
from locust import FastHttpUser, LoadTestShape, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment

from lab.evaluator.data import Source
from tests.load.demo import demo_pages
from tests.load.tally import Limits, Tally

SCENARIOS = ("steady", "spike", "soak", "mixed", "big-pages", "hang-ups", "doors")
COLLECTION = "load"
# Of an open loop: more than may ever wait for a reply.
CONNECTIONS = 5_000
# Records that are kept in memory to be drawn from.
MAX_QUESTIONS = 5_000
# No fault of the mesh: verdicts are kept only where a folder is set, by the gateway that answered, and documents of
# another user may be gone.
ABSENT = 404
BUDGET_S = 30.0
# Patience of the users who leave, in seconds: before, while and after the engine reads.
LEAVE_AFTER_S = (0.02, 0.1, 0.5)
BIG_PAGE_BYTES = 1_000_000
# As many sets of pages are asked about; those of a few are soon in the page cache.
PAGE_SETS = 50

tally = Tally(BUDGET_S)
in_flight: set[gevent.Greenlet] = set()


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _arguments(parser: LocustArgumentParser) -> None:
    parser.add_argument("--scenario", choices=SCENARIOS, default="steady")
    parser.add_argument("--seconds", type=int, default=60, help="how long the scenario takes")
    parser.add_argument("--asking", type=int, default=4, help="users; ten times as many at a spike's top")
    parser.add_argument("--api-key", default="", help="sent as a bearer token")
    parser.add_argument(
        "--page-sets", type=int, default=PAGE_SETS, help="different sets of pages; 0 makes every question's pages new"
    )
    parser.add_argument("--questions", default="", help="CRAG's records, or lines with a query; the demo's when empty")
    parser.add_argument("--think", type=float, default=0.0, help="seconds before a user asks again, on average")
    parser.add_argument("--rate", type=float, default=0.0, help="arrivals a second, in place of users who wait")
    parser.add_argument("--strategy", default="", help="named by every question; the gateway's own when empty")
    parser.add_argument("--max-late", type=int, default=0, help="answers after the deadline that do not fail the run")
    parser.add_argument("--max-5xx", type=int, default=0, help="replies of 5xx, or none, that do not fail the run")
    parser.add_argument(
        "--max-overhead-ms", type=float, default=0, help="median overhead from which on the run fails; 0 is any"
    )


class Scenario(LoadTestShape):
    """The number of users over time."""

    def tick(self) -> tuple[int, float] | None:
        assert self.runner is not None
        options = self.runner.environment.parsed_options
        at: float = self.get_run_time()  # type: ignore[no-untyped-call]
        assert options is not None
        if at > options.seconds:
            return None
        top = options.scenario == "spike" and 0.4 <= at / options.seconds < 0.6
        users = 1 if options.rate else options.asking * (10 if top else 1)
        return users, float(users)


def _pages(filler: str, big: bool) -> list[dict[str, str]]:
    pages = []
    for page in demo_pages():
        html = page["page_result"].replace("</body>", f"<p>{filler}</p></body>")
        if big:
            paragraph = f"<p>{filler} stands beside the harbour, and people have asked about it for many years.</p>"
            html = html.replace("</body>", paragraph * ((BIG_PAGE_BYTES - len(html)) // len(paragraph)) + "</body>")
        pages.append(page | {"page_result": html})
    return pages


@cache
def _questions(file: str) -> list[dict[str, Any]]:
    return [item.body for item in islice(Source([Path(file)], judged=False).items(), MAX_QUESTIONS)]


class Asker(FastHttpUser):
    """Asks, waits for the answer, thinks, and asks again; or, with a rate, asks and waits for nobody."""

    concurrency = CONNECTIONS
    connection_timeout = network_timeout = 2 * BUDGET_S

    def wait_time(self) -> float:
        options = self.environment.parsed_options
        mean_s: float = 1 / options.rate if options.rate else options.think
        return self.random.expovariate(1 / mean_s) if mean_s else 0.0

    def on_start(self) -> None:
        options = self.environment.parsed_options
        self.scenario: str = options.scenario
        self.random = random.Random(id(self))
        self.headers = {"content-type": "application/json", "accept": "application/json"}
        if options.api_key:
            self.headers["authorization"] = f"Bearer {options.api_key}"
        self.page_sets: int = options.page_sets
        self.strategies = [options.strategy]
        if self.scenario == "mixed":
            listed: dict[str, Any] = self.client.get("/strategies", name="/strategies").json()
            self.strategies = [item["name"] for item in listed["strategies"]]

    def question(self) -> str:
        if file := self.environment.parsed_options.questions:
            return json.dumps(self.random.choice(_questions(file)) | self.options())
        visitor = self.random.randrange(self.page_sets) if self.page_sets else self.random.getrandbits(64)
        filler = f"Visitor {visitor}"
        pages = _pages(filler, self.scenario == "big-pages")
        return json.dumps({"query": "How tall is the Eiffel Tower?", "search_results": pages} | self.options())

    def options(self) -> dict[str, str]:
        strategy = self.random.choice(self.strategies)
        return {"strategy": strategy} if strategy else {}

    @task
    def arrive(self) -> None:
        if not self.environment.parsed_options.rate:
            self.ask()
            return
        asking = gevent.spawn(self.ask)
        in_flight.add(asking)
        asking.link(in_flight.discard)

    def ask(self) -> None:
        if self.scenario == "doors":
            self.try_doors()
            return
        body = self.question()
        if self.scenario == "hang-ups" and self.random.random() < 0.5:
            self.leave(body)
        else:
            self.wait_for_the_answer(body)

    def try_doors(self) -> None:
        """A question, its verdict, the same by `/v1` and by an agent, then a document's life."""
        if answer := self.wait_for_the_answer(self.question()):
            self.send("POST", "/feedback", {"request_id": answer["request_id"], "verdict": "right"})
        turns = [{"role": "user", "content": "How tall is the Eiffel Tower?"}]
        self.send("POST", "/v1/chat/completions", {"model": "cragmesh/naive-rag", "messages": turns})
        call = {"name": "answer", "arguments": {"question": "How tall is the Eiffel Tower?", "strategy": "naive-rag"}}
        self.send("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        collection, document = f"/collections/{COLLECTION}", f"{self.random.getrandbits(40):x}"
        self.send("PUT", collection, {})
        text = {"documents": [{"id": document, "text": "The light of Port Ansel is 43 metres tall. " * 20}]}
        self.send("POST", f"{collection}/documents", text)
        self.send("GET", f"{collection}/documents")
        self.send("POST", f"{collection}/search", {"queries": ["how tall is the light?"], "top_n": 3})
        self.send("POST", "/answer", {"query": "How tall is the light?", "collection": COLLECTION})
        self.send("DELETE", f"{collection}/documents/{document}", name=f"{collection}/documents/ID")

    def send(self, method: str, path: str, body: dict[str, Any] | None = None, *, name: str = "") -> None:
        began = time.monotonic()
        door, data = f"{method} {name or path}", None if body is None else json.dumps(body)
        with self.client.request(
            method, path, name=door, data=data, headers=self.headers, catch_response=True
        ) as reply:
            if 200 <= reply.status_code < 300 or reply.status_code == ABSENT:
                tally.replied(door, time.monotonic() - began)
                reply.success()
            else:
                self.refused(reply, door)

    def wait_for_the_answer(self, body: str) -> dict[str, Any]:
        """The answer; nothing where there was none, and then time has passed before one asks again."""
        began = time.monotonic()
        with self.client.post("/answer", data=body, headers=self.headers, catch_response=True) as reply:
            seconds = time.monotonic() - began
            if reply.status_code == 200:
                answer: dict[str, Any] = reply.json()
                tally.answered(seconds, answer)
                reply.success()
                return answer
            self.refused(reply, "/answer")
        return {}

    def refused(self, reply: Any, door: str) -> None:
        tally.refused(reply.status_code, own_form=reply.status_code == 0 or _own_form(door, reply))
        if reply.status_code == 429 and "retry-after" in reply.headers:
            # Counted apart: a refusal takes a millisecond and would flatter the answers' percentiles.
            reply.request_meta["name"] = f"{door} refused"
            reply.success()
        else:
            reply.failure(f"HTTP {reply.status_code}")
        if self.environment.parsed_options.rate:
            return
        if reply.status_code == 0:
            # Nobody is there; asking at once again would only warm the room.
            gevent.sleep(0.5)
        if reply.status_code == 429:
            gevent.sleep(float(reply.headers.get("retry-after", "1")))

    def leave(self, body: str) -> None:
        """Ask, and close the connection before the answer."""
        where = urlsplit(self.host or "")
        connection = HTTPConnection(where.hostname or "", where.port)
        try:
            connection.request("POST", "/answer", body, self.headers)
            gevent.sleep(self.random.choice(LEAVE_AFTER_S))
        finally:
            connection.close()
        tally.left += 1


def _own_form(door: str, reply: Any) -> bool:
    """Whether a refusal has the form that clients of its door read."""
    try:
        body = reply.json()
    except ValueError:
        # A load balancer's page.
        return False
    if "/v1/" in door:
        return set(body) == {"error"}
    if "/mcp" in door:
        return set(body) == {"jsonrpc", "id", "error"}
    return str(reply.headers.get("content-type")) == "application/problem+json"


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _report(environment: Environment, **_: object) -> None:
    gevent.joinall(list(in_flight), timeout=2 * BUDGET_S)
    print(tally.report())
    options = environment.parsed_options
    if options is not None and options.csv_prefix:
        Path(f"{options.csv_prefix}_summary.json").write_text(json.dumps(tally.record()))
    limits = Limits(options.max_late, options.max_5xx, options.max_overhead_ms) if options is not None else Limits()
    broken = tally.broken(limits)
    for line in broken:
        print(f"FAILED: {line}")
    if broken:
        environment.process_exit_code = 1
    elif limits.server_errors:
        # Locust itself would fail on the first.
        environment.process_exit_code = 0
