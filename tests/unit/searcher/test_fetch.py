"""The fetcher under attack: whatever a site does costs its page, within the bounds, and nothing else."""

import asyncio
import gzip
import ssl
import subprocess
import time
import zlib
from pathlib import Path

import pytest

from services.searcher.errors import Failed, NotFetched, Refused, TooSlow
from tests.site import Answer, Site, for_ever, moved, reply
from tests.unit.searcher.fetching import AGENT, HERE, KIB, fetching

pytestmark = pytest.mark.anyio

LIMIT = 64 * KIB
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PAGE = b"<h1>Harbour</h1>"


async def outcome(site: Site, page: Answer, *, seconds: float = 20.0) -> NotFetched:
    site.pages["/"] = page
    async with fetching(site, seconds=seconds) as fetcher:
        with pytest.raises(NotFetched) as caught:
            await fetcher.page(site.url("/"))
    return caught.value


@pytest.mark.parametrize("squeeze", [False, True])
async def test_a_page_comes_with_what_its_server_says_of_it(site: Site, squeeze: bool) -> None:
    headers = ["Last-Modified: Sun, 01 Mar 2026 08:00:00 GMT"] + ["Content-Encoding: gzip"] * squeeze
    site.pages["/a?b=c"] = reply(gzip.compress(PAGE) if squeeze else PAGE, *headers, kind="Text/HTML; Charset=UTF-8")
    async with fetching(site) as fetcher:
        page = await fetcher.page(site.url("/a?b=c#d"))
    assert (page.body, page.kind, page.charset.lower(), page.cut) == (PAGE, "text/html", "utf-8", False)
    assert (page.url, page.last_modified) == (site.url("/a?b=c"), "Sun, 01 Mar 2026 08:00:00 GMT")
    (request,) = site.asked
    assert (request["user-agent"], request["host"]) == (AGENT, f"site.test:{site.port}")
    assert "cookie" not in request
    assert "referer" not in request


@pytest.mark.parametrize("kind", ["text/html;charset*0;charset*=;x", "text/html; charset=", "text/html;" + ";" * 9_000])
async def test_a_media_type_that_breaks_parsers_costs_nothing(site: Site, kind: str) -> None:
    site.pages["/"] = reply(PAGE, kind=kind)
    async with fetching(site) as fetcher:
        page = await fetcher.page(site.url("/"))
    assert (page.kind, page.body) == ("text/html", PAGE)


def gzip_of_nothing() -> tuple[bytes, bytes]:
    """A beginning with a page, and a piece that adds nothing to it, however often it comes."""
    squeezer = zlib.compressobj(wbits=31)
    return squeezer.compress(PAGE) + squeezer.flush(zlib.Z_SYNC_FLUSH), squeezer.flush(zlib.Z_FULL_FLUSH) * KIB


BEGIN, NOTHING = gzip_of_nothing()
GZIP = b"Content-Encoding: gzip"


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (lambda writer: for_ever(writer, HEAD + b"\r\n", b"x" * KIB), b"x" * LIMIT),
        (reply(gzip.compress(b"x" * 40 * 2**20, 1), GZIP.decode()), b"x" * LIMIT),
        (lambda writer: for_ever(writer, HEAD + GZIP + b"\r\n\r\n" + BEGIN, NOTHING), PAGE),
    ],
    ids=["a body without end", "a gzip bomb", "a gzip of nothing"],
)
async def test_what_is_too_long_is_cut(site: Site, sent: Answer, body: bytes) -> None:
    site.pages["/"] = sent
    async with fetching(site) as fetcher:
        page = await fetcher.page(site.url("/"))
    assert (page.body, page.cut) == (body, True)


@pytest.mark.parametrize(
    ("head", "piece"),
    [(HEAD + b"\r\n", b"x"), (HEAD, b"X-More: x\r\n"), (b"", b"H"), (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")],
    ids=["body", "headers", "status", "hints"],
)
async def test_a_slow_drip_ends_in_time(site: Site, head: bytes, piece: bytes) -> None:
    began = time.monotonic()
    error = await outcome(site, lambda writer: for_ever(writer, head, piece, 0.05), seconds=0.4)
    assert isinstance(error, TooSlow)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "page",
    [
        HEAD + b"X-Huge: " + b"x" * 200 * KIB + b"\r\n\r\n",
        HEAD + b"X-Many: x\r\n" * 20_000 + b"\r\n",
        b"SSH-2.0-OpenSSH_9.2p1\r\n" * 9,
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 9\r\n\r\n",
        reply(PAGE, kind="application/pdf"),
        reply(PAGE, kind="image/svg+xml"),
        reply(PAGE, kind="text/html-not"),
        reply(PAGE, kind=""),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        reply(PAGE, "Content-Encoding: br"),
        reply(PAGE, "Content-Encoding: gzip, gzip"),
        reply(PAGE, "Content-Encoding: gzip"),
        reply(PAGE, status="500 Oops"),
        reply(PAGE, status="206 Partial"),
        reply(PAGE, status="302 Found"),
        moved("/"),
        moved("http://[::1"),
    ],
)
async def test_what_is_no_page_is_none(site: Site, page: bytes) -> None:
    async def sent(writer: asyncio.StreamWriter) -> None:
        writer.write(page)
        await writer.drain()

    assert isinstance(await outcome(site, page if page.startswith(b"HTTP/1.1 302") else sent), Failed | Refused)


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/", "http://[::ffff:a9fe:a9fe]/", "http://2852039166/",
        "http://127.0.0.1:{port}/secret", "http://inside.test:{port}/secret", "//user:pass@site.test:{port}/secret",
        "http://site.test:22/", "file:///etc/passwd",
    ],
)  # fmt: skip
async def test_redirects_are_judged_as_addresses_are(site: Site, location: str) -> None:
    site.pages["/secret"] = reply(PAGE)
    site.pages["/"] = moved(location.format(port=site.port))
    async with fetching(site, [HERE], ["127.0.0.1"]) as fetcher:
        with pytest.raises(Refused):
            await fetcher.page(site.url("/"))
    assert site.paths == ["/"]


