"""Files and batches as OpenAI's clients have them, and the lines of their files."""

import json
from io import BytesIO
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from services.gateway.openai.wire import Wire
from services.kit.faults import faults_of

# OpenAI's own limits.
MAX_LINES = 50_000
MAX_LISTED_ERRORS = 20
WINDOW_S = 24 * 3600
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
Pairs = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]


class CreateBatch(Wire):
    """`POST /v1/batches`."""

    input_file_id: Id
    endpoint: Literal["/v1/chat/completions"]
    completion_window: Literal["24h"]
    metadata: Pairs | None = None


class Line(Wire):
    """A line of an input file; its body is read when its turn comes."""

    # PostgreSQL's texts have no U+0000.
    custom_id: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]
    method: Literal["POST"]
    url: Literal["/v1/chat/completions"]
    body: dict[str, Any]


def read_lines(content: bytes) -> tuple[list[Line], list[dict[str, Any]]]:
    """The lines of an input file, and its faults as OpenAI lists them; with a fault in it no line counts."""
    lines: list[Line] = []
    faults: list[dict[str, Any]] = []
    ids: set[str] = set()
    for number, text in enumerate(BytesIO(content), 1):
        if not text.strip():
            continue
        try:
            line = Line.model_validate_json(text.strip())
        except ValidationError as error:
            first = faults_of(error)[0]
            code = "invalid_line" if first.field else "invalid_json_line"
            faults.append(_fault(code, first.message, number, first.field))
        else:
            if line.custom_id in ids:
                faults.append(_fault("duplicate_custom_id", "the custom_id stands on another line too", number))
            ids.add(line.custom_id)
            lines.append(line)
        if len(faults) == MAX_LISTED_ERRORS:
            break
        if len(lines) > MAX_LINES:
            faults.append(_fault("too_many_requests", f"a batch has {MAX_LINES} requests at most", number))
            break
    if not lines and not faults:
        faults.append(_fault("empty_file", "the file has no lines", None))
    return lines, faults


def _fault(code: str, message: str, line: int | None, param: str | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "line": line, "param": param or None}


def reply_line(custom_id: str, number: int, status: int, request_id: str, body: dict[str, Any]) -> str:
    """A line of an output or error file."""
    response = {"status_code": status, "request_id": request_id, "body": body}
    return json.dumps({"id": f"batch_req_{number}", "custom_id": custom_id, "response": response, "error": None})


def unanswered_line(custom_id: str, number: int, status: str) -> str:
    """The line of a request whose batch ended before its turn."""
    error = {"code": f"batch_{status}", "message": f"the batch was {status} before this request's turn came"}
    return json.dumps({"id": f"batch_req_{number}", "custom_id": custom_id, "response": None, "error": error})


def listed(objects: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """A page of a list, made of one object more than fits where there are more."""
    page = objects[:limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": len(objects) > limit}
