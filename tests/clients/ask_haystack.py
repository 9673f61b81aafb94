"""Haystack's OpenAIChatGenerator asks a gateway: whole, in a stream, wrongly. Prints the outcome as JSON."""

import json
import sys

import openai
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

url, question = sys.argv[1:]


def ask(key: str, pieces: list[str] | None = None) -> ChatMessage:
    generator = OpenAIChatGenerator(
        api_key=Secret.from_token(key),
        model="cragmesh/closed-book",
        api_base_url=f"{url}/v1",
        max_retries=0,
        streaming_callback=None if pieces is None else lambda chunk: pieces.append(chunk.content),
    )
    messages = [ChatMessage.from_system("Be brief."), ChatMessage.from_user(question)]
    return generator.run(messages=messages)["replies"][0]


pieces: list[str] = []
reply = ask("cm_alice")
ask("cm_alice", pieces)
try:
    ask("cm_mallory")
    refused = ""
except openai.AuthenticationError:
    refused = openai.AuthenticationError.__name__
report = {"answer": reply.text, "streamed": "".join(pieces), "refused": refused}
print(json.dumps(report | {"tokens": reply.meta["usage"]["total_tokens"]}))
