"""What the generator is shown: passages with where they came from, made harmless, fenced and cut to length."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proto.answer import Citation, CitationSource, SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import SearchHit
from proto.retrieve import PassageKind, RetrievedPassage
from services.kit.concurrency import all_of
from services.kit.llm import LLM, estimate_tokens

# Titles name a page; a longer one is no title.
MAX_TITLE_CHARS = 200
# What a reader does not see and a model does: zero-width and direction marks, and Unicode's tag characters, in which
# whole sentences are hidden. Also what could stand between the letters of a token below.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# A chat template's control tokens would end our message and begin another; pages are not to speak for us. ChatML and
# Llama 3 (also in DeepSeek's fullwidth bars), Llama 2 and Mistral, Gemma, the tags of reasoning and of tool calls.
_CONTROL_TOKEN = re.compile(
    r"<[|\uff5c][^|\uff5c<>\n]{0,40}[|\uff5c]>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|<</?SYS>>"
    r"|</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|think|tool_call|tool_response)>",
    re.IGNORECASE,
)
_HALF_TOKEN = re.compile(r"<[|\uff5c]|[|\uff5c]>|</?(?=\w{1,20}>)|\[/?(?=[A-Z_]{4,20}\])", re.IGNORECASE)
_FENCE = re.compile(r"[<\u2039\u3008\ufe64\uff1c](?=\s*+(?:[/\u2044\u2215\uff0f]\s*+)?document\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage and its place: page index in the request, character offsets in the page's extracted text.

    A document of a collection has its id there, and counts as a page past those of the request.
    """

    text: str
    page: int
    page_name: str = ""
    page_url: str = ""
    score: float = 0.0
    start: int = 0
    end: int = 0
    kind: PassageKind = "text"
    source: CitationSource = "web"
    document: str = ""

    def citation(self) -> Citation:
        return Citation(
            page=self.page,
            page_name=self.page_name,
            page_url=self.page_url,
            text=self.text,
            score=self.score,
            start=self.start,
            end=self.end,
            document=self.document,
            source=self.source,
        )


def from_passage(passage: RetrievedPassage, results: Sequence[SearchResult], pages: Sequence[int]) -> Evidence:
    """Evidence from a retrieved passage; `pages` maps the retriever's page indexes to the request's."""
    index = pages[passage.page]
    return Evidence(
        text=passage.text,
        page=index,
        page_name=results[index].page_name,
        page_url=results[index].page_url,
        score=passage.score,
        start=passage.start,
        end=passage.end,
        kind=passage.kind,
    )


def from_hit(hit: SearchHit, page: int) -> Evidence:
    """Evidence from a collection; `page` is the number that its document counts as."""
    return Evidence(
        text=hit.text[:MAX_PASSAGE_CHARS],
        page=page,
        page_name=hit.title,
        page_url=hit.url,
        score=hit.score,
        start=hit.start,
        end=hit.end,
        document=hit.id,
    )


def harmless(text: str) -> str:
    """A text that can neither close its fence nor speak the chat template's language, and hides nothing."""
    text = _FENCE.sub("&lt;", _CONTROL_TOKEN.sub(" ", _CONTROL.sub(" ", _INVISIBLE.sub("", text))))
    if _CONTROL_TOKEN.search(text):
        # What was replaced stood between the halves of another token; nobody writes so by chance.
        text = _FENCE.sub("&lt;", _HALF_TOKEN.sub(" ", _CONTROL_TOKEN.sub(" ", text)))
    return text


def asked(query: str) -> str:
    """A question as prompts say it: harmless, and on its own line, which ends the prompt."""
    return " ".join(harmless(query).split())


def render(evidence: Sequence[Evidence]) -> str:
    """Passages as fenced documents (db3, section 2.4)."""
    return "\n".join(fence(item.text, title=item.page_name) for item in evidence)


def fence(text: str, **attributes: str) -> str:
    """A text between tags, with what is known of it as attributes that cannot end before their quotes do."""
    named = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<document{named}>\n{harmless(text)}\n</document>"


def _attribute(value: str) -> str:
    line = " ".join(harmless(value).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;").split())
    return line if len(line) <= MAX_TITLE_CHARS else line[:MAX_TITLE_CHARS] + "..."


async def cut(evidence: Sequence[Evidence], max_tokens: int, llm: LLM, *, allow_s: float) -> list[Evidence]:
    """The best passages that fit into `max_tokens` by the generator's own tokenizer; the last one is shortened to fit.

    Raises:
        ServiceFailure: the generator's tokenizer did not answer.
    """
    if await llm.count_tokens(render(evidence), allow_s=allow_s) <= max_tokens:
        return list(evidence)
    counts = await all_of(llm.count_tokens(render([item]), allow_s=allow_s) for item in evidence)
    kept: list[Evidence] = []
    left = max_tokens
    for item, count in zip(evidence, counts, strict=True):
        if count <= left:
            kept.append(item)
            left -= count
            continue
        frame = await llm.count_tokens(render([replace(item, text="")]), allow_s=allow_s)
        if left > frame:
            text, _ = await llm.truncate(item.text, left - frame, allow_s=allow_s)
            if text.strip():
                kept.append(replace(item, text=text, end=item.start + len(text)))
        break
    return kept


def cut_by_estimate(evidence: Sequence[Evidence], max_tokens: int) -> list[Evidence]:
    """As `cut`, for when the tokenizer cannot be asked: whole passages only, their tokens estimated from above."""
    kept: list[Evidence] = []
    left = max_tokens
    for item in evidence:
        left -= estimate_tokens(render([item]))
        if left < 0:
            break
        kept.append(item)
    return kept
