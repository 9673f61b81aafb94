"""How values of the environment are read where the type alone does not say it."""

from typing import Annotated, TypeVar

from pydantic import BeforeValidator

T = TypeVar("T")
# An empty value is none.
OrNone = Annotated[T | None, BeforeValidator(lambda value: None if value == "" else value)]
