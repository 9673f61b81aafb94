"""What all contracts share: the base model, limits, and the types that several services speak of."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

MAX_QUERY_CHARS = 2_000
MAX_PAGES = 50
MAX_PAGE_CHARS = 4 * 1024 * 1024
# Of a question's page: more is too long to stem and to rank before the answer is due.
MAX_PAGE_TEXT_CHARS = 1_000_000
MAX_PAGES_CHARS = 32 * 1024 * 1024
MAX_PASSAGE_CHARS = 20_000
MAX_INT32 = 2**31 - 1

CRAG_TIME_FORMAT = "%m/%d/%Y, %H:%M:%S"
# CRAG stamps every question in Pacific Time, daylight saving included.
CRAG_TIME_ZONES = {"PT": ZoneInfo("America/Los_Angeles"), "UTC": UTC}


class Contract(BaseModel):
    """Base of every message: immutable, tolerant of unknown fields, reading `null` as "not set" as proto3 JSON does."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=(), hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, data: Any) -> Any:
        if isinstance(data, dict):
            # A required field keeps its null: the error then says what it should be.
            return {key: value for key, value in data.items() if value is not None or cls._is_required(key)}
        return data

    @classmethod
    def _is_required(cls, name: str) -> bool:
        field = cls.model_fields.get(name)
        return field is not None and field.is_required()


# Of messages in which a misspelt field would silently leave something as it is.
STRICT = ConfigDict(extra="forbid")


def parse_query_time(value: Any) -> datetime:
    """Read CRAG's `02/28/2024, 10:04:54 PT` or ISO 8601 (a time without a zone is UTC), with a fixed offset."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str):
        stamp, _, zone = value.strip().rpartition(" ")
        try:
            if zone in CRAG_TIME_ZONES:
                moment = datetime.strptime(stamp, CRAG_TIME_FORMAT).replace(tzinfo=CRAG_TIME_ZONES[zone])
            else:
                moment = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ValueError(
                "must be like '02/28/2024, 10:04:54 PT' or ISO 8601 like '2024-02-28T18:04:54Z'"
            ) from error
    else:
        raise ValueError("must be a string")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        moment.astimezone(UTC)
        return _fixed(moment)
    except OverflowError as error:
        raise ValueError("must lie between the years 1 and 9999 in UTC") from error


def _fixed(moment: datetime) -> datetime:
    """The moment with its offset in whole minutes, all that RFC 3339 writes; zones keep seconds before 1900.

    A zone's own datetimes will not do: those in the hour that summer time repeats are equal to no other.
    """
    offset = moment.utcoffset() or timedelta(0)
    whole = timedelta(minutes=int(offset / timedelta(minutes=1)))
    zone = timezone(whole, moment.tzname() or "UTC") if whole == offset else timezone(whole)
    return moment.astimezone(zone)


Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARS)]
QueryTime = Annotated[
    datetime,
    BeforeValidator(parse_query_time, json_schema_input_type=str),
    Field(examples=["02/28/2024, 10:04:54 PT", "2024-02-28T18:04:54Z"]),
]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=MAX_INT32)]
Passage = Annotated[str, StringConstraints(max_length=MAX_PASSAGE_CHARS)]


class StageTiming(Contract):
    """Where the time of one stage went, in milliseconds."""

    start_ms: Milliseconds = Field(0, description="Start, counted from the arrival of the request.")
    elapsed_ms: Milliseconds = Field(0, description="Wall time of the stage, network included.")
    queue_ms: Milliseconds = Field(0, description="Part of it spent waiting for a model or a worker.")
    inference_ms: Milliseconds = Field(0, description="Part of it spent inside the model.")


class Degradation(Contract):
    """One thing that was missing from an answer: never silent, always named."""

    stage: str = Field(description="The stage or service that fell short, e.g. `retriever`, `page:3`.")
    reason: str = Field(
        description="Why: timeout, unavailable, overloaded, error, bad_reply, skipped, failed, duplicate or empty."
    )
    detail: str = Field("", max_length=500, description="What a reader can act on; never page contents.")


class FieldError(Contract):
    """One rejected field of a request."""

    field: str = Field(description="Where, as a dotted path: `search_results.3.page_result`.")
    message: str = Field(description="What is wrong with it.")
    limit: str = Field("", description="The limit that it broke, where there is one.")


class Problem(Contract):
    """An error as RFC 9457 problem details (`application/problem+json`)."""

    type: str = Field("about:blank", description="A URI reference that names the kind of problem.")
    title: str = Field(description="The kind of problem, the same for each occurrence.")
    status: int = Field(ge=400, le=599, description="The HTTP status.")
    detail: str = Field("", description="What happened this time.")
    errors: tuple[FieldError, ...] = Field((), description="The rejected fields, for a 422.")
    request_id: str = Field("", description="To find the request in the logs.")


class Readiness(Contract):
    """Reply of `/readyz`: whether the service's model has answered, and what it runs on."""

    ready: bool = Field(description="True once the model has answered a warm-up.")
    service: str = Field(description="The service's name.")
    model: str = Field("", description="The model or engine behind the service.")
    device: str = Field("", description="`cpu`, `cuda:0` ...")
    precision: str = Field("", description="`fp32`, `fp16`, `bf16` or `int8`, chosen at start.")
    detail: str = Field("", description="Why it is not ready, or how the precision was chosen.")
    dependencies: dict[str, bool] = Field(default_factory=dict, description="Readiness of the services it calls.")
