"""A browser and a mesh: what the tests of the page share.

The services run here, with a scripted generator; where `CRAGMESH_GATEWAY_URL` names a running mesh that one is asked
instead, by the tests that can ask any (those with the fixture `mesh`) and no others. Debian's Chromium is used; where
it is missing the tests are skipped and say so. Pictures of what was seen are kept below `out/page`.

Nothing here outlives the package: Playwright's loop runs in the main thread, where other tests have loops of their own.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from proto.base import Contract
from tests.mesh.fakes import FakeGenerator
from tests.page.mesh import gateway, inner, scripted
from tests.serving import served

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PICTURES = ROOT / "out" / "page"
GATEWAY_URL = "CRAGMESH_GATEWAY_URL"
# Settings of a gateway whose services are all down.
NOWHERE = {f"{name}_url": "http://127.0.0.1:9" for name in ("retriever", "reranker", "classifier", "kg", "generator")}
# A browser hangs up when it likes, and servers in threads end with its connections: sockets that the collector then
# finds open are no finding about the page.
HANG_UPS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
# What any script that came in as data would do.
MARKER = "window.__ran"
# The browser's word on attributes in a document that is parsed and never shown, where they do nothing either.
EXPECTED_COMPLAINTS = ("Applying inline style violates", "Executing inline event handler violates")


# A model may have the machine's cores at the same time.
expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, where a mesh is named, what would do the same again without it."""
    if not os.environ.get(GATEWAY_URL):
        return
    here = [item for item in items if item.path.is_relative_to(HERE)]
    others = [item for item in here if "mesh" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    with sync_playwright() as playwright:
        # In a container Chromium's sandbox has no namespaces to make; only pages of ours are opened.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


Opened = Callable[..., Page]
Keep = Callable[[Page, str], None]


def ask(page: Page, text: str = "Who designed the lighthouse?") -> None:
    page.fill("#query", text)
    page.keyboard.press("Enter")


def events(*messages: tuple[str, Contract]) -> str:
    """The body of a stream of events."""
    return "".join(f"event: {name}\ndata: {message.model_dump_json()}\n\n" for name, message in messages)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens pages that must end without an error of a script, and without any that came in as data having run."""
    contexts: list[BrowserContext] = []
    pages: list[Page] = []
    complaints: list[str] = []

    def open_(
        url: str, *, width: int = 1280, dark: bool = False, path: str = "/", wait: bool = True, policy: bool = True
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            bypass_csp=not policy,
        )
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(f"{MARKER} = []; window.alert = (text) => {MARKER}.push(String(text));")
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None
        )
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        pages.append(page)
        page.goto(url + path, wait_until="networkidle" if wait else "commit")
        return page

    yield open_
    ran = [page.evaluate(MARKER) for page in pages if not page.is_closed()]
    for context in contexts:
        context.close()
    assert [text for text in complaints if not text.startswith(EXPECTED_COMPLAINTS)] == []
    assert [text for texts in ran for text in texts] == [], "a script that came in as data has run"


@pytest.fixture
def keep() -> Keep:
    """Keeps a picture of a page, the whole of it."""

    def picture(page: Page, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    return picture


@pytest.fixture(scope="package")
def quiet() -> Iterator[None]:
    """Servers in this process log nothing: what they say is no warning of a test."""
    before, configured = logging.getLogger().level, structlog.get_config()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**configured)
    logging.getLogger().setLevel(before)


@pytest.fixture(scope="package")
def generator() -> FakeGenerator:
    return FakeGenerator(scripted(), seconds=0.5)


@pytest.fixture(scope="package")
def services(
    browser: Browser, quiet: None, generator: FakeGenerator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    with inner(generator, tmp_path_factory.mktemp("kg")) as urls:
        yield urls


@pytest.fixture(scope="package")
def scripted_mesh(services: dict[str, str]) -> Iterator[str]:
    """A mesh whose every answer is known."""
    with served(gateway(services)) as url:
        yield url


@pytest.fixture(scope="package")
def mesh(request: pytest.FixtureRequest) -> str:
    """The running mesh that `CRAGMESH_GATEWAY_URL` names, or the scripted one."""
    url = os.environ.get(GATEWAY_URL, "").rstrip("/")
    if not url:
        return str(request.getfixturevalue("scripted_mesh"))
    # Asked for by name: a mesh that is not there is a failure, and nothing to be stood in for.
    httpx.get(f"{url}/readyz", timeout=10).raise_for_status()
    return url


@pytest.fixture(scope="package")
def alone(browser: Browser, quiet: None) -> Iterator[str]:
    """A gateway whose services are all down."""
    with served(gateway(NOWHERE)) as url:
        yield url
