"""Questions that a first visitor can ask by one click, and the pages that answer them: those of `cragmesh demo`."""

import json
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, TypeAdapter

from services.gateway.page.assets import MEDIA_TYPES, Asset, asset

# Shipped with the command line as data.
DEMO = ("cli", "demo")


class _Example(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: str


_EXAMPLES = TypeAdapter(list[_Example])


def load() -> dict[str, Asset]:
    """`examples.json`, a list of questions, and `example-pages.json`, the pages of all of them by file name.

    Both are empty where the demo was not installed.
    """
    folder = files("services").joinpath(*DEMO)
    questions: list[str] = []
    pages: dict[str, str] = {}
    if folder.is_dir():
        listed = folder / "questions.json"
        if listed.is_file():
            questions = [example.question for example in _EXAMPLES.validate_json(listed.read_bytes())]
        names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".html"))
        pages = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    return {"examples.json": _json(questions), "example-pages.json": _json(pages)}


def _json(value: object) -> Asset:
    return asset(json.dumps(value, ensure_ascii=False).encode(), MEDIA_TYPES["json"])
