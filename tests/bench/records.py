"""Real CRAG records through the running mesh, by every strategy: each within 30 s, each citation a piece of its page.

    python -m tests.bench.records [--strategies adaptive,db3]

Posts the records as they are, with a trace: each call to the generator must have a plan, whose seconds are by the pace
that was measured until then, and stand beside those that the calls took. The data is found through CRAGMESH_EVAL_DATA;
without it there is nothing to post.
"""

import argparse
import asyncio
import gzip
import json
import os
import pathlib
import re
import sys
import time
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from services.retriever.pages import PageOptions, process_page

GATEWAY = "http://127.0.0.1:8000"
BUDGET_S = 30.0
PLAN = re.compile(r"tokens take (\d+\.\d) s")
COLUMNS = (
    "strategy",
    "seconds",
    "kind",
    "answer",
    "gold",
    "in the page",
    "with a plan",
    "planned / took, s",
    "degraded",
)


def found_in_page(citation: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a citation's text is a piece of the page that it names, or of one of its tables."""
    result = record["search_results"][citation["page"]]
    page = process_page(result["page_result"], PageOptions(), result["page_name"])
    sources = " ".join(f"{page.text}\n{page.tables_markdown}\n{result['page_snippet'] or ''}".split())
    # Line by line, since a piece of a table repeats the table's head.
    return all(" ".join(line.split()) in sources for line in citation["text"].splitlines())


@dataclass(frozen=True, slots=True)
class Calls:
    """What a trace says of the calls to the generator: how many had a plan, and seconds planned and taken by all."""

    asked: int
    planned: int
    planned_s: float
    took_s: float


def calls(trace: dict[str, Any]) -> Calls:
    plans: dict[str, list[float]] = {}
    for event in trace["events"]:
        found = PLAN.search(event["detail"]) if event["kind"] == "plan" else None
        if found:
            plans.setdefault(event["step"], []).append(float(found[1]))
    prompts = [event for event in trace["events"] if event["kind"] == "prompt"]
    # The last plan of a step is that of the call itself; earlier ones were made before its evidence was there.
    known = [plans[event["step"]][-1] for event in prompts if event["step"] in plans]
    return Calls(len(prompts), len(known), sum(known), sum(event["elapsed_ms"] for event in prompts) / 1000)


def row(body: dict[str, Any], record: dict[str, Any], seconds: float) -> tuple[list[str], bool]:
    """A line of the table, and whether it is as it must be."""
    web = [citation for citation in body["citations"] if citation["source"] == "web"]
    inside = sum(found_in_page(citation, record) for citation in web)
    asked = calls(body["trace"])
    cells = [
        body["strategy"],
        f"{seconds:.1f}",
        body["kind"],
        body["answer"][:40],
        record["answer"][:40],
        f"{inside} of {len(web)}",
        f"{asked.planned} of {asked.asked}",
        f"{asked.planned_s:.1f} / {asked.took_s:.1f}",
        ", ".join(f"{item['stage']}={item['reason']}" for item in body["degraded"]),
    ]
    return cells, seconds <= BUDGET_S and inside == len(web) and asked.planned == asked.asked


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategies", default="", help="by commas; all that the gateway has when not given")
    options = parser.parse_args()
    root = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not root:
        print("bench: CRAGMESH_EVAL_DATA is not set, so there are no records to post; nothing was measured")
        return
    with gzip.open(pathlib.Path(root) / "crag_pages.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    table = Table(*COLUMNS, title="CRAG records")
    failed = False
    async with httpx.AsyncClient(base_url=GATEWAY, timeout=60, trust_env=False) as http:
        there = (await http.get("/strategies")).raise_for_status().json()["strategies"]
        for strategy in options.strategies.split(",") if options.strategies else [one["name"] for one in there]:
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
