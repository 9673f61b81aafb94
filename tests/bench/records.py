"""Real CRAG records through the running mesh: each within 30 s, each citation a piece of its page.

    python -m tests.bench.records

Posts the records as they are. The data is found through CRAGMESH_EVAL_DATA; without it there is nothing to post.
"""

import asyncio
import gzip
import json
import os
import pathlib
import time
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from services.retriever.pages import PageOptions, process_page

GATEWAY = "http://127.0.0.1:8000"
BUDGET_S = 30.0


def found_in_page(citation: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a citation's text is a piece of the page that it names, or of one of its tables."""
    result = record["search_results"][citation["page"]]
    page = process_page(result["page_result"], PageOptions(), result["page_name"])
    sources = " ".join(f"{page.text}\n{page.tables_markdown}\n{result['page_snippet'] or ''}".split())
    # Line by line, since a piece of a table repeats the table's head.
    return all(" ".join(line.split()) in sources for line in citation["text"].splitlines())


async def main() -> None:
    root = os.environ.get("CRAGMESH_EVAL_DATA", "")
    if not root:
        print("bench: CRAGMESH_EVAL_DATA is not set, so there are no records to post; nothing was measured")
        return
    with gzip.open(pathlib.Path(root) / "crag_pages.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    table = Table("seconds", "kind", "answer", "gold", "citations", "in the page", "degraded", title="CRAG records")
    failed = False
    async with httpx.AsyncClient(base_url=GATEWAY, timeout=60, trust_env=False) as http:
        for record in records:
            began = time.monotonic()
            body = (await http.post("/answer", json=record)).raise_for_status().json()
            seconds = time.monotonic() - began
            inside = sum(found_in_page(citation, record) for citation in body["citations"])
            failed |= seconds > BUDGET_S or inside < len(body["citations"]) or not body["citations"]
            degraded = ", ".join(f"{item['stage']}={item['reason']}" for item in body["degraded"])
            table.add_row(
                f"{seconds:.1f}",
                body["kind"],
                body["answer"][:60],
                record["answer"][:40],
                str(len(body["citations"])),
                str(inside),
                degraded,
            )
    Console().print(table)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
