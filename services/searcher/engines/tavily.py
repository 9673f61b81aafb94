"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from services.searcher.engines.base import Call, Engine, Hit, Results

# Of its API.
MAX_COUNT = 20
MAX_QUERY_CHARS = 400


class Tavily(Engine):
    root = "https://api.tavily.com"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def call(self, query: str) -> Call:
        # It searches all languages.
        body = {"query": query[:MAX_QUERY_CHARS], "max_results": min(self.count, MAX_COUNT), "search_depth": "basic"}
        return Call("POST", "/search", body)

    def hits(self, reply: bytes) -> list[Hit]:
        return list(Results.model_validate_json(reply).results)
