"""Examples for a first visitor."""

import json
from pathlib import Path

import pytest

from services.gateway.page import examples


def test_without_the_demo_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "files", lambda _: tmp_path)
    loaded = examples.load()
    assert {name: json.loads(item.content) for name, item in loaded.items()} == {
        "examples.json": [],
        "example-pages.json": {},
    }
