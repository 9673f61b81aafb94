"""A generator that speaks vLLM's protocol without a model, and faults to put in front of any application."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from services.kit.client import ServiceClient, http_client
from services.kit.llm import LLM

Body = dict[str, Any]


class FakeGenerator:
    """An OpenAI-compatible server: tokens are runs of word characters or single others, and replies are scripted.

    `reply` gets the request's JSON and returns the text to say. `running` counts requests being served, `cancelled`
    those whose caller left, as vLLM's metrics do. While `free` is cleared no reply is given.
    """

    def __init__(self, reply: Callable[[Body], str] = lambda _: "Paris", *, seconds: float = 0.0) -> None:
        self.reply = reply
        self.seconds = seconds
        self.free = asyncio.Event()
        self.free.set()
        self.requests: list[Body] = []
        self.running = 0
        self.cancelled = 0
        self.adapters: list[str] = []
        # Some servers know none, or have no tokenizer.
        self.logprobs = True
        self.logprob = -0.1
        self.tokenizer = True
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/tokenize", self._tokenize, methods=["POST"]),
                Route("/detokenize", self._detokenize, methods=["POST"]),
            ]
        )

    def llm(self) -> LLM:
        """A client of it."""
        http = http_client(httpx.ASGITransport(self.app))
        return LLM(ServiceClient("generator", "http://generator", http))

    async def _models(self, _: Request) -> Response:
        data: list[Body] = [{"id": "fake", "parent": None}]
        data += [{"id": name, "parent": "fake"} for name in self.adapters]
        return JSONResponse({"data": data})

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        if body["model"] not in ("fake", *self.adapters):
            return JSONResponse({"error": {"message": "no such model"}}, 404)
        self.requests.append(body)
        self.running += 1
        try:
            await asyncio.sleep(self.seconds)
            await self.free.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        text = self.reply(body)
        prompt = sum(len(tokens(message["content"])) for message in body["messages"])
        said = tokens(text)[: body["max_tokens"]]
        logprobs = [{"token": token, "logprob": self.logprob} for token in said]
        choice = {
            "message": {"role": "assistant", "content": "".join(said)},
            "finish_reason": "length" if len(said) < len(tokens(text)) else "stop",
            "logprobs": {"content": logprobs} if self.logprobs else None,
        }
        usage = {"prompt_tokens": prompt, "completion_tokens": len(said)}
        return JSONResponse({"model": body["model"], "choices": [choice] * body.get("n", 1), "usage": usage})

    async def _tokenize(self, request: Request) -> Response:
        if not self.tokenizer:
            return JSONResponse({"detail": "Not Found"}, status_code=404)
        self._words = tokens((await request.json())["prompt"])
        return JSONResponse({"tokens": list(range(len(self._words))), "count": len(self._words)})

    async def _detokenize(self, request: Request) -> Response:
        kept = (await request.json())["tokens"]
        return JSONResponse({"prompt": "".join(self._words[: len(kept)])})


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\W", text)


class Faulty:
    """An application that can be told to misbehave; `killed` is up to the transport in front of it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.fault = ""
        self.cancelled = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.fault == "frozen":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.fault in ("garbage", "html"):
            body = b"\x00\xff{{{" if self.fault == "garbage" else b"<html>oops</html>"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
            return
        if self.fault.isdecimal():
            await send({"type": "http.response.start", "status": int(self.fault), "headers": []})
            await send({"type": "http.response.body", "body": json.dumps({"title": "fault"}).encode()})
            return
        await self.app(scope, receive, send)
