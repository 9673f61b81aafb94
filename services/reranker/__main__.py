"""`python -m services.reranker` runs the reranker."""

from services.kit.app import serve
from services.reranker.app import create_app
from services.reranker.settings import RerankerSettings

if __name__ == "__main__":
    settings = RerankerSettings()
    serve(create_app(settings), settings, service="reranker", port=settings.reranker_port)
