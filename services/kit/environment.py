"""Types of settings that the environment spells in its own way."""

from typing import Annotated, TypeVar

from pydantic import BeforeValidator

T = TypeVar("T")
# None where the variable is empty.
OrNone = Annotated[T | None, BeforeValidator(lambda value: None if value == "" else value)]
