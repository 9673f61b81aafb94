"""llama.cpp in a process of its own, run by `.venv-bench`: reads one JSON line a measurement, writes one.

    .venv-bench/bin/python -m tests.bench.llama_peer MODEL.gguf [--threads 2]

A line in is `{"prompts": [[token ids], ...], "new_tokens": n}`; the prompts are read one after the other, each taking
from the last what both begin with, as llama.cpp's server does for users who come at once. A line out is
`{"seconds": s}`.
"""

import argparse
import json
import sys
import time
from itertools import islice

from llama_cpp import Llama


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    llama = Llama(options.model, n_ctx=4_096, n_batch=512, n_threads=options.threads, verbose=False)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        began = time.perf_counter()
        for prompt in request["prompts"]:
            # Greedy, and on after an end of the text, as vLLM is request.
            list(islice(llama.generate(prompt, temp=0.0), request["new_tokens"]))
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
