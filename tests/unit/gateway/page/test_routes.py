"""What the gateway sends to browsers, and what it tells them about it."""

import gzip
import json
import re
from pathlib import Path

import httpx
import pytest
from lxml import html

from services.gateway.page import assets
from services.gateway.page.assets import SECURITY_HEADERS
from tests.unit.gateway.page.conftest import Gateways

pytestmark = pytest.mark.anyio

STATIC = Path(assets.__file__).parent / "static"
SCRIPTS = sorted(path.name for path in STATIC.glob("*.js"))
# What makes markup of text, or code of it.
SINKS = (
    r"innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\s*\(|new Function|srcdoc|setHTML"
    r"|createContextualFragment|setTimeout\(\s*[\"'`]"
)


PAGE = html.document_fromstring((STATIC / assets.INDEX).read_text(encoding="utf-8"))


async def test_the_page_is_there_with_no_service_running(gateway: httpx.AsyncClient) -> None:
    reply, head = await gateway.get("/"), await gateway.head("/")
    assert (reply.status_code, head.status_code) == (200, 200)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "What do you want to know?" in reply.text
    assert (head.headers["etag"], head.content) == (reply.headers["etag"], b"")


async def test_everything_that_it_names_is_there(gateway: httpx.AsyncClient) -> None:
    named = [str(name) for name in PAGE.xpath("//script/@src | //link/@href | //img/@src")]
    assert "page/app.js" in named
    for module in SCRIPTS:
        imports = re.findall(r'from "\./([\w-]+\.js)"', (STATIC / module).read_text(encoding="utf-8"))
        named += [f"page/{name}" for name in imports]
    for name in named:
        assert (await gateway.get(f"/{name}")).status_code == 200, name


async def test_every_link_leads_somewhere(gateway: httpx.AsyncClient) -> None:
    links, ids = PAGE.xpath("//a/@href"), PAGE.xpath("//@id")
    assert {"openapi.json", "metrics"} <= set(links)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert (await gateway.get(f"/{link}")).status_code == 200, link


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/page/style.css", "/page/examples.json", "/page/reports"])
async def test_browsers_are_told_to_be_strict(gateway: httpx.AsyncClient, path: str) -> None:
    headers = (await gateway.get(path)).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy == {
        **dict.fromkeys(("default-src", "frame-ancestors", "base-uri", "form-action"), "'none'"),
        **dict.fromkeys(("script-src", "style-src", "connect-src"), "'self'"),
        **{"img-src": "'self' data:", "require-trusted-types-for": "'script'", "trusted-types": "inert"},
    }
    assert headers["x-content-type-options"] == "nosniff"


def test_nothing_is_inline_and_nothing_is_elsewhere() -> None:
    assert PAGE.xpath("//style | //script[normalize-space()] | //@style | //@*[starts-with(name(), 'on')]") == []
    for path in STATIC.iterdir():
        # A namespace is a name and no address.
        text = re.sub(r"http://www\.w3\.org/2000/svg", "", path.read_text(encoding="utf-8"))
        assert not re.search(r"https?://|//[a-z]+\.[a-z]", text), path.name


