"""Contract of the KG-API-parser: a question in, facts in words out, with the program that fetched them."""

from typing import Literal

from pydantic import Field

from proto.base import Contract, Count, Query, QueryTime, StageTiming
from proto.classify import Domain

KgStatus = Literal[
    "ok",
    "empty",
    "no_entity",
    "ambiguous",
    "no_event",
    "unknown_key",
    "stale",
    "parse_error",
    "timeout",
    "no_program",
]


class KgRequest(Contract):
    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it was asked; facts after it are hidden.")
    domain: Domain = Field("open", description="The domain whose functions may be called.")
    max_tokens: int = Field(1_000, ge=50, le=4_000, description="Cap of the facts' text, in generator tokens.")


class KgStatement(Contract):
    """One statement of a program and what came of it."""

    source: str = Field(max_length=2_000, description="The statement in the regularized language.")
    status: KgStatus = Field(description="What came of it.")
    text: str = Field("", description="Its facts in words, or what is missing in words.")
    rows_json: str = Field("[]", description="Its rows as a JSON array of objects, typed values.")
    row_count: Count = Field(0, description="Rows found, before any cap.")


class KgResponse(Contract):
    status: KgStatus = Field(description="The best status of the statements.")
    statements: tuple[KgStatement, ...] = Field((), max_length=8, description="In program order.")
    text: str = Field("", description="All facts in words, ready for a prompt.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Where the time went.")
