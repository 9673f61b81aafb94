"""A model that plays by a script: one passage, its questions, and what it answers."""

import json
from dataclasses import dataclass, field
from typing import Any

PASSAGE = (
    "The Velna Bridge was opened in 1911 by the engineer Ida Morsen, who had drawn it within a week. It is 240 metres "
    "long. Because the old ferry had sunk, the town paid for it with a loan. Since 1990 only people on foot and on "
    "bicycles may cross it, and a lamp burns at each end of it all night."
)
PAIRS = [
    {"q": "When was the Velna Bridge opened?", "a": "in 1911"},
    {"q": "Why did the town need the Velna Bridge?", "a": "the old ferry had sunk"},
    {"q": "Who opened the Velna Bridge?", "a": "Karl Morsen"},
]
OPEN = ["Who painted the Velna Bridge?", "How much did the Velna Bridge cost?"]


@dataclass
class Script:
    """What a model replies, by what it is asked; a list is replied one after the other."""

    passage: str = PASSAGE
    pairs: str = json.dumps(PAIRS)
    open: str = json.dumps(OPEN)
    answers: dict[str, str | list[str]] = field(
        default_factory=lambda: {
            "When was the Velna Bridge opened?": "1911",
            "Why did the town need the Velna Bridge?": "the old ferry had sunk",
        }
    )
    asked: list[str] = field(default_factory=list)

    def reply(self, body: dict[str, Any]) -> str:
        order = body["messages"][-1]["content"]
        self.asked.append(order)
        if order.startswith("About: ") and "Kind of text" in order:
            return self.passage
        if order.startswith("About: "):
            return self.open
        if "\n\nWrite " in order:
            return self.pairs
        text, _, question = order.partition("\n\nQuestion: ")
        answer = self.answers.get(question, "none")
        if isinstance(answer, list):
            return answer.pop(0)
        # As an honest model: what is not in the text is not said.
        return answer if answer in text else "none"
