"""`python -m services.classifier` runs the classifier."""

from services.classifier.app import create_app
from services.classifier.settings import ClassifierSettings
from services.kit.app import serve

if __name__ == "__main__":
    settings = ClassifierSettings()
    serve(create_app(settings), settings, service="classifier", port=settings.classifier_port)