def test_no_script_makes_markup_of_text_and_one_parses_html_and_never_to_show_it() -> None:
    texts = {name: (STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS}
    assert [name for name, text in texts.items() if re.search(SINKS, text)] == []
    assert [name for name, text in texts.items() if "DOMParser" in text] == ["page-text.js"]


def test_every_field_has_a_label() -> None:
    fields = PAGE.xpath("//input | //select | //textarea")
    assert fields
    assert [field.get("id") for field in fields if field.get("id") not in PAGE.xpath("//label/@for")] == []


async def test_what_a_browser_has_is_not_sent_again(gateway: httpx.AsyncClient) -> None:
    first = await gateway.get("/page/app.js")
    assert first.headers["cache-control"] == "no-cache"
    again = await gateway.get("/page/app.js", headers={"if-none-match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    other = await gateway.get("/page/app.js", headers={"if-none-match": 'W/"other"'})
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("accept", "compressed"), [("gzip, deflate, br", True), ("identity", False), ("gzip;q=0", False), ("br", False)]
)
async def test_files_are_compressed_for_who_reads_it(gateway: httpx.AsyncClient, accept: str, compressed: bool) -> None:
    async with gateway.stream("GET", "/page/app.js", headers={"accept-encoding": accept}) as reply:
        raw = b"".join([chunk async for chunk in reply.aiter_raw()])
    assert reply.headers["vary"] == "accept-encoding"
    assert (reply.headers.get("content-encoding") == "gzip") is compressed
    assert (gzip.decompress(raw) if compressed else raw) == (STATIC / "app.js").read_bytes()


OUT = """nothing.js ../app.py %2e%2e/app.py ..%2f..%2fapp.py ..%5capp.py %2fetc%2fpasswd /etc/passwd static/app.js
app.js%00.png"""


async def test_no_path_leads_out(gateway: httpx.AsyncClient) -> None:
    for path in (*OUT.split(), ""):
        # As it stands: the client would tidy it up.
        request = httpx.Request("GET", httpx.URL("http://gateway", raw_path=f"/page/{path}".encode()))
        reply = await gateway.send(request)
        assert reply.status_code in (404, 307), (path, reply.text[:200])
        assert "import" not in reply.text, path
        assert "root:" not in reply.text, path


async def test_an_example_comes_with_its_pages(gateway: httpx.AsyncClient) -> None:
    questions = (await gateway.get("/page/examples.json")).json()
    pages = (await gateway.get("/page/example-pages.json")).json()
    assert len(questions) >= 3
    assert all(isinstance(question, str) and question.endswith("?") for question in questions)
    assert len(pages) == 5
    assert all(name.endswith(".html") and "<html" in html for name, html in pages.items())


def test_without_the_demo_there_are_no_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "DEMO", ("no", "demo"))
    assert {name: item.content for name, item in assets.examples().items()} == {
        "examples.json": b"[]",
        "example-pages.json": b"{}",
    }


async def test_the_api_stays_what_it_was(gateway: httpx.AsyncClient) -> None:
    document = (await gateway.get("/openapi.json")).json()
    assert "/services" in document["paths"]
    assert not [path for path in document["paths"] if path == "/" or path.startswith("/page")]
    missing = await gateway.get("/nothing")
    assert missing.headers["content-type"] == "application/problem+json"
    assert missing.json()["title"] == "Not Found"


async def test_a_gateway_can_do_without_it(gateways: Gateways) -> None:
    async with gateways(page=False) as gateway:
        for path in ("/", "/page/app.js", "/page/reports"):
            assert (await gateway.get(path)).status_code == 404, path
        assert (await gateway.get("/strategies")).status_code == 200


async def test_reports_are_listed_and_read(gateways: Gateways, tmp_path: Path) -> None:
    folder = tmp_path / "model" / "run" / "report"
    folder.mkdir(parents=True)
    (folder / "report.md").write_text("# <script>alert(1)</script>\n", encoding="utf-8")
    (folder / "latency.png").write_bytes(b"\x89PNG\r\n\x1a\n....")
    async with gateways(reports_dir=tmp_path) as gateway:
        [listed] = (await gateway.get("/page/reports")).json()
        assert (listed["name"], listed["pictures"]) == ("model/run", ["latency.png"])
        text = await gateway.get(f"/page/reports/{listed['id']}/report.md")
        assert text.headers["content-type"] == "text/plain; charset=utf-8", "never markup"
        assert text.text == "# <script>alert(1)</script>\n"
        picture = await gateway.get(f"/page/reports/{listed['id']}/latency.png")
        assert picture.headers["content-type"] == "image/png"
        assert json.loads((await gateway.get(f"/page/reports/{listed['id']}/summary.json")).text)["status"] == 404
