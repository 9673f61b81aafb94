"""Open WebUI in Chromium over the gateway's `/v1`, as its users have it: `make test-clients`."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from cragmesh_client import Call, Client, CollectionInfo
from services.gateway.access import OWNER, Scope
from tests.keys import write_keys
from tests.mesh.fakes import FakeGenerator
from tests.page.conftest import HANG_UPS, PICTURES, browser, quiet
from tests.page.mesh import gateway, inner, scripted
from tests.ports import free_port
from tests.serving import served

__all__ = ["browser", "quiet"]

PROGRAM = Path(__file__).parents[2] / ".venv-open-webui" / "bin" / "open-webui"
# It migrates a database of its own, on a machine that may be busy.
START_S = 600
# So it loads its page, too.
PATIENCE_MS = 300_000
DOCUMENT = b"# The harbour lighthouse\n\nThe lighthouse of the old town was designed by Marta Lindqvist in 1864."
QUESTION = "Who designed the harbour lighthouse of the old town?"
# `docs/doors.md` says why: what it asks a model for beside the answers is no question of a mesh.
SETTINGS = {
    "WEBUI_AUTH": "False",
    "OPENAI_API_KEYS": "cm_reader",
    "ENABLE_OLLAMA_API": "False",
    "ENABLE_TITLE_GENERATION": "False",
    "ENABLE_TAGS_GENERATION": "False",
    "ENABLE_FOLLOW_UP_GENERATION": "False",
    "RAG_EMBEDDING_ENGINE": "openai",
    "OFFLINE_MODE": "True",
    "ANONYMIZED_TELEMETRY": "False",
    "WEBUI_SECRET_KEY": "of this test",
}

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason="no Open WebUI: `make test-clients` installs it"),
    pytest.mark.timeout(1200),
    HANG_UPS,
]


@pytest.fixture(scope="module")
def mesh(quiet: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway over the real services and a scripted generator; the key `reader` may read `notes` and nothing else."""
    folder = tmp_path_factory.mktemp("mesh")
    keys = write_keys(folder / "keys", {"owner": OWNER, "reader": Scope(collections=("notes",))})
    with (
        inner(FakeGenerator(scripted()), folder) as urls,
        served(gateway(urls, api_keys_file=keys)) as url,
        Client(url, api_key="cm_owner") as owner,
    ):
        for name in ("notes", "safe"):
            owner.send(Call("PUT", f"/collections/{name}", CollectionInfo, b"{}"))
        file = ("notes", "light.md", DOCUMENT, "text/markdown")
        put = owner.put_document(*file, url="https://example.org/light", title="The harbour lighthouse")
        assert put.state == "complete"
        yield url


@pytest.fixture(scope="module")
def open_webui(mesh: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("open-webui")
    port = free_port()
    command = (str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(port))
    environment = os.environ | SETTINGS | {"DATA_DIR": str(folder), "OPENAI_API_BASE_URLS": f"{mesh}/v1"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,  # noqa: S603 - its own
    ):
        try:
            until = time.monotonic() + START_S
            while not _ready(f"http://127.0.0.1:{port}/health"):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, (folder / "log").read_text()
                time.sleep(1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _ready(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def test_a_question_is_answered_with_its_stages_and_sources(open_webui: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, locale="en-US")
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{open_webui}/?model=cragmesh/adaptive@notes")
        # What is new in it stands in front of a first visitor.
        page.get_by_role("button", name="Okay, Let's Go!").or_(page.get_by_text("Okay, Let's Go!")).last.click()
        page.locator("button[aria-haspopup]").filter(has_text="cragmesh/").first.click()
        models = page.get_by_role("option")
        expect(models.filter(has_text="cragmesh/adaptive@notes")).to_have_count(1)
        assert models.first.inner_text().strip() == "cragmesh/adaptive"
        assert not [text for text in models.all_inner_texts() if "safe" in text]
        page.keyboard.press("Escape")
        page.locator("#chat-input").click()
        page.keyboard.type(QUESTION)
        page.keyboard.press("Enter")
        reply = page.locator(".chat-assistant")
        expect(reply.get_by_text("Marta Lindqvist", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        reply.get_by_text("Thought for").click()
        expect(reply.get_by_text("1 passages of notes")).to_be_visible()
        reply.get_by_role("button", name="1 source").click()
        expect(reply.get_by_text("https://example.org/light").first).to_be_visible()
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / "open-webui.png")
    finally:
        context.close()
