"""LangChain's ChatOpenAI asks a gateway: whole, in a stream, wrongly. Prints the outcome as JSON."""

import json
import sys

import openai
from langchain_openai import ChatOpenAI

url, question = sys.argv[1:]
model = ChatOpenAI(base_url=f"{url}/v1", api_key="cm_alice", model="cragmesh/closed-book", max_retries=0)
reply = model.invoke([("system", "Be brief."), ("human", question)])
streamed = list(model.stream(question))
try:
    ChatOpenAI(base_url=f"{url}/v1", api_key="cm_mallory", model="cragmesh/closed-book", max_retries=0).invoke(question)
    refused = ""
except openai.AuthenticationError:
    refused = openai.AuthenticationError.__name__
usage = reply.usage_metadata or {}
report = {"answer": reply.content, "streamed": "".join(str(chunk.content) for chunk in streamed), "refused": refused}
print(json.dumps(report | {"tokens": usage.get("total_tokens", 0)}))
