"""Search engines by name; a further one is a file like the others, and its name here and in `EngineName`."""

from services.searcher.engines.base import Engine
from services.searcher.engines.brave import Brave
from services.searcher.engines.searxng import SearXNG
from services.searcher.engines.tavily import Tavily
from services.searcher.settings import EngineName

ENGINES: dict[EngineName, type[Engine]] = {"searxng": SearXNG, "brave": Brave, "tavily": Tavily}
