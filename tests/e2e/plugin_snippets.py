"""Run by vLLM's interpreter: for each line of JSON `[code, *argv]` one of `[exit status, what was printed]`.

Each snippet runs in a copy of this process, which imports vLLM once for all and registers nothing.
"""

import json
import os
import sys
import tempfile
import traceback

import vllm.entrypoints.launchers.cli_args
import vllm.lora.lora_model
import vllm.lora.punica_wrapper.punica_cpu  # noqa: F401 - for the copies


def main() -> None:
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
            child = os.fork()
            if child == 0:
                run(*json.loads(line), printed=printed.fileno())
            _, status = os.waitpid(child, 0)
            printed.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(status), printed.read()]), flush=True)


def run(code: str, *argv: str, printed: int) -> None:
    os.dup2(printed, 1)
    sys.argv[1:] = argv
    try:
        exec(code, {"__name__": "__main__"})  # noqa: S102 - our own tests'
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


main()
