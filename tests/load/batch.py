"""What a batch costs those who ask beside it: the same questions at the same times, without one and with one.

    python -m tests.load.batch [--questions 2000] [--rate 1] [--seconds 30] [--rounds 2] [--max-worse 0.1]
        [--prefill 3000 --decode 25] [--out out/load/batch]

The embedded processes with the fake generator, the gateway's batches in SQLite. Rounds without and with the batch take
turns, so that what else the machine does falls on both. Fails where the p95 is worse by more than `--max-worse`, or
where the batch got nowhere.
"""

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import httpx

from lab.capacity.mesh import Outcome, poisson
from tests.bench import common
from tests.load.demo import demo_pages
from tests.load.model import PAGE_SETS, STRATEGY, ask, ask_at
from tests.load.run import mesh, running


def lines(count: int) -> bytes:
    """An input file of so many questions over the demo's pages."""
    message = {"role": "user", "content": "How tall is the Eiffel Tower?"}
    body = {"model": f"cragmesh/{STRATEGY}", "messages": [message], "evidence": [demo_pages()[0]["page_result"][:1000]]}
    line = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    return "".join(json.dumps({"custom_id": str(number)} | line) + "\n" for number in range(count)).encode()


async def begin(http: httpx.AsyncClient, questions: int) -> str:
    form = {"purpose": "batch"}
    file = (await http.post("/v1/files", data=form, files={"file": ("q.jsonl", lines(questions))})).raise_for_status()
    batch = {"input_file_id": file.json()["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return str((await http.post("/v1/batches", json=batch)).raise_for_status().json()["id"])


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--questions", type=int, default=2000, help="of the batch; %(default)s")
    parser.add_argument("--rate", type=float, default=1.0, help="of those who ask beside it, a second; %(default)g")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a round; %(default)g")
    parser.add_argument("--rounds", type=int, default=2, help="without and with; %(default)s")
    parser.add_argument("--prefill", default="3000", help="the generator's prompt tokens a second")
    parser.add_argument("--decode", default="25", help="its answer tokens a second, each")
    parser.add_argument("--max-worse", type=float, default=0.1)
    parser.add_argument("--out", type=Path, default=Path("out/load/batch"))
    args = parser.parse_args()
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    (out / "batches.sqlite").unlink(missing_ok=True)
    os.environ["CRAGMESH_BATCHES_DATABASE"] = f"sqlite:///{out / 'batches.sqlite'}"
    services, urls = mesh(("--prefill", args.prefill, "--decode", args.decode))
    without, beside = Outcome(), Outcome()
    done = 0
    async with running(services, out / "mesh"), httpx.AsyncClient(base_url=urls["gateway"], timeout=60) as http:
        for visitor in range(PAGE_SETS):
            await ask(http, visitor)
        for number in range(args.rounds):
            arrivals = poisson(args.rate, args.seconds, random.Random(number))
            for outcome, first in ((without, 1000 * number), (beside, 100_000 + 1000 * number)):
                batch = await begin(http, args.questions) if outcome is beside else ""
                questions = await ask_at(http, arrivals, first)
                outcome.seconds += [question.seconds for question in questions if question.reply]
                outcome.fates.update("answered" if question.reply else "refused" for question in questions)
                if batch:
                    ended = (await http.post(f"/v1/batches/{batch}/cancel")).raise_for_status().json()
                    done += ended["request_counts"]["completed"]
    for name, outcome in (("without", without), ("beside a batch", beside)):
        p50, p95 = outcome.quantile(0.5), outcome.quantile(0.95)
        print(f"{name}: {dict(outcome.fates)}, median {p50:.3f} s, p95 {p95:.3f} s")
    worse = beside.quantile(0.95) / without.quantile(0.95) - 1
    print(f"p95 {worse:+.1%}; {done} questions of the batch answered in {args.rounds * args.seconds:g} s")
    return int(worse > args.max_worse or not done)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
