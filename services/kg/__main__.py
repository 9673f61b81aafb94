"""`python -m services.kg` runs the KG-API-parser."""

from services.kg.app import create_app
from services.kg.settings import KgSettings
from services.kit.app import serve

if __name__ == "__main__":
    settings = KgSettings()
    serve(create_app(settings), settings, service="kg", port=settings.kg_port)
