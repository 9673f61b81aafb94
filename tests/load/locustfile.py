"""Users of the mesh, for locust; `tests.load.run` starts a mesh and these against it.

    locust -f tests/load/locustfile.py --headless --host http://127.0.0.1:8000 --scenario spike --seconds 60
        [--page-sets 50] [--strategy db3]

Scenarios: `steady` and `soak` hold the number of users, `spike` has ten times as many for a fifth of the time, `mixed`
asks for every strategy in turn, `big-pages` sends pages of up to 1 MB, `hang-ups` leaves one question in two before it
is answered. After the run: percentiles, the share inside the budget, the shares of 429 and 5xx, and the mesh's own
overhead, which is an answer's time less the time in which any stage was at work. Late answers, 5xx and, where it is
asked for, an overhead above `--max-overhead-ms` fail the run.
"""

import json
import random
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gevent
from locust import FastHttpUser, LoadTestShape, constant, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment

from tests.load.tally import Limits, Tally

DEMO = Path(__file__).resolve().parents[2] / "services" / "cli" / "demo"
SCENARIOS = ("steady", "spike", "soak", "mixed", "big-pages", "hang-ups")
BUDGET_S = 30.0
# Patience of the users who leave, in seconds: before, while and after the engine reads.
LEAVE_AFTER_S = (0.02, 0.1, 0.5)
BIG_PAGE_BYTES = 1_000_000
# As many sets of pages are asked about; those of a few are soon in the page cache.
PAGE_SETS = 50

tally = Tally(BUDGET_S)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _arguments(parser: LocustArgumentParser) -> None:
    parser.add_argument("--scenario", choices=SCENARIOS, default="steady")
    parser.add_argument("--seconds", type=int, default=60, help="how long the scenario takes")
    parser.add_argument("--asking", type=int, default=4, help="users; ten times as many at a spike's top")
    parser.add_argument("--api-key", default="", help="sent as a bearer token")
    parser.add_argument(
        "--page-sets", type=int, default=PAGE_SETS, help="different sets of pages; 0 makes every question's pages new"
    )
    parser.add_argument("--strategy", default="", help="named by every question; the gateway's own when empty")
    parser.add_argument("--max-late", type=int, default=0, help="answers after the deadline that do not fail the run")
    parser.add_argument("--max-5xx", type=int, default=0, help="replies of 5xx, or none, that do not fail the run")
    parser.add_argument(
        "--max-overhead-ms", type=float, default=0, help="median overhead from which on the run fails; 0 is any"
    )


class Scenario(LoadTestShape):
    """How many users there are at a time."""

    def tick(self) -> tuple[int, float] | None:
        assert self.runner is not None
        options = self.runner.environment.parsed_options
        at: float = self.get_run_time()  # type: ignore[no-untyped-call]
        assert options is not None
        if at > options.seconds:
            return None
        top = options.scenario == "spike" and 0.4 <= at / options.seconds < 0.6
        users = options.asking * (10 if top else 1)
        return users, float(users)


def _pages(filler: str, big: bool) -> list[dict[str, str]]:
    pages = []
    for path in sorted(DEMO.glob("*.html")):
        html = path.read_text("utf-8").replace("</body>", f"<p>{filler}</p></body>")
        if big:
            paragraph = f"<p>{filler} stands beside the harbour, and people have asked about it for many years.</p>"
            html = html.replace("</body>", paragraph * ((BIG_PAGE_BYTES - len(html)) // len(paragraph)) + "</body>")
        pages.append({"page_name": path.stem, "page_url": f"file:{path.name}", "page_result": html})
    return pages


class Asker(FastHttpUser):
    """Asks, waits for the answer, and asks again; comes again when it is told to."""

    wait_time = constant(0)
    connection_timeout = network_timeout = 2 * BUDGET_S

    def on_start(self) -> None:
        options = self.environment.parsed_options
        self.scenario: str = options.scenario
        self.random = random.Random(id(self))
        self.sent = {"content-type": "application/json"}
        if options.api_key:
            self.sent["authorization"] = f"Bearer {options.api_key}"
        self.page_sets: int = options.page_sets
        self.strategies = [options.strategy]
        if self.scenario == "mixed":
            listed: dict[str, Any] = self.client.get("/strategies", name="/strategies").json()
            self.strategies = [item["name"] for item in listed["strategies"]]

    def question(self) -> str:
        visitor = self.random.randrange(self.page_sets) if self.page_sets else self.random.getrandbits(64)
        filler = f"Visitor {visitor}"
        asked = {
            "query": "How tall is the Eiffel Tower?",
            "search_results": _pages(filler, self.scenario == "big-pages"),
        }
        if strategy := self.random.choice(self.strategies):
            asked["strategy"] = strategy
        return json.dumps(asked)

    @task
    def ask(self) -> None:
        body = self.question()
        if self.scenario == "hang-ups" and self.random.random() < 0.5:
            self.leave(body)
        else:
            self.wait_for_the_answer(body)

    def wait_for_the_answer(self, body: str) -> None:
        began = time.monotonic()
        with self.client.post("/answer", data=body, headers=self.sent, catch_response=True) as reply:
            seconds = time.monotonic() - began
            if reply.status_code == 200:
                tally.answered(seconds, reply.json())
                reply.success()
                return
            tally.refused(reply.status_code)
            if reply.status_code == 429 and "retry-after" in reply.headers:
                # Counted apart: a refusal takes a millisecond and would flatter the answers' percentiles.
                reply.request_meta["name"] = "/answer refused"
                reply.success()
            else:
                reply.failure(f"HTTP {reply.status_code}")
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
            connection.request("POST", "/answer", body, self.sent)
            gevent.sleep(self.random.choice(LEAVE_AFTER_S))
        finally:
            connection.close()
        tally.left += 1


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _report(environment: Environment, **_: object) -> None:
    print(tally.report())
    options = environment.parsed_options
    if options is not None and options.csv_prefix:
        Path(f"{options.csv_prefix}_summary.json").write_text(json.dumps(tally.summary(), indent=1))
    limits = Limits(options.max_late, options.max_5xx, options.max_overhead_ms) if options is not None else Limits()
    broken = tally.broken(limits)
    for line in broken:
        print(f"FAILED: {line}")
    if broken:
        environment.process_exit_code = 1
    elif limits.server_errors:
        # Locust itself would fail on the first.
        environment.process_exit_code = 0
