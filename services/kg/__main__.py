"""`python -m services.kg` runs the KG-API-parser."""

import sys

from services.kg.app import create_app
from services.kg.definition.folder import BrokenDomain
from services.kg.settings import KgSettings
from services.kit.app import serve

if __name__ == "__main__":
    settings = KgSettings()
    try:
        app = create_app(settings)
    except BrokenDomain as error:
        sys.exit(f"kg does not start: {error}")
    serve(app, settings, service="kg", port=settings.kg_port)
