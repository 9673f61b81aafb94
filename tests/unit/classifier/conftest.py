"""The shipped model, loaded once."""

import pytest

from services.classifier.app import Model, load_model
from services.classifier.settings import ClassifierSettings


@pytest.fixture(scope="session")
def model() -> Model:
    return load_model(ClassifierSettings(precision="fp32"))
