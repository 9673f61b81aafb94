"""Mixed files into a collection while its retriever is killed: none is lost, broken ones are named, in bounded memory.

    python -m tests.bench.mixed [-n 1000] [--kills 2]

Files of seven formats are made, every tenth of them broken, and sent without waiting, so that the retriever has
promised all of them (202) before it has written many. It is killed by SIGKILL while it writes, and started again.
"""

import json
import pathlib
import signal
import tempfile
import time
from dataclasses import asdict, dataclass, field

import httpx

from proto.collections import MAX_LISTED, MEDIA_TYPES
from services.cli.progress import counting
from tests.bench import common
from tests.unit.retriever.collections.process import Process, written
from tests.unit.retriever.formats.files import MAIL, docx, epub, pdf
from tests.unit.retriever.formats.test_formats import FILES

NAME = "mixed"
KINDS = {kind: media_type for media_type, kind in MEDIA_TYPES.items() if kind not in ("html", "markdown")}
POLL_S = 0.2


@dataclass(slots=True)
class Outcome:
    """Files by outcome: written, refused by name, or lost without a trace."""

    files: int
    complete: int = 0
    named: int = 0
    lost: list[str] = field(default_factory=list)
    kills: int = 0
    seconds: float = 0.0
    peak_mib: int = 0


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


def run(folder: pathlib.Path, files: int, kills: int) -> Outcome:
    """Send the files, kill the retriever while it writes, and see what came of them."""
    began, outcome = time.monotonic(), Outcome(files)
    process = Process(folder)
    bar = counting()
    sending, writing = bar.add_task("sending", total=files), bar.add_task("writing", total=files)
    try:
        bar.start()
        with httpx.Client(base_url=process.url, timeout=60, trust_env=False) as client:
            client.put(f"/collections/{NAME}", json={}).raise_for_status()
            for number in range(files):
                send(client, number)
                bar.advance(sending)
        while kills:
            # Some are written and some are not.
            before = written(folder)
            while written(folder) < before + 3 and (unwritten := waiting(folder)):
                bar.update(writing, completed=files - unwritten)
                outcome.peak_mib = max(outcome.peak_mib, process.memory_mib())
                time.sleep(0.02)
            process.end(signal.SIGKILL)
            kills, outcome.kills = kills - 1, outcome.kills + 1
            process = Process(folder)
        while unwritten := waiting(folder):
            bar.update(writing, completed=files - unwritten)
            outcome.peak_mib = max(outcome.peak_mib, process.memory_mib())
            time.sleep(POLL_S)
        with httpx.Client(base_url=process.url, timeout=60, trust_env=False) as client:
            count(client, outcome)
    finally:
        bar.stop()
        process.end(signal.SIGKILL)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def send(client: httpx.Client, number: int) -> None:
    name, media_type, content = file_of(number)
    while True:
        reply = client.put(
            f"/collections/{NAME}/documents/{name}",
            content=content,
            headers={"content-type": media_type},
            params={"wait_s": 0},
        )
        if reply.status_code != httpx.codes.TOO_MANY_REQUESTS:
            break
        time.sleep(float(reply.headers["retry-after"]))
    assert reply.status_code in (200, 201, 202, 422), reply.text


def waiting(folder: pathlib.Path) -> int:
    return sum(1 for _ in (folder / "intake").glob("*.file"))


def count(client: httpx.Client, outcome: Outcome) -> None:
    """Fill in what the collection holds; what it lacks is sent again and must be refused by name."""
    complete: set[str] = set()
    after = ""
    while True:
        params: dict[str, str | int] = {"limit": MAX_LISTED, "after": after}
        page = client.get(f"/collections/{NAME}/documents", params=params).raise_for_status().json()
        complete |= {one["id"] for one in page["documents"] if one["state"] == "complete"}
        if not (after := page["next"]):
            break
    outcome.complete = len(complete)
    for number in range(outcome.files):
        name, _, _ = file_of(number)
        if name in complete:
            continue
        # A failure before a kill was reported to its sender and is forgotten since.
        send(client, number)
        state = client.get(f"/collections/{NAME}/documents/{name}")
        while state.is_success and state.json()["state"] in ("waiting", "writing"):
            time.sleep(POLL_S)
            state = client.get(f"/collections/{NAME}/documents/{name}")
        if number % 10 == 9 and (name.endswith(".text") or state.json().get("state") == "failed"):
            outcome.named += 1
        else:
            outcome.lost.append(name)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-n", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(pathlib.Path(folder), args.n, args.kills)
    print(json.dumps(asdict(outcome), indent=2))


if __name__ == "__main__":
    main()
