"""The graph of places, loaded once."""

from pathlib import Path

import pytest

from tests.places.store import fill


@pytest.fixture(scope="session")
def places_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds `csv` with the files and `kg.sqlite` with the graph."""
    folder = tmp_path_factory.mktemp("places")
    fill(folder)
    return folder
