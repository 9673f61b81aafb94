"""The exception tree of the mesh.

MeshError                    an error with an HTTP status, answered as a problem document
  ├── Unauthorized           401: the API key is missing or wrong
  ├── Forbidden              403: the API key is good, and lacks the right
  ├── NotFound               404: nothing of that name, or nothing that the caller may read
  ├── UnsupportedMediaType   415: the body is of a type that is not read
  ├── Overloaded             429: more work than the service takes; comes with `Retry-After`
  ├── RateLimited            429: one caller asks too often; comes with `Retry-After`
  ├── DeadlineExceeded       504: the caller's time ran out
  ├── InvalidRequest         422: well-formed, and its content is refused
  └── Unavailable            503: what the service needs is missing or failed
ServiceFailure               a call to another service failed; `reason` is the word for `degraded`
  ├── ServiceTimeout         "timeout": no answer within the allowance
  ├── ServiceUnavailable     "unavailable": no connection, a 503, or an open circuit breaker
  ├── ServiceOverloaded      "overloaded": it answered 429
  ├── ServiceRejected        "error": it answered another 4xx or 5xx
  └── BadReply               "bad_reply": its reply breaks its contract
"""

from typing import ClassVar

from pydantic import ValidationError

from proto.base import FieldError, Problem


class MeshError(Exception):
    """An error that a client of the service sees, with its status on the class."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(
        self, detail: str = "", *, errors: tuple[FieldError, ...] = (), headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}

    def problem(self, request_id: str) -> Problem:
        return Problem(
            title=self.title, status=self.status, detail=self.detail, errors=self.errors, request_id=request_id
        )


class Unauthorized(MeshError):
    status = 401
    title = "Unauthorized"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"www-authenticate": "Bearer"})


class Forbidden(MeshError):
    status = 403
    title = "Forbidden"


class NotFound(MeshError):
    status = 404
    title = "Not found"


class UnsupportedMediaType(MeshError):
    """`accepted` are the types that are read."""

    status = 415
    title = "Unsupported media type"

    def __init__(self, *accepted: str) -> None:
        limit = ", ".join(accepted)
        message = f"must be {'one of ' if len(accepted) > 1 else ''}{limit}"
        error = FieldError(field="content-type", message=message, limit=limit)
        super().__init__(f"{error.field}: {message}", errors=(error,))


class _TooManyRequests(MeshError):
    status = 429

    def __init__(self, detail: str, *, retry_after_s: int = 1) -> None:
        super().__init__(detail, headers={"retry-after": str(retry_after_s)})


class Overloaded(_TooManyRequests):
    title = "Overloaded"


class RateLimited(_TooManyRequests):
    title = "Rate limited"


class DeadlineExceeded(MeshError):
    status = 504
    title = "Deadline exceeded"


class InvalidRequest(MeshError):
    status = 422
    title = "Invalid request"


def refusal(field: str, message: str, limit: str = "") -> InvalidRequest:
    """The refusal of one field."""
    return InvalidRequest(f"{field}: {message}", errors=(FieldError(field=field, message=message, limit=limit),))


class Unavailable(MeshError):
    status = 503
    title = "Unavailable"


class ServiceFailure(Exception):
    """A call to another service failed. `service` is its name, `reason` one word of `Degradation.reason`."""

    reason: ClassVar[str] = "error"

    def __init__(self, service: str, detail: str = "") -> None:
        super().__init__(f"{service}: {self.reason}{f' ({detail})' if detail else ''}")
        self.service = service
        self.detail = detail


class ServiceTimeout(ServiceFailure):
    reason = "timeout"


class ServiceUnavailable(ServiceFailure):
    """`lost` says that an open connection broke, so that the service may have done the request's work."""

    reason = "unavailable"

    def __init__(self, service: str, detail: str = "", *, lost: bool = False) -> None:
        super().__init__(service, detail)
        self.lost = lost


class ServiceOverloaded(ServiceFailure):
    reason = "overloaded"


class ServiceRejected(ServiceFailure):
    reason = "error"

    def __init__(self, service: str, detail: str = "", *, status: int = 500, body: bytes = b"") -> None:
        super().__init__(service, detail)
        self.status = status
        self.body = body

    @property
    def refusal(self) -> Problem | None:
        """What the service found wrong with the request, in its own words; None where it failed or does not say."""
        if not 400 <= self.status < 500:
            return None
        try:
            return Problem.model_validate_json(self.body)
        except ValidationError:
            return None


class BadReply(ServiceFailure):
    reason = "bad_reply"