async def test_a_few_redirects_are_followed(site: Site) -> None:
    site.pages |= {"/": moved("/1"), "/1": moved(site.url("/2", "other.test")), "/2": reply(PAGE)}
    async with fetching(site, redirects=2) as fetcher:
        page = await fetcher.page(site.url("/"))
    assert (page.body, page.url) == (PAGE, site.url("/2", "other.test"))


@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "::1", "10.0.0.1", "fe80::1%lo"])
async def test_a_name_that_is_rebound_leads_nowhere_else(site: Site, inside: str) -> None:
    site.pages["/"] = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    async with fetching(site, [HERE], [inside]) as fetcher:
        await fetcher.page(site.url("/"))
        with pytest.raises(Refused):
            await fetcher.page(site.url("/"))
        with pytest.raises(Refused):
            await fetcher.page(site.url("/", "second.test"))
    assert site.addresses == [HERE], "the connection went to the address that was judged"
    async with fetching(site, [HERE, inside]) as fetcher:
        with pytest.raises(Refused):
            await fetcher.page(site.url("/", "of-both.test"))
    assert site.addresses == [HERE], "a name with one address inside is refused"


@pytest.mark.parametrize(
    ("robots", "there"),
    [
        (reply(b"User-agent: *\nDisallow: /private", kind="text/plain"), True),
        (reply(b"User-agent: *\nDisallow: /", kind="text/plain"), False),
        (reply(b"User-agent: *\nAllow: /\n\nUser-agent: testbot\nDisallow: /*age$", kind="text/plain"), False),
        (reply(b"User-agent: other\nDisallow: /", kind="text/plain"), True),
        (reply(b"<h1>no such file</h1>", status="404 Not Found"), True),
        (reply(b"", status="503 Unavailable"), False),
        (moved("/rules"), False),
        (moved("/robots.txt"), False),
        (reply(b"User-agent: *\nDisallow: /private", kind="text/plain"), None),
        (reply(b"\xff\xfe\x00" * 9, kind="image/png"), True),
    ],
)
async def test_robots_txt_is_heeded(site: Site, robots: bytes, there: bool | None) -> None:
    """Where `there` is None the page redirects to one that may not be read."""
    page = moved("/private") if there is None else reply(PAGE)
    site.pages |= {"/robots.txt": robots, "/page": page, "/more": reply(PAGE), "/private": reply(PAGE)}
    site.pages["/rules"] = reply(b"User-agent: *\nDisallow: /", kind="text/plain")
    async with fetching(site, robots=True) as fetcher:
        for path in ("/page", "/more") if there else ("/page",):
            try:
                assert (await fetcher.page(site.url(path))).body == PAGE
                assert there
            except NotFetched:
                assert not there
    asked = [request[""] for request in site.asked]
    assert ("/page" in asked) is (there is not False)
    assert "/private" not in asked
    assert not there or asked.count("/robots.txt") == 1, "once a site"


async def test_behind_a_proxy_names_are_its_business_and_numbers_are_ours(site: Site) -> None:
    proxy = Site()
    proxy.pages[site.url("/a", "somewhere.test")] = reply(PAGE)
    async with proxy.served(), fetching(site, [], proxy=f"http://me:secret@127.0.0.1:{proxy.port}/") as fetcher:
        assert (await fetcher.page(site.url("/a", "somewhere.test"))).body == PAGE
        for host in ("127.0.0.1", "2130706433", "[::1]"):
            with pytest.raises(Refused):
                await fetcher.page(site.url("/", host))
    assert [request["proxy-authorization"] for request in proxy.asked] == ["Basic bWU6c2VjcmV0"]
    assert not site.asked


async def test_a_page_that_nobody_waits_for_any_more_lets_go_of_its_connection(site: Site) -> None:
    reached = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        reached.set()
        await writer.wait_closed()

    site.pages["/"] = silent
    async with fetching(site) as fetcher:
        fetching_it = asyncio.create_task(fetcher.page(site.url("/")))
        await reached.wait()
        fetching_it.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching_it
        assert not fetcher._pool.connections


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of `site.test`, its key beside it."""
    argv = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=site.test"
    named = "-addext subjectAltName=DNS:site.test -keyout key.pem -out site.pem"
    subprocess.run([*argv.split(), *named.split()], cwd=tmp_path, check=True, capture_output=True)  # noqa: S603
    return tmp_path / "site.pem"


async def test_a_certificate_is_of_the_name_and_not_of_the_address(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with Site().served(context) as site, fetching(site) as fetcher:
        site.pages["/"] = reply(PAGE)
        assert (await fetcher.page(f"https://site.test:{site.port}/")).body == PAGE
        with pytest.raises(Failed):
            await fetcher.page(f"https://other.test:{site.port}/")
    assert len(site.asked) == 1
