"""The shipped model, as the classifier's own tests load it."""

from tests.unit.classifier.conftest import model

__all__ = ["model"]
