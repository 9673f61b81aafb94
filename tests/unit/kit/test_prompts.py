"""Prompt files: read by name, filled once."""

import pytest

from services.kit.llm import Message
from services.kit.prompts import PromptFolder

GATEWAY = PromptFolder("services.gateway")


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    system, user = GATEWAY.prompt("summarise").fill(documents="$query", query="$documents {0}")
    assert (system.role, user.role) == ("system", "user")
    assert "$query" in user.content
    assert "$documents {0}" in user.content


def test_a_hole_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        GATEWAY.prompt("summarise").fill(query="who?")


def test_files_of_other_forms() -> None:
    assert isinstance(GATEWAY.turn("self_assess"), Message)
    assert GATEWAY.table("domain_hints").keys() >= {"movie", "open"}
    assert "$domain" in PromptFolder("services.kg").template("program_adapter").template


def test_a_name_that_is_no_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        GATEWAY.prompt("nothing_of_that_name")
