"""Questions that a first visitor can ask by one click, and the pages with their answers: those of `cragmesh demo`."""

import json
from importlib.resources import files

from services.gateway.page.assets import MEDIA_TYPES, Asset, asset

# Shipped with the command line as data.
DEMO = ("cli", "demo")


def load() -> dict[str, Asset]:
    """`examples.json`, a list of questions, and `example-pages.json`, the pages of all of them by file name.

    Both are empty where the demo was not installed.
    """
    folder = files("services").joinpath(*DEMO)
    demo = {item.name: item for item in folder.iterdir()} if folder.is_dir() else {}
    entries = json.loads(demo["questions.json"].read_bytes()) if "questions.json" in demo else []
    pages = {name: demo[name].read_text(encoding="utf-8") for name in sorted(demo) if name.endswith(".html")}
    return {"examples.json": _json([entry["question"] for entry in entries]), "example-pages.json": _json(pages)}


def _json(value: object) -> Asset:
    return asset(json.dumps(value, ensure_ascii=False).encode(), MEDIA_TYPES["json"])
