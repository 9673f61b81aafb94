"""OpenAI's batches at the gateway: files of questions, answered within a day while nobody else asks."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from services.gateway.batches.runner import Runner
    from services.gateway.batches.store import Store


class Batches(NamedTuple):
    """The store of batches, and their runner."""

    store: "Store"
    runner: "Runner"
