"""`python -m services.gateway` runs the gateway."""

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from services.kit.app import serve

if __name__ == "__main__":
    settings = GatewaySettings()
    serve(create_app(settings), settings, service="gateway", port=settings.gateway_port)
