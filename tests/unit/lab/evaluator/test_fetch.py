"""Public files: cut, resumed, wrong, joined, refused."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lab.evaluator.errors import BadSource, Unreachable
from lab.evaluator.fetch import Catalogue, SourceFile, SourceSet, catalogues, fetch, is_right, load

BASE = "http://files"
CONTENT = bytes(range(256)) * 1_000


class Server(httpx.BaseTransport):
    """Serves files; `cut` ends a reply early, `ranges` off ignores where a client wants to go on."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.cut = 0
        self.ranges = True

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, wanted = request.url.path, request.headers.get("range", "")
        self.asked.append((path, wanted))
        if path.startswith("/moved"):
            return httpx.Response(302, headers={"location": path.removeprefix("/moved")})
        if path not in self.files:
            return httpx.Response(404)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        return httpx.Response(206 if start else 200, content=self._body(self.files[path][start:]))

    def _body(self, content: bytes) -> Iterator[bytes]:
        yield content[: self.cut or None]
        if self.cut:
            raise httpx.RemoteProtocolError("the connection is gone")


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(transport=server) as client:
        yield client


def served(server: Server, *contents: bytes, joined: str = "") -> SourceSet:
    parts = []
    for number, content in enumerate(contents):
        server.files[f"/data/part{number}"] = content
        digest = hashlib.sha256(content).hexdigest()
        parts.append(SourceFile(path=f"data/part{number}", size=len(content), sha256=digest))
    return SourceSet(summary="-", files=tuple(parts), joined=joined)


def test_files_are_fetched_once_through_redirects(server: Server, http: httpx.Client, tmp_path: Path) -> None:
    wanted = served(server, CONTENT, b"second")
    arrived: list[int] = []
    paths = fetch(wanted, tmp_path, http, base=f"{BASE}/moved", on_bytes=arrived.append)
    assert [path.read_bytes() for path in paths] == [CONTENT, b"second"]
    assert sum(arrived) == wanted.size
    asked = len(server.asked)
    assert fetch(wanted, tmp_path, http, base=BASE) == paths
    assert len(server.asked) == asked


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_download_goes_on(server: Server, http: httpx.Client, tmp_path: Path, ranges: bool) -> None:
    wanted = served(server, CONTENT)
    server.cut, server.ranges = 100_000, ranges
    with pytest.raises(Unreachable, match="goes on from here"):
        fetch(wanted, tmp_path, http, base=BASE)
    server.cut = 0
    arrived: list[int] = []
    (path,) = fetch(wanted, tmp_path, http, base=BASE, on_bytes=arrived.append)
    assert is_right(path, wanted.files[0])
    assert sum(arrived) == len(CONTENT)
    assert server.asked[-1][1].startswith("bytes=")
    assert [entry.name for entry in tmp_path.iterdir()] == ["part0"]


def test_parts_are_joined_and_gone(server: Server, http: httpx.Client, tmp_path: Path) -> None:
    wanted = served(server, CONTENT, b"the rest", joined="whole.bin")
    assert fetch(wanted, tmp_path, http, base=BASE) == [tmp_path / "whole.bin"]
    assert (tmp_path / "whole.bin").read_bytes() == CONTENT + b"the rest"
    assert [entry.name for entry in tmp_path.iterdir()] == ["whole.bin"]
    asked = len(server.asked)
    assert fetch(wanted, tmp_path, http, base=BASE) == [tmp_path / "whole.bin"]
    assert len(server.asked) == asked


def test_what_is_not_pinned_is_thrown_away(server: Server, http: httpx.Client, tmp_path: Path) -> None:
    wanted = served(server, CONTENT)
    server.files["/data/part0"] = CONTENT[:-1] + b"!"
    with pytest.raises(BadSource, match="is pinned"):
        fetch(wanted, tmp_path, http, base=BASE)
    server.files["/data/part0"] = CONTENT + b"and more"
    with pytest.raises(BadSource, match="sends more"):
        fetch(wanted, tmp_path, http, base=BASE)
    assert not (tmp_path / "part0").exists()


def test_a_refusal_is_named(server: Server, http: httpx.Client, tmp_path: Path) -> None:
    wanted = served(server, CONTENT)
    server.files.clear()
    with pytest.raises(Unreachable, match="HTTP 404"):
        fetch(wanted, tmp_path, http, base=BASE)


def test_the_catalogue_of_crag_is_whole() -> None:
    crag = load(catalogues()["crag"])
    assert isinstance(crag, Catalogue)
    assert {"questions", "task-3", "graph"} <= crag.sets.keys()
    names = [file.name for one in crag.sets.values() for file in one.files]
    assert len(names) == len(set(names))
