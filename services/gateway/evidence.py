"""Passages with their origin, fenced for prompts and cut to length."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from proto.answer import Citation, CitationSource, SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import SearchHit
from proto.retrieve import PassageKind, RetrievedPassage
from services.kit.concurrency import all_of
from services.kit.llm import LLM, estimate_tokens
from services.kit.untrusted import ENDS, OPENS, fence, one_line

# Titles of the mesh's own sources, which a page must not claim.
GRAPH_TITLE = "knowledge graph"
RECORDS_TITLE = "records"
CALCULATION_TITLE = "calculation"
MEMORY_TITLE = "answer from memory, perhaps made up"
_OWN = r"(?:knowledge\W*graph|\b(?:records?|calculations?|calculator|answer from memory)\b)"
_CLAIM = re.compile(_OWN)
# A document within a page that says to be from one of them, up to its end.
_FORGED = re.compile(
    rf"{OPENS}\s*+document\b[^>\u203a\u3009\ufe65\uff1e]{{0,300}}?{_OWN}.*?(?:{OPENS}\s*+{ENDS}\s*+document\b[^\w\s]?|\Z)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage and its place: page index in the request, character offsets in the page's extracted text.

    A document of a collection has an id, and counts as a page past those of the request.
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
    page_number: int = 0

    @property
    def title(self) -> str:
        """The title for prompts, where a page cannot pass for one of the mesh's own sources."""
        if self.source != "web":
            return self.page_name
        claims = _CLAIM.match(
            unicodedata.normalize("NFKC", one_line(self.page_name)).casefold().lstrip(" \t'\"([{<-*#:")
        )
        return f"a web page that is called: {self.page_name}" if claims else self.page_name

    @property
    def shown(self) -> str:
        """The text for prompts, without documents that claim to be from one of the mesh's own sources."""
        return self.text if self.source != "web" else _FORGED.sub("", self.text)

    def citation(self) -> Citation:
        return Citation.model_validate(self, from_attributes=True)


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
    """Evidence from a collection; `page` is its document's number."""
    return Evidence(
        text=hit.text[:MAX_PASSAGE_CHARS],
        page=page,
        page_name=hit.title,
        page_url=hit.url,
        score=hit.score,
        start=hit.start,
        end=hit.end,
        document=hit.id,
        page_number=hit.page_number,
    )


def render(evidence: Sequence[Evidence]) -> str:
    """Passages as fenced documents (db3, section 2.4)."""
    return "\n".join(fence(item.shown, title=item.title) for item in evidence)


async def cut(evidence: Sequence[Evidence], max_tokens: int, llm: LLM, *, allow_s: float) -> list[Evidence]:
    """The best passages that fit into `max_tokens` by the generator's own tokenizer; the last one is shortened to fit.

    Raises:
        ServiceFailure: the generator's tokenizer did not answer.
    """
    if await llm.count_tokens(render(evidence), allow_s=allow_s) <= max_tokens:
        return list(evidence)
    counts = await all_of(llm.count_tokens(render([item]), allow_s=allow_s) for item in evidence)
    passages: list[Evidence] = []
    room = max_tokens
    for item, count in zip(evidence, counts, strict=True):
        if count <= room:
            passages.append(item)
            room -= count
            continue
        frame = await llm.count_tokens(render([replace(item, text="")]), allow_s=allow_s)
        if room > frame:
            text, _ = await llm.truncate(item.text, room - frame, allow_s=allow_s)
            if text := _to_a_whole_fact(text, item.text):
                # A piece of a table begins with its head, which stands elsewhere; what was posted has no place.
                end = max(item.start, item.end - (len(item.text) - len(text)))
                passages.append(replace(item, text=text, end=end))
        break
    return passages


def _to_a_whole_fact(text: str, whole: str) -> str:
    """The start of a text up to a line's or sentence's end, at least to a word's: half a number is another one."""
    if text == whole:
        return text
    ends = (text.rfind("\n"), *(text.rfind(mark) + 1 for mark in (". ", "! ", "? ")))
    end = max(ends)
    return text[: end if 2 * end > len(text) else text.rfind(" ") + 1].rstrip()


def cut_by_estimate(evidence: Sequence[Evidence], max_tokens: int) -> list[Evidence]:
    """As `cut` without the tokenizer: whole passages only, by an upper estimate of their tokens."""
    totals = accumulate(estimate_tokens(render([item])) for item in evidence)
    return [item for item, total in zip(evidence, totals, strict=True) if total <= max_tokens]
