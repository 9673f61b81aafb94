"""`GET /readyz`: what the server runs, in the words of the mesh's other services, once it has generated.

vLLM listens after `init_state`: neither `/readyz` nor `/health` answers before the base model and every adapter have
read a prompt and written an answer, so that no caller pays for kernels that oneDNN makes at first use, and that a model
which is computed wrongly on this CPU ends the start instead of answering.
"""

import json
import math
import os
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import State
from vllm import SamplingParams
from vllm.logger import init_logger

from cragmesh_vllm.memory import trim

# JSON by the launcher: `model`, `device`, `precision` and `detail` of the reply.
READINESS = "CRAGMESH_READINESS"
# What is made at first use is made whatever the length: after it 180 to 960 tokens take as long the first time as the
# second, where each adapter had read 400 tokens for it.
WARM_TOKENS, WARM_ANSWER = 40, 4
# How often the prompt says the same. Whatever a language model was taught, it goes on with what is repeated (Olsson et
# al. 2022, arXiv:2209.11895); one that does not cannot answer from passages either.
REPETITIONS = 4

logger = init_logger(__name__)


class Readiness:
    """vLLM's endpoint plugin."""

    name = "cragmesh_readiness"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Add the route."""
        reply = {"ready": True, "service": "generator", **json.loads(os.environ.get(READINESS, "{}"))}

        @app.get("/readyz")
        async def readyz() -> dict[str, Any]:
            return reply

    async def init_state(self, engine_client: Any, state: State, args: Namespace) -> None:
        """Generate once by the base model and by each adapter.

        Raises:
            RuntimeError: what they generate is no language, see `problem`.
        """
        if engine_client is None:
            return
        began = time.monotonic()
        adapters = [None, *state.openai_serving_models.lora_requests.values()]
        for number, adapter in enumerate(adapters):
            tokens = _tokens(number, args)
            sampling = SamplingParams(max_tokens=WARM_ANSWER, temperature=0.0, ignore_eos=True, logprobs=1)
            prompt = {"prompt_token_ids": tokens}
            replies = engine_client.generate(prompt, sampling, f"warm-up-{number}", lora_request=adapter)
            *_, reply = [reply async for reply in replies]
            # An adapter may have been taught to answer in one form only.
            found = problem(reply.outputs[0], tokens[: len(tokens) // REPETITIONS] if adapter is None else [])
            if found:
                raise RuntimeError(f"{adapter.lora_name if adapter else 'the model'} is computed wrongly here: {found}")
        trim()
        logger.info("warm after %d prompts in %.1f s", len(adapters), time.monotonic() - began)


def problem(reply: Any, repeated: Sequence[int]) -> str:
    """What shows that a reply is no language; empty where nothing does.

    Args:
        reply: vLLM's, with the log-probabilities of its tokens.
        repeated: the tokens that a sound model goes on with, of which it need say one in its place only; empty for any.
    """
    if not all(math.isfinite(reply.logprobs[place][token].logprob) for place, token in enumerate(reply.token_ids)):
        return "its probabilities are no numbers"
    # Of a masked CPU, an odd tokenizer or a half-taught model one token may be off; of noise all are.
    if repeated and not any(ours == theirs for ours, theirs in zip(reply.token_ids, repeated, strict=False)):
        return "it does not go on with what its prompt repeats"
    return ""


def _tokens(number: int, args: Namespace) -> list[int]:
    """A prompt that no other begins with: the prefix cache would answer the second from the first."""
    length = min(WARM_TOKENS, (args.max_model_len or WARM_TOKENS + WARM_ANSWER) - WARM_ANSWER) // REPETITIONS
    return [100 + (number * length + place) % 20_000 for place in range(length)] * REPETITIONS
