"""Files for browsers: read, compressed and tagged by their content once, before the first request."""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from fastapi import Request, Response

INDEX = "index.html"
# Shipped with the command line as data.
DEMO = ("cli", "demo")
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
}
# Of files of unknown type, which must never run.
TEXT = "text/plain; charset=utf-8"
# Compressing less than this saves no packet.
MIN_GZIP_BYTES = 1_000
# Browsers ask each time, and get 304: after an upgrade no old module meets a new one.
REVALIDATE = "no-cache"
# Scripts and styles are files of ours, nothing runs inline, and only this gateway is reached. By Trusted Types the
# browser itself keeps texts from becoming markup: the one policy, `inert`, is for documents that are parsed to be read
# and never shown (see `static/page-text.js`).
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types inert",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file's bytes, plain and compressed (empty where that saves nothing), and its tag."""

    content: bytes
    gzipped: bytes
    media_type: str
    etag: str


def asset(content: bytes, media_type: str) -> Asset:
    """A file's asset."""
    gzipped = gzip.compress(content, 9, mtime=0) if len(content) >= MIN_GZIP_BYTES else b""
    # Weak, since it tags both forms.
    etag = f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'
    return Asset(content, gzipped if len(gzipped) < len(content) else b"", media_type, etag)


def load() -> dict[str, Asset]:
    """The files of the page by their names in its addresses, with the examples."""
    static = (item for item in (files(__package__) / "static").iterdir() if item.is_file())
    own = {item.name: asset(item.read_bytes(), MEDIA_TYPES.get(item.name.rpartition(".")[2], TEXT)) for item in static}
    return own | examples()


def examples() -> dict[str, Asset]:
    """What a first visitor can ask by one click, that of `cragmesh demo`; empty where the demo was not installed.

    `examples.json` is a list of questions, and `example-pages.json` has the pages of all of them by file name.
    """
    folder = files("services").joinpath(*DEMO)
    demo = {item.name: item for item in folder.iterdir()} if folder.is_dir() else {}
    entries = json.loads(demo["questions.json"].read_bytes()) if "questions.json" in demo else []
    pages = {name: demo[name].read_text(encoding="utf-8") for name in sorted(demo) if name.endswith(".html")}
    contents = {"examples.json": [entry["question"] for entry in entries], "example-pages.json": pages}
    return {
        name: asset(json.dumps(content, ensure_ascii=False).encode(), MEDIA_TYPES["json"])
        for name, content in contents.items()
    }


def send(request: Request, item: Asset) -> Response:
    """A file as a response: 304 where the browser has it, compressed where it accepts that."""
    headers = SECURITY_HEADERS | {"cache-control": REVALIDATE, "etag": item.etag, "vary": "accept-encoding"}
    if item.etag in _listed(request.headers, "if-none-match"):
        return Response(status_code=304, headers=headers)
    content = item.content
    if item.gzipped and _takes_gzip(request.headers):
        content, headers["content-encoding"] = item.gzipped, "gzip"
    return Response(content, media_type=item.media_type, headers=headers)


def _listed(headers: Mapping[str, str], name: str) -> list[str]:
    return [value.strip() for value in headers.get(name, "").split(",")]


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    codings = (coding.replace(" ", "").lower() for coding in _listed(headers, "accept-encoding"))
    return any(
        name == "gzip" and quality not in ("q=0", "q=0.0") for name, _, quality in (c.partition(";") for c in codings)
    )
