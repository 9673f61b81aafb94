"""Chat with any OpenAI-compatible server, and count tokens with the server's tokenizer where it has one (vLLM).

Replies are hostile input: `max_tokens` caps their lengths, pydantic checks their shapes, and a constrained reply is
checked again here, because a server without support for a constraint ignores it silently.
"""

import contextlib
import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import Field, JsonValue

from proto.base import Contract
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.errors import BadReply, ServiceFailure, ServiceRejected, ServiceUnavailable
from services.kit.telemetry import log
from services.kit.tokens import estimate_tokens, head_by_estimate

NOT_FOUND = 404
# How servers without a route say so; LM Studio says it with 200 and an error, TGI asks for other fields with 422.
NO_ROUTE = frozenset({NOT_FOUND, 405, 501})
NO_TOKENIZER = NO_ROUTE | {400, 422}
# No request has more.
MAX_TOKENS = 10_000_000
# vLLM's finish reason of a reply that was cut when the engine stopped.
ABORTED = "abort"
# Within this time an adapter that was loaded while the server runs is noticed.
MODELS_TTL_S = 60.0
# A question does not wait longer for the renewal of a list that it has.
RENEWAL_S = 2.0

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """The form of a reply; exactly one field is set.

    `choice` is one of a few strings, `regex` a full match, `grammar` an EBNF text, `json_schema` a JSON schema.
    """

    choice: tuple[str, ...] = ()
    regex: str = ""
    grammar: str = ""
    json_schema: dict[str, JsonValue] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Request fields: the portable `response_format` for JSON, vLLM's `structured_outputs` for the rest."""
        if self.json_schema:
            schema = {"name": "reply", "schema": self.json_schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        if self.choice:
            return {"structured_outputs": {"choice": list(self.choice)}}
        if self.regex:
            return {"structured_outputs": {"regex": self.regex}}
        return {"structured_outputs": {"grammar": self.grammar}}

    def holds(self, text: str) -> bool:
        """Whether a reply keeps to the constraint; a grammar's reply is left to its caller's strict parser."""
        if self.choice:
            return text in self.choice
        if self.regex:
            return re.fullmatch(self.regex, text) is not None
        if self.json_schema:
            try:
                json.loads(text)
            except (ValueError, RecursionError):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply. `logprob` is the mean over its tokens in nats, None when not requested or not offered."""

    text: str
    finish_reason: str
    logprob: float | None = None
    token_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """All samples of one request, with their tokens.

    `model` is the replying model by the server's reply, `adapter` the adapter that replied, empty where the base model
    did. `missing_adapter` names the requested adapter when it is not served; else it is empty.
    """

    samples: tuple[Sample, ...]
    prompt_tokens: int
    completion_tokens: int
    model: str
    adapter: str = ""
    missing_adapter: str = ""

    @property
    def text(self) -> str:
        return self.samples[0].text


class _TokenLogprob(Contract):
    logprob: float = Field(allow_inf_nan=False)


class _Logprobs(Contract):
    content: list[_TokenLogprob] | None = None


class _ReplyMessage(Contract):
    content: str | None = None


class _Choice(Contract):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(Contract):
    prompt_tokens: int = Field(0, ge=0, le=MAX_TOKENS)
    completion_tokens: int = Field(0, ge=0, le=MAX_TOKENS)


class _ChatReply(Contract):
    model: str = ""
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage = Field(default_factory=_Usage)


class Model(Contract):
    """A model or an adapter that a server has; `parent` is the adapter's base."""

    id: str = Field(max_length=500)
    parent: str | None = None


class Models(Contract):
    """`GET /v1/models`."""

    data: list[Model] = Field(min_length=1)


class _Tokenized(Contract):
    tokens: list[int]


class _Detokenized(Contract):
    prompt: str


class LLM:
    """A chat model behind an OpenAI-compatible server.

    Args:
        client: the server, by its root: `/v1` is added here, since vLLM's tokenizer routes lie beside it.
        model: the base model's name there; empty takes the first that the server lists.
    """

    def __init__(self, client: ServiceClient, *, model: str = "") -> None:
        self.client = client
        self._configured = model
        # The base model's name and all names that the server listed last; empty before the first request.
        self.model = model
        self.served: frozenset[str] = frozenset()
        self._listed_at = -math.inf
        # Until then tokens are estimated.
        self._tokenizer_again_at = -math.inf

    async def models(self, *, allow_s: float) -> frozenset[str]:
        """Names of the models and adapters that the server has now; the configured one where it lists none.

        Raises:
            ServiceFailure: the server gave no usable answer.
        """
        try:
            reply = self.client.parse(await self.client.request("GET", "/v1/models", allow_s=allow_s), Models)
        except ServiceRejected as error:
            if not self._configured or error.status not in NO_ROUTE:
                raise
            reply = Models(data=[Model(id=self._configured)])
        self.served, self._listed_at = frozenset(model.id for model in reply.data), time.monotonic()
        if not self._configured:
            self.model = next((model.id for model in reply.data if model.parent is None), reply.data[0].id)
        return self.served

    async def renew(self, *, allow_s: float) -> None:
        """List the models again where that was long ago: another server may have taken this one's place.

        Raises:
            ServiceFailure: the server has never given a usable list.
        """
        if not self.served or not self.model:
            await self.models(allow_s=allow_s)
        elif time.monotonic() - self._listed_at > MODELS_TTL_S:
            # Set even when the renewal fails: until the next one the old list serves.
            self._listed_at = time.monotonic()
            with contextlib.suppress(ServiceFailure):
                await self.models(allow_s=min(allow_s, RENEWAL_S))

    async def serves(self, name: str, *, allow_s: float) -> bool:
        """Whether the server has a model or an adapter of this name.

        Answers from the last listing, which is renewed now and then: adapters can be loaded while the server runs.

        Raises:
            ServiceFailure: the server has never given a usable list.
        """
        await self.renew(allow_s=allow_s)
        return name in self.served

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        allow_s: float,
        temperature: float = 0.0,
        n: int = 1,
        logprobs: bool = False,
        adapter: str = "",
        constraint: Constraint | None = None,
        stop: Sequence[str] = (),
    ) -> Completion:
        """`n` replies of at most `max_tokens` tokens each within `allow_s` seconds.

        Args:
            temperature: 0 is greedy, of which vLLM gives one sample only.
            adapter: LoRA adapter by name; where the server lacks it, the base model answers and `missing_adapter` says
                so.
            constraint: the form of the replies; enforced by the server and checked again here.

        Raises:
            ServiceFailure: no usable reply within the allowance.
        """
        budget = Budget(allow_s)
        await self.renew(allow_s=budget.left())
        adapted = bool(adapter) and adapter in self.served
        body: dict[str, Any] = {
            "model": adapter if adapted else self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "n": n,
            "stream": False,
        }
        if logprobs:
            body["logprobs"] = True
        if stop:
            body["stop"] = list(stop)
        if constraint:
            body |= constraint.body()
        try:
            content = await self._post("/v1/chat/completions", body, allow_s=budget.left())
        except ServiceRejected as error:
            if error.status != NOT_FOUND:
                raise
            # The server has other models now; the next request lists them.
            self.served, self.model = frozenset(), self._configured
            if not adapted or not budget.left():
                raise
            # The adapter was unloaded, and the base model still serves.
            await self.models(allow_s=budget.left())
            adapted, body["model"] = False, self.model
            content = await self._post("/v1/chat/completions", body, allow_s=budget.left())
        reply = self.client.parse(content, _ChatReply)
        if any(choice.finish_reason == ABORTED for choice in reply.choices):
            # The engine stopped, and cut the reply anywhere.
            raise ServiceUnavailable(self.client.name, "the reply was aborted")
        samples = tuple(_sample(choice) for choice in reply.choices)
        if constraint and not all(constraint.holds(sample.text) for sample in samples):
            raise BadReply(self.client.name, "the reply does not keep to its constraint")
        usage, (used, missing) = reply.usage, (adapter, "") if adapted else ("", adapter)
        return Completion(samples, usage.prompt_tokens, usage.completion_tokens, reply.model, used, missing)

    async def count_tokens(self, text: str, *, allow_s: float) -> int:
        """Tokens of a text by the server's tokenizer, or an upper estimate where it has none."""
        tokens = await self._tokens(text, allow_s=allow_s)
        return len(tokens) if tokens is not None else estimate_tokens(text)

    async def truncate(self, text: str, max_tokens: int, *, allow_s: float) -> tuple[str, int]:
        """The start of a text of at most `max_tokens` tokens, and the number of its tokens."""
        # A token rarely spells more than twelve characters: a text far over the limit is cut before it is sent.
        text = text[: max_tokens * 12]
        budget = Budget(allow_s)
        tokens = await self._tokens(text, allow_s=budget.left())
        if tokens is None:
            head = head_by_estimate(text, max_tokens)
            return head, estimate_tokens(head)
        if len(tokens) <= max_tokens:
            return text, len(tokens)
        body = {"model": self.model, "tokens": tokens[:max_tokens]}
        reply = await self._post("/detokenize", body, allow_s=budget.left())
        head = self.client.parse(reply, _Detokenized).prompt
        # Half a character at the cut comes back as the replacement sign, so the text itself is sliced.
        return text[: len(head.rstrip("\ufffd"))] if text.startswith(head[:200]) else head, max_tokens

    async def _tokens(self, text: str, *, allow_s: float) -> list[int] | None:
        if time.monotonic() < self._tokenizer_again_at:
            return None
        budget = Budget(allow_s)
        if self.served or not self.model:
            await self.renew(allow_s=budget.left())
        before, tokens = self.model, await self._tokenize(text, allow_s=budget.left())
        if tokens is None:
            # The server may have another model now.
            with contextlib.suppress(ServiceFailure):
                await self.models(allow_s=budget.left())
            if self.model != before:
                tokens = await self._tokenize(text, allow_s=budget.left())
        if tokens is None:
            self._tokenizer_again_at = time.monotonic() + MODELS_TTL_S
        return tokens

    async def _tokenize(self, text: str, *, allow_s: float) -> list[int] | None:
        """The tokens; None where the server has no tokenizer of this model, or one that reads other requests."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        try:
            tokens = self.client.parse(await self._post("/tokenize", body, allow_s=allow_s), _Tokenized).tokens
        except BadReply:
            return None
        except ServiceRejected as error:
            if error.status not in NO_TOKENIZER:
                raise
            return None
        # llama.cpp's reads another field, and finds no text.
        return tokens if tokens or not text else None

    async def _post(self, path: str, body: dict[str, Any], *, allow_s: float) -> bytes:
        return await self.client.request("POST", path, json.dumps(body).encode(), allow_s=allow_s)


# Cached, so that it is logged once and not with every question.
@cache
def log_missing(adapter: str, model: str) -> None:
    """Log that a server lacks an adapter, so that another model replies."""
    log.info("adapter not served", adapter=adapter, replies=model)


def _sample(choice: _Choice) -> Sample:
    content = choice.logprobs.content if choice.logprobs else None
    # Rounding takes the logarithm of a probability of one above zero.
    token_logprobs = tuple(min(0.0, token.logprob) for token in content or ())
    mean = sum(token_logprobs) / len(token_logprobs) if token_logprobs else None
    return Sample(choice.message.content or "", choice.finish_reason or "", mean, token_logprobs)
