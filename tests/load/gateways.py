"""Several gateways and one slow generator, asked many times what it answers: what is admitted, and is it in time?

    python -m tests.load.gateways [--gateways 3] [--prefill 1000] [--times 20] [--seconds 100] [--alone]

Gateways as processes of their own, the fake generator, and a real Valkey or Redis between them: `valkey-server` or
`redis-server` of the machine. `--alone` leaves the store out, to see what it is for. Questions bring their evidence, so
that no other service has a part in it. Fails where the answers are not within a tenth of what the engine can give, one
is late or none for want of time, or a refusal lacks `Retry-After`.
"""

import asyncio
import contextlib
import os
import random
import shutil
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx

from tests.bench import common
from tests.load.restart import ready
from tests.load.run import ports_of
from tests.load.tally import REFUSED, Tally
from tests.serving import process

BUDGET_S = 30.0
# Until the first questions have been measured.
START_S = 20.0
TOLERANCE = 0.1
QUESTION = {
    "query": "How tall is the light of Port Ansel?",
    "evidence": [
        "The light of Port Ansel is 43 metres tall. " + "Ships have passed below it for a hundred years. " * 20
    ]
    * 3,
    "strategy": "naive-rag",
    "every_answer": True,
}


@contextlib.asynccontextmanager
async def serving(count: int, prefill: float, *, store: bool) -> AsyncIterator[list[str]]:
    """The gateways' roots, each ready and with one question behind it."""
    names = [f"gateway{number}" for number in range(count)]
    ports = ports_of([*names, "generator", "valkey", "nobody"])
    away = {
        f"CRAGMESH_{name}_URL": f"http://127.0.0.1:{ports['nobody']}"
        for name in ("RETRIEVER", "RERANKER", "CLASSIFIER", "KG")
    }
    env = {**away, "CRAGMESH_GENERATOR_URL": f"http://127.0.0.1:{ports['generator']}", "CRAGMESH_LOG_LEVEL": "WARNING"}
    generator = ("-m", "tests.load.fake_generator", "--port", str(ports["generator"]), "--prefill", str(prefill))
    with contextlib.ExitStack() as stack:
        if store:
            server = shutil.which("valkey-server") or shutil.which("redis-server")
            if server is None:
                sys.exit("error: neither valkey-server nor redis-server is installed; --alone does without")
            stack.enter_context(process(server, "--port", str(ports["valkey"]), "--save", "", "--bind", "127.0.0.1"))
            env["CRAGMESH_VALKEY_URL"] = f"redis://127.0.0.1:{ports['valkey']}/0"
        stack.enter_context(process(sys.executable, *generator))
        roots = [f"http://127.0.0.1:{ports[name]}" for name in names]
        for name in names:
            port = {"CRAGMESH_GATEWAY_PORT": str(ports[name])}
            stack.enter_context(process(sys.executable, "-m", "services.gateway", env={**os.environ, **env, **port}))
        await ready(f"http://127.0.0.1:{ports['generator']}/health", within_s=120)
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            for root in roots:
                await ready(f"{root}/readyz", within_s=120)
                (await http.post(f"{root}/answer", json=QUESTION)).raise_for_status()
        yield roots


async def flood(roots: list[str], rate: float, seconds: float) -> Tally:
    """An open loop: questions come at random moments, whether or not earlier ones are answered."""
    draw, began = random.Random(7), time.monotonic()
    tally = Tally(BUDGET_S, began=began)

    async def ask(http: httpx.AsyncClient) -> None:
        sent = time.monotonic()
        reply = await http.post(f"{draw.choice(roots)}/answer", json=QUESTION)
        if reply.status_code == httpx.codes.OK:
            tally.answered(time.monotonic() - sent, reply.json())
        else:
            tally.refused(reply.status_code, own_form=reply.status_code != REFUSED or "retry-after" in reply.headers)

    limits = httpx.Limits(max_connections=2_000, max_keepalive_connections=100)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as http, asyncio.TaskGroup() as group:
        while time.monotonic() - began < seconds:
            await asyncio.sleep(draw.expovariate(rate))
            group.create_task(ask(http))
    return tally


async def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--prefill", type=float, default=1_000, help="prompt tokens a second of the generator")
    parser.add_argument("--times", type=float, default=20, help="what is asked, as a multiple of what it answers")
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--alone", action="store_true", help="without a store: each gateway for itself")
    args = parser.parse_args()
    async with serving(args.gateways, args.prefill, store=not args.alone) as roots:
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            usage: dict[str, Any] = (await http.post(f"{roots[0]}/answer", json=QUESTION)).json()["usage"]
        rate = args.prefill / usage["prompt_tokens"]
        tally = await flood(roots, args.times * rate, args.seconds)
    within = sum(START_S <= at < args.seconds and outcome == "answers" for at, outcome in tally.moments)
    share = within / (args.seconds - START_S) / rate
    print(f"the engine answers {rate:.2f} a second; {args.gateways} gateways were asked {args.times:g} times as many")
    print(f"answers to those that it can give: {share:.3f}; statuses {dict(tally.statuses)}")
    print(tally.report())
    faults = {
        "not within a tenth of the engine's capacity": abs(share - 1) > TOLERANCE,
        "late, or without an answer for want of time": tally.useful < len(tally.seconds),
        "refused without Retry-After": tally.misshapen > 0,
        "neither answered nor refused": bool(tally.statuses.keys() - {200, REFUSED}),
    }
    sys.exit(common.failed(line for line, is_so in faults.items() if is_so))


if __name__ == "__main__":
    asyncio.run(main())
