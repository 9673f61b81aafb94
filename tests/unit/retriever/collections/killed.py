"""Files of seven formats sent to a retriever that is killed while it writes them; every tenth file is broken."""

import pathlib
import signal
import time
from dataclasses import dataclass, field

import httpx

from proto.collections import MAX_LISTED, MEDIA_TYPES
from tests.unit.retriever.collections.process import Retriever, written
from tests.unit.retriever.formats.files import MAIL, docx, epub, pdf
from tests.unit.retriever.formats.test_formats import FILES

NAME = "mixed"
SETTINGS = {"PRECISION": "fp32", "THREADS": "1", "PAGE_WORKERS": "1", "MAX_DEADLINE_S": "300"}
KINDS = {kind: media_type for media_type, kind in MEDIA_TYPES.items() if kind not in ("html", "markdown")}
POLL_S = 0.2


@dataclass(slots=True)
class Outcome:
    """Files by outcome: written, refused by name, or lost without a trace."""

    complete: int = 0
    named: int = 0
    lost: list[str] = field(default_factory=list)


def file_of(number: int) -> tuple[str, str, bytes]:
    """Id, media type and content; every tenth is cut in half."""
    kind = list(KINDS)[number % len(KINDS)]
    line = f"Ship {number} came in with {number * 7} barrels of herring."
    contents: dict[str, bytes] = {
        "text": line.encode(),
        "pdf": pdf(line, "It left again."),
        "docx": docx(line),
        "epub": epub(f"Ship {number}", line),
        "mail": MAIL.replace(b"repaired", f"repaired for ship {number}".encode()),
    }
    content = contents.get(kind) or FILES[kind]()
    if number % 10 == 9:
        content = b"\x00" + content[: len(content) // 2]
    return f"{number}.{kind}", KINDS[kind], content


def run(folder: pathlib.Path, files: int) -> Outcome:
    """Send the files without waiting, so that all are promised (202) before many are written; kill and start again."""
    settings = SETTINGS | {"QDRANT_PATH": str(folder)}
    process = Retriever(**settings)
    try:
        with httpx.Client(base_url=process.url, timeout=60, trust_env=False) as client:
            client.put(f"/collections/{NAME}", json={}).raise_for_status()
            for number in range(files):
                send(client, number)
        # Some are written and some are not.
        before = written(folder)
        while written(folder) < before + 3 and waiting(folder):
            time.sleep(0.02)
        process.end(signal.SIGKILL)
        process = Retriever(**settings)
        while waiting(folder):
            time.sleep(POLL_S)
        with httpx.Client(base_url=process.url, timeout=60, trust_env=False) as client:
            return count(client, files)
    finally:
        process.end(signal.SIGKILL)


def send(client: httpx.Client, number: int) -> None:
    name, media_type, content = file_of(number)
    path, headers = f"/collections/{NAME}/documents/{name}", {"content-type": media_type}
    while True:
        reply = client.put(path, content=content, headers=headers, params={"wait_s": 0})
        if reply.status_code != httpx.codes.TOO_MANY_REQUESTS:
            break
        time.sleep(float(reply.headers["retry-after"]))
    assert reply.status_code in (200, 201, 202, 422), reply.text


def waiting(folder: pathlib.Path) -> int:
    return sum(1 for _ in (folder / "intake").glob("*.file"))


def count(client: httpx.Client, files: int) -> Outcome:
    """What the collection holds; what it lacks is sent again and must be refused by name."""
    page = client.get(f"/collections/{NAME}/documents", params={"limit": MAX_LISTED}).raise_for_status().json()
    complete = {one["id"] for one in page["documents"] if one["state"] == "complete"}
    outcome = Outcome(len(complete))
    for number in range(files):
        name, _, _ = file_of(number)
        if name in complete:
            continue
        # A failure before the kill was reported to its sender and is forgotten since.
        send(client, number)
        state = client.get(f"/collections/{NAME}/documents/{name}")
        while state.is_success and state.json()["state"] in ("waiting", "writing"):
            time.sleep(POLL_S)
            state = client.get(f"/collections/{NAME}/documents/{name}")
        if number % 10 == 9 and (name.endswith(".text") or state.json().get("state") == "failed"):
            outcome.named += 1
        else:
            outcome.lost.append(name)
    return outcome
