"""Passages with their origin, fenced for prompts and cut to length."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from proto.answer import Citation, CitationSource, SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import SearchHit
from proto.retrieve import PassageKind, RetrievedPassage
from services.kit.budget import Budget
from services.kit.concurrency import all_of
from services.kit.llm import LLM
from services.kit.text.cutting import FULL_STOPS, whole_words
from services.kit.tokens import estimate_tokens, head_by_estimate
from services.kit.untrusted import ENDS, OPENS, fence, one_line, visible

# Titles of the mesh's own sources, which a page must not claim.
GRAPH_TITLE = "knowledge graph"
RECORDS_TITLE = "records"
CALCULATION_TITLE = "calculation"
MEMORY_TITLE = "answer from memory, perhaps made up"
_OWN = r"(?:knowledge[\W_]*graph|(?<![^\W_])(?:records?|calculations?|calculator|answer from memory)(?![^\W_]))"
_CLAIM = re.compile(rf"[\W_]*(?:the\b[\W_]*)?{_OWN}")
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
        claims = _CLAIM.match(unicodedata.normalize("NFKC", one_line(self.page_name)).casefold())
        return f"a web page that is called: {self.page_name}" if claims else self.page_name

    @property
    def shown(self) -> str:
        """The text for prompts, without documents that claim to be from one of the mesh's own sources."""
        return self.text if self.source != "web" else _FORGED.sub("", visible(self.text))

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
        ServiceFailure: the generator's tokenizer did not answer within `allow_s` for all of it.
    """
    budget = Budget(allow_s)
    if await llm.count_tokens(render(evidence), allow_s=budget.left()) <= max_tokens:
        return list(evidence)
    counts = await all_of(llm.count_tokens(render([item]), allow_s=budget.left()) for item in evidence)
    passages, room = _whole(evidence, counts, max_tokens)
    if len(passages) < len(evidence):
        item = evidence[len(passages)]
        frame = await llm.count_tokens(_frame(item), allow_s=budget.left())
        if room > frame:
            head, _ = await llm.truncate(item.text, room - frame, allow_s=budget.left())
            passages += _shortened(item, head)
    return passages


def cut_by_estimate(evidence: Sequence[Evidence], max_tokens: int) -> list[Evidence]:
    """As `cut` without the tokenizer, by an upper estimate of the tokens."""
    passages, room = _whole(evidence, [estimate_tokens(render([item])) for item in evidence], max_tokens)
    if len(passages) < len(evidence):
        item = evidence[len(passages)]
        passages += _shortened(item, head_by_estimate(item.text, room - estimate_tokens(_frame(item))))
    return passages


def _whole(evidence: Sequence[Evidence], counts: Sequence[int], max_tokens: int) -> tuple[list[Evidence], int]:
    """The passages before the first that does not fit, and the tokens left for that one."""
    totals = list(accumulate(counts))
    fitting = bisect_right(totals, max_tokens)
    return list(evidence[:fitting]), max_tokens - sum(counts[:fitting])


def _frame(item: Evidence) -> str:
    return render([replace(item, text="")])


def _shortened(item: Evidence, head: str) -> list[Evidence]:
    """The passage with the whole facts of its head; none where the head has none."""
    text = _to_a_whole_fact(head, item.text)
    # A piece of a table begins with its head, which stands elsewhere; what was posted has no place.
    end = max(item.start, item.end - (len(item.text) - len(text)))
    return [replace(item, text=text, end=end)] if text else []


def _to_a_whole_fact(text: str, whole: str) -> str:
    """The start of a text up to a line's or sentence's end, at least to a word's: half a number is another one."""
    if text == whole:
        return text
    end = max(text.rfind("\n"), *(text.rfind(mark) + 1 for mark in (". ", "! ", "? ", *FULL_STOPS)))
    return text[:end].rstrip() if 2 * end > len(text) else whole_words(text)
