"""SearXNG, one's own metasearch engine: https://docs.searxng.org/dev/search_api.html

Its `settings.yml` must name `json` among `search.formats`; it answers 403 where it does not.
"""

from urllib.parse import urlencode

from services.kit.errors import ServiceUnavailable
from services.searcher.engines.base import Call, Engine, Hit, Results, Text


class _Reply(Results):
    # Of the engines behind SearXNG: each with its reason.
    unresponsive_engines: tuple[tuple[Text, Text], ...] = ()


class SearXNG(Engine):
    def call(self, query: str) -> Call:
        return Call("GET", f"/search?{urlencode({'q': query, 'format': 'json', 'language': self.language})}")

    def hits(self, reply: bytes) -> list[Hit]:
        content = _Reply.model_validate_json(reply)
        if silent := "" if content.results else "; ".join(": ".join(pair) for pair in content.unresponsive_engines):
            raise ServiceUnavailable("search_engine", f"SearXNG hears nothing from {silent}")
        return list(content.results[: self.count])
