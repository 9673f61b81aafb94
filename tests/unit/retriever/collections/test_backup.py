"""Snapshots of a server's collections, asked for over HTTP."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from services.retriever.collections import backup


class Snapshots(BaseHTTPRequestHandler):
    """As a Qdrant server answers: two collections, and a clock that goes on by a second a snapshot."""

    kept: dict[str, list[str]]
    keys: set[str | None]

    def _reply(self, result: object) -> None:
        body = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def _shown(name: str) -> dict[str, object]:
        return {"name": name, "size": 1, "creation_time": f"2026-11-22T20:00:{int(name):02}"}

    def do_GET(self) -> None:
        self.keys.add(self.headers.get("api-key"))
        parts = self.path.strip("/").split("/")
        if len(parts) == 1:
            self._reply({"collections": [{"name": name} for name in self.kept]})
        else:
            self._reply([self._shown(name) for name in self.kept[parts[1]]])

    def do_POST(self) -> None:
        found = self.kept[self.path.split("/")[2]]
        # The oldest first, or not: a server promises no order.
        found.insert(0, str(max(map(int, found), default=0) + 1))
        self._reply(self._shown(found[0]))

    def do_DELETE(self) -> None:
        _, _, collection, _, name = self.path.partition("?")[0].split("/")
        self.kept[collection].remove(name)
        self._reply(True)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Snapshots]]:
    Snapshots.kept, Snapshots.keys = {"laws": ["1", "3", "2"], "notes": []}, set()
    with ThreadingHTTPServer(("127.0.0.1", 0), Snapshots) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        monkeypatch.setenv("CRAGMESH_QDRANT_URL", f"http://127.0.0.1:{serving.server_port}")
        monkeypatch.setenv("CRAGMESH_QDRANT_API_KEY", "opens-it")
        yield Snapshots
        serving.shutdown()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_each_collection_has_a_new_snapshot_and_no_more_than_are_kept(
    server: type[Snapshots], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["backup", "--keep", "2"])
    backup.main()
    assert server.kept == {"laws": ["4", "3"], "notes": ["1"]}
    assert server.keys == {"opens-it"}
    assert capsys.readouterr().out.split() == ["laws:", "4", "notes:", "1"]


@pytest.mark.parametrize(("url", "keep"), [("", "2"), ("http://127.0.0.1:9", "0")])
def test_without_a_server_or_with_none_to_keep_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, url: str, keep: str
) -> None:
    monkeypatch.setenv("CRAGMESH_QDRANT_URL", url)
    if not url:
        monkeypatch.delenv("CRAGMESH_QDRANT_URL")
    monkeypatch.setattr(sys, "argv", ["backup", "--keep", keep])
    with pytest.raises(SystemExit):
        backup.main()
