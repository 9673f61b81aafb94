"""Brave Search: https://api-dashboard.search.brave.com/app/documentation/web-search"""

from urllib.parse import urlencode

from services.searcher.engines.base import Call, Engine, Hit, Results, Wire

# Of its API.
MAX_COUNT = 20
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 400, 50


class _Web(Results):
    results: tuple[Hit, ...] = ()


class _Reply(Wire):
    # Left out where nothing was found.
    web: _Web = _Web()


class Brave(Engine):
    root = "https://api.search.brave.com"

    @property
    def headers(self) -> dict[str, str]:
        return {"x-subscription-token": self.key, "accept": "application/json"}

    def call(self, query: str) -> Call:
        short = " ".join(query.split()[:MAX_QUERY_WORDS])[:MAX_QUERY_CHARS]
        params = {"q": short, "count": min(self.count, MAX_COUNT), "search_lang": self.language}
        return Call("GET", f"/res/v1/web/search?{urlencode(params)}")

    def hits(self, reply: bytes) -> list[Hit]:
        return list(_Reply.model_validate_json(reply).web.results)
