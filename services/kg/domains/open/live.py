"""The calls of the CRAG mock API for a program about encyclopedia entries."""

from services.kg.live.fill import Live
from services.kit.concurrency import all_of


async def fetch(live: Live) -> None:
    """The entries that the names mean."""
    await all_of(_entry(live, name) for name in live.names("open"))


async def _entry(live: Live, name: str) -> None:
    titles = await live.search("open", "open/search_entity_by_name", name)
    await all_of(live.fetch("open/get_entity", query=title) for title in titles)
