"""`python -m services.searcher` runs the searcher."""

from services.kit.app import serve
from services.searcher.app import create_app
from services.searcher.settings import SearcherSettings

if __name__ == "__main__":
    settings = SearcherSettings()
    serve(create_app(settings), settings, service="searcher", port=settings.searcher_port)
