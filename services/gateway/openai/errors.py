"""Errors in OpenAI's shape, with the gateway's usual statuses."""

from http import HTTPStatus
from typing import Any

PREFIX = "/v1/"
STATUSES = (400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503, 504)
# RFC 9110's names, which Python has from 3.13 on.
NAMES = {413: "Content Too Large", 422: "Unprocessable Content"}
TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}
CODES = {
    HTTPStatus.UNAUTHORIZED: "invalid_api_key",
    HTTPStatus.UNPROCESSABLE_ENTITY: "invalid_value",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_exceeded",
    HTTPStatus.GATEWAY_TIMEOUT: "timeout",
}


def documented() -> dict[int | str, dict[str, Any]]:
    """The statuses of a route's errors with their shape, for its `responses`."""
    texts = {"message": {"type": "string"}, "type": {"type": "string"}}
    named = {name: {"anyOf": [{"type": "string"}, {"type": "null"}]} for name in ("param", "code")}
    error = {"type": "object", "properties": texts | named, "required": ["message", "type"]}
    schema = {"type": "object", "properties": {"error": error}, "required": ["error"]}
    content = {"application/json": {"schema": schema}}
    names = {status: NAMES.get(status, HTTPStatus(status).phrase) for status in STATUSES}
    return {status: {"description": name, "content": content} for status, name in names.items()}


def error_of(problem: dict[str, Any]) -> dict[str, Any]:
    """A problem document as OpenAI's clients read errors."""
    status = int(problem.get("status") or HTTPStatus.INTERNAL_SERVER_ERROR)
    first: dict[str, Any] = next(iter(problem.get("errors") or ()), {})
    param = first.get("field") or None
    default = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    code = CODES.get(HTTPStatus(status)) or ("model_not_found" if param == "model" and status == 404 else None)
    message, limit = problem.get("detail") or problem.get("title") or "the request failed", first.get("limit")
    if limit and limit not in message:
        message += f" ({limit})"
    kind = TYPES.get(HTTPStatus(status), default)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
