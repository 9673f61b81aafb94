"""Our retrieval beside that of two libraries, in one run, on the same pages, with the same encoder.

    .venv-bench/bin/python -m tests.bench.retrieval [--data crag,fresh] [--peers ours,haystack] [-n 60]

`ours` is the service's own code in one process, `ours-http` the same through a retriever process and its HTTP;
`haystack` and `langchain` are the pipelines of `tests.bench.peer_server`. Each peer has a process of its own, so that
its peak memory is its own. The data are found through CRAGMESH_EVAL_DATA; CRAG's answers are not looked for.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from services.kit.encoder import bundled_model
from tests.bench import common
from tests.bench.answers import cut, fresh_questions, holds
from tests.bench.ours import Search, local, over_http
from tests.unit.retriever.collections.process import Retriever

PEERS = ("ours", "ours-http", "haystack", "langchain")
# Tokens to which a context is filled.
FILLED = (500, 1_000)
SEED = 7

# Question, HTML of its pages, their snippets, and answers to look for.
Case = tuple[str, list[str], list[str], tuple[str, ...]]


def questions(root: pathlib.Path, data: str, limit: int) -> Iterator[Case]:
    if data == "fresh":
        for question, pages in fresh_questions(root, SEED, limit):
            yield question.text, pages, [""] * len(pages), question.answers
        return
    for record in common.read_rows(root / "crag_pages.jsonl.gz"):
        results = record["search_results"]
        snippets = [result.get("page_snippet") or "" for result in results]
        yield record["query"], [result["page_result"] for result in results], snippets, ()


@contextmanager
def opened(name: str) -> Iterator[tuple[Search, Callable[[], int]]]:
    """A peer, and its peak memory in MiB."""

    def own_mib() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    if name == "ours":
        with local() as search:
            yield search, own_mib
    elif name == "ours-http":
        with Retriever(PAGE_CACHE_MIB="0") as retriever, over_http(retriever.url) as search:
            yield search, retriever.peak_mib
    else:
        from tests.bench.peer_server import PEERS as LIBRARIES
        from tests.bench.peer_server import Chat, Text

        library = LIBRARIES[name](Chat("http://127.0.0.1:9", "none"))

        def nearest(query: str, pages: Sequence[str], _: Sequence[str]) -> list[str]:
            index = library.from_pages([Text("", page) for page in pages])
            return [passage.text for passage in library.retrieve(index, query)]

        yield nearest, own_mib


def measured(search: Search, cases: Sequence[Case], time_limit: float) -> Iterator[dict[str, Any]]:
    """Seconds a question, and whether its context holds the answer when it is filled to so many tokens."""
    tokenizer = Tokenizer.from_file(str(bundled_model() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    last, pages, snippets, _ = cases[-1]
    search(last, pages[:2], snippets[:2])
    started = time.monotonic()
    for text, pages, snippets, answers in cases:
        if time_limit and time.monotonic() - started > time_limit:
            return
        began = time.perf_counter()
        context = "\n".join(search(text, pages, snippets))
        seconds = time.perf_counter() - began
        hits = {str(tokens): holds(cut(tokenizer, context, tokens), answers) for tokens in FILLED if answers}
        yield {"question": text, "seconds": seconds, "hits": hits}


def measure_one(name: str, root: pathlib.Path, args: argparse.Namespace) -> None:
    """Print a peer's rows and peak memory as JSON."""
    with opened(name) as (search, peak_mib):
        rows = list(measured(search, list(questions(root, args.data, args.n)), args.time_limit))
        print(json.dumps({"rows": rows, "mib": peak_mib()}))


def seen_before(root: pathlib.Path, data: str) -> str:
    """What a question costs at first, and again once its pages are in the cache."""
    _, pages, snippets, _ = next(questions(root, data, 1))
    seconds = []
    with Retriever(PAGE_CACHE_MIB="128") as retriever, over_http(retriever.url) as search:
        for _ in range(11):
            began = time.perf_counter()
            search("who said this, and when?", pages, snippets)
            seconds.append(time.perf_counter() - began)
    first, again = seconds[0], sorted(seconds[1:])[5]
    return f"five pages: {first * 1000:.0f} ms at first, {again * 1000:.0f} ms seen before"


def line(name: str, result: dict[str, Any], ours: Sequence[dict[str, Any]]) -> str:
    """A peer's figures, and ours against it on the questions that both did."""
    rows = result["rows"]
    seconds = [row["seconds"] for row in rows]
    cells = [f"{name:12} {np.median(seconds):7.3f} {np.percentile(seconds, 95):7.3f} {result['mib']:6}"]
    mine = {row["question"]: row for row in ours}
    both = [(mine[row["question"]], row) for row in rows if row["question"] in mine]
    pairs = {tokens: [(us["hits"], them["hits"]) for us, them in both if them["hits"]] for tokens in map(str, FILLED)}
    shares = ([row["hits"][tokens] for row in rows if row["hits"]] for tokens in pairs)
    cells += [f"{np.mean(hits):6.3f}" if hits else f"{'-':>6}" for hits in shares]
    if both:
        cells.append(f"{np.median([them['seconds'] / us['seconds'] for us, them in both]):8.1f}x ")
        for tokens, hits in pairs.items():
            won = sum(us[tokens] and not them[tokens] for us, them in hits)
            lost = sum(them[tokens] and not us[tokens] for us, them in hits)
            cells.append(f"+{won} -{lost}")
    return " ".join((*cells, f" n={len(rows)}"))


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--data", default="crag,fresh")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("-n", type=int, default=60, help="FreshQA's questions")
    parser.add_argument("--time-limit", type=float, default=0, help="seconds of a peer on a data set; 0 is no limit")
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    root = common.evaluation_data("bench", "there are no pages to measure on")
    if args.one:
        measure_one(args.one, root, args)
        return
    for data in common.names(args.data):
        print(f"{data}: seconds a question, MiB, answer-hit of the context filled to 500 / 1,000 tokens")
        print(f"{'peer':12} {'median':>7} {'p95':>7} {'MiB':>6} {'@500':>6} {'@1000':>6}  time / ours, hits won, lost")
        ours: list[dict[str, Any]] = []
        for name in common.names(args.peers):
            options = ("--data", data, "-n", str(args.n), "--time-limit", str(args.time_limit), "--one", name)
            command = (sys.executable, "-W", "ignore", "-m", "tests.bench.retrieval", *options)
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
            if done.returncode:
                print(f"{name:12} failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            print(line(name, result, ours), flush=True)
            ours = result["rows"] if name == "ours" else ours
        print(seen_before(root, data))


if __name__ == "__main__":
    main()
