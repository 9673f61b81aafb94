"""A generator without a model, as fast or as slow as one wants: it lets the mesh itself be loaded.

    python -m tests.load.fake_generator [--port 8005] [--prefill 1500] [--decode 25] [--max-num-seqs 32]

vLLM's protocol as far as the mesh speaks it. A reply takes as long as an engine of these rates would: prompts are read
one after the other (`--prefill` tokens a second, all requests together), answers are written side by side (`--decode`
tokens a second each), at most `--max-num-seqs` at a time. 0 is at once. The answer is always the same.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from services.kit.deadline import DeadlineMiddleware
from services.kit.telemetry import Metrics, configure_logging
from tests.bench import common

MODEL = "fake"
ANSWER = "The answer is 43 metres."
# English prose, as the mesh itself estimates.
CHARS_PER_TOKEN = 3.5
TOKEN = re.compile(r"\w+|\W")


@dataclass
class Engine:
    """The time that an engine of these rates would take.

    Args:
        prefill: tokens a second, shared by all prompts; 0 reads at once.
        decode: tokens a second of each answer; 0 writes at once.
        max_num_seqs: requests worked on at a time; more wait.
    """

    prefill: float = 0.0
    decode: float = 0.0
    max_num_seqs: int = 256
    running: int = 0
    waiting: int = 0
    served: int = 0
    _places: asyncio.Semaphore = field(init=False)
    _reading: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.max_num_seqs)

    async def work(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            if self.prefill:
                async with self._reading:
                    await asyncio.sleep(prompt_tokens / self.prefill)
            if self.decode:
                await asyncio.sleep(completion_tokens / self.decode)
            self.served += 1
        finally:
            self.running -= 1
            self._places.release()


def create_app(engine: Engine) -> Starlette:
    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "parent": None}]})

    async def chat(request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        prompt = int(sum(len(message["content"]) for message in body["messages"]) / CHARS_PER_TOKEN)
        tokens = TOKEN.findall(ANSWER)[: body.get("max_tokens") or 16]
        text = "".join(tokens)
        await engine.work(prompt, len(tokens))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop" if text == ANSWER else "length",
            "logprobs": {"content": [{"token": token, "logprob": -0.1} for token in tokens]},
        }
        usage = {"prompt_tokens": prompt, "completion_tokens": len(tokens), "total_tokens": prompt + len(tokens)}
        return JSONResponse({"model": body["model"], "choices": [choice] * (body.get("n") or 1), "usage": usage})

    async def tokenize(request: Request) -> Response:
        count = int(len((await request.json())["prompt"]) / CHARS_PER_TOKEN) + 1
        return JSONResponse({"tokens": list(range(count)), "count": count})

    async def detokenize(request: Request) -> Response:
        # Filler of the same length: the engine has no vocabulary.
        return JSONResponse({"prompt": "word " * (len((await request.json())["tokens"]) * 7 // 10)})

    async def health(_: Request) -> Response:
        return Response()

    async def ready(_: Request) -> Response:
        return JSONResponse({"ready": True, "service": "generator", "model": MODEL})

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(
            f"vllm:num_requests_running {engine.running}\nvllm:num_requests_waiting {engine.waiting}\n"
            f"vllm:request_success_total {engine.served}\n"
        )

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/readyz", ready),
            Route("/metrics", metrics),
            Route("/v1/models", models),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/tokenize", tokenize, methods=["POST"]),
            Route("/detokenize", detokenize, methods=["POST"]),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--port", type=int, default=8005)
    parser.add_argument("--prefill", type=float, default=0.0, help="prompt tokens a second, all together")
    parser.add_argument("--decode", type=float, default=0.0, help="answer tokens a second, each")
    parser.add_argument("--max-num-seqs", type=int, default=256, help="requests at a time")
    args = parser.parse_args()
    engine = Engine(args.prefill, args.decode, args.max_num_seqs)
    # Who hangs up frees a place, as with vLLM.
    app = DeadlineMiddleware(create_app(engine), metrics=Metrics("generator"), max_s=600, max_body=2**26)
    configure_logging("generator", "WARNING")
    uvicorn.run(app, host="127.0.0.1", port=args.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
