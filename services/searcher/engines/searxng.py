"""SearXNG, one's own metasearch engine: https://docs.searxng.org/dev/search_api.html

Its `settings.yml` must name `json` among `search.formats`; it answers 403 where it does not.
"""

from urllib.parse import urlencode

from services.kit.errors import ServiceUnavailable
from services.searcher.engines.base import Call, Engine, Hit, Text, Wire


class _Result(Wire):
    url: str
    title: Text = ""
    content: Text = ""
    publishedDate: Text = ""


class _Reply(Wire):
    results: list[_Result]
    # Of those that SearXNG asks: each with its reason.
    unresponsive_engines: tuple[tuple[Text, Text], ...] = ()


class SearXNG(Engine):
    def call(self, query: str) -> Call:
        return Call("GET", f"/search?{urlencode({'q': query, 'format': 'json', 'language': self.language})}")

    def hits(self, reply: bytes) -> list[Hit]:
        said = _Reply.model_validate_json(reply)
        if silent := "" if said.results else "; ".join(": ".join(pair) for pair in said.unresponsive_engines):
            raise ServiceUnavailable("search_engine", f"SearXNG hears nothing from {silent}")
        return [
            Hit(url=one.url, title=one.title, snippet=one.content, published=one.publishedDate)
            for one in said.results[: self.count]
        ]
