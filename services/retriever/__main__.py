"""`python -m services.retriever` runs the retriever."""

from services.kit.app import serve
from services.retriever.app import create_app
from services.retriever.settings import RetrieverSettings

if __name__ == "__main__":
    settings = RetrieverSettings()
    serve(create_app(settings), settings, service="retriever", port=settings.retriever_port)
