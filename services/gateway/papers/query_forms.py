"""The forms of a question that are searched: each is the question with something appended.

Onewo searches the question, the question with keywords and the question with an answer; the feedback of the first
search is one form more, which needs no generator.
"""

from typing import Literal

from proto.base import MAX_QUERY_CHARS
from services.gateway.papers.clean import cut

Form = Literal["question", "keywords", "answer", "feedback"]

QUESTION: Form = "question"
KEYWORDS: Form = "keywords"
ANSWER: Form = "answer"
FEEDBACK: Form = "feedback"
FORMS: tuple[Form, ...] = (QUESTION, KEYWORDS, ANSWER, FEEDBACK)

# An addition never takes the question's own place.
MAX_APPENDED_CHARS = MAX_QUERY_CHARS // 2


def appended(question: str, addition: str) -> str:
    """The question with an addition below it; where both are too long, each keeps its beginning."""
    addition = cut(addition, MAX_APPENDED_CHARS)
    return f"{cut(question, MAX_QUERY_CHARS - len(addition) - 1)}\n{addition}"
