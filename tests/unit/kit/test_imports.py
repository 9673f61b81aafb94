"""A hidden package cannot be imported, and only while it is hidden."""

import importlib
import sys

import pytest

from services.kit.imports import hidden


def test_a_hidden_package_is_not_found_until_it_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with hidden("this", "colorsys.nothing"):
        with pytest.raises(ModuleNotFoundError, match="this is hidden"):
            importlib.import_module("this")
        assert importlib.import_module("colorsys")
    assert importlib.util.find_spec("this")


def test_what_was_imported_before_stays() -> None:
    with hidden("json"):
        assert importlib.import_module("json") is sys.modules["json"]
