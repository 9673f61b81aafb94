"""Contract of the gateway's `POST /feedback`: what people say of an answer."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from proto.base import Contract, Count

Verdict = Literal["right", "wrong"]
ROUTES = {"/feedback": ("Feedback", "FeedbackRequest", "FeedbackResponse")}


class FeedbackRequest(Contract):
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=80)] = Field(
        description="`request_id` of the answer, or the `id` of a chat completion."
    )
    verdict: Verdict = Field(description="Whether the answer was right; of an abstention, whether it was good.")
    right_answer: str = Field("", max_length=2_000, description="What would have been right, where somebody knows.")


class FeedbackResponse(Contract):
    kept_days: Count = Field(description="Days that the verdict is kept, with the question and the answer.")
