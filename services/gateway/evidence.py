"""What the generator is shown: passages with where they came from, made harmless, fenced and cut to length."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from proto.answer import Citation, SearchResult
from proto.retrieve import PassageKind, RetrievedPassage
from services.kit.concurrency import all_of
from services.kit.llm import LLM, estimate_tokens

# A chat template's control tokens would end our message and begin another; pages are not to speak for us.
_CONTROL_TOKEN = re.compile(r"<\|(?=[^|<>\n]{0,40}\|>)|\[/?INST\]|</?s>", re.IGNORECASE)
_FENCE = re.compile(r"<(?=\s*/?\s*document\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage and its place: page index in the request, character offsets in the page's extracted text."""

    text: str
    page: int
    page_name: str = ""
    page_url: str = ""
    score: float = 0.0
    start: int = 0
    end: int = 0
    kind: PassageKind = "text"
    source: Literal["web", "kg"] = "web"

    def citation(self) -> Citation:
        return Citation(
            page=self.page,
            page_name=self.page_name,
            page_url=self.page_url,
            text=self.text,
            score=self.score,
            start=self.start,
            end=self.end,
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


def harmless(text: str) -> str:
    """A text that can neither close its fence nor speak the chat template's language."""
    return _FENCE.sub("&lt;", _CONTROL_TOKEN.sub(" ", text))


def render(evidence: Sequence[Evidence]) -> str:
    """Passages as fenced documents (db3, section 2.4)."""
    return "\n".join(
        f'<document title="{harmless(item.page_name).replace(chr(34), chr(39))}">\n{harmless(item.text)}\n</document>'
        for item in evidence
    )


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
