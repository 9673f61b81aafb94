"""Whether the model of the mesh tells what real processes do: the same questions at the same times, asked of both.

    python -m tests.load.model [--rates 1 2 3] [--seconds 40] [--prefill 3000 --decode 25] [--max-error 0.15]
        [--out out/load/model]

The embedded processes with the fake generator are asked by one user first: what each stage then takes is all that the
model is told. Each load is an open loop of random arrivals, which the model gets as they were. Leaves `errors.json`,
and fails where a median or a p95 is further off than `--max-error`.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lab.capacity.mesh import Mesh, Outcome, Stage, poisson, simulate
from tests.bench import common
from tests.load.demo import demo_pages
from tests.load.fake_generator import ANSWER, TOKEN
from tests.load.run import mesh as embedded
from tests.load.run import running
from tests.load.tally import busy_ms

STRATEGY = "naive-rag"
PLACES = 10
PAGE_SETS = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A question's seconds, and its reply; None where it was refused."""

    seconds: float
    reply: dict[str, Any] | None


async def ask(http: httpx.AsyncClient, visitor: int) -> Question:
    """Ask over one of a few sets of pages, which are soon in the page cache, so that queues alone make a difference."""
    pages = [
        page | {"page_result": page["page_result"].replace("</body>", f"<p>Visitor {visitor % PAGE_SETS}</p></body>")}
        for page in demo_pages()
    ]
    body = {"query": "How tall is the Eiffel Tower?", "search_results": pages, "strategy": STRATEGY}
    began = time.monotonic()
    reply = await http.post("/answer", json=body)
    return Question(time.monotonic() - began, reply.json() if reply.status_code == 200 else None)


async def ask_at(http: httpx.AsyncClient, arrivals: list[float], first: int) -> list[Question]:
    """Ask at these seconds from now, whether or not earlier ones are answered."""
    began = time.monotonic()

    async def later(at: float, visitor: int) -> Question:
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        return await ask(http, visitor)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(later(at, first + number)) for number, at in enumerate(arrivals)]
    return [task.result() for task in tasks]


def model_of(alone: list[dict[str, Any]], overhead_s: float, prefill: float, decode: float) -> Mesh:
    """The model of a mesh by the stages of one user's replies."""
    seconds = {
        name: [reply["timings"][name]["elapsed_ms"] / 1000 for reply in alone]
        for name in ("classify", "retrieve", "tokenize")
    }
    prompt = [reply["usage"]["prompt_tokens"] / prefill for reply in alone]
    decoding = len(TOKEN.findall(ANSWER)) / decode
    call_s = statistics.median(reply["timings"]["generate"]["elapsed_ms"] / 1000 for reply in alone)
    around = max(0.0, call_s - statistics.median(prompt) - decoding)
    own = Stage("gateway", (overhead_s + around,), PLACES, on_cores=True)
    retrieve = Stage("retrieve", seconds["retrieve"], PLACES, on_cores=True)
    classify = Stage("classify", seconds["classify"], PLACES, on_cores=True)
    generate = Stage("generate", prompt, 1, beside=(decoding,))
    tokenize = Stage("tokenize", seconds["tokenize"], PLACES, on_cores=True)
    return Mesh(((own,), (retrieve, classify), (tokenize,), (generate,)), PLACES, cores=os.cpu_count() or 1)


def error(real: float, model: float) -> float:
    return model / real - 1


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 2.0, 3.0], help="questions a second")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each load; %(default)g")
    parser.add_argument("--alone", type=int, default=20, help="questions of the one user; %(default)s")
    parser.add_argument("--prefill", type=float, default=3000.0, help="the generator's prompt tokens a second")
    parser.add_argument("--decode", type=float, default=25.0, help="its answer tokens a second, each")
    parser.add_argument("--max-error", type=float, default=0.15)
    parser.add_argument("--out", type=Path, default=Path("out/load/model"))
    args = parser.parse_args()
    out = args.out.absolute()
    services, urls = embedded(("--prefill", str(args.prefill), "--decode", str(args.decode)))
    rows = []
    async with running(services, out / "mesh"), httpx.AsyncClient(base_url=urls["gateway"], timeout=60) as http:
        for visitor in range(PAGE_SETS):
            await ask(http, visitor)
        alone = [await ask(http, visitor) for visitor in range(args.alone)]
        replies = [one.reply for one in alone if one.reply]
        overhead_s = statistics.median(one.seconds - busy_ms(one.reply["timings"]) / 1000 for one in alone if one.reply)
        model = model_of(replies, overhead_s, args.prefill, args.decode)
        print(f"alone: median {statistics.median(one.seconds for one in alone):.3f} s, overhead {overhead_s:.3f}")
        for number, rate in enumerate(args.rates):
            arrivals = poisson(rate, args.seconds, random.Random(number))
            print(f"{rate:g} a second: asking {len(arrivals)}", flush=True)
            questions = await ask_at(http, arrivals, 1000 * (number + 1))
            real = Outcome([question.seconds for question in questions if question.reply])
            modelled = simulate(model, arrivals)
            row = {
                "rate": rate,
                "asked": len(arrivals),
                "answered": len(real.seconds),
                "model answered": len(modelled.seconds),
            }
            for name, share in (("median", 0.5), ("p95", 0.95)):
                row |= {
                    name: real.quantile(share),
                    f"model {name}": modelled.quantile(share),
                    f"{name} error": error(real.quantile(share), modelled.quantile(share)),
                }
            rows.append(row)
            print(json.dumps({k: round(v, 3) for k, v in row.items()}), flush=True)
    (out / "errors.json").write_text(json.dumps(rows, indent=1))
    worst = max(abs(row[f"{name} error"]) for row in rows for name in ("median", "p95"))
    print(f"furthest off: {worst:.1%}")
    return int(worst > args.max_error)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
