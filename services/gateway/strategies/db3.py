"""`db3`: the knowledge graph and, where it does not answer, the web (db3, sections 2.2 to 2.4, 3.1).

As published but for:

- Retrieval (2.2): of all children the 200 best by BM25 are embedded (`options.prefilter`); encoder and reranker are
  the mesh's, bge-base-en-v1.5 and bge-reranker-v2-m3 in production, MiniLM where it is embedded.
- Answering (2.4): the context is cut at the settings' tokens, 4,000 in production; the prompts are our own words, and
  `controlled` is the default where no adapter is served; what is read fits the time left.
- Graph (3.2): rules write the program first, the language model where they find none, and it runs as SQL over a
  database instead of over the live API; a name that is not in the graph is refused; facts too old for a real-time
  question do not answer it.
- Public data (2.3): the classifier names the domain, and one prompt finds the entities of any; records are those of the
  graph's database, found by its index of names.
"""

from collections.abc import Sequence
from typing import ClassVar

from proto.options import Options
from services.gateway import prompts
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Draft
from services.gateway.steps.generate import TAUGHT_PROMPT, Generation, read_and_answer, serves_adapter
from services.gateway.steps.graph_first import graph_first
from services.gateway.steps.knowledge_graph import answer_from_facts, look_up
from services.gateway.steps.retrieve import RERANKING_OPTIONS, Retrieval
from services.gateway.strategies.base import Strategy

# Section 2.2; sizes of the chunks as in the authors' code.
WEB = Retrieval(
    recall_k=50, rerank_k=5, chunker="parent-child", ranking="dense", extractor="beautifulsoup", tables=False
)
PROMPTS = {name: prompts.load(name) for name in ("basic", "controlled", "facts", TAUGHT_PROMPT)}


class Db3(Strategy):
    name = "db3"
    summary = (
        "Winner of CRAG 2024: an answer from the knowledge graph comes first; else the web: the 5 best pages by "
        "snippet, parent-child chunks, recall 50, rerank 5, as much context as the settings allow, a prompt that "
        "allows for abstention."
    )

    options = RERANKING_OPTIONS | {"context_tokens", "kg", "false_premise"}
    parts: ClassVar = {
        "kg": Options(kg="off"),
        "rerank": Options(rerank=False),
        "parents": Options(chunk_chars=200),
        "false-premise": Options(false_premise=False),
    }

    async def answer(self, context: Context) -> Draft:
        return await graph_first(context, WEB, from_graph=_from_graph, read=_read)


async def _from_graph(context: Context) -> Draft | None:
    """The knowledge graph's answer; None when it has none."""
    facts = await look_up(context)
    if facts is None:
        return None
    adapter = context.settings.kg_answer_adapter
    prompt = PROMPTS[TAUGHT_PROMPT if await serves_adapter(context, adapter) else "facts"]
    return await answer_from_facts(context, prompt, facts, adapter=adapter)


async def _read(context: Context, evidence: Sequence[Evidence]) -> Draft:
    adapter = context.settings.web_answer_adapter
    base = context.settings.db3_prompt if context.options.false_premise is not False else "basic"
    prompt = PROMPTS[TAUGHT_PROMPT if await serves_adapter(context, adapter) else base]
    return await read_and_answer(context, Generation(prompt, adapter=adapter), evidence)
