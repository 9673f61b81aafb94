"""Real CRAG records through the running mesh, by every strategy: each within 30 s, each citation a piece of its page.

    python -m tests.bench.records [--strategies adaptive,db3]

Posts the records as they are, with a trace: each call to the generator must have a plan, whose seconds are by the pace
that was measured until then, and stand beside those that the calls took. The data is found through CRAGMESH_EVAL_DATA;
without it there is nothing to post.
"""

import asyncio
import re
import sys
import time
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from services.retriever.pages import PageOptions, process_page
from tests.bench import common

GATEWAY = "http://127.0.0.1:8000"
BUDGET_S = 30.0
PLAN = re.compile(r"tokens take (\d+\.\d) s")
COLUMNS = (
    "strategy", "seconds", "kind", "answer", "gold", "in the page", "with a plan", "planned / took, s", "degraded",
)  # fmt: skip


def found_in_page(citation: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a citation's text is a piece of the page that it names, or of one of its tables."""
    result = record["search_results"][citation["page"]]
    page = process_page(result["page_result"], PageOptions(), result["page_name"])
    sources = " ".join(f"{page.text}\n{page.tables_markdown}\n{result['page_snippet'] or ''}".split())
    # Line by line, since a piece of a table repeats the table's head.
    return all(" ".join(line.split()) in sources for line in citation["text"].splitlines())


@dataclass(frozen=True, slots=True)
class Calls:
    """A trace's calls to the generator: how many there were, how many had a plan, and the seconds of both."""

    made: int
    planned: int
    planned_s: float
    took_s: float


def calls(trace: dict[str, Any]) -> Calls:
    plans: dict[str, list[float]] = {}
    for event in trace["events"]:
        match = PLAN.search(event["detail"]) if event["kind"] == "plan" else None
        if match:
            plans.setdefault(event["step"], []).append(float(match[1]))
    prompts = [event for event in trace["events"] if event["kind"] == "prompt"]
    # The last plan of a step is that of the call itself; earlier ones were made before its evidence was there.
    planned_s = [plans[event["step"]][-1] for event in prompts if event["step"] in plans]
    return Calls(len(prompts), len(planned_s), sum(planned_s), sum(event["elapsed_ms"] for event in prompts) / 1000)


def row(body: dict[str, Any], record: dict[str, Any], seconds: float) -> tuple[list[str], bool]:
    """A line of the table, and whether it is as it must be."""
    web = [citation for citation in body["citations"] if citation["source"] == "web"]
    inside = sum(found_in_page(citation, record) for citation in web)
    own_calls = calls(body["trace"])
    cells = [
        body["strategy"],
        f"{seconds:.1f}",
        body["kind"],
        body["answer"][:40],
        record["answer"][:40],
        f"{inside} of {len(web)}",
        f"{own_calls.planned} of {own_calls.made}",
        f"{own_calls.planned_s:.1f} / {own_calls.took_s:.1f}",
        ", ".join(f"{item['stage']}={item['reason']}" for item in body["degraded"]),
    ]
    return cells, seconds <= BUDGET_S and inside == len(web) and own_calls.planned == own_calls.made


async def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--strategies", default="", help="by commas; all that the gateway has when not given")
    options = parser.parse_args()
    root = common.evaluation_data("bench", "there are no records to post")
    records = list(common.read_rows(root / "crag_pages.jsonl.gz"))
    table = Table(*COLUMNS, title="CRAG records")
    failed = False
    async with httpx.AsyncClient(base_url=GATEWAY, timeout=60, trust_env=False) as http:
        listed = (await http.get("/strategies")).raise_for_status().json()["strategies"]
        for strategy in common.names(options.strategies) or [item["name"] for item in listed]:
            for record in records:
                began = time.monotonic()
                question = record | {"strategy": strategy, "trace": True}
                body = (await http.post("/answer", json=question)).raise_for_status().json()
                cells, good = row(body, record, time.monotonic() - began)
                table.add_row(*cells)
                failed |= not good
                print(f"{strategy}: {cells[1]} s", file=sys.stderr)
    Console(width=160).print(table)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
