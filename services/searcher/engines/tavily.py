"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from services.searcher.engines.base import Call, Engine, Hit, Text, Wire

# Of its API.
MAX_COUNT = 20
MAX_QUERY_CHARS = 400


class _Result(Wire):
    url: str
    title: Text = ""
    content: Text = ""
    published_date: Text = ""


class _Reply(Wire):
    results: list[_Result]


class Tavily(Engine):
    root = "https://api.tavily.com"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def call(self, query: str) -> Call:
        # It searches all languages.
        asked = {"query": query[:MAX_QUERY_CHARS], "max_results": min(self.count, MAX_COUNT), "search_depth": "basic"}
        return Call("POST", "/search", asked)

    def hits(self, reply: bytes) -> list[Hit]:
        return [
            Hit(url=one.url, title=one.title, snippet=one.content, published=one.published_date)
            for one in _Reply.model_validate_json(reply).results
        ]
